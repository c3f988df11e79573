"""Amounts an owner allows: so much a day, requests a minute. What was used up outlives a restart."""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import msgspec

from colonnade.messages import Message
from colonnade.node.state_folder import write_private
from colonnade.protocol.policy import amounts

# What is counted a day, and how that is called.
COUNTED = {
    "rows": "rows",
    "row_ids": "row ids",
    "keys": "keys compared",
    "numbers": "numbers about single rows",
    "moments": "numbers about many rows",
    "models": "models applied",
}
ONCE = Fraction(1)


class DayLimits(msgspec.Struct, frozen=True):
    """How much of each a party sends a server in one day; None is no limit."""

    rows: int | None = None
    row_ids: int | None = None
    keys: int | None = None
    numbers: int | None = None
    moments: int | None = None
    models: int | None = None


class _SpentOnDay(msgspec.Struct):
    day: str
    # By server.
    spent: dict[str, dict[str, int]] = {}
    # The request whose reply was counted last, as a digest: a party that is killed before it leaves counts it once.
    last: str = ""


_decoder: msgspec.json.Decoder[_SpentOnDay] = msgspec.json.Decoder(_SpentOnDay)


class Allowance:
    """Counts what a party sends a server against what its owner allows.

    `path` is where the day's counts are kept. A row counts each time it is sent. A day is one of UTC, a minute any
    sixty seconds; `now` is the calendar, `ticks` are seconds that only grow.
    """

    def __init__(
        self,
        path: Path,
        server: str,
        a_day: DayLimits,
        requests_a_minute: int | None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._server = server
        self._a_day = a_day
        self._requests_a_minute = requests_a_minute
        self._now, self._ticks = now, ticks
        self._request_times: deque[float] = deque()

    def limit(self, a_day: DayLimits) -> None:
        """Allow other amounts from now on: the table has other rows. What was spent today counts."""
        self._a_day = a_day

    def objection_to_request(self) -> str | None:
        """Count one request, or say why it is one too many."""
        if self._requests_a_minute is None:
            return None
        tick = self._ticks()
        while self._request_times and self._request_times[0] <= tick - 60:
            self._request_times.popleft()
        if len(self._request_times) >= self._requests_a_minute:
            return f"its owner's policy limits requests to {self._requests_a_minute:,} a minute; try again later"
        self._request_times.append(tick)
        return None

    def objection_to_reply(self, request: Message, reply: Message, known_by: str, times: Fraction = ONCE) -> str | None:
        """Count what a reply to a request, known by a digest, tells, on the disk, or say why it is too much.

        All that the question is about will be so many times as much: nothing of it is told where that is too much.
        """
        told = {name: count for name, count in amounts(request, reply).items() if count}
        if not told:
            return None
        record = self._record()
        if record.last == known_by:
            return None
        spent = record.spent.setdefault(self._server, {})
        for name, count in told.items():
            most, before = getattr(self._a_day, name), spent.get(name, 0)
            if most is not None and before + count * (1 if name == "models" else times) > most:
                return (
                    f"its owner's policy limits replies to {most:,} {COUNTED[name]} a day; {before:,} were sent today, "
                    f"and this reply has {_in_all(count, times)}. Ask for fewer, or wait until tomorrow (UTC)"
                )
            spent[name] = before + count
        record.last = known_by
        write_private(self._path, msgspec.json.encode(record))
        return None

    def left(self) -> dict[str, int]:
        """Say what is left of the day's amounts, of those that have a limit."""
        spent = self._record().spent.get(self._server, {})
        limits = {name: most for name in COUNTED if (most := getattr(self._a_day, name)) is not None}
        return {name: max(most - spent.get(name, 0), 0) for name, most in limits.items()}

    def _record(self) -> _SpentOnDay:
        today = self._now().date().isoformat()
        if self._path.exists():
            record = _decoder.decode(self._path.read_bytes())
            if record.day >= today:  # later, where the calendar was set back: no day begins twice
                return record
        return _SpentOnDay(today)


def _in_all(count: int, times: Fraction) -> str:
    return f"{count:,}" if times == 1 else f"{count:,}, with those that follow it {round(count * times):,}"
