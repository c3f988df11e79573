"""The few steps by which files are written, each between two failpoints."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from colonnade.failpoints import reach

Buffer: TypeAlias = bytes | memoryview
# Files and folders that only their owner can read.
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700


def write(file: int, data: Buffer) -> None:
    """Write all of it to an open file."""
    reach("before write", file)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    reach("after write", file)


def sync(file: int) -> None:
    """Force an open file to the disk."""
    reach("before sync", file)
    os.fsync(file)
    reach("after sync", file)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk: of files that are new, were renamed or removed."""
    if os.name == "nt":  # has no such thing
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        sync(folder)
    finally:
        os.close(folder)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it, where they are missing, and force their names to the disk."""
    if not path.exists():
        make_folder(path.parent)
        path.mkdir(mode=mode, exist_ok=True)
        sync_folder(path.parent)


def rename(path: Path, target: Path) -> None:
    """Give a file or folder another name."""
    reach("before rename", path)
    path.rename(target)
    reach("after rename", target)


def replace(path: Path, target: Path) -> None:
    """Put a file in the place of another, which may be there."""
    reach("before rename", path)
    path.replace(target)
    reach("after rename", target)


def link(path: Path, name: Path) -> None:
    """Give a file another name, unless something has it; its own stays."""
    reach("before link", path)
    os.link(path, name)
    reach("after link", name)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    reach("before remove", path)
    path.unlink(missing_ok=True)
    reach("after remove", path)


def write_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that only its owner can read; what was there before is lost."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    try:
        write(file, content)
        if durable:
            sync(file)
    finally:
        os.close(file)


def discard(name: str) -> None:
    """Remove a file that is no longer needed, where the system removes what is in use."""
    with suppress(OSError):
        Path(name).unlink()
