"""Exported graphs, run by onnxruntime on tables as they come."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pyarrow as pa

from colonnade.tasks.to_onnx.dates import NO_MOMENT

Outputs = dict[str, npt.NDArray[Any]]


def run_onnx(model: Any, feeds: dict[str, npt.NDArray[Any]]) -> Outputs:
    """Check a graph, and give its outputs by name."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(None, feeds)
    return {each.name: values for each, values in zip(session.get_outputs(), found, strict=True)}


def told(model: Any) -> dict[str, Any]:
    """Read what a graph tells of itself; JSON where it is."""
    words = {each.key.removeprefix("colonnade."): each.value for each in model.metadata_props}
    return {name: text if name in ("version", "task") else json.loads(text) for name, text in words.items()}


def numbers(model: Any, X: Any) -> dict[str, npt.NDArray[Any]]:
    """Feed plain numbers, (n_rows, n_features), in the order of the inputs."""
    names = [each.name for each in model.graph.input]
    return {name: np.ascontiguousarray(np.asarray(X, dtype=np.float64)[:, [j]]) for j, name in enumerate(names)}


def fed(model: Any, tables: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Feed parties' tables as they are, as the guide has it: text empty and moments least where they are missing."""
    return {
        each["name"]: _values(pa.table(tables[each["party"]])[each["column"]], each["kind"])
        for each in told(model)["inputs"]
    }


def _values(column: Any, kind: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any]
    if kind == "number":
        values = np.array(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    elif kind == "text":
        if pa.types.is_floating(column.type):
            column = column.cast(pa.int64())
        values = np.array(column.cast(pa.string()).fill_null("").to_pylist(), dtype=object)
    else:
        values = column.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(NO_MOMENT).to_numpy()
    return np.asarray(values)[:, np.newaxis]
