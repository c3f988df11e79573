"""gRPC as the carrier: one stream a party, with mutual TLS.

Its library has no switch that forbids TLS 1.2, but takes a list of ciphers for it: the one named here needs a key that
no end has, so that 1.3, which has ciphers of its own, is all that is left. What it writes to stderr is noise beside our
own words. It reads both when it starts, and an owner who sets them has the say.
"""

import os

VERBOSITY, QUIET = "GRPC_VERBOSITY", "NONE"
os.environ.setdefault(VERBOSITY, QUIET)
os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-CBC-SHA")
