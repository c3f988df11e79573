"""The ring in which masked parts are added, and how far that puts their sums off."""

import math
from collections.abc import Sequence

from colonnade.errors import InputError
from colonnade.kernels.masks import Ring, ring_of_magnitude

# 56 bits: a float64 has 53.
WIDTH = 7
# Residuals may be off by so much of the label's standard deviation.
LARGEST_ERROR = 1e-3


def ring_of_parts(magnitude: int, n_parties: int) -> Ring:
    """Give the ring in which parts of this magnitude are added."""
    return ring_of_magnitude(magnitude + 1, n_parties, WIDTH)  # twice as large once all are made positive


def rounded_by(magnitude: int, n_parties: int) -> float:
    """Bound how far a sum of parts is off: by half a step of the ring for each of them."""
    return math.ldexp(n_parties / 2, -ring_of_parts(magnitude, n_parties).exponent)


def too_few_digits(error: float, parties: Sequence[str]) -> InputError:
    """Build the error for sums of which too little is left; a sum does not show which of these parties' it is."""
    return InputError(
        f"Parts under masks are off by up to {error:.2g} here, too much: a column of one of "
        f"{', '.join(parties)} is large against its own spread, or one of its values stands far out. Subtract a "
        "constant from the column, or do without masks."
    )
