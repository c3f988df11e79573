"""The board's door: a token that is printed once, sessions of those who know it, and tickets; only digests are kept.

There is no cookie: a browser sends a machine's cookies to all its ports, so to any other server there. A page keeps the
secret of its session, and says it with each request; where it cannot, for it opens an address, it has a ticket.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

TOKEN_BYTES = 32
SESSION_SECONDS = 12 * 3600.0
# Of so many pages at a time; the oldest is let go.
MAX_SESSIONS = 32
# A ticket stands in an address: it is good once, at once. So many may wait to be used; the oldest is let go.
TICKET_SECONDS, MAX_TICKETS = 30.0, 64


class Door:
    """Lets in who shows the token."""

    def __init__(self, token: str, ticks: Callable[[], float] = time.monotonic) -> None:
        self._token = _digest(token)
        self._ticks = ticks
        self._sessions: dict[bytes, float] = {}
        self._tickets: dict[bytes, tuple[bytes, float]] = {}

    def knows(self, token: str) -> bool:
        """Tell whether it is the token.

        Wrong ones are not counted: nobody guesses 256 bits, and a limit would let a stranger shut out the owner.
        """
        return hmac.compare_digest(_digest(token), self._token)

    def let_in(self) -> str:
        """Begin a session, and give the secret that a page keeps."""
        now = self._ticks()
        self._sessions = {key: until for key, until in self._sessions.items() if until > now}
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = new_token()
        self._sessions[_digest(secret)] = now + SESSION_SECONDS
        return secret

    def session(self, secret: str) -> bytes | None:
        """Find the session of a page by its secret, unless it is over."""
        key = _digest(secret)
        return key if self.is_open(key) else None

    def is_open(self, session: bytes) -> bool:
        """Tell whether a session goes on."""
        return self._sessions.get(session, 0.0) > self._ticks()

    def let_out(self, session: bytes) -> None:
        """End a session, and with it the tickets that it has."""
        self._sessions.pop(session, None)

    def ticket(self, session: bytes) -> str:
        """Give a ticket for one request of a session."""
        now = self._ticks()
        self._tickets = {key: each for key, each in self._tickets.items() if each[1] > now}
        while len(self._tickets) >= MAX_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        ticket = new_token()
        self._tickets[_digest(ticket)] = (session, now + TICKET_SECONDS)
        return ticket

    def redeem(self, ticket: str) -> bytes | None:
        """Take a ticket, and give the session that it is of, unless its time or the session is over."""
        session, until = self._tickets.pop(_digest(ticket), (b"", 0.0))
        return session if until > self._ticks() and self.is_open(session) else None


def new_token() -> str:
    """Make a token of 256 bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
