"""A preparation as a fitted scikit-learn ColumnTransformer, imported only here and only when asked for."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.preparation.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, Scaled
from colonnade.preparation.levels import OTHER
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import BY_NUMBER, Cells, cells, moments, numbers, part_of, without_view

Measured = NumberColumn | DateColumn


def column_transformer(preparation: Preparation) -> Any:
    """Make a fitted ColumnTransformer of frames with the columns as they are, pandas or polars.

    It gives the numbers of `apply`, under the party's own names. Values are read as `apply` reads them, so that "12k"
    or a new level is met alike; SimpleImputer, MissingIndicator, OneHotEncoder and StandardScaler do the rest. It is
    fitted to a frame of one row, for what scikit-learn keeps to itself; encoders are made with their levels, and what
    imputers and scalers learned of that row is then replaced.
    """
    try:
        import pandas as pd
        from sklearn.compose import ColumnTransformer
    except ImportError as error:
        raise InputError(
            f"to_sklearn of prepared columns needs {error.name}, which is not installed. Install it with: pip install "
            f"{error.name}"
        ) from error
    made = [column for column in preparation.columns if column.names]
    steps: list[tuple[str, Any, list[str]]] = []
    for i, column in enumerate(made):
        steps.append((f"column{i}", _pipeline(column), [column.column]))
        if isinstance(column, Measured) and column.indicator:
            steps.append((f"column{i}_missing", _indicator(column), [column.column]))
    transformer = ColumnTransformer(steps, sparse_threshold=0, verbose_feature_names_out=False)
    transformer.fit(pd.DataFrame({column.column: [_example(column)] for column in made}))
    for i, column in enumerate(made):
        if isinstance(column, Measured):
            _set_learned(transformer.named_transformers_[f"column{i}"].named_steps, _scalings(column))
    return transformer


def columns_as_they_are(names: Sequence[str]) -> Any:
    """Make a fitted ColumnTransformer that takes these columns out of a frame."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer

    transformer = ColumnTransformer([("columns", "passthrough", list(names))], verbose_feature_names_out=False)
    return transformer.fit(pd.DataFrame({name: [0.0] for name in names}))


def _pipeline(column: AnyColumn) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if isinstance(column, CategoryColumn):
        encoder = OneHotEncoder(
            categories=[[column.reference, *column.shown_levels]],
            drop=[column.reference],
            sparse_output=False,
            feature_name_combiner=_level_name,
        )
        return Pipeline([("read", _reader(_shown_levels, column, [column.column])), ("encode", encoder)])
    scalings = _scalings(column)
    steps = [("read", _reader(_required, column, column.own_names[: len(scalings)]))]
    if scalings[0].fill is not None:
        steps.append(("fill", SimpleImputer()))
    if isinstance(column, NumberColumn) and (column.log or column.at_least is not None or column.at_most is not None):
        steps.append(("shape", _function(partial(_shaped, column), "one-to-one")))
    if any((scaling.mean, scaling.deviation) != (0.0, 1.0) for scaling in scalings):
        steps.append(("scale", StandardScaler()))
    return Pipeline(steps)


def _indicator(column: Measured) -> Any:
    from sklearn.impute import MissingIndicator
    from sklearn.pipeline import Pipeline

    first = column.own_names[:1]
    named = _function(None, partial(_given, column.own_names[-1:]))
    return Pipeline(
        [("read", _reader(_first, column, first)), ("mark", MissingIndicator(features="all")), ("name", named)]
    )


def _set_learned(steps: Any, scalings: Sequence[Scaled]) -> None:
    if "fill" in steps:
        steps["fill"].statistics_ = np.array([scaling.fill for scaling in scalings])
    if "scale" in steps:
        scale = np.array([scaling.deviation for scaling in scalings])
        steps["scale"].mean_ = np.array([scaling.mean for scaling in scalings])
        steps["scale"].scale_, steps["scale"].var_ = scale, scale**2


def _scalings(column: Measured) -> list[Scaled]:
    return [column.scaling] if isinstance(column, NumberColumn) else [scaling for _, scaling in column.parts]


def _example(column: AnyColumn) -> object:
    """Make a value that the column can have."""
    if isinstance(column, CategoryColumn):
        return column.reference
    return 0.0 if isinstance(column, NumberColumn) else np.datetime64(0, "s")


def _reader(read: Callable[[Any, Cells], npt.NDArray[Any]], column: AnyColumn, names: Sequence[str]) -> Any:
    return _function(partial(_read, read, column), partial(_given, tuple(names)))


def _function(function: Any, names: Any) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function, feature_names_out=names)


def _read(read: Callable[[Any, Cells], npt.NDArray[Any]], column: AnyColumn, frame: Any) -> npt.NDArray[Any]:
    return np.concatenate([read(column, block) for block in cells(_table(frame, column.column), column.column)])


def _table(frame: Any, name: str) -> Any:
    """Read a frame of one column as Arrow."""
    import pyarrow as pa

    table = _converted(frame)
    if table is None:
        raise _odd(frame, name)
    return table.cast(pa.schema([(field.name, without_view(field.type)) for field in table.schema]))


def _converted(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, OverflowError):
        return None


def _odd(frame: Any, name: str) -> InputError:
    """Name the first value that those before it do not go with: a column of pandas may have several types."""
    row = bisect_left(range(len(frame)), True, key=lambda row: _converted(frame[: row + 1]) is None)
    kind = type(list(frame[name])[row]).__name__
    return InputError(
        f"column {name!r}, {BY_NUMBER(row)}: a value of the type {kind} does not go with those before it. "
        "Correct it: a column has one type, numbers, text or dates."
    )


def _given(names: tuple[str, ...], transformer: object, received: object) -> npt.NDArray[Any]:  # noqa: ARG001  # called by scikit-learn
    return np.array(names, dtype=object)


def _level_name(column: str, level: str) -> str:
    return f"{column}={level}"


def _raw(column: Measured, block: Cells) -> Floats:
    if isinstance(column, NumberColumn):
        return numbers(block)[:, np.newaxis]
    times = moments(block, column.format)
    return np.column_stack([part_of(block, times, part) for part, _ in column.parts])


def _required(column: Measured, block: Cells) -> Floats:
    """Read values, of which none may be missing where nothing stands for them."""
    values = _raw(column, block)
    if _scalings(column)[0].fill is None:
        _scalings(column)[0].filled(block, values[:, 0])
    return values


def _first(column: Measured, block: Cells) -> Floats:
    return _raw(column, block)[:, :1]


def _shaped(column: NumberColumn, values: Floats) -> Floats:
    block = Cells(column.column, None, np.arange(len(values)))
    return column.shaped(block, values[:, 0])[:, np.newaxis]


def _shown_levels(column: CategoryColumn, block: Cells) -> npt.NDArray[Any]:
    """Write each level as that of its column, or as the reference."""
    unseen = OTHER if column.rare else column.reference
    shown = [column.reference, *column.levels, *[OTHER] * len(column.rare), unseen]
    return np.array(shown, dtype=object)[column.places(block)][:, np.newaxis]
