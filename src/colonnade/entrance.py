"""Checks at the door: what a caller passes is refused here, with what to do, or can be relied on inside."""

import reprlib
import warnings
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Roster, Task
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.errors import AlignmentError, AssumptionWarning, InputError, UnsupportedError
from colonnade.kernels.arrays import Rows
from colonnade.options import whole_number
from colonnade.sampling import AnySampler
from colonnade.tasks import AnyTask


def seed_number(seed: int) -> int:
    """Require a seed."""
    return whole_number("seed", seed, least=0, example="Pass for instance seed=0.")


def row_ids(rows: npt.ArrayLike, n_rows: int) -> Rows:
    """Require a list of rows that exist, in any order."""
    wanted = np.asarray(rows)
    if wanted.ndim != 1 or not wanted.size or wanted.dtype.kind not in "iu":
        raise InputError(f"rows must be a list of row numbers, got {reprlib.repr(rows)}. Pass for instance [0, 5, 7].")
    if unknown := [int(row) for row in wanted if not 0 <= row < n_rows]:
        raise InputError(f"There is no row {unknown[0]}: rows are numbered 0 to {n_rows - 1}. Leave it out.")
    return wanted.astype(np.int64)


def check_parties(parties: list[Party]) -> None:
    """Require parties with names of their own."""
    if not parties:
        raise InputError("A federation needs at least one party. Pass a list of Party.")
    for party in parties:
        check_kind("party", party, Party)
    names = [party.name for party in parties]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Two parties are called {duplicates[0]!r}. Give each its own name.")


def check_job(task: Task[object], roster: Roster, *, sampler: object = None, coreset: object = None) -> None:
    """Require a task that these parties can do, with a sampler or a coreset of theirs, if any.

    Parameters
    ----------
    task : Regression or KMeans
        What to do.
    roster : Roster
        The parties.
    sampler, coreset : object
        What the caller passed as such; None is fine.
    """
    check_kind("task", task, AnyTask)
    check_kind("sampler", sampler, AnySampler | None)
    check_kind("coreset", coreset, Coreset | None)
    task.check(roster)
    if isinstance(coreset, Coreset) and coreset.n_rows != roster.n_rows:
        raise AlignmentError(
            f"The coreset was made of {coreset.n_rows} rows; these parties hold {roster.n_rows}. "
            "Use it with the parties it came from."
        )
    if isinstance(coreset, Coreset):
        _warn_of_other_task(task, coreset)


def _warn_of_other_task(task: Task[object], coreset: Coreset) -> None:
    needed = type(task.score_rule()).__name__
    if coreset.rule not in (None, needed):
        warnings.warn(
            f"The coreset was drawn by {coreset.rule}; {type(task).__name__} needs {needed}, and on this coreset "
            "there is no guarantee for it. Draw a coreset for this task.",
            AssumptionWarning,
            stacklevel=4,
        )


def check_kind(role: str, value: object, kinds: Any) -> None:
    """Require a value of a registered kind."""
    if not isinstance(value, kinds):
        choices = " | ".join(kind.__name__ for kind in get_args(kinds) or (kinds,) if kind is not type(None))
        # Shortened: the value may be somebody's table.
        raise UnsupportedError(f"{reprlib.repr(value)} is not a {role}. Pass one of: {choices}.")
