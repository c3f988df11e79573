"""How a model is kept: `model.json` says what it is, `model.arrow` has one line a feature, which pandas reads too."""

from itertools import groupby
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, field

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.protocol.fingerprints import Tables
from colonnade.storage import AnyPath, Folder, Layout, arrow_bytes, json_bytes, read_arrow, read_record, written_by

LINES = "model.arrow"
MODEL = Layout("model", "model.save or run.save", "model.json", frozenset({LINES}), oldest=1, newest=1)
SCALE = "scale"  # a column of model.arrow

Width: TypeAlias = Annotated[int, Meta(ge=0)]
M = TypeVar("M")


class ModelRecord(msgspec.Struct, kw_only=True):
    """What `model.json` says of any model."""

    format: int = MODEL.newest
    versions: dict[str, str] = field(default_factory=written_by)
    parts: dict[str, Width]
    learned_from: Tables | None = None


def pack(
    record: ModelRecord, features: tuple[str, ...], numbers: dict[str, Floats], scale: Floats | None
) -> dict[str, bytes]:
    """Write a model's two files; numbers are the columns of its lines, one a feature, and the scale may be another."""
    parties = [party for party, width in record.parts.items() for _ in range(width)] or [""] * len(features)
    numbers = numbers if scale is None else {**numbers, SCALE: scale}
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in numbers.items()}
    lines = arrow_bytes({"party": parties, "feature": features, **columns})
    return {MODEL.record: json_bytes(record), LINES: lines}


def unpack(folder: Folder, kinds: Any) -> tuple[ModelRecord, tuple[str, ...], dict[str, Floats]]:
    """Read what `pack` wrote, of one of these kinds: the record, the features' names, and the columns of the lines."""
    record: ModelRecord = read_record(folder, MODEL, kinds)
    columns = read_arrow(folder / LINES, {"party": "string", "feature": "string"}, others="double")
    parties, features = columns.pop("party").tolist(), tuple(columns.pop("feature").tolist())
    found = [(party, len(list(lines))) for party, lines in groupby(parties) if party]
    if found != [(party, width) for party, width in record.parts.items() if width]:
        raise ValueError(f"{MODEL.record} and {LINES} do not agree on which party holds which feature")
    return record, features, columns


def check_columns_of_file(numbers: dict[str, Floats], expected: list[str]) -> None:
    """Require just the columns that such a model has, and some."""
    if list(numbers) != expected or not numbers:
        raise ValueError(f"{LINES} has the columns {list(numbers)}, which are not those of such a model")


def load_as(kind: type[M], path: AnyPath) -> M:
    """Read a model of this kind."""
    from colonnade.tasks.registry import load_model  # which knows all kinds, this one too

    model = load_model(path)
    if not isinstance(model, kind):
        found = type(model).__name__
        raise InputError(f"{path} holds a {found}, not a {kind.__name__}. Read it with {found}.load.")
    return model
