"""Connections that came to nothing, in words: only what gRPC's own library writes to stderr tells a server of them."""

import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from colonnade.transports.grpc import QUIET, VERBOSITY

TALKATIVE = "INFO"
MOST_BYTES = 1 << 16
# A line of the library's log that is no last word, and what one says of a handshake.
LOG_LINE = re.compile(rb"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./]+:\d+\] ")
FAILED = re.compile(rb"Handshake failed with error SSL_ERROR_SSL: error:\w+:[^:]*:[^:]*:(\w+)(?:: (.*))?")
SHOWN = "CERTIFICATE_VERIFY_FAILED"
OTHER_AUTHORITY = "it showed a certificate that this server's authority did not sign"
DISTRUST = "it hung up when it saw this server's certificate: it trusts another authority, or expects another name"
# BoringSSL's reasons. An end that has no keys yet says in the clear why it hangs up: that is a bad packet, here.
REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "WRONG_VERSION_NUMBER": "it spoke plaintext, and this server speaks TLS",
    "HTTP_REQUEST": "it spoke plaintext, and this server speaks TLS",
    "HTTPS_PROXY_REQUEST": "it spoke plaintext, and this server speaks TLS",
    "UNSUPPORTED_PROTOCOL": "it has no TLS 1.3",
    "NO_SHARED_CIPHER": "it has no TLS 1.3",
    "BAD_PACKET_LENGTH": DISTRUST,
    "TLSV1_ALERT_UNKNOWN_CA": DISTRUST,
    "SSLV3_ALERT_BAD_CERTIFICATE": DISTRUST,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": DISTRUST,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it hung up: by its clock this server's certificate has expired",
}

Tell = Callable[[str], None]
_listeners: list[Tell] = []


class FailedHandshakes:
    """Tells of connections that came to nothing, of each kind the first, the tenth, the hundredth: anyone can dial."""

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        self._tell = tell
        self._counts: Counter[str] = Counter()
        _listeners.append(self._count)

    def close(self) -> None:
        """Hear of no more."""
        _listeners.remove(self._count)

    def _count(self, why: str) -> None:
        self._counts[why] += 1
        if re.fullmatch("10*", str(self._counts[why])):
            self._tell(why, self._counts[why])


def in_words(line: bytes) -> str | None:
    """Say what a line of gRPC's log tells of a handshake that failed; None if it is about something else."""
    found = FAILED.search(line)
    if found is None:
        return None
    reason, detail = (each.decode(errors="replace") if each else "" for each in found.groups())
    if reason != SHOWN:
        return REASONS.get(reason, f"TLS failed ({reason.lower().replace('_', ' ')})")
    if "expired" in detail:
        return "it showed a certificate that has expired"
    if "not yet valid" in detail:
        return "it showed a certificate that is not valid yet"
    return (
        OTHER_AUTHORITY if "issuer" in detail or "self" in detail else f"it showed a certificate that fails: {detail}"
    )


@contextmanager
def overheard() -> Iterator[None]:
    """Take the library's log off stderr, and tell those who listen what it says of handshakes; the rest is noise.

    For a command that is about to load gRPC, which reads its environment once: an owner who set the variable has the
    say, and sees the log as it is. What others write to the process's stderr still comes through.
    """
    if os.environ.get(VERBOSITY, QUIET) != QUIET:
        yield
        return
    sys.stderr.flush()
    (reading, writing), stderr = os.pipe(), os.dup(2)
    os.environ[VERBOSITY] = TALKATIVE
    os.dup2(writing, 2)
    os.close(writing)
    ours, sys.stderr = sys.stderr, open(stderr, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    reader = threading.Thread(target=_read, args=(reading, stderr), daemon=True)
    reader.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = ours
        os.dup2(stderr, 2)  # the last that could write to the pipe: it ends
        os.environ[VERBOSITY] = QUIET
        reader.join(1.0)


def _read(reading: int, stderr: int) -> None:
    rest = b""
    while piece := os.read(reading, MOST_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest if len(rest) < MOST_BYTES else b""
        for line in lines:
            _hear(line, stderr)
    os.close(reading)


def _hear(line: bytes, stderr: int) -> None:
    if LOG_LINE.match(line) is None:
        os.write(stderr, line + b"\n")
    elif why := in_words(line):
        for tell in _listeners:
            tell(why)
