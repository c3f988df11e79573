"""What rows drawn by scores say of sums over all rows: estimates, their errors, and how far these can be trusted.

Draws are independent, each with weight w_i = 1 / (m p_i); or rows are distinct, each there with its chance pi_i and
with weight 1 / pi_i. The regression estimator of survey sampling predicts each row's value from controls whose sums
over all rows are known, and estimates only what is left. Its variance is that of the weighted rests, e_i: the sum of
e_i^2, and for distinct rows of (1 - pi_i) e_i^2 (Hajek), nothing for a row that is certain. Since a few of them can
make up most of it, Student's t gets as many degrees of freedom as the spread of their squares tells (Satterthwaite): as
many as there are rows where the rests are normal, fewer where heavy.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats

CONFIDENCE = 0.95
MOST_EXPONENT = 100.0
MOST_LEVERAGE = 0.99
# A row as heavy as the heaviest that was seen may have been missed: so much of it is counted once more. Chosen on six
# tables and judged on three others (benchmarks/certificate.py).
MISSED = 0.5


@dataclass(frozen=True)
class Estimate:
    """An estimated sum, its standard error, and the effective degrees of freedom of that."""

    value: float
    deviation: float
    degrees: float

    def interval(self) -> tuple[float, float]:
        """Give Student's interval, of 95 % confidence, for a sum of squares: positive, and skewed to the right."""
        half = float(scipy.special.stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.deviation
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
        return float(2 * scipy.special.stdtr(degrees, -apart / math.sqrt(own + others)))


def exponent_of(largest: float) -> int:
    """Give an e such that numbers up to this, over 2^e, are up to 1: no power of them leaves float64's range."""
    return math.frexp(largest)[1]


def exactly(value: float) -> Estimate:
    """Give what is known."""
    return Estimate(value, 0.0, math.inf)


def regression_estimate(
    values: Floats, controls: Floats, sums: Floats, weights: Floats, chances: Floats | None = None
) -> Estimate:
    """Estimate the sum of values over all rows, from drawn ones, shape (m,), with the help of controls.

    The controls, shape (m, p), are of the same rows and of similar size; one of them is 1. `sums`, shape (p,), are
    theirs over all rows. `chances`, shape (m,), are those of distinct rows; None where draws are independent.
    """
    inverse = np.linalg.pinv((controls * weights[:, np.newaxis]).T @ controls, hermitian=True)
    coefficients = inverse @ ((weights * values) @ controls)
    rests = values - controls @ coefficients
    value = float(sums @ coefficients + weights @ rests)
    # The weights that hit the sums of the controls: with them errors are larger where the draw missed these. And each
    # rest as predicted from the other rows: none is then small only because the coefficients bent towards it.
    calibrated = weights * (1.0 + controls @ (inverse @ (sums - weights @ controls)))
    leverage = np.minimum(weights * np.einsum("ij,ij->i", controls @ inverse, controls), MOST_LEVERAGE)
    return from_errors(value, calibrated * rests / (1.0 - leverage), chances)


def ratio_estimate(values: Floats, weights: Floats, total_weight: float, chances: Floats | None = None) -> Estimate:
    """Estimate the sum of values over all rows by the weighted mean of drawn ones, shape (m,) (Hajek)."""
    factors = weights * (total_weight / weights.sum())
    value = float(factors @ values)
    return from_errors(value, factors * (values - value / total_weight), chances)


def plain_estimate(values: Floats, weights: Floats, chances: Floats | None = None) -> Estimate:
    """Estimate the sum of values over all rows by the weighted sum of drawn ones, shape (m,)."""
    parts = weights * values
    # How many rows are drawn is no matter of chance, so what independent draws have in common does not vary. Distinct
    # rows are a union of draws, whose size varies with what they share: each then counts as if drawn by itself.
    return from_errors(float(parts.sum()), parts - parts.mean() if chances is None else parts, chances)


def from_errors(value: float, errors: Floats, chances: Floats | None = None) -> Estimate:
    """Give an estimate whose error is a sum of independent ones, of which these, shape (m,), are samples."""
    exponent = exponent_of(float(np.abs(errors).max(initial=0.0)))
    squares = np.square(np.ldexp(errors, -exponent)) * uncertainty(chances, len(errors))
    variance, n_varying = float(squares.sum()), float(np.count_nonzero(squares) or 1)
    spread = float(np.square(squares).sum()) - variance**2 / n_varying
    degrees = 2 * variance**2 / spread if spread > 0 else n_varying
    deviation = math.ldexp(math.sqrt(variance + MISSED * float(squares.max(initial=0.0))), exponent)
    return Estimate(value, deviation, min(max(degrees, 1.0), n_varying))


def uncertainty(chances: Floats | None, size: int) -> Floats:
    """Give the part of each squared error that is a matter of chance, shape (size,): all of it, or 1 - pi_i."""
    return np.ones(size) if chances is None else 1.0 - chances
