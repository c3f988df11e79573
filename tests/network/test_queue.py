"""A server that does what stands in its queue, and runs that are cancelled, between real processes."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import InputError
from colonnade.node.cancelling import CANCELLED, cancel_run
from colonnade.node.runs import read_status
from colonnade.server_queue import Queue
from command import run
from network_trial import BANK_FIT, Trial, bank_fit, events, until, write_party_file


def assert_same(run: cn.Run[Any], expected: cn.Run[Any]) -> None:
    assert np.array_equal(run.model.coef_, expected.model.coef_)
    assert np.array_equal(run.coreset.rows, expected.coreset.rows)


def kinds_asked(folder: Path, party: str) -> list[tuple[str, int]]:
    """List the requests that a party answered anew, by run and number."""
    answered = [line for line in events(folder / f"{party}-state" / "log.jsonl") if line["event"] == "answered"]
    return [(line["run"], line["number"]) for line in answered if line["request"] != "Hello"]


def test_a_queue_is_done_in_its_order_and_waits_for_more(tmp_path: Path) -> None:
    with Trial(tmp_path, [], job=None, wait_seconds=90.0) as trial:
        queue = Queue(tmp_path / "server-state")
        queue.add(BANK_FIT)
        queue.add({"do": "fit", "task": {"kind": "nothing"}, "out": "never"})
        server = trial.start("server", str(trial.federation_file), "--queue")
        parties = [trial.start_party(name) for name in trial.names]
        until(lambda: len(queue.finished()) == 2)
        assert [ended.status for ended in queue.finished()] == ["failed", "done"]
        assert "nothing" in str(queue.finished()[0].error)
        assert queue.is_served
        queue.add({"do": "evaluate", "model": "fitted", "out": "costs.json"})
        until(lambda: len(queue.finished()) == 3)
        status = read_status(tmp_path / "server-state")
        fitted = next(each for each in status.runs if each.verb == "fit")
        assert (fitted.status, fitted.saved) == ("done", str(tmp_path / "fitted"))
        assert fitted.ended >= fitted.started
        server.send_signal(signal.SIGTERM)
        said, _ = server.communicate(timeout=60)
        assert server.returncode == 0, said
        assert [party.wait(60) for party in parties] == [0, 0, 0]
        assert not Queue(tmp_path / "server-state").is_served
    assert_same(cn.Run.load(tmp_path / "fitted"), bank_fit())
    assert json.loads((tmp_path / "costs.json").read_text())["n_evaluated"] > 0


@pytest.mark.parametrize("moment", ["in mid-run", "before it is noted"])
def test_a_killed_server_goes_on_with_its_queue_and_does_no_job_twice(tmp_path: Path, moment: str) -> None:
    with Trial(tmp_path, [], job=None, wait_seconds=90.0) as trial:
        queue = Queue(tmp_path / "server-state")
        name = queue.add(BANK_FIT | {"solver": {"kind": "saga"}})
        server = trial.start("server", str(trial.federation_file), "--queue")
        for party in trial.names:
            trial.start_party(party, "--json")
        if moment == "in mid-run":
            until(lambda: any(each.round > 20 for each in read_status(tmp_path / "server-state").runs))
        else:
            until(lambda: (tmp_path / "fitted").exists())
        server.kill()
        server.wait()
        first = kinds_asked(tmp_path, "bank")
        server = trial.start("server", str(trial.federation_file), "--queue")
        until(lambda: bool(queue.finished()))
        queue.add(BANK_FIT | {"out": "again"})
        until(lambda: len(queue.finished()) == 2)
        asked = kinds_asked(tmp_path, "bank")
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert asked[: len(first)] == first
        assert len(asked) == len(set(asked)), "a request was answered anew"
        assert [ended.status for ended in queue.finished()] == ["done", "done"]
        assert queue.finished()[1].name == name
        fits = [each.status for each in read_status(tmp_path / "server-state").runs if each.verb == "fit"]
        assert fits == ["done", "done"]
    assert_same(cn.Run.load(tmp_path / "fitted"), bank_fit(cn.Saga()))


class Asking(Trial):
    """A trial in which the bank's owner is asked, and nobody decides: its runs wait."""

    def __init__(self, folder: Path, jobs: list[dict[str, object]], **changes: object) -> None:
        super().__init__(folder, jobs, **{"wait_seconds": 90.0, **changes})
        self.party_files["bank"] = write_party_file(folder, "bank", self.port, approve="ask")

    def waiting_run(self) -> str:
        until(lambda: bool(read_status(self.folder / "server-state").owners_asked))
        return read_status(self.folder / "server-state").runs[-1].run

    def ends(self, party: str, name: str) -> list[tuple[Any, ...]]:
        log = events(self.folder / f"{party}-state" / "log.jsonl")
        return [
            (line["status"], line["reason"]) for line in log if line["event"] == "run ended" and line["run"] == name
        ]


def test_a_run_is_cancelled_for_all_sides(tmp_path: Path) -> None:
    with Asking(tmp_path, [BANK_FIT]) as trial:
        server, parties = trial.start_server(), [trial.start_party(name) for name in trial.names]
        name = trial.waiting_run()
        cancel_run(tmp_path / "server-state", name)
        said, _ = server.communicate(timeout=20)
        assert server.returncode == 6, said
        assert CANCELLED in said
        assert [party.wait(60) for party in parties] == [6, 6, 6]
        for party in trial.names:
            if party != "bank" or trial.ends(party, name):
                assert [(status, reason.startswith(CANCELLED)) for status, reason in trial.ends(party, name)] == [
                    ("failed", True)
                ]
        shown = run("status", str(trial.federation_file)).stdout
        assert (name in shown, CANCELLED in shown) == (True, True)
        left = {path.suffix for path in (tmp_path / "server-state").iterdir()}
        assert not left & {".journal", ".cancel"}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False])
def test_a_queue_goes_on_after_a_cancelled_run_and_does_not_begin_it_anew(tmp_path: Path, killed: bool) -> None:
    with Asking(tmp_path, [], job=None) as trial:
        queue = Queue(tmp_path / "server-state")
        queue.add(BANK_FIT)
        server = trial.start("server", str(trial.federation_file), "--queue")
        for party in trial.names:
            trial.start_party(party, "--json")
        name = trial.waiting_run()
        if killed:
            server.kill()
            server.wait()
        cancel_run(tmp_path / "server-state", name)
        if killed:
            server = trial.start("server", str(trial.federation_file), "--queue")
        until(lambda: bool(queue.finished()))
        assert (queue.finished()[0].error or "").startswith(CANCELLED)
        assert [each.status for each in read_status(tmp_path / "server-state").runs if each.run == name] == ["failed"]
        assert server.poll() is None
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@pytest.mark.slow
def test_a_cancelled_run_that_was_not_noted_is_not_begun_anew(tmp_path: Path) -> None:
    """The server was killed after the run's end was on the disk, and before the queue's file said so."""
    with Asking(tmp_path, [], job=None) as trial:
        state = tmp_path / "server-state"
        queue = Queue(state)
        name = queue.add(BANK_FIT)
        server = trial.start("server", str(trial.federation_file), "--queue")
        for party in trial.names:
            trial.start_party(party, "--json")
        cancelled = trial.waiting_run()
        before = (state / "queue" / f"{name}.json").read_bytes()
        cancel_run(state, cancelled)
        until(lambda: bool(queue.finished()))
        server.kill()
        server.wait()
        (state / "queue" / f"{name}.json").write_bytes(before)
        (state / "queue" / "finished" / f"{name}.json").unlink()
        server = trial.start("server", str(trial.federation_file), "--queue")
        until(lambda: bool(queue.finished()))
        assert queue.finished()[0].error == CANCELLED
        assert [each.run for each in read_status(state).runs if each.verb == "fit"] == [cancelled]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@pytest.mark.parametrize("name", ["../lock", "fit/1", "", "x" * 65, "Fit-1"])
def test_what_names_no_run_is_not_cancelled(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="names no run"):
        cancel_run(tmp_path, name)
    assert list(tmp_path.iterdir()) == []
