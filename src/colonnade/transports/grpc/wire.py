"""What both ends of a gRPC stream share: the method, certificates, keep-alive and sizes.

Colonnade's messages are bytes to gRPC. Its library speaks TLS 1.2 and 1.3, and takes 1.3 where both ends have it; it
offers no switch that would forbid 1.2, and knows no older version.
"""

from pathlib import Path
from typing import Any

import grpc

from colonnade.errors import InputError
from colonnade.transports.endpoints import Tls
from colonnade.transports.envelopes import MAX_PIECE_BYTES

SERVICE, METHOD = "colonnade.Rounds", "Join"
# In plaintext, which is for one machine only, there is no certificate to read a name from.
CLAIMED_NAME = "claimed-name"
MOST_CONNECTIONS = "grpc.max_allowed_incoming_connections"
HANDSHAKE_SECONDS = 10
# A line that takes packets has so many times the keep-alive to answer.
QUEUE_FACTOR = 6


def listening_credentials(tls: Tls) -> Any:
    """Make a server's credentials: whoever dials in must show a certificate of the authority."""
    key, certificate, authority = _pem(tls.key), _pem(tls.certificate), _pem(tls.authority)
    return grpc.ssl_server_credentials([(key, certificate)], authority, True)


def dialling_credentials(tls: Tls) -> Any:
    """Make a party's credentials: the server must show a certificate of the authority."""
    return grpc.ssl_channel_credentials(_pem(tls.authority), _pem(tls.key), _pem(tls.certificate))


def options(keepalive_seconds: float) -> list[tuple[str, int]]:
    """Set sizes, and how soon a silent cut is noticed.

    Where no packet is acknowledged the kernel gives up after twice the keep-alive. Where packets are taken but nobody
    answers (a stuck proxy, a stopped process) it takes longer: on a narrow line an answer waits behind large messages.
    """
    milliseconds = max(1, round(1000 * keepalive_seconds))
    return [
        ("grpc.max_receive_message_length", MAX_PIECE_BYTES),
        ("grpc.max_send_message_length", MAX_PIECE_BYTES),
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        ("grpc.http2.ping_timeout_ms", QUEUE_FACTOR * milliseconds),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 4),
        ("grpc.server_handshake_timeout_ms", 1000 * HANDSHAKE_SECONDS),
        ("grpc.so_reuseport", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2000),
    ]


def certified_names(context: Any) -> set[str]:
    """Read the names in a peer's certificate: its common name, and its alternative names."""
    facts = context.auth_context()
    found = [*facts.get("x509_common_name", []), *facts.get("x509_subject_alternative_name", [])]
    return {name.decode("utf-8", "replace") for name in found}


def _pem(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"Cannot read {path}: {error}. `colonnade certs new` makes certificates for a trial."
        ) from error
