"""Values in ascending order: which rows have them, and which are equal."""

from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Flags, Floats, Rows

Number = TypeVar("Number", np.float64, np.int64)
# Two codes of 16 bits, which NumPy sorts by their digits, order most rows: those of equal codes are few, and near.
DIGITS = 1 << 16
# In so many turns of changing places those are in order, unless many are equal.
MOST_TURNS = 8
# Values beyond are rare among logits, and would leave few codes for all others.
FAR = 40.0
# Values that are all nearer to each other than this get no codes: what these are scaled by would overflow.
NEAR = 1e-200
# A value that is this much smaller leaves a bit of its exponent free, and no bit of it is lost, unless it is tiny.
SHRUNK, AS_IT_WAS = 2.0**-268, 2.0**268
# All bits of a whole number but its sign.
MAGNITUDE = np.int64(2**63 - 1)
# Rows whose temporaries stay in the cache.
ROWS_AT_ONCE = 8192


def ascending(values: Floats) -> tuple[Rows, Floats]:
    """Sort values, shape (n,): give the rows in ascending order, equal ones by their numbers, and the values in it.

    It is what a stable `np.argsort` finds, some times faster where there are many.
    """
    low, high = max(float(values.min(initial=FAR)), -FAR), min(float(values.max(initial=-FAR)), FAR)
    if len(values) < DIGITS or not high - low > NEAR:
        order: Rows = np.argsort(values, kind="stable")
        return order, values[order]
    # It grows with the value, and so do its two halves, one after the other.
    codes = values - low
    codes *= (DIGITS**2 - 1) / (high - low)
    numbers = np.clip(codes, 0, DIGITS**2 - 1, out=codes).astype(np.uint32)
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    order = np.take(order, np.argsort(np.take((numbers >> 16).astype(np.uint16), order), kind="stable"))
    ordered = np.take(values, order)
    for _ in range(MOST_TURNS):
        (falls,) = np.nonzero(ordered[1:] < ordered[:-1])
        if not len(falls):
            return order, ordered
        # Of falls in a row the first: others have changed by then. Only neighbours change places: equals keep theirs.
        first = falls[np.diff(falls, prepend=-2) > 1]
        for each in (order, ordered):
            each[first], each[first + 1] = each[first + 1], each[first]
    again = np.argsort(ordered, kind="stable")
    return np.take(order, again), np.take(ordered, again)


def ascending_marked(values: Floats, marks: Flags) -> tuple[Floats, Flags]:
    """Sort values, shape (n,), and have each one's mark go with it; of equal values those with a mark come last.

    Both are written into one whole number, so that no row is looked up in another's place.
    """
    keys, found = np.empty(len(values), np.int64), np.empty(len(values), np.bool_)
    for start in range(0, len(values), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        shrunk = values[some] * SHRUNK
        if not (np.abs(shrunk).max() < 1.0 and (shrunk * AS_IT_WAS == values[some]).all()):
            order, ordered = ascending(values)
            return ordered, marks[order]
        shrunk += 0.0  # there is one zero
        bits = shrunk.view(np.int64)
        # The larger a negative number is in size, the less it is.
        bits ^= (bits >> 63) & MAGNITUDE
        np.bitwise_or(bits << 1, marks[some], out=keys[some])
    keys.sort()
    for start in range(0, len(values), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        np.not_equal(keys[some] & 1, 0, out=found[some])
        bits = keys[some] >> 1
        bits ^= (bits >> 63) & MAGNITUDE
        np.multiply(bits.view(np.float64), AS_IT_WAS, out=keys[some].view(np.float64))
    return keys.view(np.float64), found


def groups_of(ordered: Floats) -> list[slice]:
    """Cut ascending values into pieces whose temporaries stay in the cache; equal values are in one piece."""
    starts = np.unique(np.searchsorted(ordered, ordered[::ROWS_AT_ONCE])).tolist()
    return [slice(*ends) for ends in pairwise([*starts, len(ordered)])]


def firsts_of(ordered: Floats) -> Rows | None:
    """Tell where each different value begins among ascending ones; None where no two are equal."""
    is_new = ordered[1:] != ordered[:-1]
    return None if is_new.all() else np.append(0, np.flatnonzero(is_new) + 1)


def sums_by(firsts: Rows | None, numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Add up numbers of ascending values by value."""
    return numbers if firsts is None else np.add.reduceat(numbers, firsts)


def each_of(firsts: Rows | None, n: int, numbers: Floats) -> Floats:
    """Give each of n ascending values the number of its value."""
    return numbers if firsts is None else np.repeat(numbers, np.diff(firsts, append=n))
