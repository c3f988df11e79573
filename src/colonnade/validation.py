"""What a federation requires of its callers, checked once, before anything is sent."""

import reprlib
import warnings
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from colonnade.contracts import LinearTask, LogisticTask, Model, PartyCard, Roster, Task
from colonnade.coreset import GIVEN, Coreset, Evidence
from colonnade.data.parties import Party
from colonnade.diagnostics.certifying import AuditSubject
from colonnade.errors import AlignmentError, AssumptionWarning, DisclosureWarning, InputError, UnsupportedError
from colonnade.kernels.arrays import Rows
from colonnade.messages import MAX_NUMBERS
from colonnade.options import whole_number
from colonnade.planning.records import Plan
from colonnade.privacy.primitives import check_available
from colonnade.protocol.fingerprints import Tables
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.sampling import AnySampler
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.sharpened import SharpenedScores
from colonnade.solvers import AnySolver, Central
from colonnade.tasks import MODELS, AnyTask, PaperTask
from colonnade.tasks.model_columns import check_columns

# Coresets by the one rule serve tasks of the other.
SERVES = {(SharpenedScores.__name__, LeverageScores.__name__)}

M = TypeVar("M")


def check_job(
    task: Task[object],
    roster: Roster,
    *,
    sampler: object = None,
    solver: object = None,
    coreset: object = None,
    split: object = None,
    run_by: str | None = None,
) -> None:
    """Require a task, and ways to draw and to learn, that these parties can do with this server, and rows of theirs."""
    check_kind("task", task, AnyTask)
    check_ways(sampler, solver)
    check_kind("coreset", coreset, Coreset | None)
    check_kind("split", split, AnySplit | None)
    if solver is not None and hasattr(sampler, "size"):
        _check_size(sampler.size, task, roster)
    task.check(roster)
    if isinstance(sampler, AnySampler):
        sampler.check(task, roster, run_by)
    if isinstance(coreset, Coreset):
        _check_same_rows(coreset, roster, "coreset")
        _check_sendable(coreset)
        _warn_of_other_task(task, coreset)
    if isinstance(solver, AnySolver):
        solver.check(task, roster, run_by)


def _check_size(size: int, task: Task[object], roster: Roster) -> None:
    """Require as many rows as there are coefficients, where nothing but rows decides these."""
    if (
        isinstance(task, LinearTask | LogisticTask)
        and size < (needed := _n_coefficients(task, roster))
        and not _is_penalised(task)
    ):
        raise InputError(
            f"size is {size:,}, and so few rows do not determine {needed:,} coefficients: whatever passes through them "
            f"would do. Draw many more than {needed:,}, or give a penalty, for instance l2=0.1."
        )


def warn_of_few_rows(run: Run[M]) -> Run[M]:
    """Warn where a model was learned on no more distinct rows than it has coefficients, and give the run."""
    if not isinstance(run.task, LinearTask | LogisticTask):
        return run
    distinct, learned = run.coreset.n_distinct, _n_coefficients(run.task, run.roster)
    if distinct <= learned:
        but = "but for the penalty, " if _is_penalised(run.task) else ""
        warnings.warn(
            f"{learned:,} coefficients were learned on {distinct:,} distinct rows: {but}so few can be fitted whatever "
            "their labels are, and the objective on them is no estimate of that on others. Use more rows, or fewer "
            "columns.",
            AssumptionWarning,
            stacklevel=3,
        )
    return run


def _n_coefficients(task: LinearTask[object] | LogisticTask[object], roster: Roster) -> int:
    return sum(len(card.feature_names) for card in roster.cards) + task.fit_intercept


def _is_penalised(task: LinearTask[object] | LogisticTask[object]) -> bool:
    try:
        return any(task.penalties())
    except UnsupportedError:  # one is to be chosen
        return True


def check_ways(sampler: object, solver: object = None) -> None:
    """Require ways to draw and to learn, where there are some."""
    check_kind("sampler", sampler, AnySampler | None)
    check_kind("solver", solver, AnySolver | None)


def warn_of_disclosure(sampler: AnySampler | None, solver: AnySolver, *, between_machines: bool) -> None:
    """Warn where the solver shows raw rows or labels, to another machine or although scores were to be secret.

    In one process nothing is disclosed: a warning in each fit would be read once and never again.
    """
    in_secret = getattr(sampler, "scores", None) == "secure"
    if solver.shows and (between_machines or in_secret):
        although = "Scores are summed in secret, but " if in_secret else ""
        warnings.warn(
            f"{although}{type(solver).__name__} shows the server {' and '.join(solver.shows)} of the drawn rows. "
            "SecureGram() for regression and SecureLloyd() for k-means show none; federation.coreset(...) stops before "
            "any is shown; run.disclosure says what was shown to whom.",
            DisclosureWarning,
            stacklevel=3,
        )


def committed(run: Run[Any], roster: Roster) -> tuple[IntegerScores, Evidence]:
    """Require a run of these parties whose draws were committed; give what rows were scored by, and the evidence."""
    run.spot_check()
    _check_same_rows(run.coreset, roster, "run")
    rule, evidence = run.rule, run.coreset.evidence
    if run.roster != roster or evidence is None or not isinstance(rule, IntegerScores):
        raise AlignmentError(
            f"The run was made with {', '.join(run.roster.names)} and their columns; these are others: "
            f"{', '.join(roster.names)}. Check it with the parties it came from."
        )
    return rule, evidence


def either(sampler: AnySampler | None, coreset: Coreset | None) -> AnySampler | Coreset:
    """Require one of the two."""
    source = coreset if sampler is None else sampler
    if source is None or (sampler is not None and coreset is not None):
        raise InputError(
            "fit needs a sampler or a coreset, and not both. "
            "Pass for instance sampler=ImportanceSampling(size=2000), or coreset=run.coreset."
        )
    return source


def check_undecided(by: str, **given: object) -> None:
    """Require that nothing is given that a plan, or a limit, decides."""
    if decided := [name for name, value in given.items() if value is not None and value != Central()]:
        raise InputError(f"A {by} decides the {decided[0]}. Leave it out, or leave out the {by}.")


def check_plan(plan: Plan, task: Task[object], roster: Roster, **given: object) -> None:
    """Require a plan for this task and these parties, and nothing beside it that it decides."""
    check_kind("plan", plan, Plan)
    check_undecided("plan", **given)
    if task != plan.task:
        raise InputError(f"The plan is for {plan.task}, not for {task}. Plan this task, or fit that one.")
    if plan.parties != roster.cards:
        differing = [
            f"{ours or 'no party'} where the plan has {theirs or 'none'}"
            for ours, theirs in zip_longest(map(_card, roster.cards), map(_card, plan.parties))
            if ours != theirs
        ]
        raise InputError(f"The plan is for other parties: here is {differing[0]}. Plan again with these parties.")


def _card(card: PartyCard) -> str:
    label = "" if card.label_name is None else f", label {card.label_name}"
    return f"{card.name} ({card.n_rows:,} rows of {', '.join(card.feature_names) or 'no features'}{label})"


def check_model(model: Model[Any], roster: Roster) -> None:
    """Require a model of these parties' columns."""
    check_kind("model", model, MODELS)
    check_columns(model, roster)


def check_can_evaluate(model: Model[Any], roster: Roster) -> None:
    """Require what an evaluation compares with."""
    if model.needs_label and roster.label_party is None:
        raise InputError("Evaluating this model needs a label, and no party holds one. Name it at one party.")


def check_evaluator(name: str, model: Model[Any], bits: int | None, roster: Roster) -> None:
    """Require a party that can evaluate in the server's place; a classification, the one that knows labels."""
    check_party(name, roster)
    if getattr(model, "classes_", None) is not None and name != roster.label_party:
        raise UnsupportedError(
            f"A classification is evaluated where its labels are, and {name!r} has none: labels cannot be subtracted "
            f"from logits under masks. Pass by={roster.label_party!r}."
        )
    check_available()
    if bits is not None:
        raise InputError("Parts under masks are not rounded. Leave out bits, or the party to evaluate by.")


def check_held_out(learned_from: Tables | None, split: object, roster: Roster) -> None:
    """Require, where rows are held out, that they are those that a model was not learned from."""
    if split is None or learned_from is None or learned_from.alignment == roster.alignment:
        return
    raise AlignmentError(
        "Rows that are held out under one alignment are others under another: the records were aligned again since the "
        "model was learned, or these are other tables. Leave out the split, and all rows count; changed='allow' takes "
        'the split as it is (--changed allow, or changed = "allow" in a [[job]]).'
    )


def _check_sendable(coreset: Coreset) -> None:
    """Require no more rows than one message lists to the parties."""
    if len(coreset) > MAX_NUMBERS:
        raise InputError(
            f"The coreset has {len(coreset):,} rows, and {MAX_NUMBERS:,} are the most that can be listed to parties. "
            "Where it is all rows that count, pass sampler=AllRows() and the same split in its place."
        )


def _check_same_rows(coreset: Coreset, roster: Roster, what: str) -> None:
    if coreset.n_rows != roster.n_rows:
        raise AlignmentError(
            f"The {what} was made of {coreset.n_rows} rows; these parties hold {roster.n_rows}. "
            "Use it with the parties it came from."
        )
    if coreset.alignment != roster.alignment and not (coreset.alignment is None and coreset.sampler == GIVEN):
        raise AlignmentError(
            f"The {what} goes by another alignment of the parties' records than they have now: its rows are others. "
            "Draw anew."
        )


def audit_subject(run: Run[Any], roster: Roster) -> AuditSubject:
    """Require a run of these parties, with a model; take of it what an audit needs."""
    check_kind("run", run, Run)
    if run.model is None:
        raise InputError("The run has no model: it stopped at the coreset. Certify a run of fit.")
    task = paper_task(run.task, "certified")
    check_model(run.model, roster)
    check_two_classes(getattr(run.model, "classes_", None), "certified")
    check_can_evaluate(run.model, roster)
    _check_same_rows(run.coreset, roster, "run")
    return AuditSubject(task, run.model, run.split, run.coreset, run.precision)


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


def _warn_of_other_task(task: Task[object], coreset: Coreset) -> None:
    needed = type(task.score_rule()).__name__
    if coreset.rule not in (None, needed) and (coreset.rule, needed) not in SERVES:
        warnings.warn(
            f"The coreset was drawn by {coreset.rule}; {type(task).__name__} needs {needed}, and on this coreset "
            "there is no guarantee for it. Draw a coreset for this task.",
            AssumptionWarning,
            stacklevel=4,
        )


def paper_task(task: object, participle: str) -> PaperTask:
    """Require a task whose theory is known."""
    check_kind(f"task that can be {participle}", task, PaperTask)
    return cast(PaperTask, task)


def check_two_classes(classes: tuple[Any, ...] | None, participle: str) -> None:
    """Require no more classes than two, where they are known: what is asked of these is worked out for two."""
    if classes is not None and len(classes) > 2:
        raise UnsupportedError(
            f"A classification of {len(classes)} classes cannot be {participle}: only one of two can. More can be "
            "learned by Central() and CompactCentral(), and evaluated: federation.evaluate(run.model, split=run.split)."
        )


def check_kind(role: str, value: object, kinds: Any) -> None:
    """Require one of the registered kinds."""
    if not isinstance(value, kinds):
        listed = kinds if isinstance(kinds, tuple) else get_args(kinds) or (kinds,)
        choices = " | ".join(kind.__name__ for kind in listed if kind is not type(None))
        # Shortened: the value may be somebody's table.
        raise UnsupportedError(f"{reprlib.repr(value)} is not a {role}. Pass one of: {choices}.")
