"""The `[[job]]` tables of federation.toml: what is read, what is refused before anybody dials, what is done."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.node.files import read_federation_file, read_party_file
from colonnade.server_jobs import read_jobs
from network_trial import BANK

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 100},
    "out": "run",
}


@pytest.mark.parametrize("name", ["spot_check", "audit"])
@pytest.mark.parametrize("do", ["fit", "coreset"])
def test_a_job_spot_checks_its_committed_draws(tmp_path: Path, do: str, name: str) -> None:
    """By the name that it had in 0.1.0, too."""
    table = FIT | {"do": do, "sampler": {"kind": "importance", "size": 30, "draws": "committed"}, name: 2}
    (job,) = read_jobs([table], tmp_path / "federation.toml")
    X = np.random.default_rng(0).normal(size=(60, 3))
    job.play(cn.Federation(cn.split_columns(X, X[:, 0], [1, 2])), tmp_path)
    assert min(cn.Run.load(tmp_path / "run").spot_check().opened.values()) >= 2


def test_the_examples_can_be_read() -> None:
    folder = BANK.parent / "network"
    file = read_federation_file(folder / "federation.toml")
    assert [type(job).__name__ for job in read_jobs(file.job, folder / "federation.toml")] == [
        "FitJob",
        "EvaluateJob",
        "PredictJob",
    ]
    for name in file.parties:
        read = read_party_file(folder / f"{name}.toml")
        assert read.name == name
        assert read.server == file.listen
        assert Path(str(read.data.file)).exists()


def test_a_spot_check_of_draws_that_are_not_committed_is_refused_before_anybody_dials(tmp_path: Path) -> None:
    with pytest.raises(cn.UnsupportedError, match="commits to nothing"):
        read_jobs([FIT | {"spot_check": 2}], tmp_path / "federation.toml")


def test_a_spot_check_is_named_once_and_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(cn.InputError, match=r"are one thing\. Keep `spot_check`"):
        read_jobs([FIT | {"spot_check": 2, "audit": 2}], tmp_path / "federation.toml")
    with pytest.raises(cn.InputError, match=re.escape("[[job]] number 1, spot_check must be a whole number, not text")):
        read_jobs([FIT | {"spot_check": "some"}], tmp_path / "federation.toml")


# What 0.1.0 hashed of these jobs to know its progress with them: a server that is upgraded must not do them again.
JOBS_OF_0_1_0 = (
    b'[{"do":"coreset","task":{"kind":"kmeans","n_clusters":3,"n_starts":10,"standardize":false},"sampler":{"kind":'
    b'"importance","size":30,"uniform_share":0.0,"draws":"committed","round_scores":false,"scores":null,'
    b'"allow_two_parties":false,"totals":"checked"},"out":"coreset","split":null,"seed":0,"audit":2},{"do":"fit","task":'
    b'{"kind":"regression","l2":0.0,"l1":0.0,"fit_intercept":true,"standardize":false},"out":"run","sampler":{"kind":'
    b'"all"},"solver":null,"plan":null,"split":null,"seed":0,"audit":null}]'
)


def test_progress_with_jobs_of_an_earlier_version_is_known(tmp_path: Path) -> None:
    committed = {"kind": "importance", "size": 30, "draws": "committed"}
    tables: list[dict[str, Any]] = [
        {"do": "coreset", "task": {"kind": "kmeans", "n_clusters": 3}, "sampler": committed, "out": "coreset"},
        {"do": "fit", "task": {"kind": "regression"}, "sampler": {"kind": "all"}, "out": "run"},
    ]
    jobs = read_jobs([{**tables[0], "spot_check": 2}, tables[1]], tmp_path / "federation.toml")
    assert msgspec.json.encode(jobs) == JOBS_OF_0_1_0


PLANNED: dict[str, object] = {"do": "fit", "task": {"kind": "regression"}, "plan": "plan.json", "out": "run"}


def planned_federation(tmp_path: Path) -> tuple[cn.Federation, cn.Plan]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 6))
    federation = cn.Federation(cn.split_columns(X, X.sum(axis=1) + rng.normal(size=3_000), [2, 2, 2]))
    plan = federation.plan(cn.Regression(), budget_bytes=9_000, pilot=150)
    plan.save(tmp_path / "plan.json")
    return federation, plan


def test_a_job_carries_out_a_saved_plan(tmp_path: Path) -> None:
    """The run is that of `fit --plan`, with what was planned among its facts and the pilot on its ledger."""
    federation, plan = planned_federation(tmp_path)
    (job,) = read_jobs([PLANNED | {"seed": 5}], tmp_path / "federation.toml")
    told = job.play(federation, tmp_path)
    saved, wanted = cn.Run.load(tmp_path / "run"), federation.fit(cn.Regression(), plan=plan, seed=5)
    assert saved.model.coef_.tobytes() == wanted.model.coef_.tobytes()
    assert (saved.sampler, saved.solver, saved.facts) == (plan.sampler, plan.solver, wanted.facts)
    assert (told["planned_bytes"], told["bytes"]) == (plan.bytes, wanted.ledger.bytes)
    assert told["bytes"] <= 9_000


def test_a_job_plans_and_fits_within_a_budget(tmp_path: Path) -> None:
    """In one run, as `fit(budget_bytes=)` does."""
    federation, _ = planned_federation(tmp_path)
    table = {"do": "fit", "task": {"kind": "regression"}, "budget_bytes": 12_000, "out": "run", "seed": 5}
    (job,) = read_jobs([table], tmp_path / "federation.toml")
    told = job.play(federation, tmp_path)
    saved, wanted = cn.Run.load(tmp_path / "run"), federation.fit(cn.Regression(), budget_bytes=12_000, seed=5)
    assert saved.model.coef_.tobytes() == wanted.model.coef_.tobytes()
    assert (saved.sampler, saved.solver, saved.facts) == (wanted.sampler, wanted.solver, wanted.facts)
    assert told["bytes"] == wanted.ledger.bytes <= 12_000
    assert told["planned_bytes"] == pytest.approx(told["bytes"], rel=0.03)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": FIT["sampler"]}, "by a `sampler`, as a `plan` says, or as it finds best within `budget_bytes`"),
        ({"solver": {"kind": "central"}}, "A plan decides sampler and solver: leave the solver out"),
        ({"plan": None}, "draws its rows by a `sampler`, as a `plan` says"),
        ({"budget_bytes": 60_000}, "give one of them"),
        ({"plan": "missing.json"}, "missing.json is not a readable plan"),
        ({"split": {"kind": "fraction", "fraction": 0.2}}, "The job holds out HoldOut"),
        ({"spot_check": 2}, "commits to nothing"),
    ],
)
def test_a_planned_job_that_cannot_be_done_is_refused_before_anybody_dials(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    planned_federation(tmp_path)
    with pytest.raises(cn.InputError, match=re.escape(message)):
        read_jobs([PLANNED | changes], tmp_path / "federation.toml")


def test_a_plan_for_another_task_is_refused(tmp_path: Path) -> None:
    federation, _ = planned_federation(tmp_path)
    (job,) = read_jobs([PLANNED | {"task": {"kind": "regression", "l2": 0.1}}], tmp_path / "federation.toml")
    with pytest.raises(cn.InputError, match=r"The plan is for Regression\(l2=0\.0"):
        job.play(federation, tmp_path)


@pytest.mark.parametrize(
    "job", [{"do": "predict", "model": "run"}, {"do": "evaluate", "model": "run"}, {"do": "certify", "run": "run"}]
)
def test_where_nothing_can_be_written_nobody_is_asked(tmp_path: Path, job: dict[str, str]) -> None:
    federation, _ = planned_federation(tmp_path)
    federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=50)).save(tmp_path / "run")
    for method in ("predict", "evaluate", "certify"):
        setattr(federation, method, Mock(side_effect=AssertionError("somebody was asked")))
    for out in ("run", "missing/p.json"):
        (read,) = read_jobs([{**job, "out": out}], tmp_path / "federation.toml")
        with pytest.raises(cn.InputError, match=r"Nothing can be written to .* it is a folder, or its folder does not"):
            read.play(federation, tmp_path)


def test_a_job_delivers_predictions_to_a_party_under_masks(tmp_path: Path) -> None:
    """The way to predictions for parties at level strict, where the server may not see parts of them."""
    X = np.random.default_rng(0).normal(size=(200, 6))
    strict = cn.Policy(level="strict")
    parties = [cn.Party(name, X[:, 2 * i : 2 * i + 2], policy=strict) for i, name in enumerate(["bank", "shop"])]
    parties.append(cn.Party("club", X[:, 4:], label=X.sum(axis=1), policy=strict))
    federation = cn.Federation(parties)
    run = federation.fit(
        cn.Regression(), sampler=cn.ImportanceSampling(size=120, scores="secure"), solver=cn.SecureGram()
    )
    run.save(tmp_path / "run")
    (job,) = read_jobs([{"do": "deliver", "model": "run", "to": "shop", "rows": [7, 3]}], tmp_path / "federation.toml")
    assert job.play(federation, tmp_path) == {"rows": 2, "delivered_to": "shop"}
    received = federation.received("shop")
    assert received is not None
    assert received.rows.tolist() == [3, 7]
    assert np.allclose(received.predictions, run.model.predict(X[[3, 7]]))
    (shown,) = read_jobs([{"do": "predict", "model": "run", "to": "shop"}], tmp_path / "federation.toml")
    with pytest.raises(cn.PolicyRefusedError, match="Use deliver, or evaluate with by="):
        shown.play(federation, tmp_path)
