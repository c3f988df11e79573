"""Scores, a fit, an evaluation and predictions of parties whose tables are Parquet files, beside reading these files.

Every work is a process of its own, and what it is timed for begins when all is imported and nothing is read. Two reads
are the least that scores and a fit can do: one for the Gram matrix, one for the scores; predictions need one. On one
core, in processor time; and ours on all cores, by the clock. Reading alone (`blocks`: what a party reads) is compared
with pyarrow's, too.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import made_up
import polars as pl
import pyarrow.parquet as pq
from pyarrow import csv as pa_csv
from scale_bars import READS
from side_by_side import Line, Store, as_child, both_times, children_in_turns, in_child, touch_memory

import colonnade as cn
from colonnade.kernels.blocks import values_of

COLUMNS, CSV_ROWS = 60, 200_000
# How often each work is done on so many rows: of large tables seldom, since what they cost at the beginning vanishes.
REPEATS, LARGE_REPEATS = {1_000_000: 5}, {6_000_000: 3}
TASK, SAMPLER = cn.Regression(), cn.ImportanceSampling(size=2000)
# More than any of the works holds at once.
TOUCHED_BYTES = 1_500_000_000
READERS = ("blocks", "pyarrow", "polars")


def parties(paths: list[str]) -> list[cn.Party]:
    """Open the files; the label is in the last one."""
    label = {paths[-1]: "label"}
    return [cn.Party(Path(path).stem, path, label=label.get(path)) for path in paths]


def scores(paths: list[str], run: str) -> None:  # noqa: ARG001  # all works are called alike
    """Score all rows."""
    for party in parties(paths):
        TASK.score_rule().scores(party.table).kept().sum()


def fit(paths: list[str], run: str) -> None:
    """Learn, and keep the run for the others."""
    cn.Federation(parties(paths)).fit(TASK, sampler=SAMPLER).save(run)


def evaluate(paths: list[str], run: str) -> None:
    """Count a model's cost on all rows."""
    cn.Federation(parties(paths)).evaluate(cn.Run.load(run).model)


def predict(paths: list[str], run: str) -> None:
    """Predict all rows."""
    cn.Federation(parties(paths)).predict(cn.Run.load(run).model)


def blocks(paths: list[str], run: str) -> None:  # noqa: ARG001
    """Read what a party reads, once."""
    for party in parties(paths):
        for _ in party.table.map(values_of):
            pass


def pyarrow(paths: list[str], run: str) -> None:  # noqa: ARG001
    """Read all batches, and hold one."""
    for path in paths:
        if path.endswith(".csv"):
            pa_csv.read_csv(path)
            continue
        for _ in pq.ParquetFile(path).iter_batches():
            pass


def polars(paths: list[str], run: str) -> None:  # noqa: ARG001
    """Read a file at a time, whole."""
    for path in paths:
        pl.read_parquet(path)


WORKS: dict[str, Callable[[list[str], str], None]] = {
    each.__name__: each for each in (scores, fit, evaluate, predict, blocks, pyarrow, polars)
}


def does(work: str, paths: list[str], run: str, small: list[str]) -> Line:
    """Do a work, and time it; small tables before it, so that all is imported, and memory that is not the first."""
    fit(small, f"{small[0]}-run")
    touch_memory(TOUCHED_BYTES)
    processor, clock = both_times(lambda: WORKS[work](paths, run))
    return {"seconds": processor, "clock": clock}


def measure(store: Store, *, large: bool) -> None:
    """Time every work on files of each size, and reading alone of both kinds of files."""
    for n_rows, repeats in (REPEATS | (LARGE_REPEATS if large else {})).items():
        case = {"bench": "files", "work": "Parquet", "rows": n_rows, "columns": COLUMNS}
        works: Line = {work: {"work": work, "cores": 1} for work in (*READS, *READERS)}
        works |= {f"{work}, all cores": {"work": work} for work in READS}
        store.fill(case, partial(_beside_each_other, store, works, n_rows, repeats))
    case = {"bench": "files", "work": "CSV", "rows": CSV_ROWS, "columns": COLUMNS}
    works = {work: {"work": work, "cores": 1} for work in ("blocks", "pyarrow")}
    store.fill(case, partial(_beside_each_other, store, works, CSV_ROWS, 3, csv=True))


def _beside_each_other(store: Store, works: Line, n_rows: int, repeats: int, *, csv: bool = False) -> Line:
    """Write the files, have a first fit, whose run the others use, and time all works on them."""
    with store.scratch(made_up.n_bytes(n_rows, COLUMNS)) as folder, store.scratch() as scratch:
        small = made_up.write_parties(Path(scratch), 1000, COLUMNS)
        paths = made_up.write_parties(Path(folder), n_rows, COLUMNS)
        paths = [_as_csv(path) for path in paths] if csv else paths
        place = {"paths": paths, "run": str(Path(folder) / "run"), "small": small}
        in_child(__file__, {"work": "fit", **place})
        return children_in_turns(__file__, {name: {**work, **place} for name, work in works.items()}, repeats)


def _as_csv(path: str) -> str:
    name = str(Path(path).with_suffix(".csv"))
    pa_csv.write_csv(pq.read_table(path), name)
    return name


if __name__ == "__main__":
    as_child(does)
