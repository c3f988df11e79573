"""How a model is kept: `model.json` says what it is, `model.arrow` has one line a feature, which pandas reads too."""

from itertools import groupby
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, field

from colonnade.kernels.arrays import Floats
from colonnade.storage import Folder, Layout, arrow_bytes, json_bytes, read_arrow, read_record, written_by
from colonnade.tasks.penalty_path import RegularisationPath

LINES = "model.arrow"
MODEL = Layout("model", "model.save or run.save", "model.json", frozenset({LINES}), oldest=1, newest=1)

Width: TypeAlias = Annotated[int, Meta(ge=0)]


class LinearRecord(msgspec.Struct, kw_only=True, tag_field="kind", tag="linear"):
    """What `model.json` says of a linear model."""

    format: int = MODEL.newest
    versions: dict[str, str] = field(default_factory=written_by)
    parts: dict[str, Width]
    intercept: float
    path: RegularisationPath | None


class KMeansRecord(msgspec.Struct, kw_only=True, tag_field="kind", tag="kmeans"):
    """What `model.json` says of a k-means model."""

    format: int = MODEL.newest
    versions: dict[str, str] = field(default_factory=written_by)
    parts: dict[str, Width]


AnyRecord: TypeAlias = LinearRecord | KMeansRecord


def pack(record: AnyRecord, features: tuple[str, ...], numbers: dict[str, Floats]) -> dict[str, bytes]:
    """Write a model's two files.

    Parameters
    ----------
    record : LinearRecord or KMeansRecord
        All but the arrays.
    features : tuple of str
        The features' names.
    numbers : dict of str to ndarray of float64, shape (n_features,)
        The arrays, by the names of their columns.

    Returns
    -------
    dict of str to bytes
        Each file's content.
    """
    parties = [party for party, width in record.parts.items() for _ in range(width)] or [""] * len(features)
    lines = arrow_bytes({"party": parties, "feature": features, **numbers})
    return {MODEL.record: json_bytes(record), LINES: lines}


def unpack(folder: Folder) -> tuple[AnyRecord, tuple[str, ...], dict[str, Floats]]:
    """Read what `pack` wrote.

    Parameters
    ----------
    folder : Path
        Of a model, or of a run with one.

    Returns
    -------
    record : LinearRecord or KMeansRecord
        All but the arrays.
    features : tuple of str
        The features' names.
    numbers : dict of str to ndarray of float64, shape (n_features,)
        The arrays, by the names of their columns.
    """
    record: AnyRecord = read_record(folder, MODEL, AnyRecord)
    columns = read_arrow(folder / LINES, {"party": "string", "feature": "string"}, others="double")
    parties, features = columns.pop("party").tolist(), tuple(columns.pop("feature").tolist())
    found = [(party, len(list(lines))) for party, lines in groupby(parties) if party]
    if found != [(party, width) for party, width in record.parts.items() if width]:
        raise ValueError(f"{MODEL.record} and {LINES} do not agree on which party holds which feature")
    return record, features, columns
