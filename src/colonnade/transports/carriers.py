"""What carries rounds between machines, and what it works with at either end: a log, a desk that answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from colonnade.transports.endpoints import ServerEndpoint
from colonnade.transports.envelopes import Answer, Ask, Goodbye, RunEnd, Status

# Tells what became of a run that a party names and that is not under way here; None if it is.
Outcome = Callable[[str], tuple[Status, str] | None]
Look = Callable[[Sequence[str]], None]


class Log(Protocol):
    """Keeps events: never a data value."""

    def __call__(self, event: str, **facts: object) -> None:
        """Keep one: what happened in a few fixed words, with names and counts."""


class Desk(Protocol):
    """Answers for a party."""

    @property
    def open_runs(self) -> tuple[str, ...]:
        """The runs it is in the middle of, or that wait for its owner."""

    def answer(self, ask: Ask) -> Answer | None:
        """Answer a request, or repeat the answer it gave; None while its run waits for the owner."""

    def is_waiting(self, run: str) -> bool:
        """Tell whether a run waits for the owner."""

    def after_sending(self) -> None:
        """Do what an answer need not wait for."""

    def end(self, end: RunEnd) -> None:
        """Forget a run that is over."""

    def give_up(self, reason: str) -> None:
        """Forget every run, because the server stayed away."""

    def close(self) -> None:
        """Leave what is unfinished to the next process."""


class Carrier(Protocol):
    """Brings envelopes to parties and answers back: gRPC streams, or somebody else's platform."""

    @property
    def missing(self) -> list[str]:
        """Parties that are not there."""

    @property
    def owners_asked(self) -> list[str]:
        """Parties that wait until their owners approve."""

    def wait_for_all(self) -> None:
        """Wait until every party is there, or one has stayed away too long."""

    def ask(self, asks: Mapping[str, Ask]) -> dict[str, bytes]:
        """Send each party its request, and give all answers."""

    def tell_all(self, envelope: RunEnd | Goodbye) -> None:
        """Tell every party that is there."""

    def close(self) -> None:
        """Let what was sent arrive, and end."""


class MakeCarrier(Protocol):
    """Makes a carrier for a server."""

    def __call__(
        self, endpoint: ServerEndpoint, log: Log, *, outcome: Outcome, on_change: Callable[[], None], look: Look
    ) -> Carrier:
        """Start it; `on_change` is told when a party came or went.

        `look` is told about every second who is waited for, where the carrier can tell; what it raises ends the wait.
        """
