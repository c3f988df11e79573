"""Steps of pipelines are stored by skops, and read again without trust."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import skops.io
from skops.io.exceptions import UntrustedTypesFoundException

import colonnade as cn
from colonnade.preparation.steps import ColumnStep, GivenNames

NUMBER = '{"kind":"number","column":"x","scaling":{"fill":null},"indicator":false,"log":true}'
LOAD = """
import sys, numpy as np, pandas as pd, skops.io, colonnade as cn
estimator = skops.io.load(sys.argv[1], trusted=cn.skops_types())
frame = pd.read_parquet(sys.argv[2])
found = estimator.predict(frame)
np.save(sys.argv[3], found if found.dtype.kind != "U" else estimator.predict_proba(frame))
"""


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 200
    age = rng.uniform(18, 80, n)
    age[::7] = np.nan
    job = rng.choice(np.array(["clerk", "baker", "pilot", None], dtype=object), n, p=[0.5, 0.3, 0.1, 0.1])
    seen = pd.to_datetime("2020-02-28") + pd.to_timedelta(rng.integers(0, 10**8, n), unit="s")
    return pd.DataFrame({"age": age, "job": job, "seen": seen, "visits": rng.gamma(2, 50, n)})


def fitted(task: Any) -> Any:
    prepare = cn.Prepare(
        {
            "age": cn.Number(missing="median", at_least=20, log=True, scale=True),
            "job": cn.Category(missing="level"),
            "seen": cn.Date(["year", "weekday"], scale=True),
        }
    )
    table = frame()
    score = table["visits"] + (table["job"] == "baker") * 40
    label = None if isinstance(task, cn.KMeans) else "score"
    values = np.where(score > 100, "yes", "no") if isinstance(task, cn.Classification) else score
    bank = table[["age", "job", "seen"]].assign(**({} if label is None else {"score": values}))
    shop = cn.Party("shop", table[["visits"]])
    federation = cn.Federation([cn.Party("bank", bank, label=label, prepare=prepare), shop])
    return federation.fit(task, sampler=cn.AllRows(), seed=3).model


@pytest.mark.parametrize("task", [cn.Regression(), cn.Classification(l2=1e-3), cn.KMeans(n_clusters=3)])
def test_a_stored_pipeline_predicts_the_same_in_another_process(task: Any, tmp_path: Path) -> None:
    estimator = fitted(task).to_sklearn()
    skops.io.dump(estimator, tmp_path / "model.skops")
    frame().to_parquet(tmp_path / "rows.parquet")
    command = [
        sys.executable,
        "-c",
        LOAD,
        *(str(tmp_path / name) for name in ("model.skops", "rows.parquet", "got.npy")),
    ]
    subprocess.run(command, check=True)
    name = "predict_proba" if isinstance(task, cn.Classification) else "predict"
    np.testing.assert_array_equal(np.load(tmp_path / "got.npy"), getattr(estimator, name)(frame()))


@pytest.mark.parametrize("task", [cn.Regression(), cn.Classification(l2=1e-3), cn.KMeans(n_clusters=3)])
def test_the_types_that_are_listed_are_those_that_are_needed(task: Any) -> None:
    stored = skops.io.dumps(fitted(task).to_sklearn())
    assert skops.io.get_untrusted_types(data=stored) == sorted(cn.skops_types())


@pytest.mark.parametrize(
    "model",
    [
        cn.LinearModel(np.ones(2), 0.5, ("a", "b")),
        cn.ClassificationModel(np.ones((1, 2)), np.zeros(1), ("no", "yes"), ("a", "b")),
        cn.KMeansModel(np.eye(2), ("a", "b"), np.ones(2)),
    ],
)
def test_models_of_plain_columns_need_no_types(model: Any) -> None:
    assert skops.io.get_untrusted_types(data=skops.io.dumps(model.to_sklearn())) == []


def changed(stored: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Change whatever a file of skops says it is made of."""

    def walk(node: Any) -> None:
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            walk(inner)
        if isinstance(node, dict):
            change(node)

    written = BytesIO()
    with ZipFile(BytesIO(stored)) as source, ZipFile(written, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                walk(schema)
                content = json.dumps(schema).encode()
            target.writestr(name, content)
    return written.getvalue()


def test_another_type_is_refused() -> None:
    """Somebody puts a function of the system into a file."""
    stored = skops.io.dumps(fitted(cn.Regression()).to_sklearn())

    def swap(node: dict[str, Any]) -> None:
        if node.get("__class__") == "level_name":
            node |= {"__class__": "system", "__module__": "os"}

    with pytest.raises(UntrustedTypesFoundException, match=r"os\.system"):
        skops.io.loads(changed(stored, swap), trusted=cn.skops_types())


def test_a_step_that_somebody_changed_is_checked() -> None:
    stored = skops.io.dumps(fitted(cn.Regression()).to_sklearn())

    def swap(node: dict[str, Any]) -> None:
        if "number" in str(node.get("content", "")) and node.get("__loader__") == "JsonNode":
            node["content"] = json.dumps(json.loads(node["content"]).replace('"fill":', '"file":'))

    with pytest.raises(cn.InputError, match="A step of a pipeline cannot be read"):
        skops.io.loads(changed(stored, swap), trusted=cn.skops_types())


def test_without_the_list_nothing_of_ours_is_loaded() -> None:
    with pytest.raises(UntrustedTypesFoundException, match="ColumnStep"):
        skops.io.loads(skops.io.dumps(fitted(cn.Regression()).to_sklearn()))


@pytest.mark.parametrize(
    ("does", "learned"),
    [
        ("values", "{"),
        ("values", "null"),
        ("values", "[" * 100_000),
        ("values", 5),
        ("call", NUMBER),
        (["values"], NUMBER),
        ("levels", NUMBER),
        ("shape", '{"kind":"date","column":"x","parts":[["year",{"fill":null}]],"indicator":false}'),
        ("values", NUMBER.replace('"x"', '"x","more":1')),
        ("values", NUMBER.replace('"fill":null', '"fill":1e300')),
        ("levels", json.dumps({"kind": "category", "column": "x", "reference": "a", "levels": ["a"], "rare": []})),
    ],
)
def test_a_step_checks_what_it_is_made_of(does: Any, learned: Any) -> None:
    with pytest.raises(cn.InputError, match=r"cannot be read .* or export the model again"):
        ColumnStep(does, learned)


def test_names_are_text() -> None:
    with pytest.raises(cn.InputError, match="are text"):
        GivenNames("a", 5)  # type: ignore[arg-type]  # as a file may have it


def test_steps_are_shown_without_what_was_learned_and_can_be_copied() -> None:
    words = {"kind": "category", "column": "job", "reference": "secret", "levels": [], "rare": []}
    step = ColumnStep("levels", json.dumps({**words, "unknown": "other", "missing": "error"}))
    assert repr(step) == "ColumnStep('levels' of 'job')"
    assert copy.deepcopy(step)(pd.DataFrame({"job": ["secret", "new"]})).tolist() == [["secret"], ["secret"]]
    assert copy.deepcopy(GivenNames("a", "b"))(None, None).tolist() == ["a", "b"]
    assert repr(GivenNames("a", "b")) == "GivenNames('a', 'b')"
