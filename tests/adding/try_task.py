"""Played by test_adding.py in a copy of the library that has the toy task: every verb and every command knows it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import colonnade as cn
from colonnade import Median  # it is in the copy
from colonnade.cli.main import app
from colonnade.tasks import load_model

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


def in_python() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(101, 4)), rng.normal(size=101)
    federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    run: cn.Run[Any] = federation.fit(Median(), sampler=cn.ImportanceSampling(size=60), split=cn.HoldOut(0.2))
    model = run.model
    assert cn.Run.load(run.save("kept")).model == load_model(model.save("model")) == model
    assert federation.predict(model, rows=[3, 1]).tolist() == [model.value] * 2
    assert np.isclose(federation.evaluate(model).cost, np.abs(y - model.value).sum())
    for words, ask in (
        ("planned", lambda: federation.plan(Median(), budget_bytes=10**6)),
        ("diagnosed", lambda: federation.diagnose(Median())),
    ):
        with pytest.raises(cn.UnsupportedError) as caught:
            ask()
        known = "Regression | Classification | KMeans"
        assert str(caught.value) == f"Median() is not a task that can be {words}. Pass one of: {known}."


def by_command() -> None:
    rng = np.random.default_rng(0)
    incomes = rng.normal(size=51).round(3)
    lines = [f"{a},{y}" for a, y in zip(rng.normal(size=51), incomes, strict=True)]
    Path("bank.csv").write_text("\n".join(["age,income", *lines]) + "\n")
    Path("shop.csv").write_text("\n".join(["visits", *map(str, rng.normal(size=51))]) + "\n")
    Path("job.toml").write_text(JOB)

    def command(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.exception)
        return done.stdout

    middle = f"median  {np.median(incomes):.6g}"
    assert middle in command("fit", "job.toml", "--out", "run")
    assert middle in command("report", "run")
    assert "On 10 held-out rows: absolute errors of" in command("fit", "job.toml", "--test-fraction", "0.2")
    assert f"0,{np.median(incomes)}" in command("predict", "job.toml", "run")
    evaluated = json.loads(command("evaluate", "job.toml", "run", "--json"))
    assert np.isclose(evaluated["cost"], np.abs(incomes - np.median(incomes)).sum())


in_python()
by_command()
