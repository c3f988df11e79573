"""Rows by ascending value: their order, and which of them are equal."""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

# What orders most rows: two codes of 16 bits, which NumPy sorts by digits. Rows of equal codes are few and near.
DIGITS = 1 << 16
# Values beyond are rare among logits, and would leave few codes for all others.
FAR = 40.0


@dataclass(frozen=True, eq=False)
class Ranks:
    """Rows by ascending value.

    Parameters
    ----------
    order : ndarray of int64, shape (n,)
        The rows; equal ones ascend.
    firsts : ndarray of int64, shape (v,), or None
        Where, in this order, each of v different values begins; None where all are different.
    """

    order: Rows
    firsts: Rows | None

    @classmethod
    def of(cls, values: Floats) -> "Ranks":
        """Rank values, shape (n,)."""
        order = ascending(values)
        return cls.among(order, values[order])

    @classmethod
    def among(cls, order: Rows, values: Floats) -> "Ranks":
        """Rank rows whose values ascend in this order, in which they are given."""
        is_new = values[1:] != values[:-1]
        if is_new.all():
            return cls(order, None)
        return cls(order, np.append(0, np.flatnonzero(is_new) + 1))

    def sums(self, numbers: Floats) -> Floats:
        """Add up numbers of rows, shape (n,), by value; shape (v,), or (n,) where all are different."""
        taken = numbers[self.order]
        return taken if self.firsts is None else np.add.reduceat(taken, self.firsts)

    def starts(self, places: Rows) -> Rows:
        """Give where the values at these places begin, in the order of rows."""
        return places if self.firsts is None else self.firsts[places]

    def by_row(self, numbers: Floats) -> Floats:
        """Give every row the number of its value."""
        found = np.empty(len(self.order))
        if self.firsts is not None:
            numbers = np.repeat(numbers, np.diff(self.firsts, append=len(self.order)))
        found[self.order] = numbers
        return found


def ascending(values: Floats) -> Rows:
    """Sort as a stable `np.argsort` does, shape (n,): by digits first, and then what these leave."""
    if len(values) < DIGITS:
        return np.argsort(values, kind="stable")
    low, high = max(float(values.min()), -FAR), min(float(values.max()), FAR)
    if not low < high:
        return np.argsort(values, kind="stable")
    # It grows with the value, and so do its two digits together.
    codes = (np.clip(values, low, high) - low) * ((DIGITS**2 - 1) / (high - low))
    numbers = np.minimum(codes, DIGITS**2 - 1).astype(np.uint32)
    order: Rows = np.argsort(numbers.astype(np.uint16), kind="stable")
    order = order[np.argsort((numbers >> 16).astype(np.uint16)[order], kind="stable")]
    taken = values[order]
    if (taken[1:] < taken[:-1]).any():
        order = order[np.argsort(taken, kind="stable")]
    return order
