"""Stand-ins for parties: as many columns, a few rows of chance numbers, so that a run can be rehearsed in small."""

from typing import Any, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import LogisticTask, Roster, Task
from colonnade.data.parties import Party
from colonnade.kernels.arrays import Floats
from colonnade.preparation.rules import Number, Prepare

# Enough for every message of a run to be sent once.
ROWS, SIZE, STEPS = 200, 40, 2
Options = TypeVar("Options", bound=msgspec.Struct)


def stand_ins(roster: Roster, task: Task[Any]) -> list[Party]:
    """Make parties that hold what these do, in small."""
    rng = np.random.default_rng(0)
    n_rows = max(min(roster.n_rows, ROWS), 2 * getattr(task, "n_clusters", 1))
    return [
        Party(
            card.name,
            _columns(rng.normal(size=(n_rows, card.n_features)), named=card.prepared is not None),
            label=None if card.label_name is None else _label(task, rng.normal(size=n_rows)),
            weight=np.ones(n_rows) if card.has_weights else None,
            split=(np.arange(n_rows) % 2).astype(np.float64) if card.has_split else None,
            prepare=None if card.prepared is None else Prepare({"*": Number()}),
        )
        for card in roster.cards
    ]


def _label(task: Task[Any], values: Floats) -> Floats:
    """Give labels as the task takes them: numbers, or its classes in turn."""
    if not isinstance(task, LogisticTask):
        return values
    named = (0, 1) if task.classes is None else task.classes
    return np.array(named)[np.arange(len(values)) % len(named)]


def _columns(values: Floats, *, named: bool) -> Any:
    """Give columns names where they are to be prepared by these."""
    if not named:
        return values
    import pyarrow as pa

    return pa.table({str(i): column for i, column in enumerate(values.T)})


def in_small(options: Options) -> Options:
    """Ask a sampler for few rows, and a solver for few steps."""
    few = {"size": SIZE, "max_epochs": STEPS}
    known = {name: few[name] for name in few if name in options.__struct_fields__}
    return msgspec.structs.replace(options, **{name: min(getattr(options, name), most) for name, most in known.items()})
