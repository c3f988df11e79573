"""What rows drawn by scores say of sums over all rows: estimates, their errors, and how far these can be trusted.

Draws are independent, each with weight w_i = 1 / (m p_i). The regression estimator of survey sampling predicts each
row's value from controls whose sums over all rows are known, and estimates only what is left. Its variance is that of
the weighted rests; since a few of them can make up most of it, Student's t gets as many degrees of freedom as the
spread of their squares tells (Satterthwaite): as many as there are rows where the rests are normal, fewer where heavy.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from colonnade.kernels.arrays import Floats

CONFIDENCE = 0.95
MOST_EXPONENT = 100.0
MOST_LEVERAGE = 0.99


@dataclass(frozen=True)
class Estimate:
    """An estimated sum, its standard error, and the effective degrees of freedom of that."""

    value: float
    deviation: float
    degrees: float

    def interval(self) -> tuple[float, float]:
        """Give Student's interval, of 95 % confidence, for a sum of squares: positive, and skewed to the right."""
        half = float(stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.deviation
        if self.value <= 0:
            return 0.0, max(self.value + half, 0.0)
        # Of the logarithm, whose errors are the more symmetric.
        factor = math.exp(min(half / self.value, MOST_EXPONENT))
        return self.value / factor, self.value * factor

    def p_value(self, other: "Estimate") -> float:
        """Give the chance that two independent estimates of the same differ by so much or more."""
        exponent = exponent_of(max(self.deviation, other.deviation))
        own, others = (math.ldexp(each.deviation, -exponent) ** 2 for each in (self, other))
        if own + others == 0:
            return 1.0
        degrees = (own + others) ** 2 / (own**2 / self.degrees + others**2 / other.degrees)
        apart = math.ldexp(abs(self.value - other.value), -exponent)
        return float(2 * stdtr(degrees, -apart / math.sqrt(own + others)))


def exponent_of(largest: float) -> int:
    """Give an e such that numbers up to this, over 2^e, are up to 1: no power of them leaves float64's range."""
    return math.frexp(largest)[1]


def exactly(value: float) -> Estimate:
    """Give what is known."""
    return Estimate(value, 0.0, math.inf)


def regression_estimate(values: Floats, controls: Floats, sums: Floats, weights: Floats) -> Estimate:
    """Estimate the sum of values over all rows, from drawn ones, shape (m,), with the help of controls.

    The controls, shape (m, p), are of the same rows and of similar size; one of them is 1. `sums`, shape (p,), are
    theirs over all rows.
    """
    inverse = np.linalg.pinv((controls * weights[:, np.newaxis]).T @ controls, hermitian=True)
    coefficients = inverse @ ((weights * values) @ controls)
    rests = values - controls @ coefficients
    value = float(sums @ coefficients + weights @ rests)
    # The weights that hit the sums of the controls: with them errors are larger where the draw missed these. And each
    # rest as predicted from the other rows: none is then small only because the coefficients bent towards it.
    calibrated = weights * (1.0 + controls @ (inverse @ (sums - weights @ controls)))
    leverage = np.minimum(weights * np.einsum("ij,ij->i", controls @ inverse, controls), MOST_LEVERAGE)
    return from_errors(value, calibrated * rests / (1.0 - leverage))


def ratio_estimate(values: Floats, weights: Floats, total_weight: float) -> Estimate:
    """Estimate the sum of values over all rows by the weighted mean of drawn ones, shape (m,) (Hajek)."""
    factors = weights * (total_weight / weights.sum())
    value = float(factors @ values)
    return from_errors(value, factors * (values - value / total_weight))


def plain_estimate(values: Floats, weights: Floats) -> Estimate:
    """Estimate the sum of values over all rows by the weighted sum of drawn ones, shape (m,)."""
    parts = weights * values
    return from_errors(float(parts.sum()), parts - parts.mean())


def from_errors(value: float, errors: Floats) -> Estimate:
    """Give an estimate whose error is a sum of independent ones, of which these, shape (m,), are samples."""
    exponent = exponent_of(float(np.abs(errors).max(initial=0.0)))
    squares = np.square(np.ldexp(errors, -exponent))
    variance = float(squares.sum())
    spread = float(np.square(squares).sum()) - variance**2 / len(errors)
    degrees = 2 * variance**2 / spread if spread > 0 else float(len(errors))
    deviation = math.ldexp(math.sqrt(variance), exponent)
    return Estimate(value, deviation, min(max(degrees, 1.0), float(len(errors))))
