"""What a pilot tells of the excess cost of a regression learned on other rows, drawn and rounded in any way.

The pilot's rows stand for all: a row that was drawn with chance 1/40 for 40. A run is rehearsed on these: of each row's
copies so many are drawn as the run would draw them, each is rounded as the run would round it, and the model is solved
for as `CompactCentral` solves. How far that model is behind the best one of the pilot's rows, on the pilot's rows, is
how far a run's is behind that of all rows, whatever heavy rows, few rows and collinear columns do to it.

Two things are not rehearsed. Residuals of rows that were learned from are too small, and are made as large as those of
others. And calibrated weights: copies of few rows seem to meet more moments than there are; they take off what moments
explain of rows left out. `first_order` is what a rehearsal gives for small errors, on average: cheap, to compare many
ways by.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import MOST_MOMENTS, STRENGTH, calibration_strength, what_is_left
from colonnade.kernels.calibration_gain import UNKNOWN, calibration_gain, explained_part
from colonnade.kernels.leverage import eigen
from colonnade.kernels.rounding_noise import (
    Parted,
    RoundedColumns,
    corrected_covariance,
    parted,
    share_worth,
)

# A row's residual says at least so much of what it would be, had the row not been learned from.
LEAST_KEPT = 0.1
# Of the residuals' variance, what is not rounding is at least so much.
LEAST_UNROUNDED = 0.3
MOST_SHARE_OF_ROWS = 0.95


@dataclass(frozen=True, eq=False)
class RegressionLaw:
    """A pilot's rows, taken apart.

    Parameters
    ----------
    rows : (m0, r) array
        The parties' whitened columns side by side, about their mean, as they were before rounding; residuals are as
        large as they are on rows that were not learned from.
    weights, counts : (m0,) array
        What each row stands for, and what it counts by itself.
    rounded : (r,) array
        Which of the columns are rounded, 1 or 0: others travel as they are.
    features : (r, p) array
        The directions that features span and the pilot could see.
    label : (r,) array
        The label is rows @ label.
    penalty : (p, p) array
        Of a model given along `features`, a row.
    n_moments : int
        That weights are calibrated to.
    explained : float
        Which part of the variance these explain.
    unrounded : float
        Which part of the residuals' variance is not rounding that nobody could take off.
    own_leverage : (m0,) array
        What leverage in the pilot each row has in the columns of each party alone, summed.
    least_seen : float
        The least variance that the pilot's rows have along any direction of a party's columns: that of all rows is 1.
    """

    rows: Floats
    weights: Floats
    counts: Floats
    rounded: Floats
    features: Floats
    label: Floats
    penalty: Floats
    n_moments: int
    explained: float
    unrounded: float
    own_leverage: Floats
    least_seen: float

    @property
    def n_coefficients(self) -> int:
        """The intercept included."""
        return int(self.features.shape[1]) + 1

    @property
    def r2(self) -> float:
        """Of the model of all rows, on all rows."""
        variance = float(self.label @ self._gram @ self.label)
        return 1 - float(self._parts @ self._squares) / variance if variance > 0 else 0.0

    @property
    def loose(self) -> float:
        """The largest leverage that no party's own columns show, of a row that the pilot might as well have missed.

        Near 1, a row decides a direction alone that its scores do not know of: nobody knows how many were missed.
        """
        unforeseen = self._parts * self._leverage - self.own_leverage
        return float(np.max(self._chance_missed * unforeseen, initial=0.0))

    def heaviest(self, chances: Floats) -> float:
        """Give the largest weight times leverage of a row that a draw with these chances may miss."""
        weighed = self._leverage * self.counts / self.weights.sum() / chances
        return float(np.max((1 - chances) * weighed, initial=0.0))

    def first_order(self, chances: Floats, step: float | None) -> float:
        """Predict the mean excess, relative to the least cost, where errors are small.

        Row i of the pilot, and others like it, are drawn with `chances`, shape (m0,); with a step, rows are rounded by
        it and weights calibrated. Infinite where rows do not determine the model. What rounding may draw the model by
        counts with its standard error: a step should not hang on a pilot's luck.
        """
        size, d = self._size(chances), self.n_coefficients
        if size < d + 0.5:
            return float("inf")
        drawn, rounded, bias = self._variances(chances, step)
        few_rows = 1 / (1 - min(d / size, MOST_SHARE_OF_ROWS))
        return ((drawn + rounded) * few_rows * self._gain(chances, step) + bias) / self._cost

    def rehearse(self, chances: Floats, step: float | None, repeats: int, rng: np.random.Generator) -> Floats:
        """Give the excess, relative to the least cost, of so many runs; the parameters are those of `first_order`."""
        found = np.array([self._one_run(chances, step, rng) for _ in range(repeats)])
        # What rounding draws all models to is no matter of weights.
        bias = 0.0 if step is None else self._bias(chances, step**2 / 12)
        return np.asarray(bias + np.maximum(found - bias, 0.0) * self._gain(chances, step))

    def bias_error(self, chances: Floats, step: float | None) -> float:
        """Tell the standard error of what rounding draws the model by, as an excess."""
        if step is None:
            return 0.0
        sent = self.weights * self.counts / chances / self.weights.sum() ** 2
        return self._bias_error(self._ridge_left(sent, step**2 / 12)) / self._cost

    def relative_error(self, chances: Floats) -> float:
        """Tell the standard error of the mean excess, relative, that comes of the pilot's rows being a draw."""
        parts = self.weights * self.counts * (1 / chances - 1) * self._squares * self._leverage
        costs = self.weights * self._squares
        if not (parts.sum() > 0 and costs.sum() > 0):
            return 0.0
        ratio = parts / parts.sum() - costs / costs.sum()
        return float(np.sqrt(self._chance_missed @ np.square(ratio)))

    def _one_run(self, chances: Floats, step: float | None, rng: np.random.Generator) -> float:
        drawn = copies_drawn(self.weights / self.counts, chances, rng)
        each = self.counts / chances
        if np.count_nonzero(drawn) <= self.features.shape[1] + 1:
            return float("inf")
        each = each / (drawn @ each)
        gram, mean = self._seen(drawn * each, drawn, each, step, rng)
        if step is not None:
            gram = self._corrected(gram, drawn * np.square(each), step**2 / 12)
        return self._excess(self._solve(gram), mean)

    def _bias(self, chances: Floats, noise: float) -> float:
        """Give the excess of a model of all rows that are rounded with no error but their variance."""
        squared_weights = self.weights * self.counts / chances / self.weights.sum() ** 2
        gram = self._corrected(self._gram + noise * np.diag(self.rounded), squared_weights, noise)
        return self._excess(self._solve(gram), np.zeros(len(gram)))

    def _excess(self, model: Floats, mean: Floats) -> float:
        """Give that of a model, and of the intercept that makes residuals zero on average where rows have this mean."""
        moved, offset = model - self._model, mean @ (self.label - self.features @ model)
        return float(moved @ self._hessian @ moved + offset**2) / self._cost

    def _seen(
        self, weights: Floats, drawn: Floats, each: Floats, step: float | None, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Give the covariance and mean of drawn rows, every copy of which was rounded by itself."""
        gram, mean = (self.rows * weights[:, np.newaxis]).T @ self.rows, weights @ self.rows
        if step is not None:
            noise, r = step**2 / 12, len(gram)
            # Sums over copies.
            errors = rng.standard_normal(self.rows.shape) * np.sqrt(noise * np.outer(drawn, self.rounded))
            mixed = (self.rows * each[:, np.newaxis]).T @ errors
            spread = rng.standard_normal((r, r)) * (noise * np.sqrt(drawn @ np.square(each) / 2))
            spread *= np.outer(self.rounded, self.rounded)
            gram += mixed + mixed.T + spread + spread.T + noise * np.diag(self.rounded)
            mean = mean + each @ errors
        return gram - np.outer(mean, mean), mean

    def _corrected(self, gram: Floats, squared_weights: Floats, noise: float) -> Floats:
        """Take rounding off as `CompactCentral` does: the share that is worth it, where there is more than rounding."""
        added = noise * np.diag(self.rounded)
        share = share_worth(gram, self.rows, squared_weights, added, self.features, self.label)
        return corrected_covariance(gram, added, share)

    def _solve(self, gram: Floats) -> Floats:
        eigenvalues, V = eigen(self.features.T @ gram @ self.features + self.penalty)
        there = eigenvalues > 1e-10 * max(eigenvalues.max(initial=0.0), 1e-300)
        V, eigenvalues = V[:, there], eigenvalues[there]
        return np.asarray(V @ (V.T @ (self.features.T @ (gram @ self.label)) / eigenvalues))

    def _drawn(self, spread: Floats) -> float:
        """Give what drawing adds to the cost: tr(H^-1 Gamma), the intercept's part included."""
        return float((spread * self._squares) @ self._leverage)

    def _rounded(self, spread: Floats, noise: float, ridge: Floats) -> float:
        """Give what rounding adds: in residuals, in features, and in both."""
        in_features = self._parted.noise * noise
        metric = 1 / np.square(1 + ridge * self._parted.noise)
        in_residuals = float(metric @ (spread @ np.square(self._axes) + in_features * spread.sum()) + spread.sum())
        return noise * self._sensitivity * in_residuals + float(spread @ self._squares * (metric @ in_features))

    def _ridge_left(self, spread: Floats, noise: float) -> Floats:
        """Say what `rounding_noise.share_worth` leaves of the ridge that rounding amounts to."""
        parts = self._parted.noise
        safe = parts * noise < 1  # and so less than half of the variance together with it
        bias = noise * float(self._pull[safe].sum())
        gradients = (spread * self._squares) @ np.square(self._axes)
        cost = float((gradients * parts)[safe].sum())
        share = max(0.0, 1 - cost / bias) if bias > 0 else 0.0
        return np.where(safe, (1 - share) * noise, noise)

    def _drawn_by(self, ridge: Floats) -> Floats:
        return np.asarray(np.square(ridge / (1 + ridge * self._parted.noise)))

    def _bias_error(self, ridge: Floats) -> float:
        uncertain = self._uncertain * np.square(self._parted.noise)
        return float(self._drawn_by(ridge) @ (2 * np.sqrt(self._pull * uncertain) + uncertain))

    def _size(self, chances: Floats) -> float:
        return float(self.weights / self.counts @ chances)

    def _variances(self, chances: Floats, step: float | None) -> tuple[float, float, float]:
        """Give what drawing and rounding add to the cost where errors are small, and what rounding draws models by."""
        total = self.weights.sum()
        drawn = self._drawn(self.weights * self.counts * (1 / chances - 1) / total**2)
        if step is None:
            return drawn, 0.0, 0.0
        noise, sent = step**2 / 12, self.weights * self.counts / chances / total**2
        ridge = self._ridge_left(sent, noise)
        bias = float(self._drawn_by(ridge) @ self._pull) + self._bias_error(ridge)
        return drawn, self._rounded(sent, noise, ridge), bias

    def _gain(self, chances: Floats, step: float | None) -> float:
        """Say by which factor calibrated weights change what drawing adds; rounding they do not."""
        if step is None:
            return 1.0
        drawn, rounded, _ = self._variances(chances, step)
        if not drawn > 1e-12 * rounded:  # all rows: weights are right as they are
            return self._known_sensitivity
        size = self._size(chances)
        gain = calibration_gain(self.explained, self.n_moments / size, calibration_strength(round(size)))
        return (gain * drawn + rounded) / (drawn + rounded)

    @property
    def _known_sensitivity(self) -> float:
        """Which part of what rounding does to residuals is not made of the errors of the pilot's own coefficients."""
        known = self._sensitivity - float(self._uncertain @ self._parted.noise)
        # There is none where the label is constant.
        return max(known / self._sensitivity, LEAST_UNROUNDED) if self._sensitivity > 0 else 1.0

    @cached_property
    def _parts(self) -> Floats:
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def _chance_missed(self) -> Floats:
        return np.asarray(1 - self.counts / self.weights)

    @cached_property
    def _gram(self) -> Floats:
        return np.asarray((self.rows * self._parts[:, np.newaxis]).T @ self.rows)

    @cached_property
    def _hessian(self) -> Floats:
        return np.asarray(self.features.T @ self._gram @ self.features + self.penalty)

    @cached_property
    def _parted(self) -> Parted:
        """Of the curvature, and of what one unit of variance in each rounded column adds to it."""
        return parted(self._hessian, self.features.T @ (self.rounded[:, np.newaxis] * self.features))

    @cached_property
    def _axes(self) -> Floats:
        return np.asarray(self.rows @ (self.features @ self._parted.directions))

    @cached_property
    def _leverage(self) -> Floats:
        """x'H^-1 x + 1, for the intercept, of each row."""
        return np.asarray(np.square(self._axes).sum(axis=1) + 1.0)

    @cached_property
    def _model(self) -> Floats:
        return self._solve(self._gram)

    @cached_property
    def _squares(self) -> Floats:
        return np.asarray(np.square(self.rows @ (self.label - self.features @ self._model)))

    @cached_property
    def _cost(self) -> float:
        return max(float(self._parts @ self._squares + self._model @ self.penalty @ self._model), 1e-300)

    @property
    def _residual(self) -> Floats:
        """What residuals are made of: -rows @ this, (r,)."""
        return np.asarray(self.features @ self._model - self.label)

    @cached_property
    def _sensitivity(self) -> float:
        """What one unit of variance in each rounded column adds to that of residuals."""
        return float(self.rounded @ np.square(self._residual))

    @cached_property
    def _pull(self) -> Floats:
        """The squared gradient of the ridge that rounding amounts to, along the directions of `_parted`."""
        gradient = self._parted.directions.T @ (self.features.T @ (self.rounded * self._residual))
        return np.asarray(np.maximum(np.square(gradient) - self._uncertain * np.square(self._parted.noise), 0.0))

    @cached_property
    def _uncertain(self) -> Floats:
        """The variance of the model, along these directions, that comes of the pilot's rows being a draw."""
        errors = np.square(self._parts) * self._chance_missed * self._squares
        return np.asarray(errors @ np.square(self._axes))


def regression_law(
    parties: Sequence[Floats],
    noise: Sequence[Floats],
    chances: Floats,
    counts: Floats,
    features: Floats,
    label: Floats,
    penalty: Floats,
) -> RegressionLaw:
    """Take a pilot's rows apart.

    Parameters
    ----------
    parties : sequence of (m0, r_j) arrays
        Each party's whitened columns.
    noise : sequence of (r_j,) arrays
        The variance of the rounding error in each of them, 0 where there is none.
    chances, counts : (m0,) array
        With which chance each row was drawn, and what it counts.
    features : (r, p) array
        Orthonormal: the directions of the joined whitened columns that features span.
    label : (r,) array
        The label is rows @ label, up to its mean.
    penalty : (p, p) array
        Of a model given along `features`, a row.
    """
    weights, joined, rounding = counts / chances, np.hstack(parties), np.concatenate(noise)
    w = weights / weights.sum()
    rounded = RoundedColumns(joined, weights, rounding, features)
    rows = rounded.corrected(1.0)
    rows = rows - w @ rows
    # A direction that is noise is one that several parties share.
    found = parted(
        (rows @ features * w[:, np.newaxis]).T @ (rows @ features), features.T @ (rounding[:, np.newaxis] * features)
    )
    seen = found.directions[:, found.is_clear]
    law = RegressionLaw(
        rows=rows,
        weights=weights,
        counts=counts,
        rounded=(rounding > 0).astype(np.float64),
        features=features @ seen,
        label=label,
        penalty=seen.T @ penalty @ seen,
        n_moments=1 + sum(u.shape[1] * (u.shape[1] + 3) // 2 for u in parties),
        explained=0.0,
        unrounded=1.0,
        own_leverage=np.sum([own_leverage(u, w) for u in parties], axis=0),
        least_seen=min(least_variance(u, w, each) for u, each in zip(parties, noise, strict=True)),
    )
    law = _with_larger_residuals(law, rounded.left(1.0), features)
    return replace(law, explained=_explained(law, parties))


def _explained(law: RegressionLaw, parties: Sequence[Floats]) -> float:
    """Find which part of the gradients' variance the parties' moments explain; of very many of them nobody knows."""
    if law.n_moments > 1 + MOST_MOMENTS:
        return UNKNOWN
    residuals = law.rows @ (law.label - law.features @ law._model)
    gradients = np.column_stack([law._axes, np.ones(len(residuals))]) * residuals[:, np.newaxis]
    spread, total = np.square(law.weights) * law._chance_missed, law.weights.sum()
    left = what_is_left(gradients, law.weights, parties, total, STRENGTH, law._chance_missed)
    variance, unexplained = (float(spread @ np.square(each).sum(axis=1)) for each in (gradients, left))
    if not variance > 0:
        return UNKNOWN
    return explained_part(unexplained / variance, law.n_moments / len(residuals), STRENGTH)


def copies_drawn(copies: Floats, chances: Floats, rng: np.random.Generator) -> Floats:
    """Draw of each row's copies, each by its chance; of copies that are no whole number, the last is a part of one."""
    whole = np.floor(copies)
    last = (copies - whole) * (rng.random(len(copies)) < chances)
    return np.asarray(rng.binomial(whole.astype(np.int64), chances) + last)


def _with_larger_residuals(law: RegressionLaw, noise: Floats, features: Floats) -> RegressionLaw:
    """Make residuals as large as on rows that were not learned from, less what rounding, (r, r), still adds to them."""
    direction = law.label - law.features @ law._model
    residuals = law.rows @ direction
    kept = _kept(law)
    mean = float(law._parts @ (np.square(residuals) / kept))
    unrounded = 1 - float(direction @ noise @ direction) / mean if mean > 0 else 1.0
    law = replace(law, unrounded=unrounded)
    # The label moves along what no feature has a part in.
    own = law.label - features @ (features.T @ law.label)
    square = float(own @ own)
    if square <= 1e-12 * float(law.label @ law.label):
        return law
    added = residuals * (np.sqrt(max(unrounded, LEAST_UNROUNDED) / kept) - 1)
    added = added - law._parts @ added
    return replace(law, rows=law.rows + np.outer(added - law._parts @ added, own / square))


def own_leverage(columns: Floats, w: Floats) -> Floats:
    """Give each row's leverage, (m0,), in columns of one party, (m0, r), where rows have these parts of the weight."""
    centred = columns - w @ columns
    eigenvalues, V = eigen((centred * w[:, np.newaxis]).T @ centred)
    there = eigenvalues > 1e-10 * max(eigenvalues.max(initial=0.0), 1e-300)
    return np.asarray(w * np.sum(np.square(centred @ V[:, there]) / eigenvalues[there], axis=1))


def least_variance(columns: Floats, w: Floats, noise: Floats) -> float:
    """Give the least variance, less noise, (r,), that such columns have along any direction."""
    centred = columns - w @ columns
    return float(eigen((centred * w[:, np.newaxis]).T @ centred - np.diag(noise))[0].min(initial=1.0))


def _kept(law: RegressionLaw) -> Floats:
    """By what factor learning from a row changes its squared residual, on average; rows that are certain it does not.

    It is 1 - 2 h_i + x_i'H^-1 (sum_j w_j^2 x_j x_j') H^-1 x_i, with h_i and w_j^2 times the chance to be missed.
    """
    missed, w = law._chance_missed, law._parts
    rows = np.column_stack([law._axes, np.ones(len(w))])
    spread = (rows * (np.square(w) * missed)[:, np.newaxis]).T @ rows
    changed = 1 - 2 * missed * w * law._leverage + np.einsum("ij,ij->i", rows @ spread, rows)
    return np.asarray(np.maximum(changed, LEAST_KEPT))
