"""What reading and preparing a table costs, against pandas and scikit-learn on the same file, and memory.

A Parquet file of ten numbers with gaps, three categories of fifty levels and a date. Ours: a `Party` with `prepare=`,
and what a job asks of it first, to fit and to apply. Theirs: `pandas.read_parquet` and a `ColumnTransformer` that makes
as many columns. They take turns, each in a process of its own; ratios are of medians. Seconds are those of processor
time, from after the imports.

    python benchmarks/preparation.py [--rows 1000000] [--repeats 3]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import colonnade as cn

NUMBERS, CATEGORIES = [f"x{i}" for i in range(10)], ["job", "town", "plan"]
N_COLUMNS = 2 * len(NUMBERS) + 49 * len(CATEGORIES) + 1


def write_table(path: Path, n_rows: int) -> None:
    """Make up a table: one number in twenty is missing."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, len(NUMBERS)))
    numbers[rng.random(numbers.shape) < 0.05] = np.nan
    frame = pd.DataFrame(numbers, columns=NUMBERS)
    for name in CATEGORIES:
        frame[name] = np.char.add("level", rng.integers(50, size=n_rows).astype(str))
    frame["opened"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(9000, size=n_rows), unit="D")
    frame.to_parquet(path)


def ours(path: Path) -> tuple[int, int]:
    """Read and prepare by colonnade."""
    rules: dict[str, cn.Number | cn.Category | cn.Date] = {
        **dict.fromkeys(NUMBERS, cn.Number(missing="median", scale=True)),
        **dict.fromkeys(CATEGORIES, cn.Category()),
        "opened": cn.Date(scale=True),
    }
    table = cn.Party("bank", path, prepare=cn.Prepare(rules)).table
    if table.preparing is None:
        raise TypeError("the table is not to be prepared")
    prepared = table.prepared(table.preparing.fitted(None))
    return prepared.n_rows, len(prepared.feature_names)


def theirs(path: Path) -> tuple[int, int]:
    """Read and prepare by pandas and scikit-learn."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    days = make_pipeline(FunctionTransformer(_days), StandardScaler())
    made = ColumnTransformer(
        [
            ("numbers", numbers, NUMBERS),
            ("categories", OneHotEncoder(drop="first", sparse_output=False), CATEGORIES),
            ("date", days, ["opened"]),
        ]
    )
    n_rows, n_columns = made.fit_transform(pd.read_parquet(path)).shape
    return n_rows, n_columns


def _days(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype("int64")


def measure(who: str, path: Path) -> None:
    """Measure one in this process, and print it."""
    begun = time.process_time()
    shape = {"ours": ours, "theirs": theirs}[who](path)
    if shape[1] != N_COLUMNS:
        raise ValueError(f"{who} made {shape[1]} columns, not {N_COLUMNS}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": time.process_time() - begun, "peak": peak}))


def main() -> None:
    """Let both take turns, and compare."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        measure(given.one[0], Path(given.one[1]))
        return
    found: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, given.rows)
        for _ in range(given.repeats):
            for who, turns in found.items():
                done = subprocess.run(  # noqa: S603  # this file
                    [sys.executable, __file__, "--one", who, str(path)], check=True, stdout=subprocess.PIPE
                )
                turns.append(json.loads(done.stdout))
    seconds, peak = (
        {who: median(turn[what] for turn in turns) for who, turns in found.items()} for what in ("seconds", "peak")
    )
    print(f"{given.rows:,} rows, {N_COLUMNS} columns made, medians of {given.repeats}")
    for who in found:
        print(f"{who:8} {seconds[who]:6.2f} s  {peak[who] / 1e9:5.2f} GB at most")
    print(f"ratio    {seconds['ours'] / seconds['theirs']:6.2f}    {peak['ours'] / peak['theirs']:5.2f}")


if __name__ == "__main__":
    main()
