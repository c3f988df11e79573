"""The logistic loss of two classes with any quadratic and linear terms beside it, from a start nearby."""

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.logits import curvature, log_loss, probabilities

STEPS, DECREASE = 40, 1e-9


def solve_tilted(
    columns: Floats, classes: Floats, weights: Floats, penalty: Floats, linear: Floats, start: Floats
) -> Floats:
    """Minimise sum_i w_i loss_i + theta'penalty theta / 2 + linear.theta by damped Newton steps."""
    kept = weights > 0
    columns, codes, weights = columns[kept], classes[kept].astype(np.int64), weights[kept]

    def value(theta: Floats) -> float:
        return float(weights @ log_loss(columns @ theta, codes) + theta @ penalty @ theta / 2 + linear @ theta)

    theta, at = start, value(start)
    for _ in range(STEPS):
        logits = columns @ theta
        gradient = (weights * (probabilities(logits) - codes)) @ columns + penalty @ theta + linear
        H = (columns * (weights * curvature(logits))[:, np.newaxis]).T @ columns + penalty
        step = np.linalg.lstsq(H, gradient, rcond=1e-12)[0]
        slope, length = float(gradient @ step), 1.0
        while (new := value(theta - length * step)) > at - 1e-4 * length * slope and length > 1e-6:
            length /= 2
        if new >= at:
            break
        theta, at = theta - length * step, new
        if slope < DECREASE:
            break
    return theta
