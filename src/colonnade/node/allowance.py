"""Amounts an owner allows: rows a day, requests a minute. What was used up outlives a restart."""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from colonnade.node.state_folder import write_private


class _Spent(msgspec.Struct):
    day: str
    rows: int


class Allowance:
    """Counts what a party told against what its owner allows.

    Parameters
    ----------
    path : Path
        Where the day's count is kept.
    rows_a_day : int or None
        Rows told of in one day (UTC), each as often as it is told; None is no limit.
    requests_a_minute : int or None
        Requests answered in any sixty seconds; None is no limit.
    now, ticks : callable
        The calendar, and seconds that only grow.
    """

    def __init__(
        self,
        path: Path,
        rows_a_day: int | None,
        requests_a_minute: int | None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._rows_a_day = rows_a_day
        self._requests_a_minute = requests_a_minute
        self._now, self._ticks = now, ticks
        self._asked: deque[float] = deque()

    def objection_to_request(self) -> str | None:
        """Count one request, or say why it is one too many."""
        if self._requests_a_minute is None:
            return None
        tick = self._ticks()
        while self._asked and self._asked[0] <= tick - 60:
            self._asked.popleft()
        if len(self._asked) >= self._requests_a_minute:
            return f"its owner's policy answers {self._requests_a_minute:,} requests a minute at most; try again later"
        self._asked.append(tick)
        return None

    def objection_to_rows(self, rows: int) -> str | None:
        """Count rows that a reply tells of, or say why they are too many."""
        if self._rows_a_day is None or rows == 0:
            return None
        today, spent = self._now().date().isoformat(), 0
        if self._path.exists():
            record = msgspec.json.decode(self._path.read_bytes(), type=_Spent)
            spent = record.rows if record.day == today else 0
        if spent + rows > self._rows_a_day:
            return (
                f"its owner's policy tells of {self._rows_a_day:,} rows a day at most; {spent:,} were told of today "
                f"and {rows:,} more were asked for"
            )
        write_private(self._path, msgspec.json.encode(_Spent(today, spent + rows)))
        return None
