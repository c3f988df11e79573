"""The folder in which a server or a party keeps what outlives its process: its owner's, and one process's at a time."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from colonnade import disk
from colonnade.disk import PRIVATE, PRIVATE_FOLDER
from colonnade.errors import InputError, UnsupportedError
from colonnade.node.journal import FRESH

# Whoever looks whether a folder is in use holds it for a moment: who comes then tries again.
TRIES, PAUSE_SECONDS = 5, 0.02


class StateFolder:
    """A folder that only its owner can read, held by one process; made where it is missing."""

    def __init__(self, path: Path) -> None:
        _check_locks()
        self.path = path
        try:
            disk.make_folder(path, PRIVATE_FOLDER)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise InputError(f"The state folder {path} cannot be used: {error}. Name one you may write to.") from error
        if not any(_is_locked(self._lock, pause) for pause in (*[PAUSE_SECONDS] * (TRIES - 1), 0.0)):
            os.close(self._lock)
            raise InputError(
                f"The state folder {path} is in use by another process. Stop that one, or name another folder."
            )
        for left in path.glob(f"*{FRESH}"):  # a process was killed before it could put them in their places
            left.unlink()

    def journals(self) -> list[Path]:
        """List the journals of unfinished runs, oldest first."""
        return sorted(self.path.glob("*.journal"), key=lambda file: file.stat().st_mtime_ns)

    def journal(self, run: str) -> Path:
        """Name the journal of a run."""
        return self.path / f"{run}.journal"

    def sync(self) -> None:
        """Force the names of its files to the disk."""
        disk.sync_folder(self.path)

    def release(self) -> None:
        """Let another process have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def is_held(path: Path) -> bool:
    """Tell whether a process holds a folder; nothing in it is changed."""
    _check_locks()
    try:
        lock = os.open(path / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _is_locked(lock, alone=False)
    finally:
        os.close(lock)


def _check_locks() -> None:
    try:
        import fcntl  # noqa: F401  # not on Windows, where the rest of the command still works
    except ImportError as error:
        raise UnsupportedError(f"State folders need POSIX file locks: {error}. Use Linux or macOS.") from error


def _is_locked(lock: int, pause: float = 0.0, *, alone: bool = True) -> bool:
    """Try to lock an open file, for one process alone; where another holds it, pause."""
    import fcntl

    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        time.sleep(pause)
        return False
    return True


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that only its owner can read, whole or not at all, also where the power goes if it is durable."""
    fresh = path.with_name(f".{path.name}{FRESH}")
    disk.write_file(fresh, content, durable=durable)
    disk.replace(fresh, path)
    if durable:
        disk.sync_folder(path.parent)


@contextmanager
def whole_file(path: Path, permissions: int = PRIVATE) -> Iterator[BinaryIO]:
    """Write a file piece by piece, whole or not at all: it is at its place once all of it is on the disk.

    Of two processes that write it at a time, the one that began first fails.
    """
    fresh = path.with_name(f".{path.name}{FRESH}")
    fresh.unlink(missing_ok=True)  # a killed process may have left one that others can read
    file = open(fresh, "xb", opener=partial(os.open, mode=permissions))  # noqa: SIM115  # it is closed below
    own = os.fstat(file.fileno())
    try:
        with file:
            yield file
            file.flush()
            disk.sync(file.fileno())
        if not _is_file(fresh, own):
            raise OSError(errno.EBUSY, "another process is writing it")
        disk.replace(fresh, path)
    finally:
        if _is_file(fresh, own):  # of an error nothing is left
            fresh.unlink()
    disk.sync_folder(path.parent)


def _is_file(path: Path, seen: os.stat_result) -> bool:
    """Tell whether it is the file that was seen."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), seen)
    return False
