"""The table that Saga's server keeps: the last residual of every row, weighted."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.saga import MOST_LOGISTIC, block_bounds, logistic_losses, logistic_slopes, step_size
from colonnade.messages import sendable_floats
from colonnade.protocol import checks
from colonnade.solvers.saga.messages import ClassNorms, PartialProducts, Progress, SquaredNorms


@dataclass(frozen=True)
class ResidualTable:
    """Each row's last residual, and what belongs to it; of its fields only the residuals change, in place."""

    label_party: str | None
    order: Rows
    n_blocks: int
    weights: Floats  # u_i
    residuals: Floats  # s_i, from 0: no residual need be known before its block is first visited
    codes: Rows | None = None  # of a classification: 1 in rows of the last class

    def block(self, number: int) -> Rows:
        """Give the positions of a block's rows."""
        return self.order[block_bounds(len(self.order), self.n_blocks, number)]

    def step_size(self, replies: Mapping[str, SquaredNorms | ClassNorms]) -> float:
        """Read the squared norms."""
        for party, reply in replies.items():
            checks.shape(party, reply, reply.norms, self.order.shape)
            checks.non_negative(party, reply, reply.norms)
        curvatures = self.weights * np.sum([reply.norms for reply in replies.values()], axis=0)
        most = 1.0 if self.codes is None else MOST_LOGISTIC
        return step_size(most * curvatures[self.order], self.n_blocks)

    def changes(self, number: int, replies: Mapping[str, PartialProducts]) -> Floats:
        """Put a block's new residuals into the table; give what changed."""
        rows = self.block(number)
        return self.update(rows, [self._due(party, reply, rows.shape) for party, reply in replies.items()])

    def update(self, rows: Rows, products: list[Floats]) -> Floats:
        """Put the residuals that the parties' products make into the table; give what changed."""
        fresh = self.fresh(rows, np.sum(products, axis=0))
        changes = fresh - self.residuals[rows]
        self.residuals[rows] = fresh
        return sendable_floats(changes)

    def fresh(self, rows: Rows, products: Floats) -> Floats:
        """Compute s_i of rows whose products are these: residuals, or slopes of losses."""
        slopes = products if self.codes is None else logistic_slopes(products, self.codes[rows])
        weighted: Floats = self.weights[rows] * slopes
        return weighted

    def _due(self, party: str, reply: PartialProducts, shape: tuple[int, ...]) -> Floats:
        due, other = reply.products, reply.less_label
        if party == self.label_party and self.codes is None:
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
        if self.codes is None:
            return total_weight * (self._mean_square() + penalty)
        counted = self.weights > 0
        losses = logistic_losses(self.residuals[counted] / self.weights[counted])
        return total_weight * (float(self.weights[counted] @ losses) / self.n_blocks + penalty)

    def _mean_square(self) -> float:
        counted = self.weights > 0
        return float((self.residuals[counted] ** 2 / self.weights[counted]).sum()) / self.n_blocks
