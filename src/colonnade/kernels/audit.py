"""An audit of a linear model: what drawn rows say of its cost on all rows, and of the gradient that is left there.

A residual is a sum of parts, one for each block of columns; of each part the mean and variance over all rows are known.
So are then those of the controls 1, a and a^2 for each part a, and of a squared residual only the products of different
parts are left to estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.estimates import (
    Estimate,
    exactly,
    plain_estimate,
    ratio_estimate,
    regression_estimate,
    uncertainty,
)

# Standard errors: a normal number falls short by more in one of forty draws, or is off by more in one of a hundred.
ONE_IN_FORTY, ONE_IN_A_HUNDRED = 1.96, 2.58
# Weights are told, or follow from scores that were summed in secret, to about a millionth.
ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class ResidualPart:
    """One block's part of the residuals of drawn rows, shape (m,), with an independent rounding error of mean zero.

    `noise` is the variance of that error; `mean` and `variance` are of the exact values over all rows, as they weigh.
    """

    values: Floats
    noise: float
    mean: float
    variance: float

    @property
    def counts(self) -> bool:
        """Whether it varies by more than its rounding: else it is of no use as a control."""
        return self.variance > 4 * self.noise


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Drawn rows, with the parts whose values add up to their residuals.

    With `weights`, shape (m,), the rows stand for all, which weigh `total_weight`. They were drawn independently, or
    are distinct, each there with its chance, shape (m,). `known` has further numbers of theirs, shape (m,), of which
    the mean over all rows is zero.
    """

    parts: Sequence[ResidualPart]
    weights: Floats
    total_weight: float
    chances: Floats | None = None
    known: Sequence[Floats] = ()

    @property
    def residuals(self) -> Floats:
        """Of the drawn rows, shape (m,)."""
        return np.asarray(np.sum([part.values for part in self.parts], axis=0))

    def controls(self) -> tuple[Floats, Floats]:
        """Give the controls, shape (m, p), and their sums over all rows, shape (p,). The first is 1."""
        columns, sums = [np.ones(len(self.weights))], [1.0]
        for part in self.parts:
            if part.counts:
                scaled = (part.values - part.mean) / np.sqrt(part.variance)
                columns += [scaled, np.square(scaled)]
                sums += [0.0, 1.0 + part.noise / part.variance]
        columns, sums = [*columns, *self.known], [*sums, *(0.0 for _ in self.known)]
        return np.column_stack(columns), self.total_weight * np.array(sums)

    def cost(self) -> Estimate:
        """Estimate the sum of squared residuals over all rows."""
        noise = self.total_weight * sum(part.noise for part in self.parts)
        return less(self.estimate(np.square(self.residuals)), noise)

    def size(self) -> float:
        """Give the sum of squares of all parts over all rows: how large their sum's could be, about."""
        return self.total_weight * sum(part.variance + part.mean**2 for part in self.parts)

    def gradient(self, which: int, *, centred: bool) -> Estimate:
        """Estimate the sum of residuals times a part of them, which may be taken about its mean, over all rows."""
        part = self.parts[which]
        along = part.values - (part.mean if centred else 0.0)
        return less(self.estimate(along * self.residuals), self.total_weight * part.noise)

    def offset_gradient(self) -> Estimate:
        """Give the sum of residuals over all rows: it is known."""
        known = self.total_weight * sum(part.mean for part in self.parts)
        return exactly(known)

    def draws_p(self) -> float:
        """Give the chance that rows drawn by their weights miss the sums of the controls by so much."""
        controls, sums = self.controls()
        return _least(
            [
                plain_estimate(control, self.weights, self.chances).p_value(exactly(total))
                for control, total in zip(controls.T, sums.tolist(), strict=True)
            ]
        )

    def hidden_excess(self, along: Floats, *, centred: bool) -> float:
        """Bound what could be gained along directions that the model was learned without, as `hidden_excess`."""
        weights = self.weights * (self.total_weight / self.weights.sum())
        return hidden_excess(along, self.residuals, weights, self.chances, centred=centred)

    def estimate(self, values: Floats) -> Estimate:
        """Estimate the sum of values, shape (m,), over all rows."""
        return regression_estimate(values, *self.controls(), self.weights, self.chances)


def less(found: Estimate, known: float) -> Estimate:
    """Take off what is known."""
    return Estimate(found.value - known, found.deviation, found.degrees)


def hidden_excess(along: Floats, residuals: Floats, weights: Floats, chances: Floats | None, *, centred: bool) -> float:
    """Bound what least squares could gain along directions that a model was learned without.

    `along`, shape (h, m), has the drawn rows along each direction; `centred` says whether the intercept moves along.
    With 97.5 % confidence, the cost falls by no more than this along them: g'K^-1 g, for the largest gradient g that
    the rows leave possible, where K is the directions' own Gram matrix. Infinite where a gradient is seen: such a
    direction is not known exactly, and what is really hidden may have more of it.
    """
    D = along - (along @ weights / weights.sum())[:, np.newaxis] if centred else along
    eigenvalues, V = np.linalg.eigh((D * weights) @ D.T)
    kept = eigenvalues > 1e-12 * max(eigenvalues.max(initial=0.0), 1e-300)
    errors = (V[:, kept] / np.sqrt(eigenvalues[kept])).T @ D * (weights * residuals)
    if not errors.size:
        return 0.0
    # The gradient is no longer than what is seen of it, and what was missed along it.
    uncertain = np.sqrt(uncertainty(chances, len(weights)))
    seen, missed = np.linalg.norm(errors.sum(axis=1)), np.linalg.norm(errors * uncertain, 2)
    if seen > ONE_IN_A_HUNDRED * np.sqrt(len(errors)) * missed:
        return float("inf")
    return float((seen + ONE_IN_FORTY * missed) ** 2)


def gradient_p(found: Sequence[tuple[Estimate, Estimate]]) -> float:
    """Give the chance of gradients so far from what is expected of each."""
    return _least([gradient.p_value(expected) for gradient, expected in found])


def weights_p(weights: Floats, total_weight: float, chances: Floats | None = None) -> float:
    """Give the chance that the weights of drawn rows miss the weight of all rows by so much."""
    found = plain_estimate(np.ones(len(weights)), weights, chances)
    if found.deviation == 0:  # all are certain, or weigh the same: nothing can be missed
        return float(abs(found.value - total_weight) <= ROUNDING * total_weight)
    return found.p_value(exactly(total_weight))


def clustering_cost(distances: Floats, weights: Floats, total_weight: float, chances: Floats | None = None) -> Estimate:
    """Estimate the sum of all rows' distances."""
    return ratio_estimate(distances, weights, total_weight, chances)


def _least(chances: Sequence[float]) -> float:
    """Give the chance that the least of several is so small (Bonferroni)."""
    return min([1.0, *(len(chances) * chance for chance in chances)])
