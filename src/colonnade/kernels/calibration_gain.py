"""What calibrated weights usually take off the variance of what is learned.

A calibrated sum is that of what moments leave unexplained, plus what a regression on them adds by being fitted to the
same rows. With p moments and m rows that is the risk of ridge regression on new rows.
"""

# Of the gradients' variance moments explain about this much, and they depend on each other so that they act as a part
# of their number. Measured on half of the tables of benchmarks/promises.py, drawn by scores; evenly they explain more.
USUALLY_EXPLAINED, INDEPENDENT_PART = 0.42, 0.35


def usual_gain(load: float, strength: float) -> float:
    """Give the factor by which calibrated weights change the excess, where there are `load` moments for each row."""
    return ridge_risk(USUALLY_EXPLAINED, INDEPENDENT_PART * load, strength)


def ridge_risk(explained: float, load: float, strength: float) -> float:
    """Give the error of ridge regression on new rows, relative to the variance of what is predicted.

    Many rows would explain the part `explained` of that variance; `load` is how many predictors there are for each row,
    and `strength` is in units of a predictor's mean square. For uncorrelated predictors, in the limit of many of them.
    """
    ridge = strength + load
    for _ in range(200):
        ridge = strength + ridge * load / (1 + ridge)
    kept = ridge / (1 + ridge)
    return (1 - explained + explained * kept**2) / (1 - load / (1 + ridge) ** 2)
