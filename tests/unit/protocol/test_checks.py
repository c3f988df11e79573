from collections.abc import Callable

import numpy as np
import pytest

from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.messages import MAX_MAGNITUDE
from colonnade.protocol import checks
from colonnade.sampling.selecting import Ready


def with_one(value: float) -> Floats:
    values = np.ones((6, 4))
    values[3, 1] = value
    return values


@pytest.mark.parametrize("as_laid", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.001 * MAX_MAGNITUDE, -1e101, 1e200, -1.7e308])
def test_what_is_out_of_range_is_refused_and_warns_of_nothing(
    as_laid: Callable[[Floats], Floats], value: float
) -> None:
    """Squares of such numbers overflow, also where overflow is an error, as while a server reads replies."""
    values = as_laid(with_one(value))
    with np.errstate(all="raise"), pytest.raises(RemoteProtocolError, match="'rail' sent a Ready with NaN, infinity"):
        checks.in_range("rail", Ready(), values)


@pytest.mark.parametrize(
    "values", [np.full(9, MAX_MAGNITUDE), with_one(-MAX_MAGNITUDE).T, np.empty(0), np.empty((0, 3))]
)
def test_what_is_in_range_passes(values: Floats) -> None:
    with np.errstate(over="raise", invalid="raise"):
        checks.in_range("rail", Ready(), values)
