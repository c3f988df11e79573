"""Many keys: in blocks, in a time and memory that grow with the lists and nothing else."""

import json
import subprocess
import sys

import pytest

# A child, whose memory is its own: keys of two parties, half of them common; the peak while they are matched.
CHILD = """
import json, sys, tracemalloc
import numpy as np, pyarrow as pa
import colonnade as cn

mode, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
few = {name: pa.table({"id": np.arange(9), name: np.ones(9)}) for name in ("bank", "shop")}
cn.Federation([cn.Party(name, table, key="id") for name, table in few.items()], align=mode)  # imports what it needs
made = {"bank": rng.permutation(n) + 10**12, "shop": rng.permutation(n) + 10**12 + n // 2}
parties = [cn.Party(name, pa.table({"id": keys, name: keys - 10**12.}), key="id") for name, keys in made.items()]
tracemalloc.start()
federation = cn.Federation(parties, align=mode)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
report = federation.alignment
tables = [each._data.table for each in federation._runtime.parties._parties.values()]
same = bool((tables[0].values[:, 0] == tables[1].values[:, 0]).all())
print(json.dumps({"matched": report.matched, "same": same, "bytes_a_key": peak / n}))
"""


def aligned(mode: str, n_keys: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, mode, str(n_keys)], capture_output=True, text=True, check=False, timeout=1500
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    assert found["same"], "the same row is the same record"
    assert found["matched"] == n_keys - n_keys // 2
    return found


# Of both parties and the server together, at the peak: tokens, as they came and sorted, with places; positions; tables.
BYTES_A_KEY = {"aided": 200, "curve": 400}


@pytest.mark.parametrize(
    ("mode", "n_keys"),
    [
        ("aided", 200_000),
        ("curve", 5_000),
        pytest.param("aided", 1_000_000, marks=pytest.mark.slow(sampled=False)),
        pytest.param("curve", 100_000, marks=pytest.mark.slow(sampled=False)),
    ],
)
def test_memory_is_that_of_the_lists(mode: str, n_keys: int) -> None:
    assert aligned(mode, n_keys)["bytes_a_key"] <= BYTES_A_KEY[mode]
