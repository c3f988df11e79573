"""What many parties cost in one process beside three: plain and secure sums, Gram matrices, masked evaluation.

Each party has three columns of 20,000 rows, coresets have 2,000 rows. Seconds are of processor time, the least of some
repeats, in which all numbers of parties take turns: a busy machine hardly shows. Beside them, and beside the bytes that
all messages have, is how many times those of the fewest parties they are.

    OPENBLAS_NUM_THREADS=1 python benchmarks/parties_here.py [--parties 3 30 100] [--repeats 7] [--page PAGE.md]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pages import Row, show, table

import colonnade as cn

N_ROWS, N_COLUMNS, SIZE = 20_000, 3, 2_000
TASK = cn.Regression(l2=0.1)
PLAIN, SECURE = (cn.ImportanceSampling(size=SIZE, scores=scores) for scores in ("plain", "secure"))
Job = Callable[[cn.Federation, Any, int], object]
JOBS: dict[str, Job] = {
    "fit, plain sums": lambda here, _, seed: here.fit(TASK, sampler=PLAIN, solver=cn.Central(), seed=seed),
    "fit, secure sums": lambda here, _, seed: here.fit(TASK, sampler=SECURE, solver=cn.Central(), seed=seed),
    "fit, `SecureGram`": lambda here, _, seed: here.fit(TASK, sampler=PLAIN, solver=cn.SecureGram(), seed=seed),
    "evaluate, masked": lambda here, model, seed: here.evaluate(model, by="party1", rows=SIZE, seed=seed),
}


def federation(n_parties: int) -> cn.Federation:
    """Make so many parties; the last holds the label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS * n_parties))
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=N_ROWS)
    return cn.Federation(cn.split_columns(X, y, [N_COLUMNS] * n_parties))


def once(play: Job, here: cn.Federation, model: object, seed: int) -> tuple[float, int]:
    """Tell processor seconds and bytes of a run."""
    before, started = here.ledger.bytes, time.process_time()
    play(here, model, seed)
    return time.process_time() - started, here.ledger.bytes - before


def measure(job: str, counts: list[int], repeats: int) -> list[Row]:
    """Play a job with all numbers of parties in turn; the first time is not counted."""
    here = {count: federation(count) for count in counts}
    models = {count: JOBS["fit, plain sums"](each, None, 0).model for count, each in here.items()}  # type: ignore[attr-defined]
    taken: dict[int, list[tuple[float, int]]] = {count: [] for count in counts}
    for seed in range(repeats + 1):
        for count, each in here.items():
            taken[count].append(once(JOBS[job], each, models[count], seed))
    least = {count: tuple(map(min, zip(*runs[1:], strict=True))) for count, runs in taken.items()}
    few = least[counts[0]]
    return [
        {
            "job": job,
            "parties": count,
            "seconds": float(seconds),
            "times": f"{seconds / few[0]:.1f}",
            "kB": f"{size / 1e3:,.0f}",
            "times the bytes": f"{size / few[1]:.1f}",
        }
        for count, (seconds, size) in least.items()
    ]


def main() -> None:
    """Measure, and print it or put it into a page, between its marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[3, 30, 100])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", cn.DisclosureWarning)
    rows = [row for job in JOBS for row in measure(job, options.parties, options.repeats)]
    show({"here": table(rows)}, options.page)


if __name__ == "__main__":
    main()
