"""Classes of a label: its distinct values, and the place of each row's value among them."""

from functools import partial

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks

# A label with more values is a number, not a class.
MOST_CLASSES = 100


def distinct_values(rows: RowBlocks, column: int) -> Floats | None:
    """Find the values of a column, ascending; None where there are more than classes can be."""
    found = np.empty(0)
    for values in rows.map(partial(_values, column)):
        found = np.unique(np.concatenate([found, values]))
        if len(found) > MOST_CLASSES:
            return None
    return found


def _values(column: int, block: Block) -> Floats:
    return np.unique(block.values[:, column])[: MOST_CLASSES + 1]


def class_codes(values: Floats, classes: npt.ArrayLike) -> Rows:
    """Give the place of each value among the classes, (K,), in any order; a value that is none is a `ValueError`."""
    known = np.asarray(classes, dtype=np.float64)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
    if (known[order][at] != values).any():
        raise ValueError("a value is none of the classes")
    return order[at]
