"""How a party's seconds and memory grow with its rows: tables of ten columns in Parquet, from 1e5 rows on.

Three parties in one process of its own open their files, score their rows, draw and learn, evaluate and predict. After
each step the process tells its seconds, of processor time and of the clock, and the most memory that it has held so
far. The parties share the process, so a party alone holds no more than that.
"""

from functools import partial
from pathlib import Path
from typing import Any

import files
import made_up
from side_by_side import REFUSALS, Line, Store, as_child, both_times, in_child, peak_mb, short

import colonnade as cn

SIZES, LARGE_SIZES, COLUMNS = [100_000, 1_000_000, 10_000_000], [20_000_000, 100_000_000], 10


TASKS: dict[str, Any] = {"regression": files.TASK, "k-means, k = 10": cn.KMeans(n_clusters=10)}


class Steps:
    """A whole job, step by step."""

    def __init__(self, paths: list[str], task: str) -> None:
        self._paths, self._task = paths, TASKS[task]

    def open(self) -> None:
        """Open the files, and let the parties meet."""
        self._federation = cn.Federation(files.parties(self._paths))

    def fit(self) -> None:
        """Score, draw and learn."""
        self._run = self._federation.fit(self._task, sampler=files.SAMPLER)

    def evaluate(self) -> None:
        """Count the model's cost on all rows."""
        self._federation.evaluate(self._run.model)

    def predict(self) -> None:
        """Predict all rows."""
        self._federation.predict(self._run.model)


def does(paths: list[str], small: list[str], task: str) -> Line:
    """Take all steps that are not refused; with small tables before it, so that all is imported."""
    first = Steps(small, task)
    first.open()
    first.fit()
    job, peaks, refused = Steps(paths, task), dict[str, int](), dict[str, str]()
    taken, clock = dict[str, float](), dict[str, float]()
    for step in ("open", "fit", "evaluate", "predict"):
        try:
            taken[step], clock[step] = map(short, both_times(getattr(job, step)))
        except REFUSALS as error:
            refused[step] = str(error) or "not enough memory"
            if step in ("open", "fit"):
                break
        else:
            peaks[step] = peak_mb()
    return {"seconds": taken, "clock": clock, "peaks": peaks} | ({"refused": refused} if refused else {})


def measure(store: Store, *, large: bool) -> None:
    """Let a process of its own do it, for each number of rows."""
    for n_rows in SIZES + LARGE_SIZES * large:
        cases = {task: {"bench": "growth", "task": task, "rows": n_rows, "columns": COLUMNS} for task in TASKS}
        if not any(map(store.lacks, cases.values())):
            continue
        with store.scratch(made_up.n_bytes(n_rows, COLUMNS)) as folder, store.scratch() as scratch:
            paths = made_up.write_parties(Path(folder), n_rows, COLUMNS)
            small = made_up.write_parties(Path(scratch), 1000, COLUMNS)
            for task, case in cases.items():
                store.fill(case, partial(in_child, __file__, {"paths": paths, "small": small, "task": task}))


if __name__ == "__main__":
    as_child(does)
