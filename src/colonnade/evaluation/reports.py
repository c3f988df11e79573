"""What an evaluation says, from the losses of all rows or of a sample of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.estimates import exponent_of
from colonnade.kernels.moments import joined_spread
from colonnade.protocol.fingerprints import Seen

# Labels that vary by less than this part of the cost do not vary.
NO_SPREAD = 1e-100


class RegressionReport(msgspec.Struct, frozen=True):
    """How well a linear model predicts.

    Parameters
    ----------
    n_evaluated : int
        On how many rows this rests.
    cost : float
        sum_i w_i (prediction_i - y_i)^2 over all rows (held-out ones, where there is a split), without the penalty;
        estimated where only a sample was evaluated.
    mse, mae : float
        Mean squared and mean absolute error a row, weighted where rows have weights.
    r2 : float or None
        1 - cost / (the labels' squared spread); None where the labels do not vary.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    rounded_by : float or None
        Where parts travelled rounded: no row's residual is off by more. The cost, and so mse and r2, are right on
        average: what rounding adds to squares is known and subtracted.
    table : str or None
        "same" where this is the table that the model was learned from, and rows that were held out are such; "changed"
        where that changed since, "aligned again" where records were, "new rows" where it has others; None where
        nobody can tell.
    """

    n_evaluated: int
    cost: float
    mse: float
    mae: float
    r2: float | None
    cost_interval: tuple[float, float] | None
    rounded_by: float | None = None
    table: Seen | None = None

    @property
    def cost_per_row(self) -> float:
        """The mean squared error, by the name it has in every report."""
        return self.mse

    def in_words(self) -> str:
        """Put the numbers that matter first into a few words."""
        r2 = "" if self.r2 is None else f"R2 {self.r2:.4g}, "
        return f"{r2}cost {self.cost:.6g}, {self.mse:.6g} a row"


class ClusteringReport(msgspec.Struct, frozen=True):
    """How well centres fit.

    Parameters
    ----------
    n_evaluated : int
        On how many rows this rests.
    cost : float
        ``sum_i w_i min_c |x_i - c|^2`` over all rows (held-out ones, where there is a split); estimated where only a
        sample was evaluated.
    cost_per_row : float
        Its mean.
    cluster_sizes : tuple of int
        How many of the evaluated rows are nearest to each centre.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    rounded_by : float or None
        Where parts travelled rounded: no row's squared distance, and so not the cost a row, is off by more.
    table : str or None
        "same" where this is the table that the model was learned from, and rows that were held out are such; "changed"
        where that changed since, "aligned again" where records were, "new rows" where it has others; None where
        nobody can tell.
    """

    n_evaluated: int
    cost: float
    cost_per_row: float
    cluster_sizes: tuple[int, ...]
    cost_interval: tuple[float, float] | None
    rounded_by: float | None = None
    table: Seen | None = None

    def in_words(self) -> str:
        """Put the numbers that matter first into a few words."""
        return f"cost {self.cost:.6g}, {self.cost_per_row:.6g} a row"


@dataclass(frozen=True)
class Losses:
    """Squared residuals, or squared distances to the nearest centre, summed up.

    `cost` is sum_i w_i loss_i, `mean` and `deviation` are the losses' mean and standard deviation, unweighted: 0 for a
    single row, and where nobody asks for it. `absolute` is sum_i w_i |residual_i|, 0 of distances; `cluster_sizes` are
    empty of residuals.
    """

    n_rows: int
    weight: float
    cost: float
    deviation: float
    absolute: float = 0.0
    cluster_sizes: tuple[int, ...] = ()
    mean: float = 0.0


def residual_losses(
    residuals: Floats, weights: Floats | None, variance: float = 0.0, *, with_deviation: bool = False
) -> Losses:
    """Sum up residuals, to whose squares rounding added `variance` on average; weights are 1 each if left out.

    They are used up: what is left of them is their size.
    """
    n, weight = len(residuals), _sum(weights, len(residuals))
    if weights is None:
        cost = float(residuals @ residuals) - weight * variance
    else:
        cost = float(weights @ (np.square(residuals) - variance))
    varies = _mean_and_deviation(np.square(residuals) - variance) if with_deviation else (0.0, 0.0)
    return Losses(n, weight, cost, varies[1], _weighted(weights, np.abs(residuals, out=residuals)), mean=varies[0])


def distance_losses(
    labels: Rows, distances: Floats, weights: Floats | None, k: int, *, with_deviation: bool = False
) -> Losses:
    """Sum up squared distances to the nearest of k centres; weights are 1 each if left out."""
    sizes = tuple(np.bincount(labels, minlength=k).tolist())
    mean, deviation = _mean_and_deviation(distances) if with_deviation else (0.0, 0.0)
    cost, weight = _weighted(weights, distances), _sum(weights, len(labels))
    return Losses(len(labels), weight, cost, deviation, cluster_sizes=sizes, mean=mean)


def all_losses(parts: Sequence[Losses]) -> Losses:
    """Add up losses of windows; what rounding added may be more than is there, and no sum of losses is below 0."""
    n_rows, cost = sum(part.n_rows for part in parts), max(math.fsum(part.cost for part in parts), 0.0)
    weight, absolute = (math.fsum(getattr(part, name) for part in parts) for name in ("weight", "absolute"))
    sizes = tuple(map(sum, zip(*(part.cluster_sizes for part in parts), strict=True)))
    mean, deviation = _joined_deviation(parts, n_rows)
    return Losses(n_rows, weight, cost, deviation, absolute, sizes, mean)


def _sum(weights: Floats | None, n_rows: int) -> float:
    return float(n_rows) if weights is None else float(weights.sum())


def _weighted(weights: Floats | None, losses: Floats) -> float:
    return float(losses.sum() if weights is None else weights @ losses)


def _joined_deviation(parts: Sequence[Losses], n_rows: int) -> tuple[float, float]:
    """Join means and deviations of parts."""
    if len(parts) == 1:
        return parts[0].mean, parts[0].deviation
    # Squares of losses, which are squares, may leave float64's range.
    exponent = exponent_of(max(max(abs(part.mean), part.deviation) for part in parts))
    scaled = [(part.n_rows, math.ldexp(part.mean, -exponent), math.ldexp(part.deviation, -exponent)) for part in parts]
    _, mean, squares = joined_spread((n, own, max(n - 1, 0) * deviation**2) for n, own, deviation in scaled)
    return math.ldexp(mean, exponent), math.ldexp(math.sqrt(squares / max(n_rows - 1, 1)), exponent)


def regression_report(losses: Losses, label_spread: float, *, sampled: bool) -> RegressionReport:
    """Say how well a linear model predicts, from residuals whose weight is that of all rows.

    `label_spread` is sum_i w_i (y_i - mean y)^2 over the same rows. Sampled ones are drawn evenly, so that all weigh
    the same: there w_i = 1.
    """
    cost, n = losses.cost, losses.weight
    spread = label_spread * n / losses.n_rows if sampled else label_spread
    r2 = 1.0 - cost / spread if spread > NO_SPREAD * cost else None
    interval = cost_interval(losses, sampled=sampled)
    return RegressionReport(losses.n_rows, cost, cost / n, losses.absolute / n, r2, interval)


def clustering_report(losses: Losses, *, sampled: bool) -> ClusteringReport:
    """Say how well centres fit, from distances whose weight is that of all rows."""
    per_row, interval = losses.cost / losses.weight, cost_interval(losses, sampled=sampled)
    return ClusteringReport(losses.n_rows, losses.cost, per_row, losses.cluster_sizes, interval)


def _mean_and_deviation(losses: Floats) -> tuple[float, float]:
    if len(losses) < 2:
        return (float(losses[0]) if len(losses) else 0.0), 0.0
    exponent = exponent_of(float(np.abs(losses).max()))  # losses are squares, and theirs may leave float64's range
    scaled = np.ldexp(losses, -exponent)
    return math.ldexp(float(scaled.mean()), exponent), math.ldexp(float(scaled.std(ddof=1)), exponent)


def cost_interval(losses: Losses, *, sampled: bool) -> tuple[float, float] | None:
    """Compute Student's interval for the sum over all rows, from a sample drawn evenly with replacement."""
    m = losses.n_rows
    if m < 2 or not sampled:
        return None
    from scipy.stats import t

    half = losses.weight * float(t.ppf(0.975, m - 1)) * losses.deviation / math.sqrt(m)
    return max(losses.cost - half, 0.0), losses.cost + half
