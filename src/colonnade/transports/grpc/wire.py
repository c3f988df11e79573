"""What both ends of a gRPC stream share: the method, certificates, keep-alive and sizes.

Colonnade's messages are bytes to gRPC.
"""

from typing import Any

import grpc

from colonnade.errors import InputError
from colonnade.transports.endpoints import Tls
from colonnade.transports.envelopes import MAX_PIECE_BYTES
from colonnade.transports.grpc.certified import Certified, Credentials, read_credentials

SERVICE, METHOD = "colonnade.Rounds", "Join"
# The party's name, as its party.toml has it. In plaintext, which is for one machine only, nothing else says it.
CLAIMED_NAME = "claimed-name"
MOST_CONNECTIONS = "grpc.max_allowed_incoming_connections"
HANDSHAKE_SECONDS = 10
# A line that takes packets has so many times the keep-alive to answer.
QUEUE_FACTOR = 6


def listening_credentials(tls: Tls) -> Any:
    """Make a server's credentials: whoever dials in must show a certificate of the authority.

    A file that was changed counts from the next line on: a certificate is renewed without a stop.
    """
    known = [read_credentials(tls)]

    def fetch() -> Any:
        try:
            found = read_credentials(tls)
        except InputError:
            return None  # in the middle of a change: as before
        if found == known[0]:
            return None
        known[0] = found
        return _configuration(found)

    return grpc.dynamic_ssl_server_credentials(_configuration(known[0]), fetch, True)


def _configuration(found: Credentials) -> Any:
    return grpc.ssl_server_certificate_configuration([(found.key, found.certificate)], found.authority)


def dialling_credentials(tls: Tls) -> Any:
    """Make a party's credentials: the server must show a certificate of the authority."""
    found = read_credentials(tls)
    return grpc.ssl_channel_credentials(found.authority, found.key, found.certificate)


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


def shown_by(context: Any) -> Certified:
    """Read the certificate that a peer showed."""
    return Certified.read(context.auth_context()["x509_pem_cert"][0])
