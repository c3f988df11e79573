"""What a data set is: one table of numbers, a split, and a name that says what it is; and how its file is read."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats

FOLDER_VARIABLE = "COLONNADE_DATA"


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set of the paper's experiments.

    Parameters
    ----------
    name : str
        Stands on every output: which data it was, and whether it was a stand-in.
    features, labels : ndarray of float64
        Column-major; what regression predicts.
    n_train : int
        The first so many rows are for training, the others for testing.
    """

    name: str
    features: Floats
    labels: Floats
    n_train: int

    @property
    def train(self) -> tuple[Floats, Floats]:
        """Features and labels of the training rows."""
        return self.features[: self.n_train], self.labels[: self.n_train]

    @property
    def test(self) -> tuple[Floats, Floats]:
        """Features and labels of the other rows."""
        return self.features[self.n_train :], self.labels[self.n_train :]

    def thinned(self, step: int) -> "DataSet":
        """Keep one row in `step`, and say so."""
        name = f"{self.name}, one row in {step}"
        return DataSet(name, self.features[::step], self.labels[::step], -(-self.n_train // step))

    def standardised(self) -> Floats:
        """Scale all rows' features to mean 0 and standard deviation 1, as the paper does for clustering."""
        spread = self.features.std(axis=0)
        spread[spread == 0] = 1.0
        return np.asfortranarray((self.features - self.features.mean(axis=0)) / spread)


def find_file(given: Path | None, names: tuple[str, ...], what: str) -> Path:
    """Find a data set's file.

    Parameters
    ----------
    given : Path or None
        A file, which is taken as it is; a folder to look in; or None for the folder that COLONNADE_DATA names.
    names : tuple of str
        What the file may be called, the best first.
    what : str
        The data set, for the error message.
    """
    place = given or Path(os.environ.get(FOLDER_VARIABLE) or ".")
    if place.is_file():
        return place
    for name in names:
        if (place / name).is_file():
            return place / name
    where = str(given) if given else f"the folder of {FOLDER_VARIABLE}, {os.environ.get(FOLDER_VARIABLE) or 'not set'}"
    raise InputError(
        f"{what} is not in {where}: looked for {', '.join(names)}. "
        f"Pass --data FILE, or set {FOLDER_VARIABLE} to the folder that has it."
    )


def read_columns(path: Path, what: str, *, header: bool = True) -> Any:
    """Read a .parquet file, or comma-separated text with or without a header, as a `pyarrow.Table`."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if path.suffix == ".parquet":
            with parquet.ParquetFile(path) as file:
                return file.read()
        return csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=not header))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{what}: {path} cannot be read ({error}). Check that it is the original file.") from error


def matrix(table: Any, columns: list[str], what: str) -> Floats:
    """Take columns of numbers without gaps from a `pyarrow.Table`, column-major."""
    import pyarrow as pa

    values = np.empty((table.num_rows, len(columns)), order="F")
    for i, name in enumerate(columns):
        try:
            values[:, i] = table.column(name).cast(pa.float64(), safe=False).to_numpy()
        except (pa.ArrowException, KeyError) as error:
            raise InputError(f"{what}: column {name!r} is not there or no number. Use the original file.") from error
    if not np.isfinite(values).all():
        raise InputError(f"{what}: some values are missing. Use the original file.")
    return values


def require(what: str, *, found: object, wanted: object, of: str) -> None:
    """Refuse a file that is not the one it should be."""
    if found != wanted:
        raise InputError(f"{what}: {of} is {found}, and the original's is {wanted}. Use the original file, unchanged.")
