"""An audit of a logistic model of two classes: what drawn rows say of its log-loss on all rows, and of its gradient.

A logit is a sum of parts, one for each block of columns, whose means and variances over all rows are known. So are the
class's share and, of one block, the part's mean in it. These are controls; of the log-loss what they do not explain is
left to estimate. Where the gradient is looked at, the loss is as good as least squares around the model: rows weigh
v_i = w_i p_i (1 - p_i), and residuals are (p_i - y_i) / (p_i (1 - p_i)).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.audit import AuditedRows, hidden_excess
from colonnade.kernels.estimates import Estimate
from colonnade.kernels.logits import curvature, log_loss, probabilities

# Of p (1 - p): nobody is surer than this, so that one can divide by it.
LEAST_CURVATURE = 1e-12


@dataclass(frozen=True, eq=False)
class AuditedClasses:
    """Drawn rows, whose parts add up to logits, with their classes, 1 or 0, shape (m,)."""

    rows: AuditedRows
    classes: Floats

    @cached_property
    def logits(self) -> Floats:
        """Of the drawn rows, shape (m,)."""
        return self.rows.residuals

    @cached_property
    def _slopes(self) -> Floats:
        return probabilities(self.logits) - self.classes

    def cost(self) -> Estimate:
        """Estimate the sum of log-losses over all rows."""
        return self.rows.estimate(log_loss(self.logits, self.classes.astype(np.int64)))

    def gradient(self, which: int, *, centred: bool) -> Estimate:
        """Estimate the gradient along a part of the logits, where the intercept may move along, over all rows."""
        part, bends = self.rows.parts[which].values, self.rows.weights * curvatures(self.logits)
        return self.rows.estimate((part - (bends @ part / bends.sum() if centred else 0.0)) * self._slopes)

    def offset_gradient(self) -> Estimate:
        """Estimate the gradient along the intercept."""
        return self.rows.estimate(self._slopes)

    def hidden_excess(self, along: Floats, *, centred: bool) -> float:
        """Bound what could be gained along directions that the model was learned without; infinite where some is."""
        bends = curvatures(self.logits)
        weights = self.rows.weights * bends * (self.rows.total_weight / self.rows.weights.sum())
        return hidden_excess(along, self._slopes / bends, weights, self.rows.chances, centred=centred) / 2


def curvatures(logits: Floats) -> Floats:
    """Compute p (1 - p), which one can divide by, shape (m,)."""
    return np.maximum(curvature(logits), LEAST_CURVATURE)
