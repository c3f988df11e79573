"""Processes die at random, and the result is the same to the last bit."""

import random
import signal
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from network_trial import BANK, Trial, write_party_file

# Between machines scores are summed in secret unless a job says otherwise.
TASK, SAMPLER = cn.Regression(l2=0.1), cn.ImportanceSampling(size=150, scores="secure")
SAGA = cn.Saga(batch=2, tolerance=1e-4)
# On a busy machine a process takes its time to start, and may be killed again before it is up.
LIMIT = 90.0
TASK_TABLE = {"kind": "regression", "l2": 0.1}
SAMPLER_TABLE = {"kind": "importance", "size": 150}
JOBS: list[dict[str, object]] = [
    {"do": "coreset", "task": TASK_TABLE, "sampler": SAMPLER_TABLE, "seed": 5, "out": "coreset"},
    {"do": "fit", "task": TASK_TABLE, "sampler": SAMPLER_TABLE, "seed": 6, "out": "central"},
    {
        "do": "fit",
        "task": TASK_TABLE,
        "sampler": SAMPLER_TABLE,
        "solver": {"kind": "saga", "batch": 2, "tolerance": 1e-4},
        "seed": 7,
        "out": "saga",
    },
    {"do": "predict", "model": "saga", "to": "bank", "out": "predictions.csv"},
]


def messages(run: cn.Run[Any], *, summing: bool) -> list[tuple[str, str, str, str, int, int]]:
    """List what was sent, in the phase of summing or in all others, without the numbers of rounds."""
    return [
        (entry.phase, entry.sender, entry.receiver, entry.kind, entry.units, entry.bytes)
        for entry in run.ledger
        if (entry.phase == "summing") == summing
    ]


def check_ledger(found: cn.Run[Any], wanted: cn.Run[Any]) -> None:
    """A secure phase in which somebody died is played again, with fresh keys; nothing else is sent twice."""
    assert messages(found, summing=False) == messages(wanted, summing=False)
    once, all_told = messages(wanted, summing=True), messages(found, summing=True)
    assert all_told[-len(once) :] == once
    if len(all_told) == len(once):
        assert found.ledger == wanted.ledger


class Undisturbed:
    """What comes of the jobs in one process, where nobody dies."""

    def __init__(self) -> None:
        parties = [
            cn.Party("bank", BANK / "bank.csv", label="card_spending", key="customer"),
            cn.Party("telephone", BANK / "telephone.csv", key="customer"),
            cn.Party("shop", BANK / "shop.csv", key="customer"),
        ]
        federation = cn.Federation(parties)
        with warnings.catch_warnings(action="ignore", category=cn.DisclosureWarning):
            self.runs: dict[str, cn.Run[Any]] = {
                "coreset": federation.coreset(TASK, SAMPLER, seed=5),
                "central": federation.fit(TASK, sampler=SAMPLER, seed=6),
                "saga": federation.fit(TASK, sampler=SAMPLER, solver=SAGA, seed=7),
            }
        self.predictions = federation.predict(self.runs["saga"].model)

    def check(self, folder: Path) -> None:
        for name, wanted in self.runs.items():
            found = cn.Run.load(folder / name)
            assert found.coreset.rows.tobytes() == wanted.coreset.rows.tobytes()
            assert found.coreset.weights.tobytes() == wanted.coreset.weights.tobytes()
            check_ledger(found, wanted)
            if wanted.model is not None:
                assert found.model.coef_.tobytes() == wanted.model.coef_.tobytes()
                assert found.model.intercept_ == wanted.model.intercept_
        customers = np.loadtxt(BANK / "bank.csv", str, delimiter=",", skiprows=1, usecols=0, quotechar='"').tolist()
        for file in ("predictions.csv", "bank-predictions.csv"):
            names, predictions = np.loadtxt(folder / file, str, delimiter=",", skiprows=1, unpack=True)
            assert names.tolist() == (customers if file.startswith("bank") else [str(row) for row in range(800)])
            assert predictions.astype(np.float64).tobytes() == self.predictions.tobytes()


def clear(folder: Path) -> None:
    """Remove what a pass of the jobs wrote, so that the next one has to write it again."""
    for name in ("coreset", "central", "saga"):
        for file in (folder / name).iterdir():
            file.unlink()
    for name in ("predictions.csv", "bank-predictions.csv"):
        (folder / name).unlink()


def play_with_kills(folder: Path, n_kills: int, seed: int) -> int:
    """Kill so many processes, and give how often the jobs were completed meanwhile and after."""
    chance, wanted, passes = random.Random(seed), Undisturbed(), 0  # noqa: S311  # whom to kill is no secret
    with Trial(folder, JOBS, wait_seconds=LIMIT) as trial:
        for name in trial.names:
            trial.party_files[name] = write_party_file(folder, name, trial.port, wait_seconds=LIMIT)
        living = {name: trial.start_party(name, "--json") for name in trial.names}
        living["server"] = trial.start_server()
        for _ in range(n_kills):
            time.sleep(chance.uniform(0.2, 4.0))
            if living["server"].poll() is not None:
                check_pass(living["server"], wanted, folder)
                passes += 1
                clear(folder)
                living["server"] = trial.start_server()
                time.sleep(chance.uniform(1.0, 5.0))
            victim = chance.choice(sorted(living))
            if living[victim].poll() is None:
                living[victim].send_signal(signal.SIGKILL)
            living[victim].wait()
            time.sleep(chance.uniform(0.0, 0.5))
            living[victim] = trial.start_server() if victim == "server" else trial.start_party(victim, "--json")
        check_pass(living["server"], wanted, folder)
        for name in trial.names:
            assert living[name].poll() is None, "a party stays when the server has closed"
            living[name].send_signal(signal.SIGTERM)
            assert living[name].wait(20) == 0
        # A party that was dead when the run ended is told when it next meets a server.
        assert not list((folder / "server-state").glob("*.journal")), "journals are removed when their runs are done"
    return passes + 1


def check_pass(server: "subprocess.Popen[str]", wanted: Undisturbed, folder: Path) -> None:
    said, _ = server.communicate(timeout=3 * LIMIT)
    assert server.returncode == 0, said
    wanted.check(folder)


@pytest.mark.slow
def test_four_kills(tmp_path: Path) -> None:
    assert play_with_kills(tmp_path, 4, seed=1) >= 1


@pytest.mark.slow
def test_thirty_kills(tmp_path: Path) -> None:
    passes = play_with_kills(tmp_path, 30, seed=2)
    print(f"30 kills, {passes} passes of all jobs")
    assert passes >= 1
