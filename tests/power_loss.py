"""A machine that loses its power: of a folder remains what was forced to the disk, and nothing else."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from colonnade import failpoints


class PowerCut(BaseException):
    """No error of ours: the process might as well have died."""


@dataclass
class Disk:
    """What is on the disk below a folder: the names in each folder that was synced, and the bytes of each file.

    A file without a name is lost, and one that was never synced is empty. Files are known by their number (inode), so
    that they keep their bytes under another name.
    """

    home: Path
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    folders: set[int] = field(default_factory=set)
    steps_left: int | None = None
    is_cut: bool = False
    # A number is used again once its file is gone: whatever was synced stays open.
    _held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take what is there for long since written."""
        self.home = self.home.resolve()
        for path in (self.home, *self.home.rglob("*")):
            file = os.open(path, os.O_RDONLY)
            self._note(file, path)
            os.close(file)

    def reached(self, point: str, about: object) -> None:
        """Follow every step, and cut the power at the one that was asked for, of this thread."""
        if self.is_cut or not isinstance(about, int | Path):
            return
        path = Path(f"/proc/self/fd/{about}").readlink() if isinstance(about, int) else about.resolve()
        if not path.is_relative_to(self.home):
            return
        if point == "after sync" and isinstance(about, int):
            self._note(about, path)
        if self.steps_left is not None and threading.current_thread() is threading.main_thread():
            self.steps_left -= 1
            if self.steps_left < 0:
                self.is_cut = True
                raise PowerCut

    def _note(self, file: int, path: Path) -> None:
        self._held.append(os.dup(file))
        number = os.fstat(file).st_ino
        if path.is_dir():
            self.folders.add(number)
            # A listing holds its numbers: other threads rename files of this folder all the while.
            with os.scandir(path) as listing:
                entries = list(listing)
            self.names[number] = {each.name: each.inode() for each in entries}
            self.folders.update(each.inode() for each in entries if each.is_dir())
        else:
            self.contents[number] = path.read_bytes()

    def cut_after(self, steps: int, work: Callable[[], object]) -> bool:
        """Do something, with the power cut after so many steps of it; tell whether it was done before that."""
        self.steps_left = steps
        try:
            work()
        except PowerCut:
            return False
        finally:
            self.steps_left = None
        return True

    def start_again(self) -> None:
        """Put what is on the disk in the place of what the process saw."""
        root = self.home.stat().st_ino
        for path in list(self.home.iterdir()):  # threads that have not heard of it may be at work
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        self._put(self.home, root)
        self.let_go()

    def let_go(self) -> None:
        """Close what is open."""
        for file in self._held:
            os.close(file)
        self._held.clear()

    def _put(self, folder: Path, number: int) -> None:
        for name, each in self.names.get(number, {}).items():
            if each in self.folders:
                (folder / name).mkdir(exist_ok=True)
                self._put(folder / name, each)
            else:
                (folder / name).write_bytes(self.contents.get(each, b""))


def power_loss(home: Path) -> AbstractContextManager[Disk]:
    """Follow what is forced to the disk below a folder; at the end, all else is lost."""
    return _followed(home, Disk.start_again)


def killed(home: Path) -> AbstractContextManager[Disk]:
    """Follow the steps likewise, where only the process dies: what it has written stays."""
    return _followed(home, Disk.let_go)


@contextmanager
def _followed(home: Path, at_the_end: Callable[[Disk], None]) -> Iterator[Disk]:
    disk = Disk(home)
    failpoints.listen(disk.reached)
    try:
        yield disk
    finally:
        failpoints.unlisten(disk.reached)
        at_the_end(disk)
