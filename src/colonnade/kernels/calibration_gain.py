"""What calibrated weights take off the variance of what is learned.

A calibrated sum is that of what moments leave unexplained, plus what a regression on them adds by being fitted to the
same rows. With p moments and m rows that is the risk of ridge regression on new rows. How much moments explain differs
between tables, from nothing to most of it; a pilot's rows tell, each predicted from the others.
"""

# Moments depend on each other, so that they act as a part of their number.
INDEPENDENT_PART = 0.35
# Few rows show less than there is: by so much on average for each moment a row, up to a limit. Where nobody looked, and
# at most, so much is explained. Measured on half of the tables of benchmarks/promises.py.
NOT_SHOWN, MOST_NOT_SHOWN, UNKNOWN, MOST_EXPLAINED = 0.4, 0.3, 0.3, 0.75


def calibration_gain(explained: float, load: float, strength: float) -> float:
    """Give the factor by which calibrated weights change the excess, where there are `load` moments for each row."""
    return ridge_risk(explained, INDEPENDENT_PART * load, strength)


def explained_part(risk: float, load: float, strength: float, *, not_shown: float = NOT_SHOWN) -> float:
    """Say which part of the variance many rows would explain, where few leave `risk` of that of rows left out."""
    kept, fitted = _ridge(INDEPENDENT_PART * load, strength)
    found = min(not_shown * load, MOST_NOT_SHOWN) + (1 - risk * fitted) / (1 - kept**2)
    return min(max(found, 0.0), MOST_EXPLAINED)


def ridge_risk(explained: float, load: float, strength: float) -> float:
    """Give the error of ridge regression on new rows, relative to the variance of what is predicted.

    Many rows would explain the part `explained` of that variance; `load` is how many predictors there are for each row,
    and `strength` is in units of a predictor's mean square. For uncorrelated predictors, in the limit of many of them.
    """
    kept, fitted = _ridge(load, strength)
    return (1 - explained + explained * kept**2) / fitted


def _ridge(load: float, strength: float) -> tuple[float, float]:
    """Give which part of what is there the ridge leaves, and the inverse of what fitting noise multiplies errors by."""
    ridge = strength + load
    for _ in range(200):
        ridge = strength + ridge * load / (1 + ridge)
    return ridge / (1 + ridge), 1 - load / (1 + ridge) ** 2
