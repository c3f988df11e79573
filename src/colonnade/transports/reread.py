"""Files that a running end reads again: what stands in them counts from the next time it is asked for."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from colonnade.errors import InputError
from colonnade.storage import MAX_SECRET_BYTES, read_file

T = TypeVar("T")
Tell = Callable[[str], None]


class Reread(Generic[T]):
    """What a file says now.

    While it is gone, half written or wrong, what it said before counts, and `tell` hears so. `understood` makes sense
    of its bytes, knowing what it said before, or raises ValueError. To begin with, a wrong file is an error.
    """

    def __init__(self, path: Path, understood: Callable[[bytes, T | None], T], tell: Tell, remedy: str) -> None:
        self._path, self._understood, self._tell, self._remedy = path, understood, tell, remedy
        self._lock = threading.Lock()
        self._trouble = ""
        try:
            self._content = self._read()
            self._value = understood(self._content, None)
        except (OSError, ValueError) as error:
            raise InputError(f"Cannot read {path}: {_words(error)}. {remedy}") from error

    def now(self) -> T:
        """Read it again: all of it, because times and sizes can be the same after a change."""
        with self._lock:
            words = self._look()
        if words:
            self._tell(words)
        return self._value

    def _look(self) -> str:
        """Take over what the file says, and give what a person should hear of it."""
        try:
            content = self._read()
            self._value = self._value if content == self._content else self._understood(content, self._value)
        except (OSError, ValueError) as error:
            trouble, before = _words(error), self._trouble
            self._trouble = trouble
            if trouble == before:
                return ""
            name = self._path.name
            return f"Warning: {name} cannot be read: {trouble}. What it said before still counts. {self._remedy}"
        has_changed = content != self._content
        self._content, self._trouble = content, ""
        return f"{self._path.name} was read again: it has changed." if has_changed else ""

    def _read(self) -> bytes:
        return read_file(self._path.resolve(), MAX_SECRET_BYTES)


def _words(error: OSError | ValueError) -> str:
    """Say what is wrong, without the file's path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error).removesuffix(".")
