"""The board's door: a token that is printed once, and sessions of those who know it; only digests are kept."""

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

TOKEN_BYTES = 32
SESSION_SECONDS = 12 * 3600.0
# Of so many browsers at a time; the oldest is let go.
MAX_SESSIONS = 32
# So many wrong tokens a minute are looked at, and then none, right or wrong.
MAX_WRONG, WRONG_SECONDS = 10, 60.0


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
        self._wrong: deque[float] = deque()

    @property
    def is_shut(self) -> bool:
        """Whether there were too many wrong tokens of late."""
        while self._wrong and self._wrong[0] <= self._ticks() - WRONG_SECONDS:
            self._wrong.popleft()
        return len(self._wrong) >= MAX_WRONG

    def knows(self, token: str) -> bool:
        """Tell whether it is the token; a wrong one is counted."""
        if self.is_shut:
            return False
        if hmac.compare_digest(_digest(token), self._token):
            return True
        self._wrong.append(self._ticks())
        return False

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
