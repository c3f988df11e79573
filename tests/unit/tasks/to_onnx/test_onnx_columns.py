"""Columns in operators give the numbers of `apply`; what it refuses is NaN."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from colonnade.errors import InputError
from colonnade.preparation.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, Scaled
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import FIRST_DAY, LAST_DAY
from colonnade.preparation.rules import PARTS
from colonnade.tasks.to_onnx.columns import kind_of, prepared
from colonnade.tasks.to_onnx.dates import A_DAY, NO_MOMENT, SECOND
from colonnade.tasks.to_onnx.graph import Graph, Kind
from onnx_trial import run_onnx

moderate = st.floats(-1e9, 1e9)
finite = moderate | st.floats(-1e100, 1e100) | st.floats(-1e-6, 1e-6) | st.sampled_from([-1.0, 0.0, 1e-300])
values = finite | st.sampled_from([np.nan, np.inf, -np.inf, 1e200])
scaled = st.builds(Scaled, st.none() | moderate, moderate, st.floats(1e-6, 1e6))
letters = st.text(max_size=4)


def computed(column: AnyColumn, fed: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    graph = Graph([("", column.column)])
    made = prepared(graph, column, graph.input(0, kind_of(column)))
    graph.output("features", made, Kind.NUMBER, len(column.names))
    return run_onnx(graph.model({}), {graph.input_names[0]: fed[:, np.newaxis]})["features"]


def applied(column: AnyColumn, values: Any) -> npt.NDArray[np.float64]:
    """Prepare row by row, so that one that is refused leaves the others."""
    rows = []
    for place in range(len(values)):
        try:
            rows.append(Preparation((column,)).apply(pa.table({column.column: values[place : place + 1]})).values[0])
        except InputError:
            rows.append(np.full(len(column.names), np.nan))
    return np.array(rows)


def refused_whole(got: npt.NDArray[np.float64], want: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Where a row is refused one number of it need be NaN: it makes all that is computed of them NaN."""
    bad = np.asarray(np.isnan(want).any(axis=1))
    assert (np.isnan(got).any(axis=1) == bad).all()
    return bad


@settings(max_examples=150, deadline=None)
@given(
    scaled,
    st.booleans(),
    st.none() | finite,
    st.none() | finite,
    st.booleans(),
    st.lists(values, min_size=1, max_size=9),
)
@example(Scaled(None), False, None, None, True, [1e-12, 1e-17, -1.0, -2.0, 5.0, np.nan, 1e-300])
@example(Scaled(3.0), True, 0.0, 10.0, False, [np.nan, -1.0, 11.0, 1e200])
@example(Scaled(None), False, 0.0, 10.0, False, [np.nan])
def test_numbers(
    scaling: Scaled, indicator: bool, at_least: float | None, at_most: float | None, log: bool, rows: list[float]
) -> None:
    try:
        column = NumberColumn("x", scaling, indicator, at_least, at_most, log)
    except InputError:
        assume(False)
    fed = np.array(rows)
    got, want = computed(column, fed), applied(column, pa.array(fed))
    bad = refused_whole(got, want)
    # onnxruntime leaves out a division by what is 1 in 32 bits, and a difference from what is 0 in them.
    np.testing.assert_allclose(got[~bad], want[~bad], rtol=1e-7, atol=1e-40)


def test_the_logarithm_of_small_numbers_keeps_its_digits() -> None:
    small = np.array([1e-15, 3e-10, -1e-9, 1e-5])
    found = computed(NumberColumn("x", Scaled(None), False, log=True), small)[:, 0]
    np.testing.assert_allclose(found, np.log1p(small), rtol=1e-14)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=4) | st.just("(missing)"), min_size=1, max_size=8, unique=True),
    st.data(),
    st.sampled_from(["other", "error"]),
    st.sampled_from(["error", "level"]),
)
def test_categories(levels: list[str], data: st.DataObject, unknown: Any, missing: Any) -> None:
    n_rare = data.draw(st.integers(0, len(levels) - 1))
    split = len(levels) - n_rare
    try:
        column = CategoryColumn("x", levels[0], tuple(levels[1:split]), tuple(levels[split:]), unknown, missing)
    except InputError:
        assume(False)
    assume(column.names)
    rows = data.draw(st.lists(st.sampled_from(levels) | letters | st.just("nan"), min_size=1, max_size=9))
    got, want = computed(column, np.array(rows, dtype=object)), applied(column, pa.array(rows))
    bad = refused_whole(got, want)
    np.testing.assert_array_equal(got[~bad], want[~bad])


def test_rare_unseen_and_missing_levels() -> None:
    column = CategoryColumn("job", "clerk", ("baker",), ("pilot",), "other", "level")
    found = computed(column, np.array(["clerk", "baker", "pilot", "astronaut", ""], dtype=object))
    assert found.tolist() == [[0, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    strict = CategoryColumn("job", "clerk", ("baker",), (), "error", "error")
    assert np.isnan(computed(strict, np.array(["astronaut", ""], dtype=object))).all()


def test_many_levels() -> None:
    levels = tuple(f"level {number}" for number in range(999))
    column = CategoryColumn("x", "first", levels, tuple(f"rare {number}" for number in range(50_000)), "other", "error")
    found = computed(column, np.array(["level 998", "rare 49999", "first"], dtype=object))
    assert [row.nonzero()[0].tolist() for row in found] == [[998], [999], []]


moments = st.integers(FIRST_DAY * A_DAY, LAST_DAY * A_DAY - SECOND) | st.integers(-(10**15), 2 * 10**15)


@settings(max_examples=150, deadline=None)
@given(st.lists(moments | st.none(), min_size=1, max_size=20), st.booleans(), st.none() | moderate, st.booleans())
@example([FIRST_DAY * A_DAY, LAST_DAY * A_DAY - SECOND, 0, -1, 951_782_400_000_000, None], True, 3.0, False)
def test_all_parts_of_dates(rows: list[int | None], indicator: bool, fill: float | None, scale: bool) -> None:
    scaling = Scaled(fill, 5.0, 3.0) if scale else Scaled(fill)
    column = DateColumn("when", tuple((part, scaling) for part in PARTS), indicator)
    fed = np.array([NO_MOMENT if row is None else row for row in rows])
    got, want = computed(column, fed), applied(column, pa.array(rows, pa.timestamp("us")))
    bad = refused_whole(got, want)
    np.testing.assert_allclose(got[~bad], want[~bad], rtol=1e-14, atol=1e-14)


def test_every_day_of_four_centuries() -> None:
    """One after the other, leap years of each sort among them."""
    days = np.arange(-200_000, -200_000 + 146_098, dtype=np.int64) * A_DAY
    column = DateColumn("when", tuple((part, Scaled(None)) for part in PARTS), False)
    table = pa.table({"when": pa.array(days, pa.timestamp("us"))})
    np.testing.assert_array_equal(computed(column, days), Preparation((column,)).apply(table).values)


@pytest.mark.parametrize("moment", [FIRST_DAY * A_DAY - 1, LAST_DAY * A_DAY, 2**63 - 1, NO_MOMENT + 1])
def test_what_is_no_date_of_the_calendar_is_refused(moment: int) -> None:
    column = DateColumn("when", (("year", Scaled(7.0)),), False)
    assert np.isnan(computed(column, np.array([moment]))).all()
