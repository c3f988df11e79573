"""Central: the server fetches the coreset's rows and solves in one place. The plainest solver, the least private."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import Agreed, LinearTask, PartyCard, Roster, Script, Solution, Task
from colonnade.coreset import Coreset, WeightedRows, selection_of
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import counted_values
from colonnade.kernels.gram import Summary, merge
from colonnade.kernels.linear import reduce_rows
from colonnade.kernels.selections import CountedRows, Piece, Window
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.windows import Windows, check_fits, judge_window
from colonnade.routes import Ask, Route
from colonnade.solvers.precision import precision_of, precision_of_all
from colonnade.solvers.standard_errors import errors_of, errors_of_sums, these

# All rows of all parties that are no more numbers than this (256 MB) travel at once, a message a party: the server then
# has them in memory several times over.
AT_ONCE = 1 << 25

M = TypeVar("M")
Read = Callable[[Piece, Mapping[str, "Columns"]], None]


class Columns(Message, frozen=True):
    """The party's columns of the coreset's rows."""

    phase: ClassVar[str] = "solving"

    features: Annotated[Floats, Reveals.FEATURES]
    labels: Annotated[Floats | None, Reveals.LABELS]


class AskColumns(Message, frozen=True):
    """Send your columns of the rows agreed on, with the label if you hold it and the task needs it."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Columns

    with_label: Annotated[bool, Reveals.NOTHING]


class AskColumnWindow(Message, frozen=True):
    """As `AskColumns`, of the rows of a window: where all rows are taken, and are too many to be sent at once.

    Windows are as long as the widest party's columns let them be, of which there are so many with a label's.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Columns

    with_label: Annotated[bool, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, self.n_columns)


class Central(msgspec.Struct, frozen=True, tag_field="kind", tag="central", forbid_unknown_fields=True):
    """Fetch the coreset's rows to the server and solve there.

    With `AllRows` these are all rows: of n rows and d columns the server holds n (d + 3) numbers, and about four times
    as many while it learns. Where n (d + 1) is more than 33.5 million, they come in windows. A regression then adds up
    what it needs of each and holds none, unless a penalty is to be chosen; `Run.summary` has classical standard errors.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Central())
    >>> run.model.coef_.round(6).tolist(), round(run.model.intercept_, 6)
    ([1.0, 2.0], 3.0)
    """

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES, Reveals.LABELS)

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Take any task: they all fit rows in one place."""

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Fetch, then let the task fit what came."""
        if _has_windows(roster, coreset) and isinstance(task, LinearTask) and not task.takes_folds:
            return (yield from _solved_by_sums(task, task, roster, coreset))
        rows = yield from _fetched(task, roster, coreset)
        model = task.fit_rows(rows, roster, rng)
        cost = task.cost(model, rows.features, rows.labels, rows.weights, rows.total_weight)
        precision = partial(precision_of, task, model, rows, roster, coreset)
        errors = errors_of(task, model, partial(these, rows), coreset)
        return Solution(model, {"cost": cost}, precision, errors, later=True)

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect one request, or one a window."""
        if not agreed.takes_all or _come_at_once(agreed.roster):
            return Ask(AskColumns, with_label=task.needs_label)
        window = Ask(AskColumnWindow, with_label=task.needs_label)
        return Windows(agreed.roster.n_rows, (window,), _widest(agreed.roster))


def _widest(roster: Roster) -> int:
    """Count the columns of the party that has most, and one for a label."""
    return max(card.n_features for card in roster.cards) + 1


def _come_at_once(roster: Roster) -> bool:
    """Tell whether all rows are one message of each party, as the job sheet has them: all sides come to the same."""
    return roster.n_rows * (sum(card.n_features for card in roster.cards) + 1) <= AT_ONCE


def _has_windows(roster: Roster, coreset: Coreset) -> bool:
    return not _come_at_once(roster) and isinstance(selection_of(coreset), CountedRows)


def _in_windows(task: Task[Any], roster: Roster, coreset: Coreset, read: Read) -> Script[Mapping[str, Columns]]:
    """Let parties send all rows that count in windows, and read each; give the last."""
    for piece in selection_of(coreset).pieces(_widest(roster)):
        inbox = yield {party: AskColumnWindow(task.needs_label, *piece.window) for party in roster.names}
        replies = checks.replies(inbox, Columns)
        read(piece, replies)
    return replies


def _solved_by_sums(task: Task[M], linear: LinearTask[M], roster: Roster, coreset: Coreset) -> Script[Solution[M]]:
    """Add up what least squares needs of each window, and solve that; no row is kept."""
    total: list[Summary] = []

    def add(piece: Piece, replies: Mapping[str, Columns]) -> None:
        fetched = _Fetched(roster, len(piece), needs_label=task.needs_label)
        fetched.put(replies, slice(None))
        if len(piece):
            total[:] = [merge([*total, fetched.summary(piece.weights)])]

    last = yield from _in_windows(task, roster, coreset, add)
    (summed,) = total
    if task.scaling != "own" and roster.weight_party is None:
        _check_norms(np.linalg.norm(summed.triangle, axis=0), last, roster)
    model, cost = linear.fit_summaries(total, coreset.total_weight, roster)
    problem = summed.problem(fit_intercept=linear.fit_intercept)
    errors = errors_of_sums(linear, model, problem, summed.weight, coreset)
    return Solution(model, {"cost": cost}, partial(precision_of_all, roster), errors)


def _check_norms(norms: Floats, last: Mapping[str, Columns], roster: Roster) -> None:
    """Require columns whose variance over all rows is 1, as `checks.unit_columns` does."""
    for party, part in roster.parts.items():
        if (norms[part] > roster.n_rows**0.5 * (1 + checks.SLACK)).any():
            raise checks.wrong(party, last[party], "a column that varies more than its deviation of all rows allows")


def _fetched(task: Task[Any], roster: Roster, coreset: Coreset) -> Script[WeightedRows]:
    """Ask for columns of all rows at once; of all rows of a table, in windows where they are many."""
    fetched = _Fetched(roster, len(coreset), needs_label=task.needs_label)
    if _has_windows(roster, coreset):
        replies = yield from _in_windows(
            task, roster, coreset, lambda piece, replies: fetched.put(replies, piece.chosen)
        )
    else:
        inbox = yield {party: AskColumns(task.needs_label) for party in roster.names}
        replies = checks.replies(inbox, Columns)
        fetched.put(replies, slice(None), coreset.rows)
    if task.scaling != "own" and roster.weight_party is None:
        for party, part in roster.parts.items():
            checks.unit_columns(party, replies[party], coreset.rows, fetched.features[:, part], roster.n_rows)
    return WeightedRows(fetched.features, fetched.labels, coreset.weights, coreset.total_weight, coreset.rows)


class _Fetched:
    """Rows of all parties' columns, as they come in."""

    def __init__(self, roster: Roster, size: int, *, needs_label: bool) -> None:
        self._roster, self._needs_label = roster, needs_label
        self.features = np.empty((size, len(roster.feature_names)))
        self.labels = np.empty(size) if needs_label and roster.label_party is not None else None

    def put(self, replies: Mapping[str, Columns], chosen: slice, rows: Rows | None = None) -> None:
        """Put what came of some rows where they belong; of rows that may repeat, these are told."""
        features = self.features[chosen]
        for card in self._roster.cards:
            reply = replies[card.name]
            _check_columns(card, reply, self._needs_label, len(features), rows)
            features[:, self._roster.parts[card.name]] = reply.features
            if reply.labels is not None and self.labels is not None:
                self.labels[chosen] = reply.labels

    def summary(self, weights: Floats | None) -> Summary:
        """Reduce them to what least squares needs; None weighs all alike."""
        weights = np.ones(len(self.features)) if weights is None else weights
        labels = np.zeros(len(self.features)) if self.labels is None else self.labels
        problem = reduce_rows(self.features, labels, weights, fit_intercept=True)
        return Summary(float(weights.sum()), problem.centre, problem.triangle)


def _check_columns(card: PartyCard, reply: Columns, needs_label: bool, size: int, rows: Rows | None) -> None:
    if (reply.labels is not None) != (needs_label and card.label_name is not None):
        raise checks.wrong(card.name, reply, "labels where none were due, or none where they were")
    checks.shape(card.name, reply, reply.features, (size, card.n_features))
    if reply.labels is not None:
        checks.shape(card.name, reply, reply.labels, (size,))
    for values in (reply.features,) if reply.labels is None else (reply.features, reply.labels):
        checks.in_range(card.name, reply, values)
        if rows is not None:
            checks.copies(card.name, reply, rows, values)


def _answer_columns(state: PartyState, request: AskColumns, data: PartyData) -> tuple[PartyState, Message]:
    check_fits(state, len(data.table.feature_names) + 1)
    return state, _columns(data.table.take(state.selected()), request, data)


def _answer_window(state: PartyState, request: AskColumnWindow, data: PartyData) -> tuple[PartyState, Message]:
    if not isinstance(state.selection(), CountedRows):
        raise checks.wrong(SERVER, request, "a window of all rows, where others were agreed on")
    judge_window(state, request, request.window, data)
    values = np.concatenate([*data.table.map(counted_values, request.window.blocks)])
    return state, _columns(values, request, data)


def _columns(values: Floats, request: AskColumns | AskColumnWindow, data: PartyData) -> Columns:
    n_features = len(data.table.feature_names)
    sends_label = request.with_label and data.table.label_name is not None
    labels = sendable_floats(values[:, n_features]) if sends_label else None
    return Columns(sendable_floats(values[:, :n_features]), labels)


_AFTER = frozenset({SELECTED})
HANDLERS = (
    Handler(AskColumns, _answer_columns, after=_AFTER, then=SELECTED, solver="central"),
    Handler(AskColumnWindow, _answer_window, after=_AFTER, then=SELECTED, solver="central", leaves_nothing=True),
)
