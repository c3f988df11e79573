"""How coarsely to round for a given number of bytes: a coarser step buys more rows, but each of them is worth less.

With b bytes there are m = b / (bytes a row) rows. The excess loss falls as 1 / m. Rounding adds variance to what the
model leaves unexplained, in proportion to step^2 / 12, and the excess grows by that factor. So the best step makes

    (1 + noise_ratio step^2 / 12) (other_bits + n_values value_bits(step))

least: whatever the number of bytes, and whatever the task, but for one number that says how much rounding hurts.
"""

import numpy as np
from scipy.special import ndtr

# How often the unexplained variance (of residuals, of distances to centres) fits into what one unit of rounding
# variance in every whitened, or scaled, column adds. For least squares that is the squared length of (coefficients, -1)
# in whitened columns over the residuals' variance; calibrated weights make it larger. For k-means it is the variance of
# all columns over the cost a row. Chosen by trial on KC House, the YearPredictionMSD twin and Covertype.
REGRESSION_NOISE_RATIO, CLUSTERING_NOISE_RATIO = 10.0, 2.5
STEPS = np.geomspace(0.05, 2.0, 38)


def value_bits(step: float, spread: float = 1.0) -> float:
    """Predict the bits that a rounded normal value takes in its Rice code.

    Parameters
    ----------
    step : float
        In standard deviations of the column.
    spread : float
        The standard deviation among the rows sent, in the same units: above 1 where rows are drawn by leverage.

    Returns
    -------
    float
        Expected length.
    """
    ratio = spread / step
    reach = int(np.ceil(9 * ratio)) + 1
    codes = np.arange(-reach, reach + 1)
    # A dithered code is the rounded sum of a normal and a uniform variable: the average over both cell borders.
    ends = np.concatenate([codes - 1.0, [reach, reach + 1.0]]) / ratio
    integral = ends * ndtr(ends) + np.exp(-np.square(ends) / 2) / np.sqrt(2 * np.pi)
    chances = ratio * (integral[2:] - 2 * integral[1:-1] + integral[:-2])
    numbers = np.where(codes < 0, -2 * codes - 1, 2 * codes)
    return min(k + 1 + float(chances @ (numbers >> k)) for k in range(40))


def best_step(n_values: int, other_bits: float, noise_ratio: float = REGRESSION_NOISE_RATIO) -> float:
    """Choose the step that gives the least excess loss for the bytes.

    Parameters
    ----------
    n_values : int
        How many rounded values a row has, over all parties.
    other_bits : float
        What a row takes besides: its id and its score for each party, exact columns.
    noise_ratio : float
        How much rounding hurts.

    Returns
    -------
    float
        In standard deviations; 0.4 to 1 as a rule. The minimum is flat: a step twice or half as large costs some 10 %.
    """
    costs = [(1 + noise_ratio * s**2 / 12) * (other_bits + n_values * value_bits(s)) for s in STEPS.tolist()]
    return float(STEPS[int(np.argmin(costs))])
