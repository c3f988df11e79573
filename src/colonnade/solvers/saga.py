"""Saga: columns and coefficients stay with the parties; partial products go up, changes of residuals go down.

The messages and the server's script; the party's side is in `saga_party`.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import LinearTask, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import ConvergenceWarning, UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.saga import block_bounds, shuffled, step_size
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.options import flag, non_negative_number, whole_number
from colonnade.protocol import checks

M = TypeVar("M")


class SquaredNorms(Message, frozen=True):
    """|x_i|^2 over the party's columns: what the step size is made of. A score of each row, by its size."""

    phase: ClassVar[str] = "solving"

    norms: Annotated[Floats, Reveals.SCORES]


class OpenSaga(Message, frozen=True):
    """Opens the phase: shuffle the coreset's rows by this seed, deal them into so many blocks."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = SquaredNorms

    n_blocks: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    l2: Annotated[float, Reveals.NOTHING]
    l1: Annotated[float, Reveals.NOTHING]
    fit_intercept: Annotated[bool, Reveals.NOTHING]
    scale: Annotated[bool, Reveals.NOTHING]


class PartialProducts(Message, frozen=True):
    """x_i.theta over the party's columns for each row of the block; at the label party less the label.

    No label travels bare, but while coefficients are near 0 that difference is the label's deviation from the mean,
    negated: it counts as revealing labels, and so do the residuals that are made of it.
    """

    phase: ClassVar[str] = "solving"

    products: Annotated[Floats | None, Reveals.PREDICTIONS]
    less_label: Annotated[Floats | None, Reveals.LABELS]


class SagaStep(Message, frozen=True):
    """How the weighted residuals of the block asked before changed (step by them), and which block is next.

    The step size comes once, with the first block.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = PartialProducts

    changes: Annotated[Floats, Reveals.LABELS]
    block: Annotated[int, Reveals.ROW_IDS]
    step_size: Annotated[float | None, Reveals.TOTALS]


class Progress(Message, frozen=True):
    """Norms, in the label's units, of a change and of the coefficients.

    The change is what the epoch changed and what a full step would still: the first tells whether the table of
    gradients is fresh, the second whether they vanish, which small steps alone would not.
    """

    phase: ClassVar[str] = "solving"

    change: Annotated[float, Reveals.MODEL]
    size: Annotated[float, Reveals.MODEL]


class AskProgress(Message, frozen=True):
    """Ends an epoch: the last block's changes."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Progress

    changes: Annotated[Floats, Reveals.LABELS]


class Coefficients(Message, frozen=True):
    """The party's coefficients in its columns' own units, and its part of the intercept."""

    phase: ClassVar[str] = "solving"

    coef: Annotated[Floats, Reveals.MODEL]
    offset: Annotated[float, Reveals.MODEL]


class AskCoefficients(Message, frozen=True):
    """Ends the phase."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Coefficients


class Saga(msgspec.Struct, frozen=True, tag_field="kind", tag="saga", forbid_unknown_fields=True):
    """Learn a linear model with SAGA: no row leaves its party, at the price of many rounds.

    The coreset's rows are shuffled and dealt into blocks once; each round takes one block, evenly drawn, and weighs
    its residuals by the coreset's weights. Even draws, because a coreset's weights are made to balance w_i |x_i|^2,
    which is what the step size depends on; drawing by weight would visit light, large rows too rarely. And parties
    then need no weights, which would tell them the others' scores. The step is 1 / (3 L), with L from squared norms.

    An epoch is as many rounds as there are blocks: 2 m T units, and T for each round to name its block; with
    ``batch=1`` that is the paper's 3 m T. Two units a party close it.

    Parameters
    ----------
    batch : int
        Rows a round. 1 is SAGA to the letter; more means fewer rounds an epoch, and more epochs.
    tolerance : float
        Stop after an epoch that changed the coefficients by less than this part of their size, in standard units, if
        a full proximal step would change them by no more. The objective is then off by about the square of it.
    max_epochs : int
        Stop here with a `ConvergenceWarning`.
    scale : bool
        Let each party centre and scale its own columns for the time of the solving. The task and the model stay in
        the columns' own units, penalties too, and nothing is sent for it. Without it, raw columns of different sizes
        do not converge in any reasonable time.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) * [1.0, 1e3, 1.0, 1e-3]
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2e-3, 3.0, 4e3] + 5.0, [2, 2]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100), solver=cn.Saga(tolerance=1e-8))
    >>> (run.model.coef_ * [1.0, 1e3, 1.0, 1e-3]).round(4).tolist(), round(run.model.intercept_, 4)
    ([1.0, 2.0, 3.0, 4.0], 5.0)
    """

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.LABELS,)

    batch: int = 8
    tolerance: float = 1e-4
    max_epochs: int = 1000
    scale: bool = True

    def __post_init__(self) -> None:
        force_setattr(self, "batch", whole_number("batch", self.batch, least=1, example="Pass for instance batch=8."))
        tolerance = non_negative_number("tolerance", self.tolerance, example="Pass for instance tolerance=1e-4.")
        force_setattr(self, "tolerance", tolerance)
        epochs = whole_number("max_epochs", self.max_epochs, least=1, example="Pass for instance max_epochs=1000.")
        force_setattr(self, "max_epochs", epochs)
        force_setattr(self, "scale", flag("scale", self.scale))

    def check(self, task: Task[object]) -> None:
        """Take tasks whose model is linear, with penalties that are known."""
        linear_task(task)

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Open, step through epochs until little changes, collect the coefficients."""
        linear: LinearTask[M] = linear_task(task)
        size, parties = len(coreset), roster.names
        n_blocks, seed = -(-size // self.batch), int(rng.integers(2**63))
        opening = OpenSaga(n_blocks, seed, *linear.penalties(), linear.fit_intercept, self.scale)
        inbox = yield dict.fromkeys(parties, opening)
        weights = n_blocks * coreset.weights / coreset.total_weight
        server = SagaServer(roster.label_party, shuffled(size, seed), n_blocks, weights, np.zeros(size))
        step: float | None = server.step_size(checks.replies(inbox, SquaredNorms))
        for epoch in range(self.max_epochs):
            blocks = epoch_blocks(epoch, n_blocks, rng)
            changes, step = (yield from _epoch(parties, blocks, server, step)), None
            inbox = yield dict.fromkeys(parties, AskProgress(changes))
            change = server.relative_change(checks.replies(inbox, Progress))
            if change <= self.tolerance:
                break
        else:
            self.warn(change)
        inbox = yield dict.fromkeys(parties, AskCoefficients())
        coef, intercept = _join(checks.replies(inbox, Coefficients), roster)
        model = linear.linear_model(coef, intercept, roster)
        return Solution(model, {"epochs": epoch + 1, "cost": server.cost(coreset.total_weight, linear.penalty(coef))})

    def warn(self, change: float) -> None:
        """Say that the epochs were too few, and what to change."""
        scale = "" if self.scale else "pass scale=True; "
        warnings.warn(
            f"Saga stopped after {self.max_epochs} epochs with coefficients that still change by {change:.2g} of "
            f"their size; the tolerance is {self.tolerance:g}. To mend it, {scale}raise max_epochs, lower "
            f"batch (now {self.batch}), raise l2 where columns are nearly collinear, or use Central.",
            ConvergenceWarning,
            stacklevel=2,
        )


def linear_task(task: Task[M]) -> LinearTask[M]:
    """Require a task whose model is linear."""
    if not isinstance(task, LinearTask):
        raise UnsupportedError(f"Saga solves linear tasks, and {type(task).__name__} is none. Use another solver.")
    task.penalties()  # refuses "cv"
    return task


def epoch_blocks(epoch: int, n_blocks: int, rng: np.random.Generator) -> list[int]:
    """Draw an epoch's blocks: at first each once, which fills the table; then independently, as in theory."""
    drawn: list[int] = (rng.integers(n_blocks, size=n_blocks) if epoch else rng.permutation(n_blocks)).tolist()
    return drawn


@dataclass(frozen=True)
class SagaServer:
    """What the server keeps; of its fields only the table changes, in place."""

    label_party: str | None
    order: Rows
    n_blocks: int
    weights: Floats  # u_i
    table: Floats  # s_i, from 0: no residual need be known before its block is first visited

    def block(self, number: int) -> Rows:
        """Give the positions of a block's rows."""
        return self.order[block_bounds(len(self.order), self.n_blocks, number)]

    def step_size(self, replies: Mapping[str, SquaredNorms]) -> float:
        """Read the squared norms."""
        for party, reply in replies.items():
            checks.shape(party, reply, reply.norms, self.order.shape)
            checks.non_negative(party, reply, reply.norms)
        curvatures = self.weights * np.sum([reply.norms for reply in replies.values()], axis=0)
        return step_size(curvatures[self.order], self.n_blocks)

    def changes(self, number: int, replies: Mapping[str, PartialProducts]) -> Floats:
        """Put a block's new residuals into the table; give what changed."""
        rows = self.block(number)
        return self.update(rows, [self._due(party, reply, rows.shape) for party, reply in replies.items()])

    def update(self, rows: Rows, products: list[Floats]) -> Floats:
        """Put the residuals that the parties' products make into the table; give what changed."""
        fresh = self.weights[rows] * np.sum(products, axis=0)
        changes = fresh - self.table[rows]
        self.table[rows] = fresh
        return sendable_floats(changes)

    def _due(self, party: str, reply: PartialProducts, shape: tuple[int, ...]) -> Floats:
        due, other = reply.products, reply.less_label
        if party == self.label_party:
            due, other = other, due
        if due is None or other is not None:
            raise checks.wrong(party, reply, "products less the label where none were due, or none where they were")
        checks.shape(party, reply, due, shape)
        checks.in_range(party, reply, due)
        return due

    def relative_change(self, replies: Mapping[str, Progress]) -> float:
        """Set all parties' changes against the size of coefficients and residuals."""
        for party, reply in replies.items():
            checks.non_negative(party, reply, np.array([reply.change, reply.size]))
        residual = self._mean_square()
        # Coefficients and residuals together are as large as the label's spread, also where all coefficients are 0.
        size = sum(reply.size**2 for reply in replies.values()) + residual
        change = sum(reply.change**2 for reply in replies.values())
        return 0.0 if change == 0 else float(np.sqrt(change / size)) if size > 0 else np.inf

    def cost(self, total_weight: float, penalty: float) -> float:
        """Compute the objective from each row's last residual, some of them as old as their block's last visit."""
        return total_weight * (self._mean_square() + penalty)

    def _mean_square(self) -> float:
        counted = self.weights > 0
        return float((self.table[counted] ** 2 / self.weights[counted]).sum()) / self.n_blocks


def _epoch(parties: tuple[str, ...], blocks: list[int], server: SagaServer, step: float | None) -> Script[Floats]:
    changes = sendable_floats([])
    for block in blocks:
        inbox = yield dict.fromkeys(parties, SagaStep(changes, block, step))
        changes, step = server.changes(block, checks.replies(inbox, PartialProducts)), None
    return changes


def _join(replies: Mapping[str, Coefficients], roster: Roster) -> tuple[Floats, float]:
    coef = np.empty(len(roster.feature_names))
    for card in roster.cards:
        reply = replies[card.name]
        checks.shape(card.name, reply, reply.coef, (card.n_features,))
        checks.in_range(card.name, reply, np.append(reply.coef, reply.offset))
        coef[roster.parts[card.name]] = reply.coef
    return coef, float(sum(reply.offset for reply in replies.values()))
