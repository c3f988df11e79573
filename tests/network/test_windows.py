"""A model applied window by window between real processes: killed within it, they go on, and the result is the same."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as cn
from colonnade.node.certificates import new_certificates
from network_trial import events, free_port, until, write_federation_file, write_party_file
from nursery import Nursery

# With 16 centres a window is a block: three of them.
N, N_CENTERS, LIMIT = 40_000, 16, 60.0
NAMES = ("bank", "shop")
X = np.random.default_rng(0).normal(size=(N, 4))
JOBS: dict[str, dict[str, object]] = {
    "evaluation.json": {"do": "evaluate", "model": "clusters", "out": "evaluation.json"},
    "predictions.csv": {"do": "predict", "model": "clusters", "out": "predictions.csv"},
    "delivered.csv": {"do": "predict", "model": "clusters", "to": "bank", "out": "delivered.csv"},
    "masked.json": {"do": "evaluate", "model": "clusters", "by": "bank", "out": "masked.json"},
}
JOURNAL = "after write a journal"


class Town:
    """Two parties and a server, each of which may be killed and started again."""

    def __init__(self, folder: Path, times: int = 1, weight: str | None = None) -> None:
        self.folder, self.port = folder, free_port()
        new_certificates(folder / "certs", NAMES)
        for name, columns in zip(NAMES, (X[:, :2], X[:, 2:]), strict=True):
            table = pa.table({f"{name}_{i}": np.tile(column, times) for i, column in enumerate(columns.T)})
            data = {"file": f"{name}.parquet"}
            if weight == name:
                table = table.append_column("weight", pa.array(np.arange(times * N) % 3 + 0.5))
                data["weight"] = "weight"
            parquet.write_table(table, folder / f"{name}.parquet")
            write_party_file(folder, name, self.port, wait_seconds=LIMIT, data=data)
        features = ("bank_0", "bank_1", "shop_0", "shop_1")
        self.model = cn.KMeansModel(X[:N_CENTERS] + 0.1, features, parts_={"bank": 2, "shop": 2})
        self.model.save(folder / "clusters")
        self.nursery = Nursery(folder)

    def play(self, out: str, who: str = "", point: str = JOURNAL, time: int = 0) -> bytes:
        """Do a job while one is killed, and started again; give what came of it."""
        (self.folder / out).unlink(missing_ok=True)
        kill = (point, time)
        jobs = {"job": [JOBS[out]], "wait_seconds": LIMIT}
        file = str(write_federation_file(self.folder, NAMES, self.port, **jobs))
        parties = {
            name: self.nursery.start("party", f"{name}.toml", "--json", kill=kill if name == who else None)
            for name in NAMES
        }
        server = self.nursery.start("server", file, kill=kill if who == "server" else None)
        if who == "server":
            assert server.wait(LIMIT) == -signal.SIGKILL
            server = self.nursery.start("server", file)
        elif who:
            until(lambda: parties[who].poll() is not None, LIMIT)
            assert parties[who].wait(LIMIT) == -signal.SIGKILL
            parties[who] = self.nursery.start("party", f"{who}.toml", "--json")
        assert server.wait(2 * LIMIT) == 0, server.said()
        for party in parties.values():
            party.kill(signal.SIGTERM)
        return (self.folder / out).read_bytes()

    def answered(self, name: str) -> list[int]:
        """List the numbers of the windows that a party answered, in all jobs."""
        lines = events(self.folder / f"{name}-state" / "log.jsonl")
        return [line["number"] for line in lines if line.get("request") == "AskPartialDistances"]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = Town(tmp_path)
    yield town
    town.nursery.close()


# A party's journals have a first line and what opens them, of the hello, too; requests 3 to 5 are windows.
@pytest.mark.parametrize(
    ("out", "who", "time"),
    [
        ("evaluation.json", "shop", 9),
        ("evaluation.json", "server", 9),
        ("predictions.csv", "bank", 10),
        ("predictions.csv", "server", 8),
    ],
)
def test_processes_that_die_between_windows_go_on(town: Town, out: str, who: str, time: int) -> None:
    undisturbed = town.play(out)
    windows = {name: town.answered(name) for name in NAMES}
    assert all(len(each) == 3 for each in windows.values())
    assert town.play(out, who, time=time) == undisturbed
    logged = events(town.folder / f"{who}-state" / "log.jsonl")
    resumed = [line for line in logged if line["event"] in ("run rebuilt", "run resumed")]
    assert resumed
    assert who == "server" or resumed[-1]["number"] in (3, 4), "it died between windows"
    for name in NAMES:
        # One that is killed after its answer is in its journal has not logged it, and repeats it.
        told = [*town.answered(name)[3:], *(line["number"] for line in resumed if name == who)]
        assert sorted(set(told)) == windows[name]
        assert len(told) <= 4, "no window was answered anew"
    if out == "evaluation.json":
        parties = [cn.Party("bank", town.folder / "bank.parquet"), cn.Party("shop", town.folder / "shop.parquet")]
        report = cn.Federation(parties).evaluate(town.model)
        found = json.loads(undisturbed)
        assert found["cost"] == report.cost, "bit for bit, as in one process"
        assert tuple(found["cluster_sizes"]) == report.cluster_sizes


# Requests from the fifth on are windows under masks; the one that learns the sum is brought the other's part of each.
@pytest.mark.parametrize(("who", "time"), [("bank", 12), ("bank", 13), ("shop", 12), ("server", 13)])
def test_under_masks_processes_that_die_between_windows_begin_again(town: Town, who: str, time: int) -> None:
    """Keys are kept in memory only: who lost them says so, and all windows are masked by fresh ones."""
    undisturbed = town.play("masked.json")
    asked = [line for line in events(town.folder / "bank-state" / "log.jsonl") if line.get("request") == "BringMasked"]
    assert len(asked) == 2, "three windows, the last of which is asked about"
    assert town.play("masked.json", who, time=time) == undisturbed
    logged = events(town.folder / f"{who}-state" / "log.jsonl")
    resumed = [line for line in logged if line["event"] in ("run rebuilt", "run resumed")]
    assert resumed
    assert who == "server" or resumed[-1]["number"] in (5, 6, 7, 8), "it died between windows"


@pytest.mark.parametrize(("who", "time", "asked"), [("bank", 8, "AskRowWeights"), ("shop", 7, "BringColumns")])
def test_processes_that_die_between_windows_of_weights_go_on(tmp_path: Path, who: str, time: int, asked: str) -> None:
    """Of 280,000 rows, weights travel in two windows: the second request of a run is the first of them."""
    town = Town(tmp_path, times=7, weight="bank")
    try:
        undisturbed = town.play("evaluation.json")
        assert town.play("evaluation.json", who, time=time) == undisturbed
        logged = events(town.folder / f"{who}-state" / "log.jsonl")
        assert [line["number"] for line in logged if line["event"] == "run rebuilt"] == [2]
        assert len([line for line in logged if line.get("request") == asked]) >= (2 if who == "bank" else 1)
    finally:
        town.nursery.close()


def test_a_party_that_dies_between_windows_that_are_delivered_to_it_has_all(tmp_path: Path) -> None:
    """Of 280,000 rows, predictions are delivered in two windows: the last two of its 20 requests."""
    town = Town(tmp_path, times=7)
    try:
        undisturbed = town.play("delivered.csv")
        given = (town.folder / "bank-predictions.csv").read_bytes()
        (town.folder / "bank-predictions.csv").unlink()
        assert town.play("delivered.csv", "bank", time=26) == undisturbed
        assert (town.folder / "bank-predictions.csv").read_bytes() == given
    finally:
        town.nursery.close()
