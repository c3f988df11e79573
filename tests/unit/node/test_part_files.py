"""A party's part of a model is read out of its state folder, without trust."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade import storage
from colonnade.node.part_files import read_part
from colonnade.node.preparation_files import PreparationFiles
from onnx_trial import fed, run_onnx

NAME = "0" * 32
FRAME = pd.DataFrame({"age": [30.0, np.nan, 50.0] * 5, "job": ["clerk", "baker", "clerk"] * 5})
RULES = cn.Prepare({"age": cn.Number(missing=40.0), "job": cn.Category(rare=1)})


def kept(folder: Path, coef: Any = None, centers: Any = None, scale: Any = None) -> tuple[Path, Any]:
    """Keep a part as a party does; and what it prepares."""
    party = cn.Party("bank", FRAME, prepare=RULES)
    assert party.table.preparing is not None
    files = PreparationFiles(folder, lambda _: None)
    fitted = party.table.preparing.fitted(None)
    files.keep(NAME, fitted)
    files.keep_part(NAME, (coef, centers, scale))
    columns = np.array([[30.0, 0, 0], [40.0, 1, 1], [50.0, 0, 0]] * 5)
    return folder / f"part-{NAME}.json", columns


def test_of_one_coefficient_a_column(tmp_path: Path) -> None:
    coef = np.array([0.5, 10.0, 100.0])
    path, columns = kept(tmp_path, coef)
    model = read_part(path, "bank").to_onnx()
    np.testing.assert_allclose(run_onnx(model, fed(model, {"bank": FRAME}))["prediction"], columns @ coef)
    estimator = read_part(path, "").to_sklearn()
    np.testing.assert_allclose(estimator.predict(FRAME), columns @ coef)


def test_of_several_classes(tmp_path: Path) -> None:
    coef = np.arange(9.0).reshape(3, 3)
    path, columns = kept(tmp_path, coef)
    model = read_part(path, "bank").to_onnx()
    np.testing.assert_allclose(run_onnx(model, fed(model, {"bank": FRAME}))["logits"], columns @ coef.T)


def test_of_centres(tmp_path: Path) -> None:
    centers, scale = np.array([[30.0, 0, 0], [40.0, 1, 0]]), np.array([10.0, 1, 2])
    path, columns = kept(tmp_path, None, centers, scale)
    model = read_part(path, "bank").to_onnx()
    expected = np.square((columns[:, None] - centers) / scale).sum(axis=2)
    np.testing.assert_allclose(run_onnx(model, fed(model, {"bank": FRAME}))["squared_distances"], expected)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"prepared": "../../etc/passwd"}, r"prepared-\.\./\.\./etc/passwd\.json is not beside it"),
        ({"prepared": "1" * 32}, "is not beside it"),
        ({"coef": None}, "neither coefficients nor centres"),
        ({"coef": [1.0, 2.0]}, "one finite coefficient a feature"),
        ({"coef": [[1.0, 2.0, 3.0], [1.0]]}, "inhomogeneous"),
        ({"coef": [[1.0, 2.0, 3.0]] * 2}, "A classification of 2 classes"),
        ({"coef": ["x"]}, "Expected `float | array`"),
        ({"centers": [1.0, 2.0, 3.0]}, "needs centres"),
        ({"scale": [0.0, 1.0, 1.0]}, "one positive number"),
        ({"columns": 5}, "Expected `array`"),
    ],
)
def test_what_was_changed_is_refused(change: dict[str, Any], match: str, tmp_path: Path) -> None:
    path, _ = kept(tmp_path, np.ones(3))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(cn.InputError, match=rf"{path.name} is not a readable part of a model: .*{match}"):
        read_part(path, "bank")


def test_columns_of_another_preparation(tmp_path: Path) -> None:
    path, _ = kept(tmp_path, np.ones(3))
    path.write_text(json.dumps({**json.loads(path.read_text()), "columns": ["a", "b", "c"]}))
    for name in ("to_onnx", "to_sklearn"):
        with pytest.raises(cn.InputError, match="'bank' makes other columns"):
            getattr(read_part(path, "bank"), name)()


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = kept(tmp_path, np.ones(3))
    monkeypatch.setattr(storage, "MAX_JSON_BYTES", 50)
    with pytest.raises(cn.InputError, match="50 are the most that is read"):
        read_part(path, "bank")
