"""Predictions as a file: of a party that was delivered them, by its key columns, or by the rows' numbers."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from colonnade.contracts import Predictions
from colonnade.disk import PRIVATE
from colonnade.errors import InputError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.selections import CountedRows
from colonnade.node.state_folder import whole_file
from colonnade.protocol.session import Delivery

PREDICTION = "prediction"
PARQUET, CSV = ".parquet", ".csv"
# Rows that are put into words, or into a row group of Parquet, at once.
PIECE_ROWS = 1 << 17
COMPARED_BYTES = 1 << 20


def has_ending(path: Path) -> bool:
    """Tell whether a file's name says what is written to it."""
    return path.suffix.lower() in (PARQUET, CSV)


def check_ending(path: Path) -> None:
    """Require such a name of a file that others are to read."""
    if not has_ending(path):
        raise InputError(f"The file for predictions, {path}, must end in .csv or .parquet. Name another one.")


def write_predictions(path: Path, delivery: Delivery) -> None:
    """Write a CSV or Parquet file, as its name says, never over another one; the same once more is as well."""
    check_ending(path)
    with whole_file(path) as file:
        _write(file, path, _tables(delivery.chosen, delivery.predictions, delivery.keys))
        file.flush()
        # If it is the same, the party was stopped after it had written it.
        if path.exists() and not _has_content_of(path, Path(file.name)):
            raise InputError("the file for predictions exists, and is not written over. Move it, or name another.")


def save_predictions(
    path: Path, rows: Sequence[int] | None, predictions: Predictions, permissions: int = PRIVATE
) -> None:
    """Write predictions of rows, or of all, with the rows' numbers: Parquet where the name ends so, else CSV."""
    tables = _tables(_chosen(rows, predictions), predictions)
    if path.exists() and not path.is_file():  # a pipe, or a folder, which is an error
        with path.open("wb") as pipe:
            _write(pipe, path, tables)
        return
    if path.exists():
        permissions &= path.stat().st_mode  # nobody reads it who could not read what it replaces
    with whole_file(path.resolve(), permissions) as file:
        _write(file, path, tables)


def predictions_csv(rows: Sequence[int] | None, predictions: Predictions) -> Iterator[str]:
    """Put predictions of rows, or of all, into the text of a CSV file, piece by piece."""
    return _csv_texts(_tables(_chosen(rows, predictions), predictions))


def _chosen(rows: Sequence[int] | None, predictions: Predictions) -> Rows | CountedRows:
    return CountedRows(len(predictions)) if rows is None else np.array(rows, np.int64)


def _tables(rows: Rows | CountedRows, predictions: Predictions, keys: Any = None) -> Iterator[Any]:
    """Put what is predicted beside the rows' numbers, or their keys, some rows at a time; one table of none, too."""
    import pyarrow as pa

    at = 0
    for here in _pieces(rows):
        some = slice(at, at + len(here))
        table = pa.table({"row": here}) if keys is None else keys.slice(at, len(here))
        for name, column in _prediction_columns(predictions[some]).items():
            free = name
            while free in table.column_names:
                free = f"{free}_"
            table = table.append_column(free, pa.array(np.asarray(column)))
        yield table
        at = some.stop


def _pieces(rows: Rows | CountedRows) -> Iterator[Rows]:
    if isinstance(rows, CountedRows) and rows.row_weights is not None:
        yield from rows.by_block()
        return
    for start in range(0, max(len(rows), 1), PIECE_ROWS):
        end = min(start + PIECE_ROWS, len(rows))
        yield np.arange(start, end) if isinstance(rows, CountedRows) else rows[start:end]


def _prediction_columns(predictions: Predictions) -> dict[str, Any]:
    """Name what is predicted of rows: a column of values or clusters; or of classes, and one of chances for each."""
    if not isinstance(predictions, ClassPredictions):
        return {PREDICTION: predictions}
    chances = zip(predictions.names, predictions.probabilities.T, strict=True)
    return {"class": predictions.classes, **{f"probability_{name}": column for name, column in chances}}


def _write(file: BinaryIO, path: Path, tables: Iterator[Any]) -> None:
    if path.suffix.lower() != PARQUET:
        for text in _csv_texts(tables):
            file.write(text.encode())
        return
    from pyarrow import parquet

    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _csv_texts(tables: Iterator[Any]) -> Iterator[str]:
    for number, table in enumerate(tables):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(table.column_names)
        writer.writerows(zip(*(map(_written, column.to_pylist()) for column in table.columns), strict=True))
        yield text.getvalue()


def _written(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _has_content_of(path: Path, other: Path) -> bool:
    with path.open("rb") as one, other.open("rb") as two:
        while (here := one.read(COMPARED_BYTES)) == two.read(COMPARED_BYTES):
            if not here:
                return True
    return False
