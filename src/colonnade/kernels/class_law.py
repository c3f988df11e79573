"""What a pilot tells of the excess log-loss of a model of two classes learned on other rows, drawn and rounded anyhow.

The pilot's rows stand for all, as in `regression_law`. A run is rehearsed on them: of each row's copies so many are
drawn as the run would draw them, and the model is solved for, from where the pilot's is, with what rounding does to the
loss. An error e of a row's features, of mean zero, changes its gradient by (p - y) e + p (1 - p) e.theta x, which
varies, and to second order its loss by p (1 - p) (e.theta)^2 / 2, which draws all models towards zero: nobody takes
that off. How far the model is behind the best one of the pilot's rows, on these, is how far a run's is behind that of
all rows.

Two things are not rehearsed. Slopes p - y of rows that were learned from are too small: what they add to the excess is
made larger by as much as they are on others. And calibrated weights take off what moments explain of rows left out.
`first_order` is what a rehearsal gives for small errors, on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import MOST_MOMENTS, STRENGTH, calibration_strength, what_is_left
from colonnade.kernels.calibration_gain import UNKNOWN, calibration_gain, explained_part
from colonnade.kernels.leverage import eigen
from colonnade.kernels.logits import curvature, log_loss, probabilities
from colonnade.kernels.regression_law import (
    LEAST_KEPT,
    MOST_SHARE_OF_ROWS,
    copies_drawn,
    least_variance,
    own_leverage,
)
from colonnade.kernels.rounding_noise import Parted, RoundedColumns, parted
from colonnade.kernels.tilted_logistic import solve_tilted

# Of whitened columns: few rows may be told apart without error, and a penalty ends the growth of the model.
LEAST_PENALTY = 1e-5
# By which a pilot's model may be shrunk, in units of the mean curvature: few rows may seem to say that it is nothing,
# and nothing would be lost by rounding. Chosen on KC House and credit default.
RIDGES = np.append(0.0, np.geomspace(1e-3, 0.2, 20))


@dataclass(frozen=True, eq=False)
class ClassLaw:
    """A pilot's rows, taken apart.

    Parameters
    ----------
    rows : (m0, p) array
        Along the directions that features span and the pilot could see, as they were before rounding.
    classes : (m0,) array
        1 or 0.
    weights, counts : (m0,) array
        What each row stands for, and what it counts by itself.
    rounded : (p, p) array
        The covariance of what one unit of variance in each rounded column adds to the rows.
    penalty : (p, p) array
        Of a model given along these directions, a row.
    fit_intercept : bool
        Whether there is one.
    n_moments, own_leverage, least_seen
        As those of `RegressionLaw`; leverage is that of rows that weigh by their curvature, too.
    shrunk : float
        The ridge on rounded columns by which the pilot's model is taken to be that of all rows.
    unexplained : two (m0,) arrays, or None
        The squared length of each row's gradient, and of what moments leave of it; None where nobody knows that.
    """

    rows: Floats
    classes: Floats
    weights: Floats
    counts: Floats
    rounded: Floats
    penalty: Floats
    fit_intercept: bool
    n_moments: int
    own_leverage: Floats
    least_seen: float
    shrunk: float = 0.0
    unexplained: tuple[Floats, Floats] | None = None

    # What is left of a label of classes is never rounding, and R2 is none of its measures.
    unrounded = 1.0
    r2 = None

    @property
    def n_coefficients(self) -> int:
        """The intercept included."""
        return int(self.rows.shape[1]) + self.fit_intercept

    @property
    def loose(self) -> float:
        """The largest leverage that no party's own columns show, of a row that the pilot might as well have missed."""
        unforeseen = self._parts * self._bends * self._leverage - self.own_leverage
        return float(np.max(self._chance_missed * unforeseen, initial=0.0))

    def heaviest(self, chances: Floats) -> float:
        """Give the largest weight times leverage of a row that a draw with these chances may miss."""
        weighed = self._bends * self._leverage * self.counts / self.weights.sum() / chances
        return float(np.max((1 - chances) * weighed, initial=0.0))

    def first_order(self, chances: Floats, step: float | None) -> float:
        """Predict the mean excess, relative to the least cost, where errors are small; as that of `RegressionLaw`."""
        size, d = float(self.weights / self.counts @ chances), self.n_coefficients
        if size < d + 0.5:
            return float("inf")
        drawn, rounded, bias = self._variances(chances, step)
        few_rows = 1 / (1 - min(d / size, MOST_SHARE_OF_ROWS))
        return ((drawn + rounded) * few_rows * self._gain(chances, step) + bias) / self._cost

    def rehearse(self, chances: Floats, step: float | None, repeats: int, rng: np.random.Generator) -> Floats:
        """Give the excess, relative to the least cost, of so many runs; the parameters are those of `first_order`."""
        found = np.array([self._one_run(chances, step, rng) for _ in range(repeats)])
        bias, more = (
            (0.0, 0.0) if step is None else (self._bias(step**2 / 12), self._bias_error(self._ridge(step**2 / 12)))
        )
        varied = np.maximum(found - bias, 0.0) * self._gain(chances, step) * self._larger
        return np.asarray((bias + more + varied) / self._cost)

    def bias_error(self, chances: Floats, step: float | None) -> float:  # noqa: ARG002  # as the other law
        """Tell the standard error of what rounding draws the model by, as an excess."""
        return 0.0 if step is None else self._bias_error(self._ridge(step**2 / 12)) / self._cost

    def relative_error(self, chances: Floats) -> float:
        """Tell the standard error of the mean excess, relative, that comes of the pilot's rows being a draw."""
        parts = self.weights * self.counts * (1 / chances - 1) * self._squares * self._leverage
        costs = self.weights * self._losses
        if not (parts.sum() > 0 and costs.sum() > 0):
            return 0.0
        ratio = parts / parts.sum() - costs / costs.sum()
        return float(np.sqrt(self._chance_missed @ np.square(ratio)))

    def _one_run(self, chances: Floats, step: float | None, rng: np.random.Generator) -> float:
        drawn = copies_drawn(self.weights / self.counts, chances, rng)
        each = self.counts / chances
        if np.count_nonzero(drawn) <= self.rows.shape[1] + 1 or len(np.unique(self.classes[drawn > 0])) < 2:
            return float("inf")
        each = each / (drawn @ each)
        penalty, linear = self._penalties, np.zeros(self._columns.shape[1])
        if step is not None:
            noise = step**2 / 12
            penalty = penalty + noise * self._mean_bend * self._noise_form
            linear = self._skew * noise + self._rounding(drawn, each, noise, rng)
        return self._excess(self._solved(drawn * each, penalty, linear))

    def _rounding(self, drawn: Floats, each: Floats, noise: float, rng: np.random.Generator) -> Floats:
        """Draw what rounding adds to the gradient: sums over copies."""
        errors = rng.standard_normal(self.rows.shape) * np.sqrt(noise * drawn)[:, np.newaxis] @ self._noise_root
        theta = self._model[: errors.shape[1]]
        own = self._slopes[:, np.newaxis] * errors
        if self.fit_intercept:
            own = np.column_stack([own, np.zeros(len(own))])
        gradients = own + (self._bends * (errors @ theta))[:, np.newaxis] * self._columns
        return np.asarray(each @ gradients)

    def _bias(self, noise: float) -> float:
        """Give the excess of a model of all rows whose rounding has no error but its variance."""
        penalty = self._penalties + noise * self._mean_bend * self._noise_form
        return self._excess(self._solved(self._parts, penalty, noise * self._skew))

    def _solved(self, weights: Floats, penalty: Floats, linear: Floats) -> Floats:
        return solve_tilted(self._columns, self.classes, weights, penalty, linear + self._tilt, self._model)

    def _excess(self, model: Floats) -> float:
        return max(self._objective(model) - self._objective(self._model), 0.0)

    def _objective(self, model: Floats) -> float:
        losses = log_loss(self._columns @ model, self.classes.astype(np.int64))
        return float(self._parts @ losses + model @ self._penalties @ model / 2 + self._tilt @ model)

    def _variances(self, chances: Floats, step: float | None) -> tuple[float, float, float]:
        """Give what drawing and rounding add to the cost where errors are small, and what rounding draws models by."""
        total = self.weights.sum()
        spread = self.weights * self.counts * (1 / chances - 1) / total**2
        if step is None:
            return float((spread * self._squares) @ self._leverage) / 2, 0.0, 0.0
        noise, sent = step**2 / 12, self.weights * self.counts / chances / total**2
        ridge = self._ridge(noise)
        # Along the intercept rounding is no ridge.
        metric = 1 / np.square(1 + ridge * self._parted.noise)
        axes = np.square(self._axes) @ metric + self._offset
        in_features = noise * float(self._parted.noise @ metric)
        theta = self._model[: self.rows.shape[1]]
        through = noise * float(theta @ self.rounded @ theta)
        rounded = sent @ (np.square(self._bends) * through * axes + self._squares * in_features)
        drawn = (spread * self._squares) @ axes
        bias = float(self._drawn_by(ridge) @ self._pull) + self._bias_error(ridge)
        return float(drawn) / 2, float(rounded) / 2, bias

    def _ridge(self, noise: float) -> float:
        return noise * self._mean_bend

    def _drawn_by(self, ridge: float) -> Floats:
        return np.asarray(np.square(ridge / (1 + ridge * self._parted.noise)) / 2)

    def _bias_error(self, ridge: float) -> float:
        q = self._parted.noise
        return float(self._drawn_by(ridge) @ (self._uncertain * np.square(q) / (1 + self.shrunk * q)))

    def _gain(self, chances: Floats, step: float | None) -> float:
        """Say by which factor calibrated weights change what drawing adds; rounding they do not."""
        if step is None:
            return 1.0
        drawn, rounded, _ = self._variances(chances, step)
        if not drawn > 1e-12 * rounded:  # all rows: weights are right as they are
            return 1.0
        size = float(self.weights / self.counts @ chances)
        explained = self._explained(chances)
        gain = calibration_gain(explained, self.n_moments / size, calibration_strength(round(size)))
        return (gain * drawn + rounded) / (drawn + rounded)

    def _explained(self, chances: Floats) -> float:
        """Find which part of what varies, of such a draw, moments explain: of an even one mostly less."""
        if self.unexplained is None:
            return UNKNOWN
        spread = self.weights * self.counts * (1 / chances - 1)
        variance, left = (float(spread @ each) for each in self.unexplained)
        load = self.n_moments / len(spread)
        # Slopes of classes are not linear in anything: few rows show what there is (KC House, credit default).
        return explained_part(left / variance, load, STRENGTH, not_shown=0.0) if variance > 0 else UNKNOWN

    @cached_property
    def _parts(self) -> Floats:
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def _chance_missed(self) -> Floats:
        return np.asarray(1 - self.counts / self.weights)

    @cached_property
    def _columns(self) -> Floats:
        """The rows, and ones where there is an intercept."""
        return np.column_stack([self.rows, np.ones(len(self.rows))]) if self.fit_intercept else self.rows

    @cached_property
    def _penalties(self) -> Floats:
        """The Hessian of the penalty; none on the intercept."""
        return self._wide(2 * self.penalty + LEAST_PENALTY * np.eye(len(self.penalty)))

    @cached_property
    def _noise_form(self) -> Floats:
        return self._wide(self.rounded)

    @cached_property
    def _noise_root(self) -> Floats:
        eigenvalues, V = eigen(self.rounded)
        return np.asarray((np.sqrt(np.maximum(eigenvalues, 0.0)) * V).T)

    def _wide(self, form: Floats) -> Floats:
        return np.pad(form, (0, 1)) if self.fit_intercept else form

    @cached_property
    def _model(self) -> Floats:
        """The model, less what of it is the chance of few rows: as a ridge on rounded columns takes it off."""
        zeros = np.zeros(self._columns.shape[1])
        return solve_tilted(
            self._columns, self.classes, self._parts, self._penalties + self.shrunk * self._noise_form, zeros, zeros
        )

    @cached_property
    def _tilt(self) -> Floats:
        """What makes this model the best of the pilot's rows: their own best one learned their chance."""
        gradient = (self._parts * self._slopes) @ self._columns + self._penalties @ self._model
        return np.asarray(-gradient)

    @cached_property
    def _logits(self) -> Floats:
        return np.asarray(self._columns @ self._model)

    @cached_property
    def _slopes(self) -> Floats:
        return probabilities(self._logits) - self.classes

    @cached_property
    def _bends(self) -> Floats:
        return curvature(self._logits)

    @cached_property
    def _mean_bend(self) -> float:
        return float(self._parts @ self._bends)

    @cached_property
    def _losses(self) -> Floats:
        return log_loss(self._logits, self.classes.astype(np.int64))

    @cached_property
    def _skew(self) -> Floats:
        """What one unit of rounding adds to the gradient beside its ridge: by how curvatures change."""
        theta = self._model[: self.rows.shape[1]]
        bends = self._parts * self._bends * (1 - 2 * probabilities(self._logits))
        return np.asarray(0.5 * float(theta @ self.rounded @ theta) * (bends @ self._columns))

    @cached_property
    def _centred(self) -> Floats:
        """Rows about where the intercept is free of the others."""
        bends = self._parts * self._bends
        return np.asarray(self.rows - (bends @ self.rows / bends.sum() if self.fit_intercept else 0.0))

    @cached_property
    def _offset(self) -> float:
        return 1 / self._mean_bend if self.fit_intercept else 0.0

    @cached_property
    def _parted(self) -> Parted:
        """Of the curvature, and of what one unit of variance in each rounded column is."""
        bends, p = (self._parts * self._bends)[:, np.newaxis], self.rows.shape[1]
        return parted((self._centred * bends).T @ self._centred + self._penalties[:p, :p], self.rounded)

    @cached_property
    def _axes(self) -> Floats:
        return np.asarray(self._centred @ self._parted.directions)

    @cached_property
    def _leverage(self) -> Floats:
        """x'H^-1 x of each row, the intercept's part included."""
        return np.asarray(np.square(self._axes).sum(axis=1) + self._offset)

    @cached_property
    def _squares(self) -> Floats:
        """Squared slopes, as they are on rows that were not learned from."""
        return np.asarray(np.square(self._slopes) / self._kept)

    @cached_property
    def _kept(self) -> Floats:
        """By what factor learning from a row changes its squared slope, on average, as in `RegressionLaw`."""
        missed, w = self._chance_missed, self._parts
        one = np.full(len(w), np.sqrt(self._offset))
        rows = np.column_stack([self._axes, one])
        slopes = np.square(self._slopes)
        spread = (rows * (np.square(w) * missed * slopes)[:, np.newaxis]).T @ rows
        changed = np.square(self._bends) * np.einsum("ij,ij->i", rows @ spread, rows)
        most = np.maximum(np.maximum(slopes, changed), 1e-300)
        ratio = 1 - 2 * missed * w * self._bends * self._leverage + changed / most
        return np.asarray(np.clip(ratio, LEAST_KEPT, None))

    @cached_property
    def _larger(self) -> float:
        """By what factor the slopes of rows that were not learned from make the excess larger."""
        weights = np.square(self._parts) * self._leverage
        return float(weights @ self._squares / max(float(weights @ np.square(self._slopes)), 1e-300))

    @cached_property
    def _cost(self) -> float:
        """The least cost of all rows: that of the pilot's is lower, by half of what learning from few rows costs."""
        lower = float((np.square(self._parts) * self._chance_missed * self._squares) @ self._leverage) / 2
        p = self.rows.shape[1]
        theta = self._model[:p]
        return max(float(self._parts @ self._losses + theta @ self.penalty @ theta) + lower, 1e-300)

    @cached_property
    def _uncertain(self) -> Floats:
        """The variance of the model, along the directions of `_parted`, that comes of the pilot's rows being a draw."""
        errors = np.square(self._parts) * self._chance_missed * self._squares
        return np.asarray(errors @ np.square(self._axes))

    @cached_property
    def _pull(self) -> Floats:
        """The squared gradient of the ridge that rounding amounts to, along these directions."""
        gradient = self._parted.directions.T @ (self.rounded @ self._model[: self.rows.shape[1]])
        return np.asarray(np.square(gradient))


def class_law(
    parties: Sequence[Floats],
    noise: Sequence[Floats],
    chances: Floats,
    counts: Floats,
    features: Floats,
    classes: Floats,
    penalty: Floats,
    *,
    fit_intercept: bool,
) -> ClassLaw:
    """Take a pilot's rows apart.

    `classes`, (m0,), are 1 or 0. The other parameters are those of `regression_law`.
    """
    weights, joined, rounding = counts / chances, np.hstack(parties), np.concatenate(noise)
    w = weights / weights.sum()
    rows = RoundedColumns(joined, weights, rounding, features).corrected(1.0) @ features
    centred = rows - w @ rows
    # A direction that is noise is one that several parties share.
    found = parted((centred * w[:, np.newaxis]).T @ centred, features.T @ (rounding[:, np.newaxis] * features))
    seen = found.directions[:, found.is_clear]
    spans = features @ seen
    law = ClassLaw(
        rows=rows @ seen,
        classes=classes,
        weights=weights,
        counts=counts,
        rounded=spans.T @ ((rounding > 0)[:, np.newaxis] * spans),
        penalty=seen.T @ penalty @ seen,
        fit_intercept=fit_intercept,
        n_moments=1 + sum(u.shape[1] * (u.shape[1] + 3) // 2 for u in parties),
        own_leverage=np.zeros(len(w)),
        least_seen=min(least_variance(u, w, each) for u, each in zip(parties, noise, strict=True)),
    )
    law = replace(law, shrunk=_shrunk(law))
    bends = law._parts * law._bends
    own = np.sum([own_leverage(u, bends / bends.sum()) for u in parties], axis=0)
    return replace(law, own_leverage=own, unexplained=_unexplained(law, parties))


def _shrunk(law: ClassLaw) -> float:
    """Choose the ridge by which the pilot's model is nearest to that of all rows: by an unbiased estimate of its risk.

    Along directions in which columns of several parties nearly coincide few rows tell next to nothing of the model, and
    what they seem to tell would be lost by rounding.
    """
    q, uncertain = law._parted.noise, law._uncertain
    along = law._parted.back @ law._model[: len(law._parted.back.T)]
    squares = np.square(along) - uncertain
    ridges = RIDGES * law._mean_bend
    shares = 1 / (1 + np.outer(ridges, q))
    risks = np.square(1 - shares) @ squares + np.square(shares) @ uncertain
    return float(ridges[np.argmin(risks)])


def _unexplained(law: ClassLaw, parties: Sequence[Floats]) -> tuple[Floats, Floats] | None:
    """Find what the parties' moments leave of the gradients; of very many of them nobody knows."""
    if law.n_moments > 1 + MOST_MOMENTS:
        return None
    gradients = np.column_stack([law._axes, np.full(len(law.weights), np.sqrt(law._offset))])
    gradients *= law._slopes[:, np.newaxis]
    total = float(law.weights.sum())
    left = what_is_left(gradients, law.weights, parties, total, STRENGTH, law._chance_missed)
    return np.square(gradients).sum(axis=1), np.square(left).sum(axis=1)
