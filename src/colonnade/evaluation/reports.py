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
        sum_i (prediction_i - y_i)^2 over all rows, without the penalty; estimated where only a sample was evaluated.
    mse, mae : float
        Mean squared and mean absolute error a row.
    r2 : float or None
        1 - cost / (the labels' squared spread); None where the labels do not vary.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    """

    n_evaluated: int
    cost: float
    mse: float
    mae: float
    r2: float | None
    cost_interval: tuple[float, float] | None


class ClusteringReport(msgspec.Struct, frozen=True):
    """How well centres fit.

    Parameters
    ----------
    n_evaluated : int
        On how many rows this rests.
    cost : float
        sum_i min_c |x_i - c|^2 over all rows; estimated where only a sample was evaluated.
    cost_per_row : float
        Its mean.
    cluster_sizes : tuple of int
        How many of the evaluated rows are nearest to each centre.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    """

    n_evaluated: int
    cost: float
    cost_per_row: float
    cluster_sizes: tuple[int, ...]
    cost_interval: tuple[float, float] | None


def regression_report(residuals: Floats, label_spread: float, n_rows: int, *, sampled: bool) -> RegressionReport:
    """Sum up residuals.

    Parameters
    ----------
    residuals : ndarray of float64, shape (m,)
        Prediction less label.
    label_spread : float
        sum_i (y_i - mean y)^2 over the same rows.
    n_rows : int
        n, all rows there are.
    sampled : bool
        Whether the rows are an even sample of them.

    Returns
    -------
    RegressionReport
        For all rows.
    """
    squares = np.square(residuals)
    return RegressionReport(
        len(residuals),
        float(n_rows * squares.mean()),
        float(squares.mean()),
        float(np.abs(residuals).mean()),
        1.0 - float(squares.sum()) / label_spread if label_spread > 0 else None,
        _interval(squares, n_rows) if sampled else None,
    )


def clustering_report(labels: Rows, distances: Floats, k: int, n_rows: int, *, sampled: bool) -> ClusteringReport:
    """Sum up distances; the parameters are those of `regression_report`, with labels and squared distances.

    Parameters
    ----------
    labels : ndarray of int64, shape (m,)
        Nearest centres.
    distances : ndarray of float64, shape (m,)
        Squared distances to them.
    k : int
        How many centres there are.
    n_rows : int
        n, all rows there are.
    sampled : bool
        Whether the rows are an even sample of them.

    Returns
    -------
    ClusteringReport
        For all rows.
    """
    sizes = np.bincount(labels, minlength=k)
    mean = float(distances.mean())
    interval = _interval(distances, n_rows) if sampled else None
    return ClusteringReport(len(labels), n_rows * mean, mean, tuple(sizes.tolist()), interval)


def _interval(losses: Floats, n_rows: int) -> tuple[float, float] | None:
    """Student's interval for the sum over all rows, from a sample drawn evenly with replacement."""
    from scipy.stats import t

    m = len(losses)
    if m < 2:
        return None
    half = float(t.ppf(0.975, m - 1) * losses.std(ddof=1) / math.sqrt(m))
    mean = float(losses.mean())
    return n_rows * max(mean - half, 0.0), n_rows * (mean + half)
