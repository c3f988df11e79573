"""A process that stands still for a while (SIGSTOP, a suspended machine): the same result, or one clear error."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

import colonnade as cn
from network_trial import BANK_FIT, Trial, bank_fit, events, until, write_party_file

# A fit of many rounds.
LONG_FIT = BANK_FIT | {"solver": {"kind": "saga", "batch": 2, "tolerance": 1e-4}}
# On a busy machine a process takes its time to start: that counts, too.
LIMIT, KEEPALIVE = 12.0, 0.4
# Until a stopped process is noticed, and then its limit.
TOO_LONG = 6 * KEEPALIVE + LIMIT + 3.0


def play_with_a_pause(folder: Path, who: str, seconds: float) -> dict[str, tuple[int, str]]:
    """Let one process stand still in the middle of a run, and give how all of them ended."""
    with Trial(folder, [LONG_FIT], wait_seconds=LIMIT, keepalive_seconds=KEEPALIVE) as trial:
        log = folder / "server-state" / "log.jsonl"
        for name in trial.names:
            limits = {"wait_seconds": LIMIT, "keepalive_seconds": KEEPALIVE}
            trial.party_files[name] = write_party_file(folder, name, trial.port, **limits)
        living: dict[str, subprocess.Popen[str]] = {name: trial.start_party(name) for name in trial.names}
        living["server"] = trial.start_server()
        until(lambda: log.exists() and '"phase":"solving"' in log.read_text())
        living[who].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        living[who].send_signal(signal.SIGCONT)
        said = {name: process.communicate(timeout=60)[0] for name, process in living.items()}
        return {name: (process.returncode, said[name]) for name, process in living.items()}


def check_identical(folder: Path, ended: dict[str, tuple[int, str]]) -> None:
    assert {name: code for name, (code, _) in ended.items()} == dict.fromkeys(ended, 0), ended
    wanted = bank_fit(cn.Saga(batch=2, tolerance=1e-4)).model
    assert cn.Run.load(folder / "fitted").model.coef_.tobytes() == wanted.coef_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("who", ["shop", "server"])
def test_a_pause_within_the_limit_changes_nothing(tmp_path: Path, who: str) -> None:
    check_identical(tmp_path, play_with_a_pause(tmp_path, who, seconds=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("who", ["shop", "server"])
def test_a_pause_beyond_the_limit_changes_nothing_or_ends_all_sides_with_one_clear_error(
    tmp_path: Path, who: str
) -> None:
    ended = play_with_a_pause(tmp_path, who, seconds=TOO_LONG)
    if who == "server" and ended["server"][0] == 0:  # a party that is dialling gives up when its attempt has failed
        check_identical(tmp_path, ended)
        return
    assert {name: code for name, (code, _) in ended.items()} == dict.fromkeys(ended, 5), ended
    for name, (_, said) in ended.items():
        assert "stayed away for more than 12 s" in said, (name, said)
        assert "Traceback" not in said
    assert not list(tmp_path.glob("*-state/*.journal"))
    closed = [line["status"] for line in events(tmp_path / "server-state" / "log.jsonl") if line["event"] == "closed"]
    assert closed == ["failed"]
