"""A preparation as a fitted scikit-learn ColumnTransformer, imported only here and only when asked for."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.preparation.columns import AnyColumn, CategoryColumn, NumberColumn, Scaled
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.steps import ColumnStep, GivenNames, Measured, level_name, scalings


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
            _set_learned(transformer.named_transformers_[f"column{i}"].named_steps, scalings(column))
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
            feature_name_combiner=level_name,
        )
        return Pipeline([("read", _reader("levels", column, [column.column])), ("encode", encoder)])
    learned = scalings(column)
    steps = [("read", _reader("values", column, column.own_names[: len(learned)]))]
    if learned[0].fill is not None:
        steps.append(("fill", SimpleImputer()))
    if isinstance(column, NumberColumn) and (column.log or column.at_least is not None or column.at_most is not None):
        steps.append(("shape", _function(_step("shape", column), "one-to-one")))
    if any((scaling.mean, scaling.deviation) != (0.0, 1.0) for scaling in learned):
        steps.append(("scale", StandardScaler()))
    return Pipeline(steps)


def _indicator(column: Measured) -> Any:
    from sklearn.impute import MissingIndicator
    from sklearn.pipeline import Pipeline

    first = column.own_names[:1]
    named = _function(None, GivenNames(*column.own_names[-1:]))
    return Pipeline(
        [("read", _reader("first", column, first)), ("mark", MissingIndicator(features="all")), ("name", named)]
    )


def _set_learned(steps: Any, learned: Sequence[Scaled]) -> None:
    if "fill" in steps:
        steps["fill"].statistics_ = np.array([scaling.fill for scaling in learned])
    if "scale" in steps:
        scale = np.array([scaling.deviation for scaling in learned])
        steps["scale"].mean_ = np.array([scaling.mean for scaling in learned])
        steps["scale"].scale_, steps["scale"].var_ = scale, scale**2


def _example(column: AnyColumn) -> object:
    """Make a value that the column can have."""
    if isinstance(column, CategoryColumn):
        return column.reference
    return 0.0 if isinstance(column, NumberColumn) else np.datetime64(0, "s")


def _reader(does: str, column: AnyColumn, names: Sequence[str]) -> Any:
    return _function(_step(does, column), GivenNames(*names))


def _step(does: str, column: AnyColumn) -> ColumnStep:
    return ColumnStep(does, msgspec.json.encode(column).decode())


def _function(function: Any, names: Any) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function, feature_names_out=names)
