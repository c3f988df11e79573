"""Saga without its messages: the kernel in a loop, with what would be sent counted.

It needs all tables in one place, so it is no solver: it is not registered, and no party answers it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from colonnade.contracts import Roster, Table, Task
from colonnade.coreset import Coreset
from colonnade.errors import UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.saga import block_bounds, epoch_blocks, saga_step, shuffled
from colonnade.ledger import Totals
from colonnade.messages import Message, sendable_floats
from colonnade.solvers.saga import Saga
from colonnade.solvers.saga.messages import (
    AskCoefficients,
    AskProgress,
    Coefficients,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)
from colonnade.solvers.saga.party import SagaLearning, open_learning
from colonnade.solvers.saga.server import linear_task
from colonnade.solvers.saga.table import ResidualTable

M = TypeVar("M")


class _Party:
    """A party's part of the run, its columns at hand in shuffled order."""

    def __init__(self, table: Table, coreset: Coreset, opening: OpenSaga) -> None:
        learning = open_learning(table, coreset.rows, opening)
        values = learning.values[learning.order]
        self.learning: SagaLearning = learning
        self.columns = learning.columns(values)
        self.labels: Floats | None = None if table.label_name is None else values[:, -1]

    def products(self, part: slice) -> Floats:
        products: Floats = self.columns[part] @ self.learning.coef
        return products if self.labels is None else products - self.labels[part]

    def step(self, part: slice, changes: Floats, step: float) -> None:
        old = self.learning
        coef, average = saga_step(
            old.coef, old.average, self.columns[part], changes, old.n_blocks, step, old.l2, old.l1
        )
        self.learning = replace(old, coef=coef, average=average)

    def progress(self) -> Progress:
        progress = Progress(*self.learning.change())
        self.learning = replace(self.learning, reported=self.learning.coef)
        return progress


def saga_fused(
    solver: Saga,
    task: Task[M],
    tables: Mapping[str, Table],
    roster: Roster,
    coreset: Coreset,
    rng: np.random.Generator,
    weigh: Callable[[Message], int],
) -> tuple[M, Totals]:
    """Learn what `Saga.solve` learns, bit for bit, in a fraction of its time; count what it would send, as weighed."""
    linear = linear_task(task)
    if solver.bits is not None:
        raise UnsupportedError(f"Experiments send numbers as they are, not with {solver.bits} bits. Leave out bits.")
    size = len(coreset)
    n_blocks, seed = -(-size // solver.batch), int(rng.integers(2**63))
    opening = OpenSaga(n_blocks, seed, *linear.penalties(), linear.fit_intercept, solver.scale)
    parties = {name: _Party(tables[name], coreset, opening) for name in roster.names}
    weights = n_blocks * coreset.weights / coreset.total_weight
    order = shuffled(size, seed)
    table = ResidualTable(roster.label_party, order, n_blocks, weights, np.zeros(size))
    norms = {name: SquaredNorms(_norms(party, order)) for name, party in parties.items()}
    step = table.step_size(norms)
    sent = _Sent(weigh, len(parties))
    sent.add(opening, next(iter(norms.values())))
    for epoch in range(solver.max_epochs):
        blocks = epoch_blocks(epoch, n_blocks, rng).tolist()
        changes = _epoch(list(parties.values()), table, blocks, step, sent, is_first=epoch == 0)
        progress = {name: party.progress() for name, party in parties.items()}
        sent.add(AskProgress(sendable_floats(changes)), next(iter(progress.values())))
        change = table.relative_change(progress)
        if change <= solver.tolerance:
            break
    else:
        solver.warn(change)
    own = [party.learning.own_units() for party in parties.values()]
    for coef, offset in own:
        sent.add(AskCoefficients(), Coefficients(sendable_floats(coef), offset), parties=1)
    model = linear.linear_model(np.concatenate([coef for coef, _ in own]), float(sum(o for _, o in own)), roster)
    return model, sent.totals()


def _epoch(
    parties: list[_Party], table: ResidualTable, blocks: list[int], step: float, sent: "_Sent", *, is_first: bool
) -> Floats:
    changes: Floats = np.empty(0)
    for i, block in enumerate(blocks):
        part, rows = block_bounds(len(table.order), table.n_blocks, block), table.block(block)
        sent.step(changes, block, step if is_first and i == 0 else None, len(rows))
        changes = table.update(rows, [party.products(part) for party in parties])
        for party in parties:
            party.step(part, changes, step)
    return changes


def _norms(party: _Party, order: np.ndarray) -> Floats:
    norms = np.empty(len(order))
    norms[order] = np.square(party.columns).sum(axis=1)
    return norms


class _Sent:
    """Counts what would be sent; a message is weighed once for each size it can have."""

    def __init__(self, weigh: Callable[[Message], int], n_parties: int) -> None:
        self._weigh, self._n_parties = weigh, n_parties
        self._messages = self._units = self._bytes = 0
        self._steps: dict[tuple[int, int, bool], tuple[int, int]] = {}

    def add(self, *messages: Message, parties: int | None = None) -> None:
        for message in messages:
            self._add(1, message.units(), self._weigh(message), parties or self._n_parties)

    def step(self, changes: Floats, block: int, first: float | None, length: int) -> None:
        key = (len(changes), block, first is None)
        if key not in self._steps:
            pair = (
                SagaStep(sendable_floats(changes), block, first),
                PartialProducts(sendable_floats(np.zeros(length)), None),
            )
            self._steps[key] = sum(m.units() for m in pair), sum(map(self._weigh, pair))
        self._add(2, *self._steps[key], self._n_parties)

    def totals(self) -> Totals:
        return Totals(self._messages, self._units, self._bytes)

    def _add(self, messages: int, units: int, weight: int, parties: int) -> None:
        self._messages += messages * parties
        self._units += units * parties
        self._bytes += weight * parties
