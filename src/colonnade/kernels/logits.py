"""Logits, and what follows from them row by row: probabilities, losses, curvatures. Safe for any size of logit.

Logits have shape (m, K); two classes may have (m,) instead, those of class 1.
"""

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats, Rows


def log_loss(logits: Floats, codes: Rows) -> Floats:
    """Compute each row's -log probability of its class, shape (m,)."""
    if logits.ndim == 1:
        return np.logaddexp(0.0, np.where(codes == 1, -logits, logits))
    # Relative to the row's own logit, and its part left out of the sum: a loss of 1e-20 is not lost in rounding.
    own = np.take_along_axis(logits, codes[:, None], axis=1)
    ahead = logits - own
    np.put_along_axis(ahead, codes[:, None], -np.inf, axis=1)
    return np.asarray(np.logaddexp(0.0, scipy.special.logsumexp(ahead, axis=1)))


def probabilities(logits: Floats) -> Floats:
    """Compute the classes' probabilities, shape (m, K); or that of class 1, (m,)."""
    return np.asarray(scipy.special.expit(logits) if logits.ndim == 1 else scipy.special.softmax(logits, axis=1))


def chances_of_last(logits: Floats, small: Floats) -> Floats:
    """Compute the chance of class 1, (m,), given exp(-|logit|): nothing overflows, nothing cancels."""
    # Not np.where: a processor does not guess signs.
    chances = np.maximum(small, logits >= 0)
    chances /= 1.0 + small
    return chances


def curvature(logits: Floats) -> Floats:
    """Compute p (1 - p) in the shape of the logits: the loss's second derivative in each."""
    if logits.ndim == 1:
        return np.asarray(scipy.special.expit(logits) * scipy.special.expit(-logits))
    shares = probabilities(logits)
    return shares * (1.0 - shares)
