"""Amounts an owner allows: rows a day, requests a minute. What was used up outlives a restart."""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from colonnade.node.state_folder import write_private


class _RowsOfDay(msgspec.Struct):
    day: str
    rows: int


class Allowance:
    """Counts what a party sends against what its owner allows; None is no limit.

    `path` is where the day's count is kept. A row counts each time it is sent. A day is one of UTC, a minute any sixty
    seconds; `now` is the calendar, `ticks` are seconds that only grow.
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
        self._request_times: deque[float] = deque()

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

    def objection_to_rows(self, rows: int) -> str | None:
        """Count the rows of a reply, or say why they are too many."""
        if self._rows_a_day is None or rows == 0:
            return None
        today, sent = self._now().date().isoformat(), 0
        if self._path.exists():
            record = msgspec.json.decode(self._path.read_bytes(), type=_RowsOfDay)
            sent = record.rows if record.day == today else 0
        if sent + rows > self._rows_a_day:
            return (
                f"its owner's policy limits replies to {self._rows_a_day:,} rows a day; {sent:,} were sent today, and "
                f"this reply has {rows:,}"
            )
        write_private(self._path, msgspec.json.encode(_RowsOfDay(today, sent + rows)))
        return None
