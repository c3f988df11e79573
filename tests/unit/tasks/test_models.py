"""Models that travel: a party's share, two files that others can read, a scikit-learn estimator."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.tasks import load_model
from colonnade.tasks.penalty_path import PathPoint, RegularisationPath

RNG = np.random.default_rng(0)
NAMES = ("distance", "seats", "wind", "rain", "age")
PARTS = {"airline": 2, "weather": 2, "auditor": 0, "registry": 1}
X = RNG.standard_t(4, size=(300, 5)) * [100.0, 1.0, 10.0, 0.1, 5.0] + [500.0, 0.0, 0.0, 0.0, 20.0]
POINTS = (PathPoint(1.0, 0.0, 2.5, 0.1), PathPoint(1 / 3, 0.0, 2.25, 0.2))


def linear() -> cn.LinearModel:
    return cn.LinearModel(RNG.normal(size=5), 1 / 3, NAMES, RegularisationPath(POINTS[1], POINTS), PARTS)


def clusters(*, scaled: bool = False) -> cn.KMeansModel:
    return cn.KMeansModel(X[:4].copy(), NAMES, X.std(axis=0) if scaled else None, PARTS)


def squared_distances(model: cn.KMeansModel, rows: Floats) -> Floats:
    scale = 1.0 if model.scale_ is None else model.scale_
    distances: Floats = np.square((rows[:, None] - model.cluster_centers_[None]) / scale).sum(axis=2)
    return distances


def assert_same(one: Any, other: Any) -> None:
    """Compare every field, arrays bit for bit."""
    assert type(one) is type(other)
    for name in one.__struct_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
        else:
            assert left == right
            assert not isinstance(left, dict) or list(left) == list(right), "the parties' order"


EACH = pytest.mark.parametrize(
    "model", [linear(), clusters(), clusters(scaled=True)], ids=["linear", "kmeans", "scaled"]
)


# A party's share

COLUMNS = {"airline": [0, 1], "weather": [2, 3], "auditor": [], "registry": [4]}


def test_the_parts_of_a_linear_model_add_up_to_its_predictions() -> None:
    model = linear()
    parts = {party: model.part(party) for party in PARTS}
    total = sum(parts[party].predict(X[:, columns]) for party, columns in COLUMNS.items())
    np.testing.assert_allclose(total + model.intercept_, model.predict(X), rtol=1e-12)
    for party, part in parts.items():
        assert part.parts_ == {party: PARTS[party]}
        assert part.feature_names_in_ == tuple(NAMES[column] for column in COLUMNS[party])
        assert (part.intercept_, part.path) == (0.0, None)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_parts_of_centres_add_up_to_their_distances(scaled: bool) -> None:
    model = clusters(scaled=scaled)
    total = sum(squared_distances(model.part(party), X[:, columns]) for party, columns in COLUMNS.items())
    np.testing.assert_allclose(total, squared_distances(model, X), rtol=1e-12)
    np.testing.assert_array_equal(np.argmin(total, axis=1), model.predict(X))
    weather = model.part("weather")
    assert (weather.parts_, weather.feature_names_in_) == ({"weather": 2}, ("wind", "rain"))
    assert (weather.scale_ is not None) == scaled


@EACH
def test_a_part_of_a_part_is_itself(model: Any) -> None:
    part = model.part("weather")
    assert_same(part.part("weather"), part)


@EACH
def test_a_part_holds_no_memory_of_the_rest(model: Any) -> None:
    part = model.part("weather")
    values = part.coef_ if isinstance(part, cn.LinearModel) else part.cluster_centers_
    assert values.base is None


@EACH
def test_an_unknown_party(model: Any) -> None:
    with pytest.raises(
        cn.InputError, match=r"no party 'bank' in this model: its parties are airline, weather, auditor"
    ):
        model.part("bank")
    with pytest.raises(cn.InputError, match=r"no party 'airline' in this model: its parties are weather\. Pass one of"):
        model.part("weather").part("airline")


def test_a_model_that_names_no_parties() -> None:
    with pytest.raises(cn.InputError, match="it names no parties"):
        cn.LinearModel(np.ones(1), 0.0, ("wind",)).part("weather")


def test_the_parts_are_those_of_the_federation() -> None:
    airline = cn.Party("airline", pd.DataFrame({"delay": X[:, 0], "wind": X[:, 1]}))
    weather = cn.Party("weather", pd.DataFrame({"wind": X[:, 2]}), label=None)
    model = cn.Federation([airline, weather]).fit(cn.KMeans(3), sampler=cn.AllRows()).model
    assert model.part("airline").feature_names_in_ == ("delay", "airline.wind")
    np.testing.assert_array_equal(model.part("weather").cluster_centers_, model.cluster_centers_[:, 2:])


# Local predictions


def test_predictions_are_those_of_the_federation() -> None:
    federation = cn.Federation(cn.split_columns(X, X @ np.arange(5.0) + 7.0, [2, 3]))
    for task in (cn.Regression(), cn.KMeans(6)):
        model: Any = federation.fit(task, sampler=cn.ImportanceSampling(size=100)).model
        np.testing.assert_allclose(model.predict(X), federation.predict(model), rtol=1e-9)


@EACH
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)])
def test_tables_with_the_models_columns(model: Any, table: Any) -> None:
    columns = dict(zip(NAMES, X.T, strict=True))
    np.testing.assert_allclose(model.predict(table(columns)), model.predict(X), rtol=1e-12)
    swapped = {name: columns[name] for name in ("distance", "wind", "seats", "rain", "age")}
    with pytest.raises(cn.InputError, match=r"Column 1 of the table is 'wind', that of the model 'seats'\. Pass"):
        model.predict(table(swapped))


@EACH
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:, :4], r"has 5 features, got rows of shape \(300, 4\)\. Pass \(n_rows, 5\)"),
        (X[0], r"got rows of shape \(5,\)"),
        (3.0, r"got rows of shape \(\)"),
        ([["a", "b", "c", "d", "e"]], "are not numbers"),
        ([[1.0], [1.0, 2.0]], "are not numbers"),
        (None, r"got rows of shape \(\)"),
        (np.where(X < 0, np.nan, X), "have gaps or infinities"),
        (np.where(X < 0, np.inf, X), "have gaps or infinities"),
        (np.ma.masked_less(X, 0), "have gaps or infinities"),
    ],
)
def test_rows_that_cannot_be_predicted(model: Any, rows: Any, message: str) -> None:
    with pytest.raises(cn.InputError, match=message):
        model.predict(rows)


@EACH
def test_no_rows_have_no_predictions(model: Any) -> None:
    assert model.predict(np.empty((0, 5))).shape == (0,)


def test_a_party_without_columns_predicts_nothing() -> None:
    np.testing.assert_array_equal(linear().part("auditor").predict(np.empty((3, 0))), np.zeros(3))
    np.testing.assert_array_equal(clusters().part("auditor").predict(np.empty((3, 0))), np.zeros(3))


# Save and load


@EACH
def test_what_is_saved_is_what_is_loaded(model: Any, tmp_path: Path) -> None:
    folder = model.save(tmp_path / "deep" / "model")
    assert_same(type(model).load(folder), model)
    assert_same(load_model(str(folder)), model)
    assert sorted(file.name for file in folder.iterdir()) == ["model.arrow", "model.json"]


@EACH
@pytest.mark.parametrize("party", ["weather", "auditor"])
def test_a_part_can_be_saved(model: Any, party: str, tmp_path: Path) -> None:
    part = model.part(party)
    folder = part.save(tmp_path / "part")
    assert_same(load_model(folder), part)
    text = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"distance" not in text, "nothing of the airline"


FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@st.composite
def models(draw: st.DrawFn) -> Any:
    parts = draw(st.dictionaries(TEXT.filter(str.strip), st.integers(0, 3), max_size=3))
    n_features = sum(parts.values()) if parts else draw(st.integers(0, 3))
    names = tuple(draw(st.lists(TEXT, min_size=n_features, max_size=n_features)))
    if draw(st.booleans()):
        point = st.builds(PathPoint, FINITE, FINITE, FINITE, FINITE)
        path = draw(st.none() | st.builds(RegularisationPath, point, st.lists(point, max_size=3).map(tuple)))
        return cn.LinearModel(draw(arrays(np.float64, n_features, elements=FINITE)), draw(FINITE), names, path, parts)
    centers = draw(arrays(np.float64, (draw(st.integers(1, 12)), n_features), elements=FINITE))
    scale = draw(st.none() | arrays(np.float64, n_features, elements=st.floats(0, 1e300, exclude_min=True)))
    return cn.KMeansModel(centers, names, scale, parts)


@given(model=models())
def test_any_model_comes_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, model: Any) -> None:
    assert_same(load_model(model.save(tmp_path_factory.getbasetemp() / "any-model")), model)


def test_numbers_of_numpy_and_whole_numbers_are_kept_as_floats(tmp_path: Path) -> None:
    model = cn.LinearModel(np.array([1, 2]), np.float64(0.1), ("a", "b"))
    again = cn.LinearModel.load(model.save(tmp_path / "model"))
    assert (again.coef_.tolist(), again.intercept_) == ([1.0, 2.0], 0.1)


def test_anyone_can_read_a_linear_model(tmp_path: Path) -> None:
    model = linear()
    folder = model.save(tmp_path / "model")
    view = pd.read_feather(folder / "model.arrow")
    assert list(view.columns) == ["party", "feature", "coefficient"]
    assert view["party"].tolist() == ["airline", "airline", "weather", "weather", "registry"]
    assert view["feature"].tolist() == list(NAMES)
    np.testing.assert_array_equal(view["coefficient"], model.coef_)
    record = json.loads((folder / "model.json").read_text())
    assert record["path"]["chosen"] == {"l2": 1 / 3, "l1": 0.0, "error": 2.25, "std_error": 0.2}
    del record["path"], record["versions"]
    assert record == {"kind": "linear", "format": 1, "parts": PARTS, "learned_from": None, "intercept": 1 / 3}


def test_anyone_can_read_centres(tmp_path: Path) -> None:
    model = clusters(scaled=True)
    view = pl.read_ipc(model.save(tmp_path / "model") / "model.arrow")
    assert view.columns == ["party", "feature", "centre_0", "centre_1", "centre_2", "centre_3", "scale"]
    np.testing.assert_array_equal(view["centre_2"], model.cluster_centers_[2])
    np.testing.assert_array_equal(view["scale"], model.scale_)
    plain = pd.read_feather(clusters().save(tmp_path / "plain") / "model.arrow")
    assert list(plain.columns[-2:]) == ["centre_2", "centre_3"]


def test_loading_the_other_kind_names_both(tmp_path: Path) -> None:
    with pytest.raises(cn.InputError, match=r"holds a KMeansModel, not a LinearModel\. Read it with KMeansModel\.load"):
        cn.LinearModel.load(clusters().save(tmp_path / "clusters"))
    with pytest.raises(cn.InputError, match=r"holds a LinearModel, not a KMeansModel\. Read it with LinearModel\.load"):
        cn.KMeansModel.load(linear().save(tmp_path / "linear"))


def test_a_model_replaces_a_model_and_nothing_else(tmp_path: Path) -> None:
    linear().save(tmp_path / "model")
    assert isinstance(load_model(clusters().save(tmp_path / "model")), cn.KMeansModel)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    federation = cn.Federation(cn.split_columns(X, X[:, 0], [5]))
    run = federation.fit(cn.Regression(), sampler=cn.AllRows())
    with pytest.raises(cn.InputError, match="exists and is not a saved model"):
        run.model.save(run.save(tmp_path / "run"))
    with pytest.raises(cn.InputError, match="exists and is not a saved run"):
        run.save(tmp_path / "model")
    assert_same(cn.LinearModel.load(tmp_path / "run"), run.model)


def test_keeping_and_loading_needs_only_pyarrow(tmp_path: Path) -> None:
    folder = clusters(scaled=True).save(tmp_path / "model")
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('sklearn', 'pandas', 'polars'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"import colonnade as cn; folder = {str(folder)!r}\n"
        "cn.KMeansModel.load(folder).part('weather').save(folder)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert cn.KMeansModel.load(folder).feature_names_in_ == ("wind", "rain")


# Damaged or hostile files


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    folder = linear().save(tmp_path / "model")
    newer = {"format": 2, "versions": {"colonnade": "3.1"}, "kind": "tree"}
    (folder / "model.json").write_text(json.dumps(newer))
    for load in (load_model, cn.LinearModel.load, cn.KMeansModel.load):
        with pytest.raises(cn.InputError) as caught:
            load(folder)
        assert str(caught.value) == (
            f"{folder}: saved in model format 2 by colonnade 3.1; this version reads up to 1. Upgrade colonnade."
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "tree"),
        ("kind", "kmeans"),
        ("kind", None),
        ("format", 0),
        ("format", "1"),
        ("intercept", None),
        ("intercept", "0.5"),
        ("intercept", 1e999),
        ("parts", None),
        ("parts", {}),
        ("parts", {"airline": 5}),
        ("parts", {"weather": 2, "airline": 2, "registry": 1}),
        ("parts", {"airline": 2, "weather": 2, "registry": 1.5}),
        ("parts", {"airline": 2, "weather": 2, "registry": 1, "bank": -1}),
        ("parts", {"airline": 10**15, "weather": 2, "registry": 3 - 10**15}),
        ("path", {"chosen": 5}),
        ("path", {"chosen": None, "points": []}),
    ],
)
def test_a_record_that_was_tampered_with(tmp_path: Path, field: str, value: Any) -> None:
    folder = linear().save(tmp_path / "model")
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**record, field: value}))
    with pytest.raises(cn.InputError, match=rf"^{folder}"):
        load_model(folder)


NESTED = [b"[" * 100_000, b'{"format": 1, "versions": {}, "kind": "linear", "path": ' + b'{"chosen": ' * 100_000]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"null", b"[]", *NESTED])
def test_a_record_that_is_none(tmp_path: Path, content: bytes) -> None:
    folder = linear().save(tmp_path / "model")
    (folder / "model.json").write_bytes(content)
    with pytest.raises(cn.InputError, match=r"is not a readable model: model\.json: .*Pass a folder that model\.save"):
        load_model(folder)


def lines(**columns: Any) -> Any:
    parties = ["airline", "airline", "weather", "weather", "registry"]
    return pa.table({"party": parties, "feature": list(NAMES), **columns})


FIVE = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (linear, lines()),
        (linear, lines(coefficient=[1, 2, 3, 4, 5])),
        (linear, lines(coefficient=list("12345"))),
        (linear, lines(coefficient=[1.0, 2.0, np.nan, 4.0, 5.0])),
        (linear, lines(coefficient=[1.0, 2.0, np.inf, 4.0, 5.0])),
        (linear, lines(coefficient=[1.0, 2.0, None, 4.0, 5.0])),
        (linear, lines(coefficient=[[1.0], [2.0], [3.0], [4.0], [5.0]])),
        (linear, lines(coefficient=pa.array(FIVE, pa.float32()))),
        (linear, lines(coefficient=FIVE, more=FIVE)),
        (linear, lines(coefficient=FIVE, scale=[0.0, 2.0, 3.0, 4.0, 5.0])),
        (linear, lines(centre_0=FIVE)),
        (linear, lines(coefficient=FIVE).slice(0, 4)),
        (linear, lines(coefficient=FIVE).slice(0, 0)),
        (linear, lines(coefficient=FIVE).drop(["party"])),
        (linear, lines(coefficient=FIVE).drop(["feature"])),
        (linear, lines(coefficient=FIVE, feature=["a", None, "c", "d", "e"])),
        (linear, lines(coefficient=FIVE, party=[None] * 5)),
        (linear, lines(coefficient=FIVE, party=["weather", "weather", "airline", "airline", "registry"])),
        (clusters, lines()),
        (clusters, lines(scale=FIVE)),
        (clusters, lines(coefficient=FIVE)),
        (clusters, lines(centre_1=FIVE)),
        (clusters, lines(centre_1=FIVE, centre_0=FIVE)),
        (clusters, lines(centre_0=FIVE, centre_2=FIVE)),
        (clusters, lines(centre_0=FIVE, more=FIVE)),
        (clusters, lines(centre_0=[np.nan, 2.0, 3.0, 4.0, 5.0])),
        (clusters, lines(centre_0=FIVE, scale=[0.0, 2.0, 3.0, 4.0, 5.0])),
        (clusters, lines(centre_0=FIVE, scale=[-1.0, 2.0, 3.0, 4.0, 5.0])),
        (clusters, lines(centre_0=FIVE, scale=[np.inf, 2.0, 3.0, 4.0, 5.0])),
    ],
)
def test_lines_that_were_tampered_with(tmp_path: Path, kind: Any, table: Any) -> None:
    folder = kind().save(tmp_path / "model")
    with pa.ipc.new_file(str(folder / "model.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(cn.InputError, match=rf"^{folder}"):
        load_model(folder)


def test_files_that_are_missing(tmp_path: Path) -> None:
    for name in ("model.json", "model.arrow"):
        folder = linear().save(tmp_path / "model")
        (folder / name).unlink()
        with pytest.raises(cn.InputError, match=rf"is not a readable model: .*{name}.*Pass a folder that model\.save"):
            load_model(folder)
        (folder / "model.json").unlink(missing_ok=True)
        (folder / "model.arrow").unlink(missing_ok=True)


@given(
    scaled=st.booleans(),
    name=st.sampled_from(["model.json", "model.arrow"]),
    place=st.floats(0, 1, exclude_max=True),
    damage=st.none() | st.binary(min_size=1, max_size=8),
)
def test_any_damage_is_refused_or_leaves_a_model(
    tmp_path_factory: pytest.TempPathFactory, scaled: bool, name: str, place: float, damage: bytes | None
) -> None:
    """Cut off or overwritten anywhere: an InputError, or a model that keeps its promises; never anything else."""
    folder = clusters(scaled=scaled).save(tmp_path_factory.getbasetemp() / "damaged-model")
    whole = (folder / name).read_bytes()
    at = int(place * len(whole))
    (folder / name).write_bytes(whole[:at] + (b"" if damage is None else damage + whole[at + len(damage) :]))
    try:
        model = load_model(folder)
    except cn.InputError:
        return
    finally:
        shutil.rmtree(folder)
    assert damage is not None, "what was cut off was needed"
    assert isinstance(model, cn.KMeansModel)
    assert model.cluster_centers_.shape[1] == len(model.feature_names_in_)
    assert np.isfinite(model.cluster_centers_).all()


# What a model must be


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cn.LinearModel(np.ones(2), 0.0, ("a",)), "one finite coefficient a feature"),
        (lambda: cn.LinearModel(np.array([np.nan]), 0.0, ("a",)), "one finite coefficient a feature"),
        (lambda: cn.LinearModel(np.ones(1), np.inf, ("a",)), "one finite coefficient a feature"),
        (lambda: cn.LinearModel(np.ones(1), 0.0, ("a",), parts_={"x": 2}), r"add up to its 1 features, got \{'x': 2\}"),
        (lambda: cn.LinearModel(np.ones(1), 0.0, ("a",), parts_={"x": 2, "y": -1}), "add up to its 1 features"),
        (lambda: cn.KMeansModel(np.ones((0, 1)), ("a",)), "centres with one finite number a feature"),
        (lambda: cn.KMeansModel(np.ones(1), ("a",)), "centres with one finite number a feature"),
        (lambda: cn.KMeansModel(np.ones((2, 1)), ("a",), np.zeros(1)), "one positive number a feature"),
        (lambda: cn.KMeansModel(np.ones((2, 1)), ("a",), np.ones(2)), "one positive number a feature"),
        (lambda: cn.KMeansModel(np.ones((2, 1)), ("a",), None, {"x": 0}), "add up to its 1 features"),
    ],
)
def test_what_cannot_be_a_model(make: Any, message: str) -> None:
    with pytest.raises(cn.InputError, match=message):
        make()


# scikit-learn; warnings are errors here, so a view or array with the wrong kind of names would fail


def test_a_linear_regression_of_scikit_learn() -> None:
    model = linear()
    estimator = model.to_sklearn()
    assert isinstance(estimator, LinearRegression)
    assert (estimator.n_features_in_, estimator.feature_names_in_.tolist()) == (5, list(NAMES))
    np.testing.assert_array_equal(estimator.coef_, model.coef_)
    view = pd.DataFrame(X, columns=list(NAMES))
    np.testing.assert_allclose(estimator.predict(view), model.predict(X), rtol=1e-13)
    assert estimator.score(view, model.predict(X)) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(view[view.columns[::-1]])


def test_a_kmeans_of_scikit_learn() -> None:
    model = clusters()
    estimator = model.to_sklearn()
    assert isinstance(estimator, KMeans)
    np.testing.assert_array_equal(estimator.cluster_centers_, model.cluster_centers_)
    view = pd.DataFrame(X, columns=list(NAMES))
    np.testing.assert_array_equal(estimator.predict(view), model.predict(X))
    np.testing.assert_allclose(estimator.transform(view) ** 2, squared_distances(model, X), rtol=1e-9, atol=1e-6)
    assert not hasattr(estimator, "labels_")
    assert not hasattr(estimator, "inertia_")
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(view[view.columns[::-1]])


def test_a_standardised_kmeans_is_a_pipeline_on_raw_rows() -> None:
    model = clusters(scaled=True)
    pipeline = model.to_sklearn()
    assert isinstance(pipeline, Pipeline)
    view = pd.DataFrame(X, columns=list(NAMES))
    np.testing.assert_array_equal(pipeline.predict(view), model.predict(X))
    assert (model.predict(X) != clusters().predict(X)).any(), "the scale matters"
    np.testing.assert_allclose(pipeline[-1].cluster_centers_ * pipeline[0].scale_, model.cluster_centers_, rtol=1e-14)
    assert pipeline.feature_names_in_.tolist() == list(NAMES)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 8), scaled=st.booleans())
def test_scikit_learn_finds_the_same_clusters(seed: int, k: int, scaled: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, 3)) * [1.0, 100.0, 0.01]
    model = cn.KMeansModel(rows[:k].copy(), ("a", "b", "c"), rng.uniform(0.1, 9.0, size=3) if scaled else None)
    np.testing.assert_array_equal(
        model.to_sklearn().predict(pd.DataFrame(rows, columns=["a", "b", "c"])), model.predict(rows)
    )


def test_equal_centres_are_kept() -> None:
    model = cn.KMeansModel(np.ones((3, 2)), ("a", "b"))
    estimator = model.to_sklearn()
    assert estimator.cluster_centers_.shape == (3, 2)
    assert estimator.predict(pd.DataFrame({"a": [5.0], "b": [1.0]})).tolist() == [0]


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(4)])
def test_a_model_of_plain_arrays_takes_plain_arrays(task: Any) -> None:
    """Their columns have no names but those the parties made up, which no table would have."""
    model = cn.Federation(cn.split_columns(X, X[:, 0], [2, 3])).fit(task, sampler=cn.AllRows()).model
    for part, rows in ((model, X), (model.part("party2"), X[:, 2:])):
        estimator = part.to_sklearn()
        assert not hasattr(estimator, "feature_names_in_")
        np.testing.assert_allclose(estimator.predict(rows), part.predict(rows), rtol=1e-12)


def test_a_model_of_named_and_plain_columns_has_names() -> None:
    parties = [cn.Party("airline", pd.DataFrame({"wind": X[:, 0]})), cn.Party("weather", X[:, 1:], label=X[:, 2])]
    estimator = cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows()).model.to_sklearn()
    assert estimator.feature_names_in_.tolist() == ["wind", "weather_0", "weather_1", "weather_2", "weather_3"]


def test_changing_the_estimator_does_not_change_the_model() -> None:
    for model, name in ((linear(), "coef_"), (clusters(), "cluster_centers_")):
        before = getattr(model, name).copy()
        getattr(model.to_sklearn(), name)[:] = 0.0
        np.testing.assert_array_equal(getattr(model, name), before)


@EACH
def test_a_model_without_features_cannot_go(model: Any) -> None:
    with pytest.raises(cn.InputError, match="scikit-learn knows no model without features"):
        model.part("auditor").to_sklearn()


@EACH
def test_where_scikit_learn_is_missing(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(
        cn.InputError, match=r"to_sklearn needs scikit-learn, .* Install it with: pip install scikit-learn"
    ):
        model.to_sklearn()


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=2)])
def test_a_table_of_a_model_names_levels_where_the_model_has_them(task: Any) -> None:
    jobs, n = ["clerk", "cook", "nurse"] * 20, 60
    rules = cn.Prepare({"job": cn.Category()})
    parties = [
        cn.Party("bank", pa.table({"job": jobs}), prepare=rules),
        cn.Party("shop", pa.table({"job": jobs[1:] + jobs[:1], "spent": np.arange(n)}), label="spent", prepare=rules),
        cn.Party("desk", np.random.default_rng(0).normal(size=(n, 1))),
    ]
    model = cn.Federation(parties).fit(task, sampler=cn.AllRows()).model
    assert model.feature_names_in_[0] == "bank.job#1"
    lines = [line for line in model.table().splitlines() if not line.startswith("Levels compare")]
    shown = [line.split()[0] for line in lines][-5:]
    assert shown == ["bank.job=cook", "bank.job=nurse", "shop.job=cook", "shop.job=nurse", "desk_0"]


def test_what_levels_compare_to_takes_one_line() -> None:
    """A level can be of anyone's making."""
    jobs = ["\x1b[31mx\ny", "cook"] * 15 + ["\x1b[31mx\ny"]
    party = cn.Party(
        "bank", pa.table({"job": jobs, "y": np.arange(31.0)}), label="y", prepare=cn.Prepare({"job": cn.Category()})
    )
    table = cn.Federation([party]).fit(cn.Regression(), sampler=cn.AllRows()).model.table()
    assert table.splitlines()[-1] == r"Levels compare to 'job=\x1b[31mx\ny'."
    assert "\x1b" not in table
