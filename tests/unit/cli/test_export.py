"""`colonnade export` as a user runs it."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import skops.io

import colonnade as cn
from command import run
from onnx_trial import fed, run_onnx


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(2)
    n = 120
    bank = pd.DataFrame({"age": rng.uniform(18, 80, n), "job": rng.choice(["clerk", "baker"], n)})
    shop = pd.DataFrame({"visits": rng.gamma(2, 5, n)})
    return {"bank": bank.assign(score=bank["age"] + shop["visits"]), "shop": shop}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    parts = tables()
    bank = cn.Party(
        "bank", parts["bank"], label="score", prepare=cn.Prepare({"age": cn.Number(), "job": cn.Category()})
    )
    federation = cn.Federation([bank, cn.Party("shop", parts["shop"])])
    done = federation.fit(cn.Regression(), sampler=cn.AllRows())
    return done.save(tmp_path_factory.mktemp("runs") / "run"), federation.predict(done.model)


def test_a_whole_model_as_onnx(saved: tuple[Path, Any], tmp_path: Path) -> None:
    done = run("export", str(saved[0]), "-o", str(tmp_path / "model.onnx"))
    assert done.returncode == 0, done.stderr
    assert "Inputs: 'age', 'job', 'visits'.\nOutputs: 'prediction'." in done.stderr
    assert stat.S_IMODE((tmp_path / "model.onnx").stat().st_mode) == 0o600
    model = onnx.load(tmp_path / "model.onnx")
    np.testing.assert_allclose(run_onnx(model, fed(model, tables()))["prediction"], saved[1], rtol=1e-6)


def test_parts_as_onnx(saved: tuple[Path, Any], tmp_path: Path) -> None:
    total = cn.Run.load(saved[0]).model.intercept_
    for party, inputs in (("bank", ["age", "job"]), ("shop", ["visits"])):
        file = tmp_path / f"{party}.onnx"
        done = run("export", str(saved[0]), "--party", party, "--out", str(file), "--json")
        told = json.loads(done.stdout)
        assert told == {
            "file": str(file),
            "bytes": file.stat().st_size,
            "format": "onnx",
            "inputs": inputs,
            "outputs": ["prediction"],
        }
        model = onnx.load(file)
        total = total + run_onnx(model, fed(model, tables()))["prediction"]
    np.testing.assert_allclose(total, saved[1], rtol=1e-6)


def test_skops(saved: tuple[Path, Any], tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    done = run("export", str(saved[0]), "-o", str(file))
    assert f"skops.io.load({str(file)!r}, trusted=colonnade.skops_types())" in done.stderr
    estimator = skops.io.load(file, trusted=cn.skops_types())
    both = pd.concat(tables().values(), axis=1)
    np.testing.assert_allclose(estimator.predict(both), saved[1], rtol=1e-9)
    told = json.loads(
        run("export", str(saved[0]), "--party", "shop", "-o", str(tmp_path / "shop.skops"), "--json").stdout
    )
    assert (told["format"], told["trusted"]) == ("skops", [])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("-o", "model.pkl"), "model.pkl ends in none of: .onnx, .skops"),
        (("-o", "model"), "ends in none of"),
        (("-o", "no/such/folder.onnx"), "Cannot write"),
        (("-o", "a.onnx", "--party", "nobody"), "There is no party 'nobody'"),
    ],
)
def test_what_cannot_be_exported(arguments: tuple[str, ...], match: str, saved: tuple[Path, Any]) -> None:
    done = run("export", str(saved[0]), *arguments)
    assert done.returncode == 3
    assert match in done.stderr


def test_nothing_is_written_over(saved: tuple[Path, Any], tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_text("mine")
    done = run("export", str(saved[0]), "-o", str(file))
    assert (done.returncode, file.read_text()) == (3, "mine")
    assert "is there already" in done.stderr


def test_a_file_that_is_no_part(saved: tuple[Path, Any], tmp_path: Path) -> None:
    done = run("export", str(saved[0] / "run.json"), "-o", str(tmp_path / "a.onnx"))
    assert done.returncode == 3
    assert "run.json is not a readable part of a model" in done.stderr
    assert not (tmp_path / "a.onnx").exists()
