"""Predictions that were delivered to a party: a file of its key columns, or of the rows' numbers, and predictions."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.contracts import Predictions
from colonnade.errors import InputError
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.node.state_folder import write_private
from colonnade.protocol.session import Delivery

PREDICTION = "prediction"


def write_predictions(path: Path, delivery: Delivery) -> None:
    """Write a CSV or Parquet file, as its name says, never over another one; the same once more is as well."""
    content = _encoded(path, _table(delivery))
    if path.exists():
        if path.read_bytes() == content:  # the party was stopped after it had written them
            return
        raise InputError("the file for predictions exists, and is not written over. Move it, or name another.")
    write_private(path, content)


def prediction_columns(predictions: Predictions) -> dict[str, Any]:
    """Name what is predicted of rows: a column of values or clusters; or of classes, and one of chances for each."""
    if not isinstance(predictions, ClassPredictions):
        return {PREDICTION: predictions}
    chances = zip(predictions.names, predictions.probabilities.T, strict=True)
    return {"class": predictions.classes, **{f"probability_{name}": column for name, column in chances}}


def csv_text(columns: Mapping[str, Sequence[object]]) -> str:
    """Write columns as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(map(_written, column) for column in columns.values()), strict=True))
    return text.getvalue()


def predictions_csv(rows: Sequence[int], predictions: Predictions) -> str:
    """Write predictions of rows as the text of a CSV file, with the rows' numbers."""
    columns = prediction_columns(predictions).items()
    return csv_text({"row": rows, **{name: column.tolist() for name, column in columns}})


def _table(delivery: Delivery) -> Any:
    import pyarrow as pa

    table = pa.table({"row": delivery.rows}) if delivery.keys is None else delivery.keys
    for name, column in prediction_columns(delivery.predictions).items():
        free = name
        while free in table.column_names:
            free = f"{free}_"
        table = table.append_column(free, pa.array(np.asarray(column)))
    return table


def _encoded(path: Path, table: Any) -> bytes:
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet

        binary = io.BytesIO()
        parquet.write_table(table, binary)
        return binary.getvalue()
    if path.suffix.lower() != ".csv":
        raise InputError("the file for predictions must end in .csv or .parquet.")
    names = table.column_names
    return csv_text({name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}).encode()


def _written(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
