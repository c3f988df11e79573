"""Tables with classes: columns at mean 0 and deviation 1, dealt in turn to three parties, 0, 3, 6, ... first."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from colonnade.kernels.arrays import Floats

# Features, labels (0 or 1), the number of columns of each party; the last has the label.
Classes = tuple[Floats, Floats, tuple[int, ...]]
N_PARTIES = 3


def credit_default(folder: Path, *, rare: bool = False) -> Classes:
    """Read the UCI default of credit card clients, 22 % positive; or with most of these left out, 1.1 %."""
    values = _read(folder / "credit_default.parquet", 25)
    features, labels = values[:, 1:24], values[:, 24]
    if rare:
        kept = (labels == 0) | (np.random.default_rng(5).random(len(labels)) < 0.0356)
        features, labels = features[kept], labels[kept]
    return _dealt(features, labels)


def covertype(folder: Path) -> Classes:
    """Read Covertype: class 2 of the seven, or not."""
    values = _read(folder / "covtype.parquet", 55)
    return _dealt(values[:, :54], (values[:, 54] == 2).astype(np.float64))


def _read(path: Path, n_columns: int) -> Floats:
    table = pq.read_table(path)
    return np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in range(n_columns)])


def _dealt(features: Floats, labels: Floats) -> Classes:
    deviation = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    hands = [np.arange(first, features.shape[1], N_PARTIES) for first in range(N_PARTIES)]
    return np.asfortranarray(scaled[:, np.concatenate(hands)]), labels, tuple(map(len, hands))
