"""What an evaluation says, from the losses of all rows or of a sample of them."""

import math

import msgspec
import numpy as np

from colonnade.kernels.arrays import Floats, Rows


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
    """

    n_evaluated: int
    cost: float
    mse: float
    mae: float
    r2: float | None
    cost_interval: tuple[float, float] | None
    rounded_by: float | None = None

    @property
    def cost_per_row(self) -> float:
        """The mean squared error, by the name it has in every report."""
        return self.mse


class ClusteringReport(msgspec.Struct, frozen=True):
    """How well centres fit.

    Parameters
    ----------
    n_evaluated : int
        On how many rows this rests.
    cost : float
        sum_i w_i min_c |x_i - c|^2 over all rows (held-out ones, where there is a split); estimated where only a sample
        was evaluated.
    cost_per_row : float
        Its mean.
    cluster_sizes : tuple of int
        How many of the evaluated rows are nearest to each centre.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    rounded_by : float or None
        Where parts travelled rounded: no row's squared distance, and so not the cost a row, is off by more.
    """

    n_evaluated: int
    cost: float
    cost_per_row: float
    cluster_sizes: tuple[int, ...]
    cost_interval: tuple[float, float] | None
    rounded_by: float | None = None


def regression_report(
    residuals: Floats, weights: Floats, label_spread: float, *, sampled: bool, variance: float = 0.0
) -> RegressionReport:
    """Sum up residuals.

    Parameters
    ----------
    residuals : ndarray of float64, shape (m,)
        Prediction less label.
    weights : ndarray of float64, shape (m,)
        What each row counts; they sum to the weight of all rows.
    label_spread : float
        sum_i w_i (y_i - mean y)^2 over the same rows; where they are drawn, with w_i = 1.
    sampled : bool
        Whether the rows are drawn evenly, so that all weigh the same.
    variance : float
        What rounding added to each residual's square, on average.

    Returns
    -------
    RegressionReport
        For all rows.
    """
    squares = np.square(residuals) - variance
    cost, n = max(float(weights @ squares), 0.0), float(weights.sum())
    spread = label_spread * n / len(residuals) if sampled else label_spread
    return RegressionReport(
        len(residuals),
        cost,
        cost / n,
        float(weights @ np.abs(residuals)) / n,
        1.0 - cost / spread if spread > 0 else None,
        _interval(squares, n) if sampled else None,
    )


def clustering_report(labels: Rows, distances: Floats, weights: Floats, k: int, *, sampled: bool) -> ClusteringReport:
    """Sum up distances.

    Parameters
    ----------
    labels : ndarray of int64, shape (m,)
        Nearest centres.
    distances : ndarray of float64, shape (m,)
        Squared distances to them.
    weights : ndarray of float64, shape (m,)
        What each row counts; they sum to the weight of all rows.
    k : int
        How many centres there are.
    sampled : bool
        Whether the rows are drawn evenly, so that all weigh the same.

    Returns
    -------
    ClusteringReport
        For all rows.
    """
    sizes = np.bincount(labels, minlength=k)
    cost, n = float(weights @ distances), float(weights.sum())
    interval = _interval(distances, n) if sampled else None
    return ClusteringReport(len(labels), cost, cost / n, tuple(sizes.tolist()), interval)


def _interval(losses: Floats, total_weight: float) -> tuple[float, float] | None:
    """Student's interval for the sum over all rows, from a sample drawn evenly with replacement."""
    from scipy.stats import t

    m = len(losses)
    if m < 2:
        return None
    half = float(t.ppf(0.975, m - 1) * losses.std(ddof=1) / math.sqrt(m))
    mean = float(losses.mean())
    return total_weight * max(mean - half, 0.0), total_weight * (mean + half)
