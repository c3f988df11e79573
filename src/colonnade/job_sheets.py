"""From a job to its sheet, at the server, and from a sheet to its route, at a party: the two ends of one agreement.

For every verb of a federation, `sheet_of` says what the server will do, and `route_of` what it may therefore ask. A
party builds samplers and solvers of the sheet's options itself, so they are checked as the caller's own are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np

from colonnade.alignment import align_route
from colonnade.branches import Branch, Branching, pilot_draw
from colonnade.contracts import Agreed, ClusteringTask, LogisticTask, Model, Roster
from colonnade.coreset import Coreset, selection_of
from colonnade.diagnostics.certifying import audit_route, audit_sampler
from colonnade.diagnostics.over_parties import diagnosis_route, reference_sampler
from colonnade.errors import InputError
from colonnade.evaluation.applying import (
    class_losses_route,
    evaluated_route,
    masked_classes_route,
    masked_route,
    predicted_route,
)
from colonnade.evaluation.telling import TOLD, TOLD_CLASSES, model_digest
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.kernels.selections import CountedRows
from colonnade.options import learn_types
from colonnade.protocol.preparing import prepare_route
from colonnade.protocol.sheet import JobSheet, sheet_party
from colonnade.protocol.splits import AnySplit, Side, SplitBy, counted
from colonnade.protocol.viewing import check_split, view_route
from colonnade.routes import END, Ask, Route, some, then
from colonnade.sampling import AnySampler
from colonnade.sampling.committed.messages import AskOpenings
from colonnade.sampling.rules.integers import integer_rule
from colonnade.sampling.seeds import Seeds
from colonnade.sampling.selecting import UseAllRows, even_draw_route, rows_route
from colonnade.signing import DrawSeeds, rows_digest
from colonnade.solvers import AnySolver
from colonnade.solvers.compact import kind_of
from colonnade.solvers.finer_rows import finer_kind
from colonnade.tasks import AnyTask
from colonnade.tasks.jobs import rounding_of, rows_told, shared_seed

T = TypeVar("T")
What = Mapping[str, Any]
# Which streams of a job's seed its draws take, in their order.
STREAMS = {"plan": (5,), "planned": (5, 0), "certify": (3,), "diagnose": (2, 0)}
USUAL_STREAMS = (0,)
KINDS: dict[str, Any] = {"task": AnyTask, "sampler": AnySampler, "solver": AnySolver, "split": AnySplit}
# Fine enough that rounding a pilot's rows again, by any step a plan may choose, is as rounding the rows themselves.
PILOT_STEP = 0.25
# Columns of two parties that agree to this part of their spread are taken to be the same.
FINE_STEP = 1 / 256
# The option that says of how many classes a model is that is evaluated.
CLASSES = "classes"
learn_types(AnyTask, AnySampler, AnySolver, AnySplit)


def sheet_of(verb: str, what: What, roster: Roster, run_by: str | None) -> JobSheet:
    """Put a job on a sheet, if these parties can do it."""
    check_split(what.get("split"), roster)
    seed, source = what.get("seed") or 0, what.get("source")
    coreset = source if isinstance(source, Coreset) else what.get("coreset")
    sampler = what.get("sampler") if source is None or isinstance(source, Coreset) else source
    model: Model[Any] | None = what.get("model")
    chosen, size = _chosen_and_size(what.get("rows", what.get("pilot")))
    return JobSheet(
        verb=verb,
        parties=tuple(map(sheet_party, roster.cards)),
        rows=roster.n_rows,
        run_by=run_by,
        alignment=roster.alignment,
        task=words_of(what.get("task")),
        sampler=words_of(sampler),
        solver=words_of(what.get("solver")),
        split=words_of(what.get("split")),
        seed=shared_seed(seed),
        draws=tuple(_draw_seeds(seed, stream, roster.names) for stream in STREAMS.get(verb, USUAL_STREAMS)),
        coreset=None if coreset is None else (_digest_of_rows(coreset), len(coreset)),
        model=None if model is None else tuple(map(model_digest, model.parts(roster).values())),
        chosen=chosen,
        size=size,
        to=what.get("to", what.get("by")),
        bits=what.get("bits"),
        branches=what.get("branches"),
        options=what.get("options", {}) | (_of_model(model) if verb == "evaluate" else {}),
    )


@lru_cache(maxsize=64)  # a generator takes as long to make as all the rest of a sheet
def _draw_seeds(seed: int, stream: int, parties: tuple[str, ...]) -> DrawSeeds:
    seeds = Seeds.of(np.random.default_rng([seed, stream]), len(parties))
    return DrawSeeds(seeds.shared, seeds.digests(parties))


def _digest_of_rows(coreset: Coreset) -> bytes:
    rows = selection_of(coreset)
    return rows_digest(rows if isinstance(rows, CountedRows) else rows.rows)


def pilot_dithers(roster: Roster, shared: int) -> list[int]:
    """Draw the seeds that a pilot's rows are rounded with, for each party, from the seed on the sheet."""
    seeds: list[int] = np.random.default_rng([shared, 3]).integers(2**63, size=len(roster.cards)).tolist()
    return seeds


def finer_dithers(roster: Roster, shared: int) -> list[int]:
    """Draw those of rows that are looked at once more."""
    seeds: list[int] = np.random.default_rng([shared, 4]).integers(2**63, size=len(roster.cards)).tolist()
    return seeds


def words_of(options: object) -> dict[str, Any] | None:
    """Put options on a sheet: those that are not as usual. What is usual all sides know, by the version of the wire."""
    if options is None:
        return None
    usual = _usual(type(options))  # type: ignore[arg-type]  # types are hashable
    words: dict[str, Any] = msgspec.to_builtins(options)
    return {name: word for name, word in words.items() if name == "kind" or getattr(options, name) != usual[name]}


@cache
def _usual(kind: type[Any]) -> dict[str, Any]:
    return {each.name: each.default for each in msgspec.structs.fields(kind)}


def _of_model(model: Model[Any] | None) -> dict[str, int]:
    """Say of how many classes a model is, if of any: it is evaluated otherwise."""
    classes = getattr(model, "classes_", None)
    return {} if classes is None else {CLASSES: len(classes)}


def _chosen_and_size(rows: object) -> tuple[tuple[bytes, int] | None, int | None]:
    """Tell rows that the caller chose from a number of rows."""
    if isinstance(rows, np.ndarray):
        return (rows_digest(rows), len(rows)), None
    return None, rows if isinstance(rows, int) else None


def route_of(sheet: JobSheet, party: str) -> Route:
    """Say what an honest server playing this sheet asks a party, or why none plays it."""
    if sheet.verb not in ROUTES:
        raise InputError(f"a job sheet says {sheet.verb!r}, which is none of {', '.join(ROUTES)}. Run one version.")
    return ROUTES[sheet.verb](_Reader(sheet, party))


class _Reader:
    """A sheet, as one party reads it."""

    def __init__(self, sheet: JobSheet, party: str) -> None:
        self.sheet = sheet
        self.party = party
        self.roster = sheet.roster()
        self.place = sheet.place(party)
        # Also those that this verb has no use for: an owner's policy looks at them.
        self._read = {name: _read(name, getattr(sheet, name), kind) for name, kind in KINDS.items()}
        _check_lengths(sheet)

    @cached_property
    def task(self) -> AnyTask:
        """The task."""
        task: AnyTask = _given("task", self._read["task"])
        task.check(self.roster)
        return task

    @cached_property
    def split(self) -> AnySplit | None:
        """The split, if rows are held out."""
        split: AnySplit | None = self._read["split"]
        return split

    @cached_property
    def sampler(self) -> AnySampler:
        """The sampler."""
        sampler: AnySampler = _given("sampler", self._read["sampler"])
        sampler.check(self.task, self.roster, self.sheet.run_by)
        return sampler

    @cached_property
    def solver(self) -> AnySolver:
        """The solver."""
        solver: AnySolver = _given("solver", self._read["solver"])
        solver.check(self.task, self.roster, self.sheet.run_by)
        return solver

    def agreed(self, size: int, draw: int = 0) -> Agreed:
        """Give what is agreed on for the draw of this number."""
        sheet = self.sheet
        seeds = sheet.draws[draw] if draw < len(sheet.draws) else None
        return Agreed(self.roster, self.party, sheet.seed, seeds, size, size)

    @cached_property
    def n_counted(self) -> int | None:
        """How many rows count where a model is learned; None where a party's column says so, and no sheet."""
        if self.roster.weight_party is not None or isinstance(self.split, SplitBy):
            return None
        weights = counted(self.sheet.rows, "train", self.split, None, None)
        return self.sheet.rows if weights is None else weights.n_positive

    def view(self, side: Side = "train") -> Route:
        """Expect the view of the task, of rows on one side of the split."""
        return view_route(self.split, side, self.task.scaling, self.roster, self.party)

    def settled(self, sampler: AnySampler | None = None) -> Route:
        """Expect the question for the label's classes, where the task has some; rows come by this sampler or another.

        If left out, by that on the sheet.
        """
        if not isinstance(self.task, LogisticTask):
            return END
        source = sampler or (None if self.sheet.coreset is not None else self.sampler)
        n_told = 0 if source is None else rows_told(self.task, source, self.roster)
        return self.task.settling_route(self.agreed(0), n_told)

    def drawn(self, sampler: AnySampler, draw: int = 0, *, scored: bool = False) -> Route:
        """Expect rows drawn by this sampler, which may have been scored for it before."""
        size = getattr(sampler, "size", self.sheet.rows)
        return sampler.route(self.task.score_rule(), replace(self.agreed(size, draw), scored=scored))

    def source(self, draw: int = 0) -> Route:
        """Expect the coreset: one made before, or drawn."""
        return self.drawn(self.sampler, draw) if self.sheet.coreset is None else rows_route(self.sheet.coreset)

    def chosen(self) -> Route:
        """Expect the rows that the caller chose, or all."""
        return Ask(UseAllRows) if self.sheet.chosen is None else rows_route(self.sheet.chosen)

    def evaluated(self) -> Route:
        """Expect the rows that a model is evaluated on."""
        view = view_route(self.split, "test", "own", self.roster, self.party)
        if self.sheet.size is None:
            return then(view, Ask(UseAllRows))
        return then(view, even_draw_route(self.sheet.size, self.agreed(self.sheet.size).seeds))

    @property
    def n_predicted(self) -> int:
        """How many rows a model predicts."""
        return self.sheet.rows if self.sheet.chosen is None else self.sheet.chosen[1]

    @property
    def n_evaluated(self) -> int:
        """How many rows a model is evaluated on; or of how many, where only some count."""
        return self.sheet.rows if self.sheet.size is None else self.sheet.size

    def learned(self, source: Route, solver: AnySolver, size: int | None, sampler: AnySampler | None) -> Route:
        """Expect that a model is learned on so many rows from there, or on all that count, and told.

        Draws of distinct rows give so many at most.
        """
        agreed = self.agreed(self.sheet.rows if size is None else size)
        if getattr(sampler, "draws", None) == "distinct":
            agreed = replace(agreed, least=1)
        if size is None:
            most, least = (agreed.size, 1) if self.n_counted is None else (self.n_counted, self.n_counted)
            agreed = replace(agreed, size=most, least=least, takes_all=True)
        told = TOLD_CLASSES if isinstance(self.task, LogisticTask) else TOLD
        return then(source, solver.route(self.task, agreed), told)

    def by_branch(self, branch: Branch) -> Route:
        """Expect that a model is learned as this branch says: its scores are those of the pilot."""
        sampler = branch.sampler(self.task)
        return self.learned(self.drawn(sampler, draw=1, scored=True), branch.solver, branch.size, sampler)

    @property
    def size(self) -> int:
        """How many rows are drawn to be looked at."""
        return _given("size", self.sheet.size)

    @property
    def to(self) -> str:
        """Who learns what comes of a model."""
        return _given("to", self.sheet.to)

    @property
    def part(self) -> bytes:
        """The digest of the party's part of the model."""
        return _given("model", self.sheet.model)[self.place]

    @property
    def dither(self) -> int:
        """The seed of the party's dither, where parts travel rounded."""
        rounding = rounding_of(self.sheet.bits, self.roster, self.sheet.seed)
        return 0 if rounding is None else rounding.seeds[self.party]


def _check_lengths(sheet: JobSheet) -> None:
    """Require seeds and parts of a model for as many parties as there are."""
    listed = [("seeds", each.own) for each in sheet.draws]
    listed += [] if sheet.model is None else [("parts of a model", sheet.model)]
    for what, each in listed:
        if len(each) != len(sheet.parties):
            raise InputError(f"a job sheet has {what} for other parties than it names. Run the same version.")


def _given(name: str, value: T | None) -> T:
    if value is None:
        raise InputError(f"a job sheet lacks `{name}`, which its verb needs. Run the same version on all sides.")
    return value


def _read(name: str, options: dict[str, Any] | None, kind: Any) -> Any:
    """Build an option of what the sheet says of it, if it does."""
    try:
        return None if options is None else msgspec.convert(options, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"a job sheet's {name} cannot be read: {error}. Run the same version on all sides.") from error


def _coreset(job: _Reader) -> Route:
    return then(job.view(), job.settled(), job.source())


def _fit(job: _Reader) -> Route:
    drawn = job.sheet.coreset is not None or hasattr(job.sampler, "size")
    source, solver, sampler = job.source(), job.solver, job.sampler if job.sheet.coreset is None else None
    learned = job.learned(source, solver, job.sheet.size_of_coreset() if drawn else None, sampler)
    return then(job.view(), job.settled(), learned)


def _predict(job: _Reader) -> Route:
    delivered = job.sheet.to == job.party
    asked = predicted_route(job.part, job.n_predicted, job.sheet.bits, job.dither, delivered=delivered)
    return then(job.chosen(), asked)


def _deliver(job: _Reader) -> Route:
    asked = masked_route(job.part, job.n_predicted, job.to, job.party, evaluating=False, by_weight=False)
    return then(job.chosen(), asked)


def _evaluate(job: _Reader) -> Route:
    by_weight = job.sheet.size is None
    if CLASSES in job.sheet.options:
        asked = _evaluate_classes(job, by_weight=by_weight)
    elif job.sheet.to is None:
        asked = evaluated_route(job.part, job.n_evaluated, job.sheet.bits, job.dither, by_weight=by_weight)
    else:
        asked = masked_route(job.part, job.n_evaluated, job.to, job.party, evaluating=True, by_weight=by_weight)
    return then(job.evaluated(), asked)


def _evaluate_classes(job: _Reader, *, by_weight: bool) -> Route:
    label_party = job.roster.label_party
    if job.sheet.to is None:
        model = (job.part, job.n_evaluated, _n_classes(job.sheet.options[CLASSES]))
        has_label = job.party == label_party
        return class_losses_route(*model, job.sheet.bits, job.dither, has_label=has_label, by_weight=by_weight)
    if job.to != label_party:
        raise InputError("a job sheet lets another than the label party evaluate a classification. Run one version.")
    return masked_classes_route(job.part, job.n_evaluated, job.to, job.party, by_weight=by_weight)


def _n_classes(told: object) -> int:
    if not isinstance(told, int) or not 2 <= told <= MOST_CLASSES:
        raise InputError(f"a job sheet evaluates a model of {told} classes. Run the same version on all sides.")
    return told


def _plan(job: _Reader) -> Route:
    caps = job.sheet.branches
    pilot = pilot_draw(job.task, job.size, evenly=caps is not None and caps.evenly)
    dither = pilot_dithers(job.roster, job.sheet.seed)[job.place]
    columns = Ask(kind_of(job.task), step=PILOT_STEP, seed=dither)
    if isinstance(job.task, ClusteringTask):
        return then(job.view(), job.drawn(pilot), columns)
    finest = {"finer_step": FINE_STEP, "finer_seed": finer_dithers(job.roster, job.sheet.seed)[job.place]}
    finer = Ask(finer_kind(job.task), step=PILOT_STEP, seed=dither, **finest)
    # The branch that a planned fit takes tells the classes of its rows with these themselves.
    return then(job.view(), job.settled(pilot), job.drawn(pilot), columns, some(finer, least=0, most=2))


def _planned_fit(job: _Reader) -> Route:
    return then(_plan(job), Branching(job.task, _given("branches", job.sheet.branches), job.sheet.rows, job.by_branch))


def _certify(job: _Reader) -> Route:
    sampler = audit_sampler(job.size, secure=bool(job.sheet.options.get("secure")))
    asked = audit_route(job.task, job.part, job.agreed(job.size), int(job.sheet.options.get("directions", 1)))
    return then(job.view(), job.settled(sampler), job.drawn(sampler), asked)


def _diagnose(job: _Reader) -> Route:
    has_source = job.sheet.sampler is not None or job.sheet.coreset is not None
    settled = END if job.sheet.sampler is None else job.settled()
    source = then(job.view(), settled, job.source(draw=1)) if has_source else None
    part = None if job.sheet.model is None else job.part
    looked_at = job.settled(reference_sampler(job.size))
    return then(job.view(), looked_at, diagnosis_route(job.task, job.agreed(job.size), source, part, job.sheet.options))


def _audit(job: _Reader) -> Route:
    sampler = job.sampler
    rule = sampler.scored_by(job.task.score_rule(), job.roster)
    if not isinstance(rule, type(integer_rule(job.task.score_rule(), job.roster))):
        raise InputError("a job sheet asks for openings of draws that nobody committed to.")
    rows = rows_route(_given("rows", job.sheet.chosen))
    return then(job.view(), Ask(AskOpenings, rule=rule, **next(rows.asks()).fields))


def _prepare(job: _Reader) -> Route:
    return prepare_route(job.split, job.roster, job.party)


def _align(job: _Reader) -> Route:
    return align_route(job.sheet)


ROUTES: dict[str, Callable[[_Reader], Route]] = {
    "align": _align,
    "prepare": _prepare,
    "coreset": _coreset,
    "fit": _fit,
    "predict": _predict,
    "deliver": _deliver,
    "evaluate": _evaluate,
    "plan": _plan,
    "planned": _planned_fit,
    "certify": _certify,
    "diagnose": _diagnose,
    "audit": _audit,
}
