"""A task is one file and one line of the registry: a copy of the library that has one more goes through everything."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROJECT = Path(__file__).parents[3]
REGISTRY = "AnyTask = Regression | KMeans\n"
JOB = """
[[party]]
name = "bank"
file = "bank.csv"
label = "income"

[[party]]
name = "shop"
file = "shop.csv"

[task]
kind = "median"

[sampler]
kind = "all"
"""
IN_PYTHON = """
import json, sys
import numpy as np
import colonnade as cn
from colonnade.tasks import load_model
from colonnade.tasks.median import Median

rng = np.random.default_rng(0)
X, y = rng.normal(size=(101, 4)), rng.normal(size=101)
federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
run = federation.fit(Median(), sampler=cn.ImportanceSampling(size=60), split=cn.HoldOut(0.2))
again = cn.Run.load(run.save(sys.argv[1]))
refused = []
for verb in (federation.plan, federation.diagnose):
    try:
        verb(Median(), **({"budget_bytes": 10**6} if verb == federation.plan else {}))
    except cn.UnsupportedError as error:
        refused.append(str(error))
print(json.dumps({
    "same": again.model == run.model == load_model(run.model.save(sys.argv[2])),
    "predicted": federation.predict(run.model, rows=[3, 1]).tolist(),
    "cost": federation.evaluate(run.model).cost,
    "value": run.model.value,
    "expected": float(np.abs(y - run.model.value).sum()),
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the library, add the task's file, and its name to the registry."""
    source = tmp_path_factory.mktemp("library")
    shutil.copytree(PROJECT / "src" / "colonnade", source / "colonnade")
    tasks = source / "colonnade" / "tasks"
    shutil.copy(Path(__file__).with_name("toy_median.py"), tasks / "median.py")
    registry = (tasks / "registry.py").read_text()
    assert registry.count(REGISTRY) == 1
    line = "from colonnade.tasks.median import Median; AnyTask = Regression | KMeans | Median\n"
    (tasks / "registry.py").write_text(registry.replace(REGISTRY, line))
    return source


def python(library: Path, *words: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(library)}
    found = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_it_goes_through_the_library(library: Path, tmp_path: Path) -> None:
    found: dict[str, Any] = json.loads(python(library, "-c", IN_PYTHON, "run", "model", cwd=tmp_path))
    assert found["same"]
    assert found["predicted"] == [found["value"]] * 2
    assert found["cost"] == pytest.approx(found["expected"])
    assert found["refused"] == [
        f"Median() is not a task that can be {verb}. Pass one of: Regression | KMeans."
        for verb in ("planned", "diagnosed")
    ]


def test_it_goes_through_the_command(library: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    incomes = rng.normal(size=51).round(3)
    lines = [f"{a},{y}" for a, y in zip(rng.normal(size=51), incomes, strict=True)]
    (tmp_path / "bank.csv").write_text("\n".join(["age,income", *lines]) + "\n")
    (tmp_path / "shop.csv").write_text("\n".join(["visits", *map(str, rng.normal(size=51))]) + "\n")
    (tmp_path / "job.toml").write_text(JOB)

    def command(*words: str) -> str:
        return python(library, "-m", "colonnade", *words, cwd=tmp_path)

    middle = f"median  {np.median(incomes):.6g}"
    assert middle in command("fit", "job.toml", "--out", "run")
    assert middle in command("report", "run")
    assert "On 10 held-out rows: absolute errors of" in command("fit", "job.toml", "--test-fraction", "0.2")
    assert f"0,{np.median(incomes)}" in command("predict", "job.toml", "run")
    evaluated = json.loads(command("evaluate", "job.toml", "run", "--json"))
    assert evaluated["cost"] == pytest.approx(np.abs(incomes - np.median(incomes)).sum())
