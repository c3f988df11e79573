"""What an owner allows a day is counted over runs and restarts, kill -9 included."""

import json
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

import colonnade as cn
from network_trial import Trial, events, write_party_file

TASK, SAMPLER = cn.Regression(), cn.ImportanceSampling(size=100, scores="plain")


def test_a_budget_survives_kill_9(tmp_path: Path) -> None:
    """Killed between two runs, and in the middle of one: what was told is counted, and each answer once."""
    policy = {"level": "open", "rows_a_day": 250}
    with Trial(tmp_path, []) as trial:
        trial.party_files["shop"] = write_party_file(tmp_path, "shop", trial.port, policy=policy)
        for name in ("bank", "telephone"):
            trial.start_party(name, "--json")
        shop = trial.start_party("shop", "--json")
        killed: list[str] = []

        def kill() -> None:
            nonlocal shop
            shop.send_signal(signal.SIGKILL)
            shop.wait()
            shop = trial.start_party("shop", "--json")

        def on_round(phase: str, _number: int) -> None:
            if phase == "solving" and not killed:
                killed.append(phase)
                kill()

        with cn.Federation.connect(trial.federation_file, on_round=on_round) as federation:
            federation.coreset(TASK, SAMPLER)
            assert spent(tmp_path)["rows"] == 100
            kill()
            with pytest.raises(
                cn.PolicyRefusedError,
                match=r"'shop' .*limits replies to 250 rows a day; 200 were sent today, and this reply has 100",
            ):
                federation.fit(TASK, sampler=SAMPLER, seed=1)
            assert killed, "after its scores were told, before its columns"
            assert len(federation.coreset(TASK, cn.UniformSampling(50)).coreset) == 50, "the party stays"
        assert spent(tmp_path)["rows"] == 200
        replies = [line for line in events(tmp_path / "shop-state" / "log.jsonl") if line["event"] == "answered"]
        for what in ("rows", "row_ids", "numbers", "moments", "models"):
            assert spent(tmp_path).get(what, 0) == sum(line[what] for line in replies), "each answer was counted once"


def spent(folder: Path) -> dict[str, int]:
    """Read what the shop counts for this server today."""
    kept = json.loads((folder / "shop-state" / "spent.json").read_text())
    assert kept["day"] == datetime.now(UTC).date().isoformat()
    counts: dict[str, int] = kept["spent"]["server"]
    return counts
