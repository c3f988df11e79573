"""The door: what a federation requires of its callers, checked once, before anything is sent."""

import os
import reprlib
import warnings
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Roster, Task
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.diagnostics.certifying import Certified
from colonnade.errors import AlignmentError, AssumptionWarning, DisclosureWarning, InputError, UnsupportedError
from colonnade.kernels.arrays import Rows
from colonnade.options import whole_number
from colonnade.privacy.identities import identities_here
from colonnade.protocol.identity import Identity
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.sampling import AnySampler, ImportanceSampling
from colonnade.solvers import AnySolver
from colonnade.tasks import AnyModel, AnyTask, LinearModel, jobs


def check_job(
    task: Task[object], roster: Roster, *, sampler: object = None, coreset: object = None, split: object = None
) -> None:
    """Require a task these parties can do, and rows of theirs."""
    check_kind("task", task, AnyTask)
    check_kind("sampler", sampler, AnySampler | None)
    check_kind("coreset", coreset, Coreset | None)
    check_kind("split", split, AnySplit | None)
    task.check(roster)
    if isinstance(sampler, ImportanceSampling):
        sampler.check(roster)
    if isinstance(coreset, Coreset) and coreset.n_rows != roster.n_rows:
        raise AlignmentError(
            f"The coreset was made of {coreset.n_rows} rows; these parties hold {roster.n_rows}. "
            "Use it with the parties it came from."
        )
    if isinstance(coreset, Coreset):
        _warn_of_other_task(task, coreset)


def warn_of_disclosure(sampler: object, solver: AnySolver) -> None:
    """Warn where scores are kept from the server and the solver then shows it the rows they are scores of.

    In one process nothing is disclosed, and `Central` always shows rows: a warning in each fit would be read once and
    never again. Here the caller has asked for secrecy, and does not get it.
    """
    if isinstance(sampler, ImportanceSampling) and sampler.scores == "secure" and solver.shows:
        warnings.warn(
            f"Scores are summed in secret, but {type(solver).__name__} shows {' and '.join(solver.shows)} of the same "
            "rows. Stop at the coreset, federation.coreset(...), or see run.disclosure for what was shown to whom.",
            DisclosureWarning,
            stacklevel=3,
        )


def either(sampler: AnySampler | None, coreset: Coreset | None) -> AnySampler | Coreset:
    """Require one of the two."""
    source = coreset if sampler is None else sampler
    if source is None or (sampler is not None and coreset is not None):
        raise InputError(
            "fit needs a sampler or a coreset, and not both. "
            "Pass for instance sampler=ImportanceSampling(size=2000), or coreset=run.coreset."
        )
    return source


def check_model(model: AnyModel, roster: Roster) -> None:
    """Require a model of these parties' columns."""
    check_kind("model", model, AnyModel)
    jobs.check_columns(model, roster)


def check_can_evaluate(model: AnyModel, roster: Roster) -> None:
    """Require what an evaluation compares with."""
    if isinstance(model, LinearModel) and roster.label_party is None:
        raise InputError("Evaluating a regression needs a label, and no party holds one. Name it at one party.")


def certified(run: Run[Any], roster: Roster) -> Certified:
    """Require a run of these parties, with a model; take of it what an audit needs."""
    check_kind("run", run, Run)
    if run.model is None:
        raise InputError("The run has no model: it stopped at the coreset. Certify a run of fit.")
    check_model(run.model, roster)
    check_can_evaluate(run.model, roster)
    if run.coreset.n_rows != roster.n_rows:
        raise AlignmentError(
            f"The run was of {run.coreset.n_rows} rows; these parties hold {roster.n_rows}. "
            "Certify it with the parties it came from."
        )
    return Certified(run.task, run.model, run.split, run.coreset, run.precision)  # type: ignore[arg-type]  # closed


def check_party(name: str, roster: Roster) -> None:
    """Require a party that is there."""
    if name not in roster.names:
        raise InputError(f"There is no party {name!r}. Choose among: {', '.join(roster.names)}.")


def seed_number(seed: int) -> int:
    """Require a seed a generator takes."""
    return whole_number("seed", seed, least=0, example="Pass for instance seed=0.")


def row_ids(rows: npt.ArrayLike, n_rows: int) -> Rows:
    """Require numbers of rows that exist, in any order."""
    wanted = np.asarray(rows)
    if wanted.ndim != 1 or not wanted.size or wanted.dtype.kind not in "iu":
        raise InputError(f"rows must be a list of row numbers, got {reprlib.repr(rows)}. Pass for instance [0, 5, 7].")
    if unknown := [int(row) for row in wanted if not 0 <= row < n_rows]:
        raise InputError(f"There is no row {unknown[0]}: rows are numbered 0 to {n_rows - 1}. Leave it out.")
    return wanted.astype(np.int64)


def check_parties(parties: Iterable[Party]) -> list[Party]:
    """Require parties with names of their own."""
    if isinstance(parties, Party):
        raise InputError("A federation needs a list of parties. Pass [party].")
    parties = list(parties)
    if not parties:
        raise InputError("A federation needs at least one party. Pass a list of Party.")
    for party in parties:
        check_kind("party", party, Party)
    names = [party.name for party in parties]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Two parties are called {duplicates[0]!r}. Give each its own name.")
    return parties


def identities(parties: Iterable[Party]) -> dict[str, Identity | None]:
    """Give each party of this process its owner's identity; where no owner gave any, new ones that trust each other."""
    given = {party.name: party.identity for party in parties}
    return given if any(given.values()) else dict(identities_here(given, os.urandom))


def _warn_of_other_task(task: Task[object], coreset: Coreset) -> None:
    needed = type(task.score_rule()).__name__
    if coreset.rule not in (None, needed):
        warnings.warn(
            f"The coreset was drawn by {coreset.rule}; {type(task).__name__} needs {needed}, and on this coreset "
            "there is no guarantee for it. Draw a coreset for this task.",
            AssumptionWarning,
            stacklevel=5,
        )


def check_kind(role: str, value: object, kinds: Any) -> None:
    """Require one of the registered kinds."""
    if not isinstance(value, kinds):
        choices = " | ".join(kind.__name__ for kind in get_args(kinds) or (kinds,) if kind is not type(None))
        # Shortened: the value may be somebody's table.
        raise UnsupportedError(f"{reprlib.repr(value)} is not a {role}. Pass one of: {choices}.")
