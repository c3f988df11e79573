import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn


def make_run(task: Any = None) -> cn.Run[Any]:
    rng = np.random.default_rng(0)
    federation = cn.Federation(cn.split_columns(rng.normal(size=(50, 4)), rng.normal(size=50), [2, 2]))
    return federation.fit(task or cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20), seed=3)


@pytest.mark.parametrize("task", [cn.Regression(l2=1 / 3), cn.KMeans(2)], ids=["regression", "kmeans"])
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, task: Any) -> None:
    run = make_run(task)
    again = cn.Run.load(run.save(tmp_path / "deep" / "run"))
    assert (again.task, again.sampler, again.solver, again.seed) == (run.task, run.sampler, run.solver, run.seed)
    assert (again.roster, again.ledger, again.seconds, again.versions) == (
        run.roster,
        run.ledger,
        run.seconds,
        run.versions,
    )
    for name in run.model.__struct_fields__:
        np.testing.assert_array_equal(getattr(again.model, name), getattr(run.model, name))
    np.testing.assert_array_equal(again.coreset.rows, run.coreset.rows)
    np.testing.assert_array_equal(again.coreset.weights, run.coreset.weights)
    assert again.coreset.total == run.coreset.total
    assert again.diagnostics == run.diagnostics


def test_a_run_without_a_model(tmp_path: Path) -> None:
    federation = cn.Federation(cn.split_columns(np.eye(5), None, [2, 3]))
    run = federation.coreset(cn.KMeans(2), cn.UniformSampling(size=4))
    assert cn.Run.load(run.save(tmp_path / "run")).model is None


def test_saving_again_replaces_the_run_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    make_run().save(tmp_path / "run")
    make_run(cn.KMeans(2)).save(tmp_path / "run")
    assert isinstance(cn.Run.load(tmp_path / "run").model, cn.KMeansModel)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(cn.InputError, match=r"exists and is not a saved run\. Choose a new folder"):
        make_run().save(tmp_path)
    with pytest.raises(cn.InputError, match="exists and is not a saved run"):
        make_run().save(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_folder_with_a_run_json_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"name": "something of npm"}')
    with pytest.raises(cn.InputError, match="exists and is not a saved run"):
        make_run().save(tmp_path)
    ours = make_run().save(tmp_path / "run")
    (ours / "notes.txt").write_text("mine")
    with pytest.raises(cn.InputError, match="exists and is not a saved run"):
        make_run().save(ours)
    assert (ours / "notes.txt").exists()


def test_names_of_any_script_are_kept(tmp_path: Path) -> None:
    federation = cn.Federation([cn.Party("银行-é", np.eye(4)), cn.Party("b", np.ones((4, 1)))])
    run = federation.coreset(cn.KMeans(2), cn.UniformSampling(size=2))
    assert cn.Run.load(run.save(tmp_path / "run")).ledger == run.ledger


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parties", []),
        ("has_model", None),
        ("total_weight", 0.0),
        ("n_rows", 3),
        ("task", {"kind": "regression", "l2": -1}),
        ("unknown", [[[[]]]]),
    ],
)
def test_a_run_that_was_tampered_with(tmp_path: Path, field: str, value: Any) -> None:
    path = make_run().save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, field: value}))
    if field == "unknown":
        cn.Run.load(path)
        (path / "run.json").write_text('{"format": 2, "deep": ' + "[" * 100_000)
    with pytest.raises(cn.InputError):
        cn.Run.load(path)


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert cn.Run.load(make_run().save(tmp_path / "empty")).seed == 3


def test_what_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(cn.InputError, match="is not a readable run"):
        cn.Run.load(tmp_path / "nowhere")
    path = make_run().save(tmp_path / "run")
    (path / "coreset.arrow").write_bytes(b"garbage")
    with pytest.raises(cn.InputError, match=r"is not a readable run: coreset\.arrow: "):
        cn.Run.load(path)
    (path / "run.json").write_text('{"format": 2}')
    with pytest.raises(cn.InputError, match=r"is not a readable run: run\.json: "):
        cn.Run.load(path)


def test_a_ledger_that_is_not_text(tmp_path: Path) -> None:
    path = make_run().save(tmp_path / "run")
    (path / "ledger.json").write_bytes(b"\xff\xfe")
    with pytest.raises(cn.InputError, match="is not a readable run"):
        cn.Run.load(path)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (9, "9 by colonnade .*; this version reads up to 3. Upgrade colonnade"),
        (1, "1 by colonnade .*; this version reads from 2. Read it with the version that wrote it, or run again"),
    ],
)
def test_another_format_is_refused_by_name(tmp_path: Path, number: int, message: str) -> None:
    path = make_run().save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "format": number}))
    with pytest.raises(cn.InputError, match=f"saved in run format {message}"):
        cn.Run.load(path)
    assert cn.Run.load(make_run().save(path)).seed == 3, "it is still a run, and may be replaced"


def test_a_runs_model_is_kept_as_any_model(tmp_path: Path) -> None:
    run = make_run()
    path = run.save(tmp_path / "run")
    assert sorted(file.name for file in path.iterdir()) == [
        "coreset.arrow",
        "ledger.json",
        "model.arrow",
        "model.json",
        "run.json",
    ]
    np.testing.assert_array_equal(cn.LinearModel.load(path).coef_, run.model.coef_)


@pytest.mark.parametrize("name", ["model.json", "model.arrow"])
def test_a_run_whose_model_is_gone_or_damaged(tmp_path: Path, name: str) -> None:
    path = make_run().save(tmp_path / "run")
    (path / name).write_bytes(b"garbage")
    with pytest.raises(cn.InputError, match=f"is not a readable run: {name}: "):
        cn.Run.load(path)
    (path / name).unlink()
    with pytest.raises(cn.InputError, match=f"is not a readable run: .*{name}"):
        cn.Run.load(path)


def test_a_run_without_a_model_replaces_one_with_a_model(tmp_path: Path) -> None:
    federation = cn.Federation(cn.split_columns(np.eye(5), None, [2, 3]))
    path = make_run().save(tmp_path / "run")
    federation.coreset(cn.KMeans(2), cn.UniformSampling(size=4)).save(path)
    assert cn.Run.load(path).model is None
    with pytest.raises(cn.InputError, match=r"is not a readable model: .*model\.json"):
        cn.LinearModel.load(path)


def test_diagnostics_say_how_steady_the_weights_are() -> None:
    found = make_run().diagnostics
    assert found["size"] == 20
    assert 1 <= found["effective_size"] <= 20
    assert found["total_weight"] == 50


def judged_run(task: Any = None) -> cn.Run[Any]:
    rng = np.random.default_rng(0)
    label = (
        np.where(rng.random(200) < 0.5, "yes", "no") if isinstance(task, cn.Classification) else rng.normal(size=200)
    )
    federation = cn.Federation(cn.split_columns(rng.normal(size=(200, 4)), label, [2, 2]))
    task, split = task or cn.Regression(l2=0.1), cn.HoldOut(0.3)
    run = federation.fit(task, sampler=cn.ImportanceSampling(size=80), split=split, seed=3)
    best = federation.fit(task, sampler=cn.AllRows(), split=split)
    judged = [federation.evaluate(each.model, split=split) for each in (run, best)]
    return run.with_findings(judged[0], all_rows=judged[1], certificate=federation.certify(run, rows=100))


@pytest.mark.parametrize("task", [cn.Regression(l2=1 / 3), cn.Classification(l2=0.1), cn.KMeans(2)], ids=str)
def test_findings_are_saved_with_the_run(tmp_path: Path, task: Any) -> None:
    run = judged_run(task)
    again = cn.Run.load(run.save(tmp_path / "run"))
    assert again.findings == run.findings
    assert again.findings.evaluation.n_evaluated == 60
    assert again.findings.excess == run.findings.evaluation.cost / run.findings.all_rows.cost - 1


def test_what_is_found_later_joins_what_was_found_before() -> None:
    run = judged_run()
    other = run.with_findings(run.findings.all_rows)
    assert other.findings.evaluation == run.findings.all_rows
    assert other.findings.certificate == run.findings.certificate
    assert run.findings.evaluation != run.findings.all_rows


def test_a_model_of_all_rows_is_compared_on_the_same_rows_only() -> None:
    run = judged_run()
    sample = msgspec.structs.replace(run.findings.evaluation, n_evaluated=20, cost_interval=(0.0, 9.0))
    other = run.with_findings(sample)
    assert (other.findings.all_rows, other.findings.excess) == (None, None)
    assert run.with_findings(sample, all_rows=run.findings.all_rows).findings.excess is None


def test_what_is_found_when_it_is_first_read_is_not_found_by_adding_findings() -> None:
    rng = np.random.default_rng(0)
    federation = cn.Federation(cn.split_columns(rng.normal(size=(50, 4)), rng.normal(size=50), [2, 2]))
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20))
    judged = run.with_findings(federation.evaluate(run.model))
    assert callable(vars(judged)["errors"])
    assert judged.errors is not None


def test_findings_of_another_kind_are_refused() -> None:
    run = judged_run()
    with pytest.raises(cn.InputError, match=r"`evaluation` is a ClusteringReport.*RegressionReport\. Pass what"):
        run.with_findings(judged_run(cn.KMeans(2)).findings.evaluation)
    with pytest.raises(cn.InputError, match=r"`certificate` is a RegressionReport\. Pass what Federation\.certify"):
        run.with_findings(certificate=run.findings.evaluation)


@pytest.mark.parametrize(
    "written", ['{"evaluation": {"cost": 1}}', "[]", '{"certificate": 3}', '{"evaluation": "fine"}', "{"]
)
def test_findings_that_cannot_be_read_are_named(tmp_path: Path, written: str) -> None:
    folder = judged_run().save(tmp_path / "run")
    (folder / "findings.json").write_text(written)
    with pytest.raises(cn.InputError, match="not a readable run"):
        cn.Run.load(folder)


def test_a_run_is_printed_in_about_ten_lines() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(600, 4))
    label = columns.sum(axis=1) + rng.normal(size=600)
    parties = [cn.Party("northern-district-hospital-trust", columns[:, :2], label=label), cn.Party("b", columns[:, 2:])]
    federation, split = cn.Federation(parties), cn.HoldOut(0.2)
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=100), split=split)
    fresh = str(run)
    assert fresh.startswith("LinearModel of Regression(l2=0.1).\nFrom 2 parties: northern-district-hospital-trust, b;")
    assert "not looked at on others yet" in fresh
    assert "Next: run.with_findings(federation.evaluate(run.model, split=run.split))" in fresh
    evaluation = federation.evaluate(run.model, split=split)
    run = run.with_findings(evaluation, all_rows=evaluation, certificate=federation.certify(run))
    told = " ".join(str(run).split())
    assert f"How good: on 120 held-out rows R2 {evaluation.r2:.4g}" in told
    assert "0 % above a model of all rows" in told
    assert run.findings.certificate is not None
    assert f"Certified: {run.findings.certificate.excess_in_words()}." in told
    assert run.disclosure.headline in told
    for text in (fresh, str(run)):
        assert 7 <= len(text.splitlines()) <= 12
        assert max(map(len, text.splitlines())) <= 80
    assert repr(run).startswith("Run(Regression(l2=0.1, ")


def test_a_coreset_and_all_rows_are_printed_as_what_they_are() -> None:
    federation = cn.Federation(cn.split_columns(np.eye(9, 4), np.arange(9.0), [2, 2]))
    coreset = str(federation.coreset(cn.KMeans(2), cn.UniformSampling(size=5)))
    assert coreset.startswith("A coreset for KMeans(n_clusters=2).\n")
    assert "How good" not in coreset
    assert "Next: federation.fit(task, coreset=run.coreset)" in coreset
    assert "Rows: all 9 that count." in str(federation.fit(cn.Regression(l2=1.0), sampler=cn.AllRows()))
