"""Somebody dies inside a secure phase: all begin it again with fresh keys, and the sum is the same."""

import signal
import sys
from pathlib import Path

import pytest

import colonnade as cn
from network_trial import BANK, Trial, events

TASK, SAMPLER = cn.Regression(), cn.ImportanceSampling(size=150)
# Keys, masked scores, agreement.
FIRST_ROUND, LAST_ROUND = 4, 6


def parties() -> list[cn.Party]:
    label = {"bank": "card_spending"}
    return [cn.Party(name, BANK / f"{name}.csv", label=label.get(name), key="customer") for name in Trial.names]


def undisturbed() -> cn.Run[None]:
    return cn.Federation(parties()).coreset(TASK, cn.ImportanceSampling(size=150, scores="secure"), seed=3)


def answered(trial: Trial, name: str, kind: str) -> int:
    log = events(trial.folder / f"{name}-state" / "log.jsonl")
    return sum(line["event"] == "answered" and line["request"] == kind for line in log)


def same_sum(run: cn.Run[None]) -> bool:
    wanted = undisturbed()
    return (
        run.coreset.rows.tobytes() == wanted.coreset.rows.tobytes()
        and run.coreset.weights.tobytes() == wanted.coreset.weights.tobytes()
    )


@pytest.mark.slow
@pytest.mark.parametrize(("killed_before", "keys_made"), [(5, 2), (6, 1), (4, 1)])
def test_a_party_is_killed(tmp_path: Path, killed_before: int, keys_made: int) -> None:
    """Its secret dies with it: before the masked scores all start again, after them nothing more is needed."""
    with Trial(tmp_path, [], wait_seconds=60.0) as trial:
        for name in ("bank", "shop"):
            trial.start_party(name, "--json")
        telephone = trial.start_party("telephone", "--json")
        killed: list[int] = []

        def on_round(phase: str, number: int) -> None:
            if phase == "summing" and number == killed_before and not killed:
                killed.append(number)
                telephone.send_signal(signal.SIGKILL)
                telephone.wait()
                trial.start_party("telephone", "--json")

        with cn.Federation.connect(trial.federation_file, on_round=on_round) as federation:
            run = federation.coreset(TASK, SAMPLER, seed=3)
        assert killed
        assert same_sum(run)
        assert [answered(trial, name, "AskPublicKey") for name in trial.names] == [keys_made] * 3
        assert not list((tmp_path / "server-state").glob("*.journal"))


SERVER_SCRIPT = """
import os, signal, sys
import colonnade as cn

def on_round(phase, number):
    if number == int(sys.argv[2]) and phase == "summing":
        os.kill(os.getpid(), signal.SIGKILL)

with cn.Federation.connect(sys.argv[1], on_round=on_round) as federation:
    federation.coreset(cn.Regression(), cn.ImportanceSampling(size=150), seed=3).save(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed_before", range(FIRST_ROUND, LAST_ROUND + 1))
def test_the_server_is_killed(tmp_path: Path, killed_before: int) -> None:
    with Trial(tmp_path, [], wait_seconds=60.0) as trial:
        for name in trial.names:
            trial.start_party(name, "--json")
        script = tmp_path / "server.py"
        script.write_text(SERVER_SCRIPT)
        command = (sys.executable, str(script))
        first = trial.start(str(trial.federation_file), str(killed_before), "run", command=command)
        assert first.wait(60) == -signal.SIGKILL
        second = trial.start(str(trial.federation_file), "0", "run", command=command)
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 0, said
        assert same_sum(cn.Run.load(tmp_path / "run"))


@pytest.mark.slow
def test_a_party_and_the_server_are_killed_at_once(tmp_path: Path) -> None:
    with Trial(tmp_path, [], wait_seconds=60.0) as trial:
        living = {name: trial.start_party(name, "--json") for name in trial.names}
        script = tmp_path / "server.py"
        script.write_text(SERVER_SCRIPT)
        command = (sys.executable, str(script))
        assert trial.start(str(trial.federation_file), "5", "run", command=command).wait(60) == -signal.SIGKILL
        living["shop"].send_signal(signal.SIGKILL)
        living["shop"].wait()
        trial.start_party("shop", "--json")
        second = trial.start(str(trial.federation_file), "0", "run", command=command)
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 0, said
        assert same_sum(cn.Run.load(tmp_path / "run"))
