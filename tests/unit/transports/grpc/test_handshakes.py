"""What gRPC's library writes of failed handshakes, in words."""

import os
import subprocess
import sys

import pytest

from colonnade.transports.grpc import handshakes
from colonnade.transports.grpc.handshakes import DISTRUST, OTHER_AUTHORITY, FailedHandshakes, in_words

PREFIX = b"I1118 08:01:49.672697   12011 ssl_transport_security.cc:2563] "
FAILED = PREFIX + b"Handshake failed with error SSL_ERROR_SSL: error:1000007d:SSL routines:OPENSSL_internal:"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate", OTHER_AUTHORITY),
        (b"CERTIFICATE_VERIFY_FAILED: self signed certificate in certificate chain", OTHER_AUTHORITY),
        (b"CERTIFICATE_VERIFY_FAILED: certificate has expired", "it showed a certificate that has expired"),
        (b"CERTIFICATE_VERIFY_FAILED: certificate is not yet valid", "it showed a certificate that is not valid yet"),
        (b"CERTIFICATE_VERIFY_FAILED: odd", "it showed a certificate that fails: odd"),
        (b"BAD_PACKET_LENGTH: Invalid certificate verification context", DISTRUST),
        (b"TLSV1_ALERT_UNKNOWN_CA", DISTRUST),
        (b"WRONG_VERSION_NUMBER: Invalid", "it spoke plaintext, and this server speaks TLS"),
        (b"PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid", "it showed no certificate"),
        (b"SOMETHING_NEW", "TLS failed (something new)"),
    ],
)
def test_reasons(line: bytes, words: str) -> None:
    assert in_words(FAILED + line) == words


def test_of_something_else_it_says_nothing() -> None:
    assert in_words(PREFIX + b"Something else happened") is None


def test_strangers_cannot_fill_the_screen_or_the_log() -> None:
    told: list[tuple[str, int]] = []
    failed = FailedHandshakes(lambda why, count: told.append((why, count)))
    for _ in range(5000):
        for listener in list(handshakes._listeners):
            listener("it showed no certificate")
    failed.close()
    assert [count for _, count in told] == [1, 10, 100, 1000]
    assert not handshakes._listeners


CHILD = """
import os, sys
from colonnade.transports.grpc import handshakes
heard = []
failed = handshakes.FailedHandshakes(lambda why, count: heard.append(why))
with handshakes.overheard():
    print("ours", file=sys.stderr)
    os.write(2, b"others\\n")
    os.write(2, b"I1118 08:01:49.672697   12011 log.cc:12] noise\\n")
    os.write(2, {failed!r} + b"\\n")
    os.write(2, b"F1118 08:01:49.672697   12011 log.cc:12] last words\\n")
print(heard, os.environ["GRPC_VERBOSITY"])
os.write(2, b"after\\n")
"""


@pytest.mark.parametrize("is_owners", [False, True])
def test_the_log_is_taken_off_stderr_and_nothing_else_unless_the_owner_asked_for_it(is_owners: bool) -> None:
    code = CHILD.format(failed=FAILED + b"PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid")
    others = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    asked = {"GRPC_VERBOSITY": "DEBUG"} if is_owners else {}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**others, **asked}
    )
    lines = done.stderr.splitlines()
    assert {"ours", "others", "after"} <= set(lines)
    assert any("last words" in line for line in lines)
    assert any("noise" in line for line in lines) is is_owners
    assert done.stdout.split() == (["[]", "DEBUG"] if is_owners else ["['it", "showed", "no", "certificate']", "NONE"])
