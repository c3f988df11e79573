"""A party in a network namespace of its own, as on another machine: the wire is taken away and put back."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import colonnade as cn
from network_trial import COMMAND, Trial, events, write_federation_file, write_party_file

SPACE, HERE, THERE = f"colonnade{os.getpid()}", f"cnh{os.getpid()}", f"cnt{os.getpid()}"
JOBS: list[dict[str, object]] = [
    {
        "do": "fit",
        "task": {"kind": "regression", "l2": 0.1},
        "sampler": {"kind": "importance", "size": 150},
        "solver": {"kind": "saga", "batch": 1, "tolerance": 1e-6},
        "out": "saga",
    }
]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S607  # wherever it is


@pytest.fixture
def wire() -> Iterator[str]:
    """Make a namespace at the end of a wire, and give this end's address."""
    try:
        ip("netns", "add", SPACE)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("network namespaces need iproute2 and the right to make them")
    try:
        ip("link", "add", HERE, "type", "veth", "peer", "name", THERE)
        ip("link", "set", THERE, "netns", SPACE)
        ip("addr", "add", "10.211.7.1/30", "dev", HERE)
        ip("link", "set", HERE, "up")
        ip("-n", SPACE, "addr", "add", "10.211.7.2/30", "dev", THERE)
        ip("-n", SPACE, "link", "set", THERE, "up")
        yield "10.211.7.1"
    finally:
        ip("netns", "del", SPACE)


@pytest.mark.slow
def test_ten_seconds_without_a_wire(tmp_path: Path, wire: str) -> None:
    with Trial(tmp_path, JOBS) as trial:
        trial.federation_file = write_federation_file(
            tmp_path, trial.names, trial.port, job=JOBS, listen=f"{wire}:{trial.port}"
        )
        for name in trial.names:
            trial.party_files[name] = write_party_file(tmp_path, name, trial.port, server=f"{wire}:{trial.port}")
        server = trial.start_server()
        parties = [trial.start_party("bank"), trial.start_party("telephone")]
        away = ["ip", "netns", "exec", SPACE, *COMMAND]
        parties.append(trial.start("party", str(trial.party_files["shop"]), "--once", command=away))
        log = tmp_path / "server-state" / "log.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (log.exists() and '"solving"' in log.read_text()):
            time.sleep(0.05)
        time.sleep(0.3)
        ip("link", "set", HERE, "down")
        time.sleep(10)
        assert any(line["event"] == "left" and line["party"] == "shop" for line in events(log)), "it was noticed"
        ip("link", "set", HERE, "up")
        said, _ = server.communicate(timeout=60)
        assert server.returncode == 0, said
        assert [party.wait(20) for party in parties] == [0, 0, 0]
    job = {"sampler": cn.ImportanceSampling(size=150), "solver": cn.Saga(batch=1, tolerance=1e-6)}
    parts = [
        cn.Party(name, tmp_path / f"{name}.csv", key="customer", label="card_spending" if name == "bank" else None)
        for name in Trial.names
    ]
    wanted = cn.Federation(parts).fit(cn.Regression(l2=0.1), **job)  # type: ignore[arg-type]
    found = cn.Run.load(tmp_path / "saga")
    assert found.model.coef_.tobytes() == wanted.model.coef_.tobytes()
    assert found.ledger == wanted.ledger
