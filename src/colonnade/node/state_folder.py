"""The folder in which a server or a party keeps what outlives its process: its owner's, and one process's at a time."""

import os
from pathlib import Path

from colonnade.errors import InputError, UnsupportedError
from colonnade.node.journal import PRIVATE, sync_folder


class StateFolder:
    """A folder that only its owner can read, held by one process; made where it is missing."""

    def __init__(self, path: Path) -> None:
        try:
            import fcntl  # not on Windows, where the rest of the command still works
        except ImportError as error:
            raise UnsupportedError(f"State folders need POSIX file locks: {error}. Use Linux or macOS.") from error
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise InputError(f"The state folder {path} cannot be used: {error}. Name one you may write to.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise InputError(
                f"The state folder {path} is in use by another process. Stop that one, or name another folder."
            ) from error

    def journals(self) -> list[Path]:
        """List the journals of unfinished runs, oldest first."""
        return sorted(self.path.glob("*.journal"), key=lambda file: file.stat().st_mtime_ns)

    def journal(self, run: str) -> Path:
        """Name the journal of a run."""
        return self.path / f"{run}.journal"

    def release(self) -> None:
        """Let another process have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def is_held(path: Path) -> bool:
    """Tell whether a process holds a folder."""
    try:
        StateFolder(path).release()
    except InputError:
        return True
    return False


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that only its owner can read, whole or not at all, also where the power goes if it is durable."""
    fresh = path.with_name(f".{path.name}.fresh")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        if durable:
            os.fsync(file)
    finally:
        os.close(file)
    fresh.replace(path)
    if durable:
        sync_folder(path.parent)
