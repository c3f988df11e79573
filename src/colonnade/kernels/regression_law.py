"""What a pilot tells of the excess loss of a regression learned on any number of rows, drawn and rounded in any way.

A model learned on m rows misses the best by about H^-1 times the mean of their gradients, so that its excess over the
least cost is K / m with K = tr(H^-1 Gamma): H is the Gram matrix, Gamma the gradients' variance from draw to draw. Both
are sums over rows, which the pilot's rows estimate for any way of drawing. To that come:

- 1 / (1 - d / m): with few rows their own Gram matrix is not H; more so where few rows have most of the leverage.
- Rounding adds step^2 / 12 to each whitened column: to residuals by the model's coefficients, to H as a ridge.
- Calibrated weights take off what the parties' moments explain of the gradients. How much that is with p moments and m
  rows follows from the limit for many rows by the known risk of ridge regression; the limit comes from the pilot, by
  leaving out each row in turn.
- Stratified draws from few rows hit each row less irregularly than independent ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import calibrate, calibration_strength
from colonnade.kernels.calibration_gain import PILOT_STRENGTH, explained_part, ridge_risk
from colonnade.kernels.rounding_noise import TIMES_THE_VARIANCE, correct_rows

# The exponent of 1 / (1 - d / m) is the leverage's mean square over its squared mean, which a pilot overrates where few
# rows have it all. Measured on KC House and the YearPredictionMSD twin.
MOST_UNEVEN = 1.6
# The error of what calibrated weights leave is about this over the root of the pilot's rows. Measured likewise.
EXPLAINED_ERROR = 2.0
# What the law itself misses by, relative: one standard error, likewise.
LAW_ERROR = 0.15
MOST_LEVERAGE, MOST_SHARE_OF_ROWS = 0.9, 0.95


@dataclass(frozen=True, eq=False)
class Draw:
    """A way of drawing rows.

    Parameters
    ----------
    weights : (m0,) array
        What each row of the pilot would weigh in it, relative to the mean weight.
    counts : (parties, m0) array, or None
        How often each party is expected to draw each row of the pilot, for each row that is drawn in all. None where
        draws are independent.
    """

    weights: Floats
    counts: Floats | None = None


@dataclass(frozen=True, eq=False)
class RegressionLaw:
    """A pilot's rows, taken apart.

    Parameters
    ----------
    weights : (m0,) array
        The pilot's, relative to their mean.
    axes : (m0, p) array
        Rows along the eigenvectors of H.
    eigenvalues : (p,) array
        Of H, penalty included.
    squares : (m0,) array
        Squared residuals, as large as they are on rows that were not learned from.
    pull : (p,) array
        Squared distances of the coefficients from where rounding draws them.
    penalty_gradient : (p,) array
        The mean gradient of rows at the best model.
    noise : float
        What one unit of variance in each whitened column adds to that of residuals.
    cost : float
        Of the best model, a row.
    n_moments : int
        That weights are calibrated to.
    explained : float
        Which part of the gradients' variance these moments explain, in the limit of many rows.
    """

    weights: Floats
    axes: Floats
    eigenvalues: Floats
    squares: Floats
    pull: Floats
    penalty_gradient: Floats
    noise: float
    cost: float
    n_moments: int
    explained: float

    @property
    def n_coefficients(self) -> float:
        """d, the intercept included, less what a penalty takes."""
        w = self.weights / self.weights.sum()
        return 1.0 + float(np.sum(w @ np.square(self.axes) / self.eigenvalues))

    def excess(self, draw: Draw, size: int, step: float | None) -> float:
        """Predict the mean excess over the least cost, relative to it; infinite where rows do not determine the model.

        With a step, rows are rounded by it and weights calibrated.
        """
        d = self.n_coefficients
        if size < d + 0.5:
            return float("inf")
        variance, bias = self._terms(draw, size, step)
        few_rows = (1 - min(d / size, MOST_SHARE_OF_ROWS)) ** -self._unevenness(draw)
        return float((variance * few_rows / size + bias) / self.cost)

    def excess_of_all(self, n_rows: int, step: float) -> float:
        """Predict the excess where every row is sent, rounded."""
        none = Draw(np.zeros_like(self.weights))
        _, bias = self._terms(none, n_rows, step)
        return (self._rounding(np.ones_like(self.weights), self.eigenvalues, step) / n_rows + bias) / self.cost

    def relative_error(self, draw: Draw, step: float | None) -> float:
        """Tell the standard error of the excess, relative: the law's own, and the pilot's, whose rows are a draw."""
        parts = self.weights * draw.weights * self.squares * self._leverage()
        costs = self.weights * self.squares
        ratio = parts / parts.mean() - costs / costs.mean()
        explained = 0.0 if step is None else EXPLAINED_ERROR
        return float(np.hypot(LAW_ERROR, np.hypot(ratio.std(ddof=1), explained) / np.sqrt(len(parts))))

    def _terms(self, draw: Draw, size: int, step: float | None) -> tuple[float, float]:
        """Give K, and the bias that rounding leaves."""
        w = self.weights * draw.weights / self.weights.sum()
        gradients = (w * self.squares) @ np.square(self.axes)
        even = float(w @ self.squares)
        if step is None:
            K = np.sum((gradients - np.square(self.penalty_gradient) * w.sum()) / self.eigenvalues)
            return (max(float(K), 0.0) + even) * self._stratified(draw, size), 0.0
        noise = step**2 / 12
        ridge = self._ridge_left(gradients, size, noise)
        metric = self.eigenvalues / np.square(self.eigenvalues + ridge)
        K = np.sum(metric * (gradients - np.square(self.penalty_gradient) * w.sum()))
        drawn = (max(float(K), 0.0) + even) * self._stratified(draw, size)
        rounded = self._rounding(draw.weights, self.eigenvalues + ridge, step)
        bias = np.sum(self.eigenvalues * self.pull * np.square(ridge / (self.eigenvalues + ridge)))
        calibrated = ridge_risk(self.explained, self.n_moments / size, calibration_strength(size))
        return (drawn + rounded) * calibrated, float(bias)

    def _rounding(self, weights: Floats, ridged: Floats, step: float) -> float:
        """K of rounding errors alone: of residuals, of features, and of both."""
        w, noise = self.weights * weights / self.weights.sum(), step**2 / 12
        metric = self.eigenvalues / np.square(ridged)
        in_residuals = float(np.sum(metric * (w @ np.square(self.axes) + noise * w.sum())) + w.sum())
        return noise * (self.noise * in_residuals + float(w @ self.squares * metric.sum()))

    def _ridge_left(self, gradients: Floats, size: int, noise: float) -> Floats:
        """Say what `rounding_noise.worthwhile_share` leaves of the ridge that rounding amounts to."""
        safe = self.eigenvalues > (TIMES_THE_VARIANCE - 1) * noise
        bias = noise * float(np.sum((self.pull / self.eigenvalues)[safe]))
        cost = float(np.sum((gradients / np.square(self.eigenvalues))[safe])) / size
        share = max(0.0, 1 - cost / bias) if bias > 0 else 0.0
        return np.where(safe, (1 - share) * noise, noise)

    def _unevenness(self, draw: Draw) -> float:
        w = self.weights * draw.weights / self.weights.sum()
        return float(np.clip(w @ np.square(self._leverage()) / self.n_coefficients**2, 1.0, MOST_UNEVEN))

    def _stratified(self, draw: Draw, size: int) -> float:
        """By what factor stratified draws vary less than independent ones: strata hold few rows where m is near n.

        A row that fills the part c < 1 of a stratum, or of two, is drawn with variance c - c^2 + c^3 / 3 on average.
        """
        if draw.counts is None:
            return 1.0
        c = size * draw.counts
        kept = np.where(c < 1, 1 - c + np.square(c) / 3, 1 / (3 * np.maximum(c, 1.0)))
        parts = self.weights * draw.weights * self.squares * self._leverage()
        total = float(parts.sum())
        return float(((kept * draw.counts).sum(axis=0) / draw.counts.sum(axis=0)) @ parts / total) if total > 0 else 1.0

    def _leverage(self) -> Floats:
        return np.asarray(np.square(self.axes) @ (1 / self.eigenvalues) + 1.0)


def regression_law(
    parties: Sequence[Floats], weights: Floats, step: float, features: Floats, label: Floats, penalty: Floats
) -> RegressionLaw:
    """Take a pilot's rows apart.

    Parameters
    ----------
    parties : sequence of (m0, r_j) arrays
        Each party's whitened columns, rounded by the step.
    weights : (m0,) array
        The pilot's, relative to the mean weight.
    features : (r, p) array
        Orthonormal: the directions of the joined whitened columns that features span.
    label : (r,) array
        The label is rows @ label, up to its mean.
    penalty : (p, p) array
        Of a model given along `features`, a row.
    """
    noise, m0 = step**2 / 12, len(weights)
    calibrated = calibrate(weights, parties, float(m0), noise, PILOT_STRENGTH)
    rows = correct_rows(np.hstack(parties), calibrated, noise, 1.0)
    w = calibrated / calibrated.sum()
    rows = rows - w @ rows
    Z, y = rows @ features, rows @ label
    eigenvalues, V = np.linalg.eigh((Z * w[:, np.newaxis]).T @ Z + penalty)
    # A direction with less is one that several parties share, with nothing in it but rounding.
    there = eigenvalues > TIMES_THE_VARIANCE * noise
    eigenvalues, V = eigenvalues[there], V[:, there]
    axes = Z @ V
    coefficients = (w * y) @ axes / eigenvalues
    residuals = y - axes @ coefficients
    sensitivity = features @ V @ coefficients - label
    squares = np.square(residuals) / _shrunk(axes, eigenvalues, w)
    # Less what rounding adds.
    added = noise * float(sensitivity @ sensitivity)
    mean = float(w @ squares)
    squares = squares * max(1 - added / mean, 0.3) if mean > 0 else squares
    uncertain = (np.square(w) * squares) @ np.square(axes) / np.square(eigenvalues)
    turned = V.T @ penalty @ V
    return RegressionLaw(
        weights=calibrated,
        axes=axes,
        eigenvalues=eigenvalues,
        squares=squares,
        pull=np.maximum(np.square(coefficients - V.T @ (features.T @ label)) - uncertain, 0.0),
        penalty_gradient=turned @ coefficients,
        noise=float(sensitivity @ sensitivity),
        cost=max(float(w @ squares + coefficients @ turned @ coefficients), 1e-300),
        n_moments=1 + sum(u.shape[1] * (u.shape[1] + 3) // 2 for u in parties),
        explained=explained_part(parties, weights / m0, residuals[:, np.newaxis] * axes / np.sqrt(eigenvalues)),
    )


def _shrunk(axes: Floats, eigenvalues: Floats, w: Floats) -> Floats:
    """By what factor learning from a row changes its squared residual, on average: 1 - h where weights are equal (HC2).

    With weights it is 1 - 2 h_i + x_i'H^-1 (sum_j w_j^2 x_j x_j') H^-1 x_i: a row that weighs little may be far off.
    """
    all_axes = np.column_stack([axes / eigenvalues, np.ones(len(w))])
    own = w * (np.square(axes) @ (1 / eigenvalues) + 1)
    rows = np.column_stack([axes, np.ones(len(w))])
    spread = (rows * np.square(w)[:, np.newaxis]).T @ rows
    changed = 1 - 2 * own + np.einsum("ij,ij->i", all_axes @ spread, all_axes)
    return np.asarray(np.maximum(changed, 1 - MOST_LEVERAGE))
