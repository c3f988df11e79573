"""Run after run in the same processes: memory, files, threads and state folders stay as they are."""

import gc
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.node.runs import KEPT_OUTCOMES
from network_trial import federation_in_threads, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at its process in /proc")
# The log is a record, and is to grow; a status lists so many runs.
GROWS = {"log.jsonl", "status.json"}
# What allocators hold on to differs by a little from one moment to the next.
MEGABYTES = 12.0


def three_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    return [
        cn.Party("bank", rng.normal(size=(200, 2)), label=rng.normal(size=200)),
        *(cn.Party(name, rng.normal(size=(200, 2))) for name in ("shop", "phone")),
    ]


def megabytes() -> float:
    gc.collect()
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def held() -> tuple[int, int]:
    """Count open files and threads."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def settled(folder: Path) -> tuple[int, int]:
    """Count them once what has just ended is gone, at the parties too."""
    until(lambda: not [path for end in ("journal", "fresh") for path in folder.glob(f"*-state/*.{end}")])
    time.sleep(0.5)
    return held()


def state_files(folder: Path) -> tuple[set[Path], int]:
    """List files and their bytes in hundreds: numbers in them get longer."""
    files = {path for path in folder.glob("*-state/*") if path.name not in GROWS}
    return files, sum(path.stat().st_size for path in files) // 100


def check_flat(folder: Path, n_runs: int, warm: int) -> None:
    with federation_in_threads(folder, three_parties()) as federation:
        sampler = cn.ImportanceSampling(size=30)

        def play(runs: range) -> None:
            for seed in runs:
                federation.fit(cn.Regression(l2=0.1), sampler=sampler, seed=seed % 5)
                federation.acknowledge()

        play(range(warm))
        before, kept, memory = settled(folder), state_files(folder), megabytes()
        play(range(n_runs))
        settled(folder)
        until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
        files, hundreds = state_files(folder)
        assert files == kept[0]
        assert hundreds <= kept[1] + 1
        assert megabytes() < memory + MEGABYTES
        assert (folder / "server-state" / "status.json").stat().st_size < 1000 * KEPT_OUTCOMES


def test_forty_runs_leave_nothing_behind(tmp_path: Path) -> None:
    check_flat(tmp_path, 40, warm=10)


@pytest.mark.slow(sampled=False)
def test_five_hundred_runs_leave_nothing_behind(tmp_path: Path) -> None:
    check_flat(tmp_path, 500, warm=20)
