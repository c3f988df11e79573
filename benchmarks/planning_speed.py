"""Time of planning and fitting, against solving the same rows with plain weights: 20,000 rows of 109 columns.

Both fits take turns in one process, and the medians of their processor times are compared. Start it with one BLAS
thread, or the ratio is that of two ways of waiting::

    OPENBLAS_NUM_THREADS=1 python benchmarks/planning_speed.py

A planned fit draws a pilot, chooses by it, draws and fetches rows, rounded, calibrates their weights, corrects for
rounding, solves, and says how precise the model is. The other fetches the rows that the first one drew with the same
step, and solves; the coreset is the caller's own, so that nothing is calibrated, and nobody says how precise it is.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import colonnade as cn
from colonnade.coreset import GIVEN
from colonnade.kernels.arrays import Floats

N_ROWS, WIDTHS, REPEATS = 20_000, (37, 36, 36), 5
# Buys nearly all of the rows.
BUDGET_BYTES = 1_200_000


def table(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Make rows with heavy tails, t(4), and columns that are correlated within and between parties."""
    n_features = sum(WIDTHS)
    rows = rng.standard_t(4, size=(N_ROWS, n_features)) @ (
        np.eye(n_features) + 0.1 * rng.normal(size=(n_features, n_features))
    )
    return rows, rows @ rng.normal(size=n_features) + 5 * rng.standard_t(4, size=N_ROWS)


def compared(budget_bytes: int = BUDGET_BYTES, repeats: int = REPEATS) -> dict[str, Any]:
    """Time both fits, and say what the plan chose."""
    federation = cn.Federation(cn.split_columns(*table(np.random.default_rng(0)), WIDTHS))
    task = cn.Regression()
    planned: Any = federation.fit(task, budget_bytes=budget_bytes)
    own = replace(planned.coreset, sampler=GIVEN)
    solver = planned.solver
    works: dict[str, Callable[[], Any]] = {
        "planned": lambda: federation.fit(task, budget_bytes=budget_bytes),
        "plain weights": lambda: federation.fit(task, coreset=own, solver=solver),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            started = time.process_time()
            work()
            seconds[name].append(time.process_time() - started)
    found = {name: float(np.median(each)) for name, each in seconds.items()}
    return {"rows": len(own), "solver": solver, **found, "ratio": found["planned"] / found["plain weights"]}


if __name__ == "__main__":
    print(compared())
