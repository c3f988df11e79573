"""Classes of a label: its distinct values, and the place of each row's value among them."""

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Blocks, Floats, Rows

# A label with more values is a number, not a class.
MOST_CLASSES = 100


def distinct_values(blocks: Blocks, column: int) -> Floats | None:
    """Find the values of a column, ascending; None where there are more than classes can be."""
    found = np.empty(0)
    for block in blocks():
        found = np.unique(np.concatenate([found, block[:, column]]))
        if len(found) > MOST_CLASSES:
            return None
    return found


def class_codes(values: Floats, classes: npt.ArrayLike) -> Rows:
    """Give the place of each value among the classes, (K,), in any order; a value that is none is a `ValueError`."""
    known = np.asarray(classes, dtype=np.float64)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
    if (known[order][at] != values).any():
        raise ValueError("a value is none of the classes")
    return order[at]


def class_shares(codes: Rows, weights: Floats | None, n_classes: int) -> Floats:
    """Spread 1 evenly over the classes that have weight, and within a class over its rows by theirs; shape (n,)."""
    w = np.ones(len(codes)) if weights is None else weights
    weight = np.bincount(codes, w, minlength=n_classes)
    present = np.count_nonzero(weight)
    shares: Floats = w / (present * np.where(weight > 0, weight, 1.0))[codes]
    return shares
