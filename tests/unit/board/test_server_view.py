"""What a server's board says of a state folder, in words."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from board_trial import MARKUP, server_files, write_status
from colonnade.board import server_view
from colonnade.board.app import Body
from colonnade.board.saved_jobs import table_of_plan
from colonnade.board.server_board import ServerBoard
from colonnade.board.server_view import ServerView
from colonnade.errors import InputError
from colonnade.node.cancelling import CANCELLED
from colonnade.node.log import EventLog
from colonnade.node.runs import RunStatus
from colonnade.node.state_folder import StateFolder
from colonnade.server_queue import Queue

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 100},
    "out": "run",
}


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")


def a_run(name: str = "fit-1", **facts: Any) -> RunStatus:
    return RunStatus(name, "fit", "regression", "importance", "central", ago(60), **facts)


def test_a_server_that_never_ran(tmp_path: Path) -> None:
    found = ServerView(server_files(tmp_path)).snapshot()
    assert found["headline"]["words"] == "The server is not running."
    assert [(each["name"], each["tone"], each["seen"]) for each in found["parties"]] == [
        ("bank", "unknown", None),
        ("shop", "unknown", None),
    ]
    assert not (tmp_path / "server-state").exists(), "to look changes nothing"


def test_parties_and_runs_in_words(tmp_path: Path) -> None:
    view = ServerView(server_files(tmp_path, ("bank", "shop", "phone")))
    running = a_run(phase="solving", round=12, bytes_sent={"bank": 1200}, bytes_received={"bank": 2_000_000})
    write_status(tmp_path, running, connected=["bank", "shop"], missing=["phone"], awaited=["phone", "shop"])
    log = EventLog(tmp_path / "server-state" / "log.jsonl")
    log.write("joined", party="phone", runs=[])
    log.write("left", party="phone")
    log.close()
    held = StateFolder(tmp_path / "server-state")
    try:
        found = view.snapshot()
    finally:
        held.release()
    assert found["headline"] == {"tone": "late", "words": "Waiting for phone to connect."}
    states = {each["name"]: each["state"] for each in found["parties"]}
    assert states == {"bank": "connected", "shop": "connected, at work", "phone": "late: the run waits for it"}
    assert found["parties"][2]["seen"].startswith(str(datetime.now(UTC).year))
    (run,) = found["runs"]
    assert (run["title"], run["status"], run["phase"], run["round"]) == (
        "Learn a model: regression",
        "running",
        "solving",
        12,
    )
    assert run["bytes"] == [{"party": "bank", "sent": "1.2 kB", "received": "2.0 MB"}]
    assert (run["can_cancel"], run["has_report"], run["left"]) == (True, False, None)


def test_a_party_that_gives_no_answer_is_late_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = ServerView(server_files(tmp_path))
    write_status(tmp_path, a_run(phase="solving", round=3), connected=["bank", "shop"], awaited=["shop"])
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    held = StateFolder(tmp_path / "server-state")
    try:
        assert view.snapshot()["parties"][1]["state"] == "connected, at work"
        now[0] += 40
        assert view.snapshot()["parties"][1]["state"] == "late: no answer for 40 s"
        write_status(tmp_path, a_run(phase="solving", round=4), connected=["bank", "shop"], awaited=["shop"])
        assert view.snapshot()["parties"][1]["state"] == "connected, at work"
    finally:
        held.release()


def test_time_left_where_rounds_are_counted(tmp_path: Path) -> None:
    view = ServerView(server_files(tmp_path))
    write_status(tmp_path, a_run(phase="aligning", round=7, rounds=13), connected=["bank", "shop"])
    held = StateFolder(tmp_path / "server-state")
    try:
        (run,) = view.snapshot()["runs"]
    finally:
        held.release()
    assert (run["progress"], run["left"]) == (0.462, "about 1 min left")


def test_what_a_killed_server_left_is_not_called_running(tmp_path: Path) -> None:
    view = ServerView(server_files(tmp_path))
    write_status(tmp_path, a_run(phase="solving"), connected=["bank"], awaited=["bank"], owners_asked=["shop"])
    found = view.snapshot()
    assert found["runs"][0]["status"] == "interrupted"
    assert (found["approvals"], {each["tone"] for each in found["parties"]}) == ([], {"unknown"})


def test_of_a_policy_only_what_a_refusal_said_is_shown(tmp_path: Path) -> None:
    view = ServerView(server_files(tmp_path, ("bank", MARKUP)))
    said = f"Party {MARKUP!r} did not answer OpenJob: its owner's policy has {MARKUP}. Ask for less."
    write_status(tmp_path, a_run(status="failed", error=said), a_run("fit-2", status="failed", error=CANCELLED))
    found = view.snapshot()
    assert found["parties"][0]["policy"] == server_view.NOT_TOLD
    assert found["parties"][1]["policy"] == f"in fit-1 it refused: its owner's policy has {MARKUP}. Ask for less."
    assert [run["status"] for run in found["runs"]] == ["cancelled", "failed"]
    assert found["runs"][1]["error"] == said


def test_no_party_refuses_in_the_name_of_another(tmp_path: Path) -> None:
    view = ServerView(server_files(tmp_path))
    for padding in ("", "x" * 70):
        said = f"Party 'shop', column '{padding}': Party 'bank' did not answer OpenJob: its owner's policy refuses all."
        write_status(tmp_path, a_run(status="failed", error=said))
        assert [each["policy"] for each in view.snapshot()["parties"]] == [server_view.NOT_TOLD] * 2


def test_saved_jobs_are_started_by_what_they_are_not_by_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = ServerBoard(server_files(tmp_path, job=[FIT]))
    monkeypatch.setattr(board, "_start_server", lambda _state: None)
    (job,) = board.snapshot()["jobs"]
    start = board.acts()["start"]
    assert "starting" in start(Body(job=job["key"]))
    (queued,) = Queue(tmp_path / "server-state").waiting()
    assert (queued.job, queued.begun) == (FIT, "")
    assert board.snapshot()["queue"][0]["title"] == "Learn a model: regression"
    server_files(tmp_path, job=[FIT | {"seed": 1}])
    for body in (Body(job=job["key"]), Body(job="../x"), Body(), Body(job=job["key"], plan="x.json")):
        with pytest.raises(InputError):
            start(body)
    assert len(Queue(tmp_path / "server-state").waiting()) == 1
    board.acts()["unqueue"](Body(job=queued.name))
    assert board.snapshot()["queue"] == []
    with pytest.raises(InputError, match="No job"):
        board.acts()["unqueue"](Body(job="../status"))


def test_a_job_that_cannot_be_done_is_refused_before_it_is_queued(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "something else").write_text("")
    board = ServerBoard(server_files(tmp_path, job=[FIT]))
    with pytest.raises(InputError, match="not a saved run"):
        board.acts()["start"](Body(job=board.snapshot()["jobs"][0]["key"]))
    assert not (tmp_path / "server-state" / "queue").exists()


@pytest.fixture(scope="module")
def plan() -> cn.Plan:
    X = np.random.default_rng(0).normal(size=(4000, 4))
    y = X @ np.ones(4) + np.random.default_rng(1).normal(size=4000)
    return cn.Federation(cn.split_columns(X, y, [2, 2])).plan(cn.Regression(), budget_bytes=20_000)


def test_plans_beside_the_file_can_be_started_and_no_others(tmp_path: Path, plan: cn.Plan) -> None:
    (tmp_path / "here").mkdir()
    path = server_files(tmp_path / "here")
    plan.save(tmp_path / "here" / "cheap.json")
    plan.save(tmp_path / "elsewhere.json")
    (tmp_path / "here" / "link.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "here" / "other.json").write_text(json.dumps({"not": "a plan"}))
    (found,) = ServerView(path).snapshot()["plans"]
    assert (found["name"], found["title"]) == ("cheap.json", "Learn a model: regression")
    table = table_of_plan(path, "cheap.json")
    assert table == {"do": "fit", "task": msgspec.to_builtins(plan.task), "plan": "cheap.json", "out": "cheap-run"}
    (tmp_path / "here" / "cheap-run").mkdir()
    assert table_of_plan(path, "cheap.json")["out"] == "cheap-run-2"
    for name in ("../elsewhere.json", "link.json", "other.json", str(tmp_path / "elsewhere.json"), "", "cheap.json/"):
        with pytest.raises(InputError):
            table_of_plan(path, name)


@pytest.mark.parametrize("name", ["fit-2", "../lock", "fit-1/../fit-1", "", "x" * 5000])
def test_only_a_run_that_is_under_way_is_cancelled(tmp_path: Path, name: str) -> None:
    board = ServerBoard(server_files(tmp_path))
    write_status(tmp_path, a_run(), a_run("fit-2", status="done"))
    with pytest.raises(InputError, match="under way"):
        board.acts()["cancel"](Body(run=name))
    assert "as soon as a server" in board.acts()["cancel"](Body(run="fit-1"))
    assert [file.name for file in (tmp_path / "server-state").glob("*.cancel")] == ["fit-1.cancel"]
    assert board.snapshot()["runs"][1]["is_cancelling"]


def test_reports_are_of_runs_that_the_server_saved(tmp_path: Path) -> None:
    board = ServerBoard(server_files(tmp_path))
    X = np.random.default_rng(0).normal(size=(60, 3))
    table = pa.table({MARKUP: X[:, 0], "b": X[:, 1], "spent": X[:, 2]})
    parties = [cn.Party("bank", table, label="spent"), cn.Party("shop", X)]
    run = cn.Federation(parties).fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(30), solver=cn.Central())
    run.save(tmp_path / "saved")
    done = a_run(status="done", saved=str(tmp_path / "saved"))
    gone = a_run("fit-2", status="done", saved=str(tmp_path / "gone"))
    write_status(tmp_path, done, gone, a_run("fit-3", status="done"))
    assert [each["has_report"] for each in board.snapshot()["runs"]] == [False, False, True]
    page = board.report("fit-1")
    assert page is not None
    assert MARKUP not in page
    for name in ("fit-2", "fit-3", "fit-4", "../saved", str(tmp_path / "saved")):
        assert board.report(name) is None


def test_what_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="the extra metrics is not here")
    board = ServerBoard(server_files(tmp_path, ("bank", 'sh"op\n')))
    write_status(tmp_path, a_run(round=3, bytes_sent={"bank": 7}), a_run("fit-2", status="failed"), connected=["bank"])
    held = StateFolder(tmp_path / "server-state")
    try:
        text = board.metrics().decode()
    finally:
        held.release()
    for line in (
        'colonnade_runs{status="running"} 1.0',
        'colonnade_bytes{direction="sent",party="bank"} 7.0',
        "colonnade_rounds 3.0",
        'colonnade_party_connected{party="bank"} 1.0',
        'colonnade_party_connected{party="sh\\"op\\n"} 0.0',
        "colonnade_approvals_pending 0.0",
        "colonnade_server_up 1.0",
    ):
        assert f"\n{line}\n" in text
