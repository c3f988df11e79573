"""Laws of preparation on tables that nobody thought of."""

from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import colonnade as cn
from colonnade.preparation import reading
from colonnade.preparation.columns import CategoryColumn, NumberColumn
from colonnade.preparation.fitting import fitted
from colonnade.preparation.pipeline import column_transformer
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.rules import Rule

SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fills = st.sampled_from(["mean", "median", 2.5])
number_rules = st.builds(
    cn.Number,
    missing=fills,
    at_least=st.sampled_from([None, -0.5, 0.0]),
    at_most=st.none() | st.just(50.0),
    scale=st.booleans(),
) | st.builds(cn.Number, missing=fills, at_least=st.just(-0.5), log=st.just(True), scale=st.booleans())
category_rules = st.builds(cn.Category, rare=st.integers(1, 5), missing=st.just("level"))
date_parts = st.lists(st.sampled_from(["days", "year", "month", "weekday", "hour"]), min_size=1, unique=True)
date_rules = st.builds(cn.Date, parts=date_parts, missing=st.sampled_from(["mean", "median"]), scale=st.booleans())
floats = st.none() | st.just(float("nan")) | st.floats(-1e9, 1e9)
integers = st.none() | st.integers(-1000, 1000)
words = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "A", " a"]) | st.text(max_size=3)
levels = words.filter(lambda word: word not in ("(other)", "(missing)"))
times = st.none() | st.datetimes()


def columns(values: st.SearchStrategy[Any], n_rows: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=n_rows, max_size=n_rows)


@st.composite
def tables(draw: st.DrawFn, floats: st.SearchStrategy[Any] = floats) -> tuple[Any, dict[str, Rule]]:
    """Make a table of every kind of column, and rules that no value of it breaks."""
    n_rows = draw(st.integers(1, 30))
    table = pa.table(
        {
            "f": pa.array([*draw(columns(floats, n_rows)), 1.0], pa.float64()),
            "i": pa.array([*draw(columns(integers, n_rows)), 1], pa.int32()),
            "c": pa.array([*draw(columns(levels, n_rows)), "a"], pa.string()),
            "n": pa.array([*draw(columns(integers, n_rows)), 1], pa.int64()),
            "d": pa.array([*draw(columns(times, n_rows)), None], pa.timestamp("us")),
        }
    )
    assume(table["d"].null_count < len(table))
    rules: dict[str, Rule] = {
        "f": draw(number_rules),
        "i": draw(number_rules),
        "c": draw(category_rules),
        "n": draw(category_rules),
        "d": draw(date_rules),
    }
    return table, rules


def same(one: Preparation, other: Preparation, table: Any) -> None:
    assert one.to_json() == other.to_json()
    first, second = one.apply(table), other.apply(table)
    assert first.values.tobytes() == second.values.tobytes()
    assert first.notes == second.notes


@SOME
@given(tables())
def test_what_was_learned_is_numbers_and_applies_after_it_was_kept(case: tuple[Any, dict[str, Rule]]) -> None:
    table, rules = case
    learned = fitted(rules, table)
    assert np.isfinite(learned.apply(table).values).all()
    assert learned.apply(table).notes == ()
    assert len(learned.names) == len(learned.own_names) == learned.apply(table).values.shape[1]
    same(learned, Preparation.from_json(learned.to_json()), table)


@SOME
@given(tables(), st.integers(1, 7), st.data())
def test_neither_block_size_nor_chunks_change_a_bit(
    case: tuple[Any, dict[str, Rule]], block: int, data: st.DataObject
) -> None:
    table, rules = case
    weights = np.array(data.draw(columns(st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0]), len(table))))
    weights[-2:] = 1.0
    assume(table["d"].filter(pa.array(weights > 0)).null_count < (weights > 0).sum())
    whole = fitted(rules, table, weights)
    cut = data.draw(st.integers(0, len(table)))
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "BLOCK_ROWS", block)
        same(fitted(rules, chunked, weights), whole, table)
        in_blocks = whole.apply(chunked)
    assert in_blocks.values.tobytes() == whole.apply(table).values.tobytes()
    assert in_blocks.notes == whole.apply(table).notes


def scalings(preparation: Preparation) -> list[tuple[float, float, float]]:
    found = [
        scaling
        for column in preparation.columns
        if not isinstance(column, CategoryColumn)
        for scaling in ([column.scaling] if isinstance(column, NumberColumn) else [each for _, each in column.parts])
    ]
    return [(0.0 if each.fill is None else each.fill, each.mean, each.deviation) for each in found]


@SOME
@given(tables(st.integers(-800, 800).map(lambda eighths: eighths / 8)), st.sampled_from([1.0, 2.0**-40]), st.data())
def test_a_row_of_weight_k_teaches_as_k_copies_do(
    case: tuple[Any, dict[str, Rule]], unit: float, data: st.DataObject
) -> None:
    """Levels are rare by the weights as they are; to all else only their ratios matter."""
    table, rules = case
    copies = np.array(data.draw(columns(st.integers(0, 4), len(table))))
    copies[-2:] = [1, 2]
    assume(table["d"].filter(pa.array(copies > 0)).null_count < (copies > 0).sum())
    if unit < 1:
        rules = {name: rule for name, rule in rules.items() if not isinstance(rule, cn.Category)}
    weighted, copied = (
        fitted(rules, table, copies * unit),
        fitted(rules, table.take(np.repeat(np.arange(len(table)), copies))),
    )
    assert weighted.own_names == copied.own_names
    assert np.allclose(scalings(weighted), scalings(copied), rtol=1e-12, atol=1e-12)
    levels = [[column for column in each.columns if isinstance(column, CategoryColumn)] for each in (weighted, copied)]
    assert levels[0] == levels[1]


@SOME
@given(tables(), tables())
def test_held_out_rows_change_nothing_of_what_is_learned(
    case: tuple[Any, dict[str, Rule]], other: tuple[Any, dict[str, Rule]]
) -> None:
    table, rules = case
    both = pa.concat_tables([other[0], table, other[0]])
    weights = np.zeros(len(both))
    weights[len(other[0]) :][: len(table)] = 1.0
    same(fitted(rules, both, weights), fitted(rules, table), table)


@SOME
@given(tables(), tables())
def test_any_rows_of_the_same_types_can_be_prepared(
    case: tuple[Any, dict[str, Rule]], other: tuple[Any, dict[str, Rule]]
) -> None:
    learned = fitted(case[1], case[0])
    applied = learned.apply(other[0])
    assert np.isfinite(applied.values).all()
    parts = [learned.apply(other[0].slice(i, 1)).values for i in range(len(other[0]))]
    assert np.array_equal(np.concatenate(parts), applied.values)


@SOME
@given(tables())
def test_dictionaries_are_as_what_they_encode(case: tuple[Any, dict[str, Rule]]) -> None:
    table, rules = case
    encoded = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    same(fitted(rules, encoded), fitted(rules, table), table)
    assert np.array_equal(fitted(rules, table).apply(encoded).values, fitted(rules, table).apply(table).values)


@SOME
@given(tables(), tables())
def test_the_column_transformer_gives_the_same(
    case: tuple[Any, dict[str, Rule]], other: tuple[Any, dict[str, Rule]]
) -> None:
    learned = fitted(case[1], case[0])
    transformer = column_transformer(learned)
    assert tuple(transformer.get_feature_names_out()) == learned.own_names
    for table in (case[0], other[0]):
        assert np.array_equal(transformer.transform(table.to_pandas()), learned.apply(table).values)


@pytest.mark.filterwarnings("ignore:Found unknown categories")  # scikit-learn's word for what our notes count
@settings(SOME, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["mean", "median"]))
def test_it_is_what_scikit_learn_makes_of_the_table(seed: int, fill: Literal["mean", "median"]) -> None:
    rng = np.random.default_rng(seed)

    def frame(n_rows: int, n_levels: int) -> pd.DataFrame:
        numbers = rng.normal(5, 100, n_rows)
        numbers[rng.random(n_rows) < 0.1] = np.nan
        jobs = np.array([f"job{i}" for i in rng.geometric(0.15, n_rows).clip(max=n_levels)], dtype=object)
        return pd.DataFrame({"a": numbers, "b": rng.integers(0, 9, n_rows), "job": jobs})

    train, new = frame(300, 20), frame(100, 40)
    rules: dict[str, Rule] = {
        "a": cn.Number(missing=fill, scale=True),
        "b": cn.Number(),
        "job": cn.Category(rare=10),
    }
    learned = fitted(rules, pa.table(train))
    sizes = train["job"].value_counts()
    reference = min(sizes[sizes == sizes.max()].index)
    theirs = ColumnTransformer(
        [
            ("a", make_pipeline(SimpleImputer(strategy=fill), StandardScaler()), ["a"]),
            ("gap", make_pipeline(SimpleImputer(strategy=fill, add_indicator=True)), ["a"]),
            ("b", "passthrough", ["b"]),
            (
                "job",
                OneHotEncoder(
                    min_frequency=10, handle_unknown="infrequent_if_exist", drop=[reference], sparse_output=False
                ),
                ["job"],
            ),
        ],
        sparse_threshold=0,
    ).fit(train)
    for rows in (train, new):
        expected = np.delete(theirs.transform(rows), 1, axis=1)  # the filled column without scaling, beside its mark
        assert np.allclose(learned.apply(pa.table(rows)).values, expected, rtol=1e-12, atol=1e-12)
