"""A toy solver with messages of its own: the server gathers the coreset's rows and solves. All that one is made of."""

from typing import Annotated, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import Agreed, Roster, Script, Solution, Task
from colonnade.coreset import Coreset, WeightedRows
from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.routes import Ask, Route

M = TypeVar("M")


class GatheredRows(Message, frozen=True):
    """The party's columns, and its label's if it has one."""

    phase: ClassVar[str] = "solving"

    features: Annotated[Floats, Reveals.FEATURES]
    labels: Annotated[Floats, Reveals.LABELS]


class GatherRows(Message, frozen=True):
    """Send your columns of the rows agreed on."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = GatheredRows


class Gathered(msgspec.Struct, frozen=True, tag_field="kind", tag="gathered", forbid_unknown_fields=True):
    """Gather the rows, and let the task fit them."""

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES, Reveals.LABELS)

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Take any task."""

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Ask for rows, check them, join them, fit them."""
        inbox = yield {party: GatherRows() for party in roster.names}
        replies = checks.replies(inbox, GatheredRows)
        for card in roster.cards:
            reply = replies[card.name]
            checks.shape(card.name, reply, reply.features, (len(coreset), card.n_features))
            checks.shape(card.name, reply, reply.labels, (len(coreset), int(card.label_name is not None)))
            checks.in_range(card.name, reply, reply.features)
            checks.in_range(card.name, reply, reply.labels)
        features = np.hstack([replies[party].features for party in roster.names])
        labels = replies[roster.label_party].labels[:, 0] if task.needs_label and roster.label_party else None
        rows = WeightedRows(features, labels, coreset.weights, coreset.total_weight, coreset.rows)
        return Solution(task.fit_rows(rows, roster, rng), {})

    def route(self, task: Task[object], agreed: Agreed) -> Route:  # noqa: ARG002  # there is nothing to choose
        """Expect one request."""
        return Ask(GatherRows)


def _answer(state: PartyState, _: GatherRows, data: PartyData) -> tuple[PartyState, Message]:
    values, n_features = data.table.take(state.selected()), len(data.table.feature_names)
    return state, GatheredRows(sendable_floats(values[:, :n_features]), sendable_floats(values[:, n_features:]))


HANDLERS = (Handler(GatherRows, _answer, after=frozenset({SELECTED}), then=SELECTED, solver="gathered"),)
