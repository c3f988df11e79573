"""The end of a log that another process writes to: read again only where it has grown."""

from pathlib import Path
from typing import Any

from colonnade.node.log import LOG
from colonnade.node.log_chain import facts_of

# So much of it is read: some thousand events.
TAIL_BYTES = 1 << 20


class LogTail:
    """The last events of a log."""

    def __init__(self, state: Path) -> None:
        self._path = state / LOG
        self._seen: tuple[int, int] | None = None
        self._events: list[dict[str, Any]] = []

    def events(self) -> list[dict[str, Any]]:
        """Give them, the oldest first; a line that is being written is left out."""
        try:
            status = self._path.stat()
            if self._seen == (status.st_size, status.st_mtime_ns):
                return self._events
            with self._path.open("rb") as file:
                start = max(status.st_size - TAIL_BYTES, 0)
                file.seek(start)
                lines = file.read(TAIL_BYTES).rpartition(b"\n")[0].splitlines(keepends=True)
        except OSError:  # none yet
            return self._events
        self._seen = (status.st_size, status.st_mtime_ns)
        self._events = list(facts_of(lines[1:] if start else lines))
        return self._events
