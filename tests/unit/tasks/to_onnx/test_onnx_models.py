"""Exported graphs predict as models do, whatever columns are called and however large they are."""

import builtins
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx.reference import ReferenceEvaluator

import colonnade as cn
from colonnade.kernels.center_distances import CenterDistances
from colonnade.tasks.to_onnx import graph as graphs
from colonnade.tasks.to_onnx.graph import distinct
from onnx_trial import fed, numbers, run_onnx, told

CLASSES: list[tuple[Any, ...]] = [
    ("no", "yes"),
    (0, 1),
    (-1.5, 2.0),
    ("a", "", "ünï\U0001f600"),
    (1, 2, 30),
    (0, 0.5, 1, 7),
    (2**62, 2**63),
]
odd_names = st.text(max_size=6) | st.sampled_from(
    ["", "label", "output_label", "prediction", "_0", "_1", "a", "a", "p.a", "a (1)", "nul\0", "n" * 10_000, "\ud800"]
)
size = st.sampled_from([1e-9, 1.0, 1e6, 1e15])


@st.composite
def rows_and_names(draw: st.DrawFn) -> tuple[Any, tuple[str, ...]]:
    """Rows of any magnitude, column by column: far from zero, with little between them."""
    names = tuple(draw(st.lists(odd_names, min_size=1, max_size=6)))
    shape = (draw(st.integers(1, 12)), len(names))
    rows = draw(hnp.arrays("float64", shape, elements=st.floats(-100, 100, width=32)))
    places, spreads = (np.array([draw(size) for _ in names]) for _ in range(2))
    return places + rows * spreads, names


def seeded(X: Any) -> np.random.Generator:
    return np.random.default_rng(X.size)


def assert_close(found: Any, expected: Any, X: Any, weights: Any) -> None:
    """To 1e-6 of the prediction, or to rounding of the largest summand: sums in another order cancel otherwise."""
    largest = np.abs(X * weights).max(axis=1)
    assert (np.abs(found - expected) <= 1e-6 * np.abs(expected) + 1e-13 * largest).all()


@settings(max_examples=60, deadline=None)
@given(rows_and_names())
@example((np.array([[1.0, 2.0]]), ("prediction", "output_prediction")))
def test_linear(case: tuple[Any, tuple[str, ...]]) -> None:
    X, names = case
    coef = seeded(X).normal(size=len(names))
    model = cn.LinearModel(coef, 0.25, names)
    onnx_model = model.to_onnx()
    (found,) = run_onnx(onnx_model, numbers(onnx_model, X)).values()
    assert found.shape == (len(X),)
    assert found.dtype == np.float64
    assert_close(found, model.predict(X), X, coef)


@settings(max_examples=80, deadline=None)
@given(rows_and_names(), st.sampled_from(CLASSES), st.sampled_from([1.0, 1e-3, 30.0]))
def test_classes(case: tuple[Any, tuple[str, ...]], classes: tuple[Any, ...], steep: float) -> None:
    X, names = case
    lines = 1 if len(classes) == 2 else len(classes)
    scale = np.abs(X).max(axis=0) + 1e-300
    coef = seeded(X).normal(size=(lines, len(names))) * steep / scale
    model = cn.ClassificationModel(coef, seeded(X).normal(size=lines), classes, names)
    onnx_model = model.to_onnx()
    label, chances, logits = run_onnx(onnx_model, numbers(onnx_model, X)).values()
    expected = model.predict_proba(X)
    np.testing.assert_allclose(chances, expected, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(logits, model.logits(X), rtol=1e-9, atol=1e-9 * steep)
    plain = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 1e-9
    assert label[plain].tolist() == model.predict(X)[plain].tolist()


@pytest.mark.parametrize("classes", CLASSES)
def test_labels_are_of_the_type_of_the_classes(classes: tuple[Any, ...]) -> None:
    lines = 1 if len(classes) == 2 else len(classes)
    model = cn.ClassificationModel(np.arange(1.0, lines + 1)[:, None], np.zeros(lines), classes, ("x",))
    onnx_model = model.to_onnx()
    found = run_onnx(onnx_model, numbers(onnx_model, [[-9.0], [9.0], [np.nan]]))["label"]
    assert found[:2].tolist() == model.predict([[-9.0], [9.0]]).tolist()
    whole = all(isinstance(name, int) and name < 2**63 for name in classes)
    of_none = "" if isinstance(classes[0], str) else -(2**63) if whole else np.nan
    np.testing.assert_equal(found[2], of_none)


def test_small_chances_keep_their_digits() -> None:
    """onnxruntime's own Sigmoid gives 0 for a logit of -50."""
    model = cn.ClassificationModel(np.ones((1, 1)), np.zeros(1), (0, 1), ("x",))
    X = np.array([[-700.0], [-50.0], [-1e-3], [0.0], [1e-17], [40.0], [800.0]])
    onnx_model = model.to_onnx()
    found = run_onnx(onnx_model, numbers(onnx_model, X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-12, atol=1e-16)
    assert found["label"].tolist() == model.predict(X).tolist()


@settings(max_examples=80, deadline=None)
@given(rows_and_names(), st.integers(1, 5), st.booleans())
def test_clusters(case: tuple[Any, tuple[str, ...]], k: int, with_scale: bool) -> None:
    X, names = case
    draw = seeded(X)
    centers = X[draw.integers(len(X), size=k)] * (1 + 1e-3 * draw.normal(size=(k, len(names))))
    scale = np.abs(X).max(axis=0) + 1e-9 if with_scale else None
    model = cn.KMeansModel(centers, names, scale)
    onnx_model = model.to_onnx()
    label, distances, squares = run_onnx(onnx_model, numbers(onnx_model, X)).values()
    expected = CenterDistances.to(centers, scale).of(X)
    np.testing.assert_allclose(squares, expected, rtol=1e-6, atol=0)
    np.testing.assert_allclose(distances, np.sqrt(expected), rtol=1e-6, atol=0)
    assert label.dtype == np.int64
    assert (label == squares.argmin(axis=1)).all()
    # `predict` divides first, so that rows far from zero lose digits: two centres may then be alike to it.
    nearest = np.sort(expected, axis=1)[:, :2]
    clear = nearest[:, -1] - nearest[:, 0] > 1e-9 * nearest[:, 0] + (1e-12 if with_scale else 0.0)
    assert label[clear].tolist() == model.predict(X)[clear].tolist()


def test_distances_on_large_columns_do_not_cancel() -> None:
    rng = np.random.default_rng(0)
    X = 1e12 + rng.normal(size=(500, 3)) * np.array([1.0, 10.0, 1000.0])
    scale = np.array([1.0, 10.0, 1000.0])
    model = cn.KMeansModel(X[:7], ("a", "b", "c"), scale)
    onnx_model = model.to_onnx()
    found = run_onnx(onnx_model, numbers(onnx_model, X))
    apart = np.square((X[:, None] - X[:7]) / scale).sum(axis=2)
    np.testing.assert_allclose(found["squared_distances"], apart, rtol=1e-12)
    assert (found["label"] == apart.argmin(axis=1)).all()
    assert found["label"][:7].tolist() == list(range(7))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_predict_refuses_give_nothing(value: float) -> None:
    X = np.array([[1.0, value], [1.0, 2.0]])
    clusters = cn.KMeansModel(np.zeros((2, 2)), ("a", "b")).to_onnx()
    found = run_onnx(clusters, numbers(clusters, X))
    assert found["label"].tolist() == [-1, 0]
    assert np.isnan(found["distances"]).any(axis=1).tolist() == [True, False]
    linear = cn.LinearModel(np.array([1.0, 0.0]), 0.0, ("a", "b")).to_onnx()
    assert np.isnan(run_onnx(linear, numbers(linear, X))["prediction"]).tolist() == [True, False]


# Parties that prepare their columns


def tables(n: int = 400) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(5)
    age = rng.uniform(18, 80, n)
    age[::9] = np.nan
    levels = np.array(["clerk", "baker", "ünï=\U0001f600", "pilot", None], dtype=object)
    job = rng.choice(levels, n, p=[0.4, 0.3, 0.2, 0.01, 0.09])
    seen = pd.to_datetime("2020-02-28") + pd.to_timedelta(rng.integers(0, 10**8, n), unit="s")
    bank = pd.DataFrame({"age": age, "job": job, "seen": seen})
    shop = pd.DataFrame({"age": rng.gamma(2, 500, n), "visits": rng.poisson(3, n).astype(float)})
    score = np.nan_to_num(age, nan=40.0) / 10 + (job == "baker") - shop["visits"] + rng.normal(size=n)
    return {"bank": bank.assign(score=score, late=np.where(score > 2, "yes", "no")), "shop": shop}


def federation(label: str | None) -> cn.Federation:
    prepare = cn.Prepare(
        {
            "age": cn.Number(missing="median", at_least=20, at_most=70, scale=True),
            "job": cn.Category(missing="level"),
            "seen": cn.Date(["days", "weekday", "week", "hour"], scale=True),
        }
    )
    parts = tables()
    bank = cn.Party("bank", parts["bank"], label=label, prepare=prepare)
    return cn.Federation([bank, cn.Party("shop", parts["shop"], prepare=cn.Prepare({"age": cn.Number(log=True)}))])


TASKS: list[tuple[Any, str | None, str]] = [
    (cn.Regression(), "score", "prediction"),
    (cn.Classification(l2=1e-3), "late", "logits"),
    (cn.KMeans(n_clusters=3), None, "squared_distances"),
]


@pytest.mark.parametrize(("task", "label"), [(task, label) for task, label, _ in TASKS])
def test_prepared_columns_come_as_they_are(task: Any, label: str | None) -> None:
    here = federation(label)
    model = here.fit(task, sampler=cn.AllRows(), seed=1).model
    onnx_model = model.to_onnx()
    # Both have an age.
    assert [each.name for each in onnx_model.graph.input] == ["bank.age", "job", "seen", "shop.age"]
    found = run_onnx(onnx_model, fed(onnx_model, tables()))
    expected = here.predict(model)
    first = next(iter(found.values()))
    if label == "late":
        np.testing.assert_allclose(found["probabilities"], expected.probabilities, rtol=1e-6, atol=1e-15)
        expected = expected.classes
    if label == "score":
        np.testing.assert_allclose(first, expected, rtol=1e-6)
    else:
        assert first.tolist() == expected.tolist()


@pytest.mark.parametrize(("task", "label", "adding"), TASKS)
def test_parts_add_up_to_the_whole(task: Any, label: str | None, adding: str, tmp_path: Any) -> None:
    here = federation(label)
    model = here.fit(task, sampler=cn.AllRows(), seed=1).model
    total: Any = getattr(model, "intercept_", 0.0)
    for party in ("bank", "shop"):
        # As the party gets it: a share has its own preparation with it, and nobody else's.
        part = type(model).load(model.part(party).save(tmp_path / party))
        assert list(part.learned_from_.preparations) == [party]
        onnx_model = part.to_onnx()
        assert told(onnx_model)["parties"] == [party]
        assert not any("shop" in each.value for each in onnx_model.metadata_props) or party == "shop"
        total = total + run_onnx(onnx_model, fed(onnx_model, tables()))[adding]
    whole = model.to_onnx()
    found = run_onnx(whole, fed(whole, tables()))
    np.testing.assert_allclose(total, found[adding], rtol=1e-9)
    if label == "score":
        np.testing.assert_allclose(total, here.predict(model), rtol=1e-6)
    elif label == "late":
        np.testing.assert_allclose(1 / (1 + np.exp(-total)), here.predict(model).probabilities[:, 1], rtol=1e-6)
    else:
        assert total.argmin(axis=1).tolist() == here.predict(model).tolist()


def test_where_a_preparation_is_not_known_prepared_columns_are_inputs() -> None:
    """As from other machines: the model has a name of what the party learned, and no more."""
    model = federation("score").fit(cn.Regression(), sampler=cn.AllRows()).model
    far = cn.LinearModel(model.coef_, model.intercept_, model.feature_names_in_, parts_=model.parts_)
    assert [each.name for each in far.to_onnx().graph.input] == list(model.feature_names_in_)


def test_what_a_graph_tells_of_itself() -> None:
    onnx_model = federation("late").fit(cn.Classification(l2=1e-3), sampler=cn.AllRows()).model.to_onnx()
    words = told(onnx_model)
    assert words["version"] == version("colonnade") == onnx_model.producer_version
    assert (words["task"], words["parties"], words["classes"]) == ("classification", ["bank", "shop"], ["no", "yes"])
    assert words["features"][:3] == ["bank.age", "age#1", "job#1"]
    assert words["inputs"][1] == {"name": "job", "party": "bank", "column": "job", "kind": "text"}


def test_another_runtime_finds_the_same() -> None:
    """The reference of ONNX itself: nothing rests on what one runtime makes of an operator."""
    for task, label, adding in TASKS:
        onnx_model = federation(label).fit(task, sampler=cn.AllRows(), seed=1).model.to_onnx()
        rows = fed(onnx_model, tables(30))
        names = [each.name for each in onnx_model.graph.output]
        found = dict(zip(names, ReferenceEvaluator(onnx_model).run(None, rows), strict=True))
        np.testing.assert_allclose(found[adding], run_onnx(onnx_model, rows)[adding], rtol=1e-9)
        assert found[names[0]].dtype == run_onnx(onnx_model, rows)[names[0]].dtype or label == "late"


# Names


@settings(max_examples=300)
@example([("", "a"), ("", "p.a"), ("p", "a")])
@given(st.lists(st.tuples(st.sampled_from(["", "p", "q"]), odd_names), max_size=30))
def test_names_are_distinct_and_kept_where_they_can_be(wanted: list[tuple[str, str]]) -> None:
    names = distinct(wanted)
    assert len(set(names)) == len(names) == len(wanted)
    assert all(names)
    alone = [name for _, name in wanted]
    for (_, name), got in zip(wanted, names, strict=True):
        if name and alone.count(name) == 1 and name.isascii() and name.isprintable() and name != "column":
            assert got == name


def test_outputs_give_way_to_columns() -> None:
    model = cn.KMeansModel(np.zeros((1, 3)), ("label", "output_label", "distances")).to_onnx()
    assert [each.name for each in model.graph.input] == ["label", "output_label", "distances"]
    names = [each.name for each in model.graph.output]
    assert names == ["output_output_label", "output_distances", "squared_distances"]


def test_many_columns() -> None:
    names = tuple(f"column {number}" for number in range(2000))
    model = cn.LinearModel(np.arange(2000.0), 0.0, names)
    onnx_model = model.to_onnx()
    X = np.random.default_rng(0).normal(size=(3, 2000))
    np.testing.assert_allclose(run_onnx(onnx_model, numbers(onnx_model, X))["prediction"], model.predict(X), rtol=1e-9)


# What cannot be


def test_a_model_without_columns() -> None:
    with pytest.raises(cn.InputError, match=r"takes no columns\. Take the part"):
        cn.LinearModel(np.zeros(0), 1.0, ()).to_onnx()


def test_a_preparation_of_other_columns() -> None:
    model = federation("score").fit(cn.Regression(), sampler=cn.AllRows()).model
    assert model.learned_from_ is not None
    n = len(model.coef_) - 1
    fewer = {"bank": model.parts_["bank"] - 1, "shop": 1}
    odd = cn.LinearModel(np.ones(n), 0.0, model.feature_names_in_[1:], None, fewer, None, model.learned_from_)
    with pytest.raises(cn.InputError, match="columns of 'bank' makes other columns"):
        odd.to_onnx()


def test_what_protocol_buffers_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MAX_BYTES", 100)
    with pytest.raises(cn.UnsupportedError, match=r"bytes as ONNX, which holds 100\. Export the parts"):
        cn.LinearModel(np.ones(1), 0.0, ("x",)).to_onnx()


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *others: Any) -> Any:
        if name == "onnx":
            raise ImportError("no", name="onnx")
        return real(name, *others)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(cn.InputError, match=r"needs the package onnx.*pip install 'colonnade\[export\]'"):
        cn.LinearModel(np.ones(1), 0.0, ("x",)).to_onnx()
