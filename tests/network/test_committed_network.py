"""Committed draws between real processes: every party contributes its own entropy, and the saved run can be audited."""

import signal
import sys
from pathlib import Path

import pytest

import colonnade as cn
from network_trial import Trial, events


@pytest.mark.parametrize("scores", ["plain", pytest.param("secure", marks=pytest.mark.slow(sampled=False))])
def test_a_job_draws_committed_rows_and_opens_some(tmp_path: Path, scores: str) -> None:
    sampler = {"kind": "importance", "size": 100, "draws": "committed", "scores": scores}
    job = {"do": "coreset", "task": {"kind": "regression", "l2": 0.1}, "sampler": sampler, "audit": 3, "out": "run"}
    with Trial(tmp_path, [job]) as trial:
        for name in trial.names:
            trial.start_party(name, "--once", "--json")
        server = trial.start("server", str(trial.federation_file), "--json")
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 0, said
        checking = trial.start("spot-check", str(tmp_path / "run"), "--pins", str(tmp_path / "certs" / "pins.toml"))
        said, _ = checking.communicate(timeout=60)
        assert checking.returncode == 0, said
        assert "- Every party signed what it committed to, and what it drew, for this job.\n" in said
    found = cn.Run.load(tmp_path / "run").spot_check(pins=tmp_path / "certs" / "pins.toml")
    assert "Every party signed what it committed to, and what it drew, for this job." in found.findings
    assert set(found.opened) == set(trial.names)
    assert min(found.opened.values()) >= 3


COMMITMENT, CONTRIBUTION, DRAW, SCORES = 1, 2, 3, 4
SAMPLER = cn.ImportanceSampling(size=100, uniform_share=0.2, draws="committed", scores="plain")


@pytest.mark.slow
@pytest.mark.parametrize("killed_before", [CONTRIBUTION, DRAW, SCORES])
def test_a_killed_party_contributes_what_it_had_committed_to(tmp_path: Path, killed_before: int) -> None:
    with Trial(tmp_path, []) as trial:
        living = {name: trial.start_party(name, "--json") for name in trial.names}
        killed: list[str] = []

        def on_round(_phase: str, number: int) -> None:
            if number == killed_before and not killed:
                for name in ("telephone", "shop"):
                    killed.append(name)
                    living[name].send_signal(signal.SIGKILL)
                    living[name].wait()
                    trial.start_party(name, "--json")

        with cn.Federation.connect(trial.federation_file, on_round=on_round) as federation:
            run = federation.coreset(cn.Regression(), SAMPLER, seed=3)
            federation.spot_check(run, rows=None).spot_check(pins=tmp_path / "certs" / "pins.toml")
        assert killed
        for name in trial.names:
            log = events(tmp_path / f"{name}-state" / "log.jsonl")
            assert [line.get("request") for line in log].count("AskCommitment") == 1
            assert any(line["event"] == "run rebuilt" for line in log) == (name in killed)


SERVER_SCRIPT = """
import os, signal, sys
import colonnade as cn

def on_round(phase, number):
    if number == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

sampler = cn.ImportanceSampling(size=100, uniform_share=0.2, draws="committed", scores="plain")
with cn.Federation.connect(sys.argv[1], on_round=on_round) as federation:
    run = federation.coreset(cn.Regression(), sampler, seed=3)
    federation.spot_check(run, rows=None).save(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed_before", [CONTRIBUTION, DRAW, SCORES])
def test_a_killed_server_gets_the_same_draw_again_and_no_other(tmp_path: Path, killed_before: int) -> None:
    with Trial(tmp_path, []) as trial:
        for name in trial.names:
            trial.start_party(name, "--json")
        (tmp_path / "server.py").write_text(SERVER_SCRIPT)
        command = (sys.executable, str(tmp_path / "server.py"))
        first = trial.start(str(trial.federation_file), str(killed_before), "run", command=command)
        assert first.wait(60) == -signal.SIGKILL
        second = trial.start(str(trial.federation_file), "0", "run", command=command)
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 0, said
        for name in trial.names:
            log = events(tmp_path / f"{name}-state" / "log.jsonl")
            answered = [line["request"] for line in log if line["event"] == "answered"]
            assert answered.count("AskCommitment") == 1
        cn.Run.load(tmp_path / "run").spot_check(pins=tmp_path / "certs" / "pins.toml")
