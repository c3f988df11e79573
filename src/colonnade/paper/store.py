"""The results file: a line a trial, appended as it is finished, so that an interrupted run goes on where it stopped."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from colonnade.paper.trials import Trial, read_trials


class Key(NamedTuple):
    """A trial's place in the tables: the fields by which it is known, in the order of `Trial`."""

    experiment: str
    task: str
    variant: str
    data: str
    method: str
    size: int
    repeat: int
    seed: int


def key(trial: Trial) -> Key:
    """Say which trial it is."""
    return Key(*(getattr(trial, name) for name in Key._fields))


class Store:
    """Trials on disk; the file is made with its folder where it is missing, and a last line torn off is dropped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._trials = {key(trial): trial for trial in read_trials(path)}
        _drop_torn_line(path)

    def get(self, wanted: Key) -> Trial | None:
        """Look up a finished trial."""
        return self._trials.get(wanted)

    def add(self, trial: Trial) -> None:
        """Append one, at once."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(trial) + b"\n")
        self._trials[key(trial)] = trial


def _drop_torn_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
