"""The board's door: a token that is printed once, and sessions of those who know it; only digests are kept."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

TOKEN_BYTES = 32
SESSION_SECONDS = 12 * 3600.0
# Of so many browsers at a time; the oldest is let go.
MAX_SESSIONS = 32


@dataclass(frozen=True)
class Session:
    """Who has shown the token; `word` stands in the page, and every request that changes something repeats it."""

    word: str
    until: float


class Door:
    """Lets in who shows the token."""

    def __init__(self, token: str, ticks: Callable[[], float] = time.monotonic) -> None:
        self._token = _digest(token)
        self._ticks = ticks
        self._sessions: dict[bytes, Session] = {}

    def knows(self, token: str) -> bool:
        """Tell whether it is the token.

        Wrong ones are not counted: nobody guesses 256 bits, and a limit would let a stranger shut out the owner.
        """
        return hmac.compare_digest(_digest(token), self._token)

    def let_in(self) -> str:
        """Begin a session, and give the secret that a browser keeps."""
        now = self._ticks()
        self._sessions = {key: each for key, each in self._sessions.items() if each.until > now}
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(TOKEN_BYTES)
        self._sessions[_digest(secret)] = Session(secrets.token_urlsafe(TOKEN_BYTES), now + SESSION_SECONDS)
        return secret

    def session(self, secret: str) -> Session | None:
        """Find the session of a browser, unless it is over."""
        found = self._sessions.get(_digest(secret))
        return found if found is not None and found.until > self._ticks() else None

    def let_out(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(secret), None)


def new_token() -> str:
    """Make a token of 256 bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def is_word(session: Session, word: str) -> bool:
    """Tell whether a request repeats the session's word."""
    return hmac.compare_digest(_digest(session.word), _digest(word))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
