"""Rows made up from a seed, of any number: ten clouds of rows, a label that is nearly linear in them, and its sign.

In memory, or written to Parquet chunk by chunk, a file a party, so that no more than a chunk is ever held.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from colonnade.kernels.arrays import Floats

N_PARTIES, CLOUDS, CHUNK = 3, 10, 250_000


class Rows(NamedTuple):
    """Features, a label, and whether that is above its middle."""

    features: Floats
    label: Floats

    @property
    def positive(self) -> Floats:
        """Give the label of a classification."""
        return (self.label > np.median(self.label)).astype(np.float64)


def chunks(n_rows: int, n_columns: int, seed: int = 0) -> Iterator[Rows]:
    """Make rows, so many at a time."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((CLOUDS, n_columns))
    slope = rng.standard_normal(n_columns) / np.sqrt(n_columns)
    for start in range(0, n_rows, CHUNK):
        size = min(CHUNK, n_rows - start)
        features = rng.standard_normal((size, n_columns))
        features += centres[rng.integers(CLOUDS, size=size)]
        yield Rows(features, features @ slope + rng.standard_normal(size))


def rows(n_rows: int, n_columns: int) -> Rows:
    """Make all of them."""
    features, label = np.empty((n_rows, n_columns)), np.empty(n_rows)
    done = 0
    for chunk in chunks(n_rows, n_columns):
        features[done : done + len(chunk.label)], label[done : done + len(chunk.label)] = chunk
        done += len(chunk.label)
    return Rows(features, label)


def widths(n_columns: int, n_parties: int = N_PARTIES) -> list[int]:
    """Share columns out as evenly as can be."""
    return [len(part) for part in np.array_split(np.arange(n_columns), n_parties)]


def n_bytes(n_rows: int, n_columns: int) -> int:
    """Tell how large the files of so many rows become, and a little more: noise cannot be packed."""
    return n_rows * (n_columns + 1) * 10


def write_parties(folder: Path, n_rows: int, n_columns: int) -> list[str]:
    """Write a Parquet file a party, the last one with the label, and give their paths."""
    names = [[f"x{column}" for column in part] for part in np.split(np.arange(n_columns), _cuts(n_columns))]
    names[-1].append("label")
    paths = [folder / f"party{number}.parquet" for number in range(1, N_PARTIES + 1)]
    schemas = [pa.schema([(name, pa.float64()) for name in columns]) for columns in names]
    writers = [pq.ParquetWriter(path, schema) for path, schema in zip(paths, schemas, strict=True)]
    for chunk in chunks(n_rows, n_columns):
        parts = np.split(np.column_stack(chunk), _cuts(n_columns), axis=1)
        for writer, schema, part in zip(writers, schemas, parts, strict=True):
            writer.write_table(pa.table(list(np.ascontiguousarray(part.T)), schema=schema))
    for writer in writers:
        writer.close()
    return [str(path) for path in paths]


def _cuts(n_columns: int) -> list[int]:
    return [int(cut) for cut in np.cumsum(widths(n_columns))[:-1]]
