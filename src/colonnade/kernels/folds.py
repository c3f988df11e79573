"""Folds for cross-validation: dealt from a seed, so that whoever knows the rows and the seed deals the same."""

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows

FOLDS = 5


def fold_seed(rng: np.random.Generator) -> int:
    """Draw the seed of folds."""
    return int(rng.integers(2**63))


def deal_folds(rows: Rows, weights: Floats, seed: int) -> Rows:
    """Deal the distinct rows to folds of nearly equal count; give each row's fold, or -1 where it has no weight."""
    weighted = weights > 0
    distinct, which = np.unique(rows[weighted], return_inverse=True)
    if len(distinct) < FOLDS:
        raise InputError(
            f"Cross-validation needs at least {FOLDS} distinct rows, one a fold, and there are {len(distinct)}. "
            'Draw more rows, or pass a number instead of "cv".'
        )
    folds = np.full(len(rows), -1)
    folds[weighted] = (np.random.default_rng(seed).permutation(len(distinct)) % FOLDS)[which]
    return folds
