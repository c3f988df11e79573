"""What a person at the server sees on stderr: who is waited for, and whose owner."""

from collections.abc import Sequence

from colonnade.options import listed
from colonnade.transports import terminal
from colonnade.transports.terminal import SCREEN, Waiting

SHOWN_NAMES = 10


class MissingParties:
    """Tells on stderr who is waited for; of many, the first."""

    def __init__(self) -> None:
        self._waiting = Waiting(terminal.say, SCREEN)

    def __call__(self, missing: Sequence[str]) -> None:
        """Tell it, if it is time to; that nobody is missing at once, if somebody was."""
        if missing:
            self._waiting.tell(f"colonnade: waiting for {listed(missing, SHOWN_NAMES)}")
        elif self._waiting.over():
            say("all parties are connected")


def say_whose_owner(party: str) -> None:
    """Write to stderr whose owner is waited for."""
    say(f"waiting for the owner of {party} to approve")


def say_who_was_refused(why: str, count: int, missing: Sequence[str]) -> None:
    """Write to stderr why connections were refused, so many by now, and whose they may have been."""
    times = f" ({count:,} times)" if count > 1 else ""
    say(f"a connection was refused: {why}{times}; missing: {listed(missing, SHOWN_NAMES) or 'nobody'}")


def say(words: str) -> None:
    """Write to stderr what a person at the server should see."""
    terminal.say(f"colonnade: {words}")
