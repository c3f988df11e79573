"""Central: the server fetches the coreset's rows and solves in one place. The plainest solver, the least private."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import Agreed, PartyCard, Roster, Script, Solution, Task
from colonnade.coreset import Coreset, WeightedRows
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.routes import Ask, Route
from colonnade.solvers.precision import precision_of
from colonnade.solvers.standard_errors import errors_of

M = TypeVar("M")


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


class Central(msgspec.Struct, frozen=True, tag_field="kind", tag="central", forbid_unknown_fields=True):
    """Fetch the coreset's rows to the server and solve there.

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
        inbox = yield {party: AskColumns(task.needs_label) for party in roster.names}
        rows = _join(checks.replies(inbox, Columns), task, roster, coreset)
        model = task.fit_rows(rows, roster, rng)
        cost = task.cost(model, rows.features, rows.labels, rows.weights, rows.total_weight)
        precision = partial(precision_of, task, model, rows, roster, coreset)
        return Solution(model, {"cost": cost}, precision, errors_of(task, model, lambda: rows, coreset), later=True)

    def route(self, task: Task[object], agreed: Agreed) -> Route:  # noqa: ARG002  # nothing to choose
        """Expect one request."""
        return Ask(AskColumns, with_label=task.needs_label)


def _join(replies: Mapping[str, Columns], task: Task[object], roster: Roster, coreset: Coreset) -> WeightedRows:
    rows, labels = coreset.rows, None
    features = np.empty((len(rows), len(roster.feature_names)))
    needs_label, scaled = task.needs_label, task.scaling != "own" and roster.weight_party is None
    for card in roster.cards:
        reply = replies[card.name]
        _check_columns(card, reply, needs_label, rows)
        if scaled:
            checks.unit_columns(card.name, reply, rows, reply.features, roster.n_rows)
        features[:, roster.parts[card.name]] = reply.features
        labels = labels if reply.labels is None else reply.labels
    return WeightedRows(features, labels, coreset.weights, coreset.total_weight, rows)


def _check_columns(card: PartyCard, reply: Columns, needs_label: bool, rows: Rows) -> None:
    checks.shape(card.name, reply, reply.features, (len(rows), card.n_features))
    checks.in_range(card.name, reply, reply.features)
    checks.copies(card.name, reply, rows, reply.features)
    if (reply.labels is not None) != (needs_label and card.label_name is not None):
        raise checks.wrong(card.name, reply, "labels where none were due, or none where they were")
    if reply.labels is not None:
        checks.shape(card.name, reply, reply.labels, rows.shape)
        checks.in_range(card.name, reply, reply.labels)
        checks.copies(card.name, reply, rows, reply.labels)


def _answer_columns(state: PartyState, request: AskColumns, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    n_features = len(table.feature_names)
    if len(rows) * (n_features + 1) > MAX_NUMBERS:
        raise InputError(f"{len(rows):,} rows do not fit one message. Use a coreset or a smaller size.")
    values = table.take(rows)
    sends_label = request.with_label and table.label_name is not None
    labels = sendable_floats(values[:, n_features]) if sends_label else None
    return state, Columns(sendable_floats(values[:, :n_features]), labels)


HANDLERS = (Handler(AskColumns, _answer_columns, after=frozenset({SELECTED}), then=SELECTED, solver="central"),)
