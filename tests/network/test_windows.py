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
}
JOURNAL = "after write a journal"


class Town:
    """Two parties and a server, each of which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        new_certificates(folder / "certs", NAMES)
        for name, columns in zip(NAMES, (X[:, :2], X[:, 2:]), strict=True):
            table = pa.table({f"{name}_{i}": column for i, column in enumerate(columns.T)})
            parquet.write_table(table, folder / f"{name}.parquet")
            write_party_file(folder, name, self.port, wait_seconds=LIMIT, data={"file": f"{name}.parquet"})
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
