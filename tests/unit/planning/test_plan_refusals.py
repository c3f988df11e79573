"""What a plan refuses: limits without sense, budgets that are too small, other tasks, parties and files."""

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.planning.records import fingerprint
from random_parties import make_parties
from whole_tables import held


@pytest.fixture(scope="module")
def federation() -> cn.Federation:
    return cn.Federation(make_parties(3000))


@pytest.fixture(scope="module")
def plan(federation: cn.Federation) -> cn.Plan:
    return federation.plan(cn.Regression(), budget_bytes=9_000)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "A plan needs a limit"),
        ({"budget_bytes": 9_000, "target_excess": 0.1}, "may contradict each other"),
        ({"budget_bytes": 0}, "budget_bytes must be a whole number of 1 or more, got 0"),
        ({"budget_bytes": -5}, "budget_bytes must be a whole number"),
        ({"budget_bytes": math.nan}, "budget_bytes must be a whole number"),
        ({"budget_bytes": "1 MB"}, "budget_bytes must be a whole number"),
        ({"target_excess": 0.0}, "target_excess must be above 0"),
        ({"target_excess": -0.1}, "target_excess must be a number"),
        ({"target_excess": math.nan}, "target_excess must be a number"),
        ({"target_excess": math.inf}, "target_excess must be a number"),
        ({"max_rounds": 0}, "max_rounds must be a whole number"),
        ({"budget_bytes": 9_000, "max_rounds": 1}, "every plan takes 4 or more. Allow 4"),
        ({"budget_bytes": 9_000, "pilot": 10}, "pilot must be a whole number of 150 or more, got 10"),
        ({"budget_bytes": 9_000, "pilot": "few"}, "pilot must be a whole number"),
        ({"budget_bytes": 9_000, "seed": -1}, "seed must be a whole number"),
    ],
)
def test_limits_that_make_no_sense(federation: cn.Federation, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(cn.InputError, match=re.escape(message)):
        federation.plan(cn.Regression(), **limits)


def test_nothing_is_sent_for_a_budget_that_not_even_a_pilot_fits(federation: cn.Federation) -> None:
    position = len(federation.ledger)
    with pytest.raises(cn.InputError, match="too small for any plan after a pilot of 150 rows") as caught:
        federation.plan(cn.Regression(), budget_bytes=500)
    assert len(federation.ledger) == position
    needed = int(re.search(r"Allow ([\d,]+)\.", str(caught.value))[1].replace(",", ""))  # type: ignore[index]
    assert federation.plan(cn.Regression(), budget_bytes=needed).budget_bytes == needed


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(n_clusters=5)], ids=str)
def test_the_least_budget_that_works_is_the_one_named(federation: cn.Federation, task: Any) -> None:
    position = len(federation.ledger)
    with pytest.raises(cn.InputError, match=r"too small for any plan after a pilot of 200 rows") as caught:
        federation.plan(task, budget_bytes=500, pilot=200)
    least = int(re.search(r"Allow ([\d,]+)", str(caught.value))[1].replace(",", ""))  # type: ignore[index]
    with pytest.raises(cn.InputError, match="too small for any plan"):
        federation.plan(task, budget_bytes=least - 1, pilot=200)
    assert len(federation.ledger) == position
    for seed in range(3):
        plan = federation.plan(task, budget_bytes=least, pilot=200, seed=seed)
        assert federation.fit(task, plan=plan, seed=seed).ledger.bytes <= least


def test_another_task_or_other_parties(federation: cn.Federation, plan: cn.Plan) -> None:
    with pytest.raises(cn.InputError, match=r"The plan is for Regression\(l2=0.0.*not for Regression\(l2=0.1"):
        federation.fit(cn.Regression(l2=0.1), plan=plan)
    position = len(federation.ledger)
    fewer = cn.Federation(make_parties(2999))
    with pytest.raises(
        cn.InputError, match=r"here is party1 \(2,999 rows of .* where the plan has party1 \(3,000 rows"
    ):
        fewer.fit(cn.Regression(), plan=plan)
    two = cn.Federation(make_parties(3000, (2, 3)))
    with pytest.raises(cn.InputError, match="other parties: here is party2"):
        two.fit(cn.Regression(), plan=plan)
    assert len(federation.ledger) == position


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"sampler": cn.UniformSampling(10)}, "sampler"),
        ({"solver": cn.Saga()}, "solver"),
        ({"split": cn.HoldOut(0.1)}, "split"),
        ({"coreset": cn.Coreset(np.array([1]), np.ones(1), n_rows=3000, total_weight=3000.0)}, "coreset"),
    ],
)
def test_a_plan_decides_alone(federation: cn.Federation, plan: cn.Plan, given: dict[str, Any], name: str) -> None:
    with pytest.raises(cn.InputError, match=f"A plan decides the {name}. Leave it out"):
        federation.fit(cn.Regression(), plan=plan, **given)
    if name != "split":
        with pytest.raises(cn.InputError, match=f"A limit decides the {name}. Leave it out"):
            federation.fit(cn.Regression(), budget_bytes=9_000, **given)


def test_one_limit_is_enough(federation: cn.Federation, plan: cn.Plan) -> None:
    with pytest.raises(cn.InputError, match="A limit decides the plan"):
        federation.fit(cn.Regression(), budget_bytes=9_000, plan=plan)
    with pytest.raises(cn.InputError, match="may contradict each other"):
        federation.fit(cn.Regression(), budget_bytes=9_000, target_excess=0.1)


def test_something_else_is_no_plan(federation: cn.Federation) -> None:
    with pytest.raises(cn.UnsupportedError, match="is not a plan"):
        federation.fit(cn.Regression(), plan={"size": 5})  # type: ignore[arg-type]
    with pytest.raises(cn.UnsupportedError, match="is not a task"):
        federation.plan("regression", budget_bytes=9_000)  # type: ignore[arg-type]
    with pytest.raises(cn.InputError, match="needs a label"):
        cn.Federation(cn.split_columns(np.eye(9), None, [4, 5])).plan(cn.Regression(), budget_bytes=9_000)


def changed(plan: cn.Plan, **values: Any) -> bytes:
    content = json.loads(msgspec.json.encode(plan))
    for path, value in values.items():
        *parents, last = path.split("__")
        inner = content
        for name in parents:
            inner = inner[name]
        inner[last] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": 7}, "was changed after it was written"),
        ({"chosen__sampler__size": 10**6}, "was changed after it was written"),
        ({"pilot": []}, "was changed after it was written"),
        ({"format": 99}, "was changed after it was written, or is of another version"),
        ({"chosen__solver__kind": "pickle"}, "not a readable plan: Invalid value 'pickle'"),
        ({"chosen__solver__step": -1.0}, "not a readable plan: step must be"),
        ({"chosen__excess__mean": "small"}, "not a readable plan: Expected `float`"),
        ({"chosen__bytes": -1}, "not a readable plan: Expected `int` >= 0"),
        ({"run": "rm"}, "unknown field `run`"),
    ],
)
def test_a_file_that_was_tampered_with(plan: cn.Plan, tmp_path: Path, values: dict[str, Any], message: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(changed(plan, **values))
    with pytest.raises(cn.InputError, match=re.escape(message)):
        cn.Plan.load(file)


def test_files_that_are_no_plans(plan: cn.Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    for content in (b"", b"\x80\x04", b"[]", b"{}", plan.save(file).read_bytes()[:-40]):
        file.write_bytes(content)
        with pytest.raises(cn.InputError, match="is not a readable plan"):
            cn.Plan.load(file)
    with pytest.raises(cn.InputError, match="is not a readable plan"):
        cn.Plan.load(tmp_path / "nowhere.json")
    with pytest.raises(cn.InputError, match="cannot be saved"):
        plan.save(tmp_path)
    assert plan.fingerprint == fingerprint(plan)


def test_a_refusal_of_the_pilot_is_the_owners() -> None:
    first, *others = make_parties(3000)
    shy = cn.Party("party1", held(first.table), policy=cn.Policy(level="open", never=["moments"]))
    with pytest.raises(cn.PolicyRefusedError, match="never reveals moments"):
        cn.Federation([shy, *others]).plan(cn.Regression(), budget_bytes=9_000)
