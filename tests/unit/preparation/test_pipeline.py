"""The same preparation as scikit-learn has it."""

import builtins
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import colonnade as cn
from colonnade.preparation.fitting import fitted
from colonnade.preparation.pipeline import column_transformer
from colonnade.preparation.rules import Rule

FRAME = pd.DataFrame(
    {
        "age__years": [20.0, None, 40.0, 35.0] * 5,
        "balance": [-3.0, 10.0, 500.0, 2e9] * 5,
        "plain": [1, 2, 3, 4] * 5,
        "job": (["clerk"] * 9 + ["baker"] * 6 + [None] * 3 + ["pilot", ""]),
        "zip": [101.0, np.nan, 102.0, 101.0] * 5,
        "one": ["same"] * 20,
        "opened": ["01.02.2020", "", "28.02.2021", "31.12.2019"] * 5,
        "seen": pd.to_datetime(["2020-01-01 10:00", "2021-06-01 11:00"] * 10),
    }
)
RULES: dict[str, Rule] = {
    "age__years": cn.Number(missing="median", scale=True),
    "balance": cn.Number(at_least=0, at_most=1e6, log=True, scale=True),
    "plain": cn.Number(),
    "job": cn.Category(rare=3, missing="level"),
    "zip": cn.Category(rare=1, missing="level"),
    "one": cn.Category(),
    "opened": cn.Date(["year", "month"], "%d.%m.%Y", missing="mean", scale=True),
    "seen": cn.Date(["days", "hour"]),
}
LEARNED = fitted(RULES, pa.table(FRAME))


@pytest.mark.parametrize("frame", [FRAME, FRAME.iloc[3:7], FRAME[FRAME.columns[::-1]], pl.from_pandas(FRAME)])
def test_the_same_numbers_and_names(frame: Any) -> None:
    transformer = column_transformer(LEARNED)
    got = transformer.transform(frame)
    assert got.dtype == np.float64
    assert np.array_equal(got, LEARNED.apply(pa.table(frame)).values)
    assert tuple(transformer.get_feature_names_out()) == LEARNED.own_names


def test_new_rows_are_met_alike() -> None:
    rows = FRAME.head(2).assign(job=["astronaut", "pilot"], zip=[999.0, np.nan], balance=[np.float64(1e8), -9.0])
    assert np.array_equal(column_transformer(LEARNED).transform(rows), LEARNED.apply(pa.table(rows)).values)


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("plain", [1.0, None], "'plain', row 1 .*missing"),
        ("plain", ["1", "12k"], "row 1 .*'12k' is text"),
        ("plain", [1.5, "12k"], "'plain', row 1 .*a value of the type str does not go"),
        ("plain", ["12k", 1.5], "'plain', row 1 .*a value of the type float does not go"),
        ("job", ["clerk", 5], "'job', row 1 .*a value of the type int"),
        ("job", [None, object], "'job', row 1 .*a value of the type type"),
        ("plain", [1, 2**70], "'plain', row 1 .*a value of the type int"),
        ("opened", ["01.02.2020", "x"], "row 1 .*'x' cannot be read as a date"),
    ],
)
def test_what_cannot_be_prepared_is_refused_alike(name: str, values: Any, match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        column_transformer(LEARNED).transform(FRAME.head(2).assign(**{name: values}))


def test_polars_text_and_categories() -> None:
    """Both come as views."""
    frame = pl.from_pandas(FRAME)
    coded = frame.with_columns(pl.col("job").cast(pl.Enum(["clerk", "baker", "pilot", ""])))
    values = LEARNED.apply(pa.table(FRAME)).values
    assert np.array_equal(column_transformer(LEARNED).transform(coded), values)
    with pytest.raises(cn.InputError, match=r"'plain', row 0 .*'12k' is text, not a number"):
        column_transformer(LEARNED).transform(frame.with_columns(plain=pl.lit("12k")))


def test_it_goes_before_a_model_in_a_pipeline() -> None:
    values = LEARNED.apply(pa.table(FRAME)).values
    model = LinearRegression().fit(values, np.arange(20.0))
    pipeline = make_pipeline(column_transformer(LEARNED), model)
    assert np.allclose(pipeline.predict(FRAME), model.predict(values), rtol=1e-12)


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pandas":
            raise ImportError(name=name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        cn.InputError, match=r"needs pandas, which is not installed. Install it with: pip install pandas"
    ):
        column_transformer(LEARNED)
