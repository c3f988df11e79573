"""A board is a process of its own: stopped or killed, it holds up no run; what it starts outlives it."""

import json
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from board_trial import Caller, stop_server
from colonnade.board.guard import Place
from colonnade.node.runs import read_status
from colonnade.node.state_folder import is_held
from colonnade.server_queue import Queue
from network_trial import BANK_FIT, Trial, bank_fit, until

SAGA: dict[str, object] = BANK_FIT | {"solver": {"kind": "saga"}}


def start_board(trial: Trial, file: Path) -> tuple[subprocess.Popen[str], Caller]:
    """Start a board, and log in."""
    process = trial.start("board", str(file), "--listen", "127.0.0.1:0", "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    caller = Caller(Place(["127.0.0.1"], int(re.findall(r":(\d+)/$", told["url"])[0])))
    assert caller.log_in(told["token"]).status == 200
    return process, caller


def test_a_board_that_is_stopped_or_killed_holds_up_no_run(tmp_path: Path) -> None:
    with Trial(tmp_path, [SAGA], wait_seconds=90.0) as trial:
        boards = [start_board(trial, trial.federation_file), start_board(trial, trial.party_files["bank"])]
        server, parties = trial.start_server(), [trial.start_party(name) for name in trial.names]
        until(lambda: any(run.round > 10 for run in read_status(tmp_path / "server-state").runs))
        (stopped, _), (killed, _) = boards
        stopped.send_signal(signal.SIGSTOP)
        killed.kill()
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 0, said
        assert [party.wait(60) for party in parties] == [0, 0, 0]
        stopped.send_signal(signal.SIGCONT)
        until(lambda: boards[0][1].get("/state").status == 200)
        stopped.send_signal(signal.SIGTERM)
        stopped.wait(30)
    run, expected = cn.Run.load(tmp_path / "fitted"), bank_fit(cn.Saga())
    assert np.array_equal(run.model.coef_, expected.model.coef_)
    assert np.array_equal(run.coreset.rows, expected.coreset.rows)
    assert (run.ledger.bytes, run.ledger.units) == (expected.ledger.bytes, expected.ledger.units)


@pytest.mark.slow
def test_a_server_that_a_board_started_outlives_it(tmp_path: Path) -> None:
    with Trial(tmp_path, [SAGA], wait_seconds=90.0) as trial:
        board, caller = start_board(trial, trial.federation_file)
        (job,) = json.loads(caller.get("/state").body)["jobs"]
        assert caller.post("/do/start", {"job": job["key"]}).status == 200
        until(lambda: is_held(tmp_path / "server-state"))
        board.kill()
        board.wait()
        try:
            for name in trial.names:
                trial.start_party(name, "--json")
            until(lambda: bool(Queue(tmp_path / "server-state").finished()))
        finally:
            stop_server(tmp_path)
    assert np.array_equal(cn.Run.load(tmp_path / "fitted").model.coef_, bank_fit(cn.Saga()).model.coef_)
