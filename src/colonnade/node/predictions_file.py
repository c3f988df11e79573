"""Predictions that were delivered to a party: a file of its key columns, or of the rows' numbers, and predictions."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.errors import InputError
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


def _table(delivery: Delivery) -> Any:
    import pyarrow as pa

    if delivery.keys is None:
        return pa.table({"row": delivery.rows, PREDICTION: delivery.predictions})
    name = PREDICTION
    while name in delivery.keys.column_names:
        name = f"{name}_"
    return delivery.keys.append_column(name, pa.array(np.asarray(delivery.predictions)))


def _encoded(path: Path, table: Any) -> bytes:
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet

        binary = io.BytesIO()
        parquet.write_table(table, binary)
        return binary.getvalue()
    if path.suffix.lower() != ".csv":
        raise InputError("the file for predictions must end in .csv or .parquet.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(map(_written, column.to_pylist()) for column in table.columns), strict=True))
    return text.getvalue().encode()


def _written(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
