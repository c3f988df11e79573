"""Data on which no small coreset works: the reductions in the proofs of the lower bounds, Theorems 4.1 and 5.1.

Two parties hold a bit for each row. One row decides the cost of some model, and to each party it looks like any other
row. Whoever finds it has solved EQUALITY or DISJOINTNESS, which takes about n bits.
"""

import numpy as np

from colonnade.data.parties import Party
from colonnade.errors import InputError


def equality_instance(n_rows: int, n_different: int, rng: np.random.Generator) -> list[Party]:
    """Make Alice's bits the feature and Bob's the label: the model theta = 1 costs one for each row where they differ.

    For regression without an intercept. No different rows make the bits EQUAL.
    """
    _check(n_rows, n_different)
    a = rng.integers(2, size=n_rows)
    b = a.copy()
    different = rng.choice(n_rows, n_different, replace=False)
    b[different] = 1 - b[different]
    return [Party("alice", a[:, np.newaxis].astype(float)), Party("bob", np.empty((n_rows, 0)), label=b.astype(float))]


def disjointness_instance(n_rows: int, n_common: int, rng: np.random.Generator) -> list[Party]:
    """Make rows (a, b) of bits that are rarely both 1: the centres (0,0), (0,1), (1,0) cost one for each row (1,1).

    For k-means with three clusters. No common rows make the two sets DISJOINT.
    """
    _check(n_rows, n_common)
    bits = np.array([[0, 0], [0, 1], [1, 0]])[rng.integers(3, size=n_rows)]
    bits[rng.choice(n_rows, n_common, replace=False)] = 1
    return [Party("alice", bits[:, :1].astype(float)), Party("bob", bits[:, 1:].astype(float))]


def _check(n_rows: int, n_special: int) -> None:
    if not 0 <= n_special <= n_rows:
        raise InputError(f"{n_special} of {n_rows} rows cannot be special. Pass a number from 0 to {n_rows}.")
