"""Parties of random data, for tests of any layer."""

import numpy as np

import colonnade as cn


def make_parties(n_rows: int = 200, widths: tuple[int, ...] = (2, 3, 1), seed: int = 0) -> list[cn.Party]:
    """Make parties of random data with a few heavy rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n_rows, sum(widths)))
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n_rows)
    return cn.split_columns(X, y, widths)
