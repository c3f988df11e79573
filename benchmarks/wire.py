"""Excess loss against bytes: the paper's wire, ours, ours on an even draw, and sending everything.

    python benchmarks/wire.py --data FOLDER [--seeds 20] [--only houses,years,covertype] [--json results.json]

Three jobs: least squares on KC House (two parties), ridge on the twin of YearPredictionMSD (three), k-means on
Covertype (three). In each, at the bytes of the paper's wire (8 bytes a unit, T + 3 m T + m d units, d counting y on KC
House):

    paper     ImportanceSampling(m, draws="independent"), Central: Algorithm 1 to the letter, the rows as they are
    ours      ImportanceSampling(round_scores=True), CompactCentral; as many rows as the same bytes hold
    uniform   UniformSampling, CompactCentral; likewise
    all       every row, 8 bytes a value: no excess, by definition

The step is `best_step`'s. All arms have the same seeds, the same number of k-means starts, and the same reference: the
model of all rows, for k-means the best of eight starts. Then the time and size of encoding and decoding rows and ids
against zstd level 3 on the same float64 rows and int64 ids, in processor time of one thread. Exits with 0 if all bars
hold, else 1.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.data.year_twin import year_twin
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.quantise import decode_codes, encode_codes, restore_dithered, round_with_dither
from colonnade.kernels.row_ids import decode_row_ids, encode_row_ids, row_id_bytes
from colonnade.kernels.step_choice import CLUSTERING_NOISE_RATIO, REGRESSION_NOISE_RATIO, best_step
from colonnade.kernels.whitening import mix, whiten

SCORE_BITS = 11.3
MARGIN = 0.985


@dataclass(frozen=True)
class Job:
    """One data set and task, the paper's size, and which share of its excess is allowed at the same bytes."""

    name: str
    features: Floats
    labels: Floats | None
    widths: tuple[int, ...]
    task: Any
    size: int
    n_numbers: int  # a row of the paper's wire
    n_rounded: int
    exact_bits: float
    noise_ratio: float
    allowed: float

    @property
    def budget(self) -> int:
        """Bytes of the paper's wire."""
        n_parties = len(self.widths)
        return 8 * (n_parties + 3 * self.size * n_parties + self.size * self.n_numbers)

    @property
    def everything(self) -> int:
        """Bytes of all rows."""
        n_columns = self.features.shape[1] + (self.labels is not None)
        return 8 * len(self.features) * int(n_columns)

    def step(self, *, by_scores: bool) -> float:
        """Choose the step by the rule; ids and scores take bits only where rows are drawn by scores."""
        n_parties, n_rows = len(self.widths), len(self.features)
        guess = 12 * self.size
        drawn = n_parties * (8 * row_id_bytes(n_rows, guess) / guess + SCORE_BITS) if by_scores else 0.0
        return best_step(self.n_rounded, self.exact_bits + drawn, self.noise_ratio)


def read(path: Path, columns: range) -> Floats:
    """Read columns of a Parquet file."""
    table = pq.read_table(path)
    return np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in columns])


def houses(folder: Path) -> Job:
    """Least squares on KC House: 18 features in two parties, the price at the second."""
    values = read(folder / "kc_house.parquet", range(2, 21))
    ratio = REGRESSION_NOISE_RATIO
    return Job("KC House", values[:, 1:], values[:, 0], (9, 9), cn.Regression(), 100, 19, 19, 0.0, ratio, 1 / 15)


def years(folder: Path) -> Job:
    """Ridge on the twin of YearPredictionMSD: 90 features in three parties."""
    features, labels = year_twin(folder / "year_msd_sample7000.parquet").train
    task, ratio = cn.Regression(l2=0.1), REGRESSION_NOISE_RATIO
    return Job("YearPredictionMSD twin", features, labels, (30, 30, 30), task, 1000, 90, 91, 0.0, ratio, 1 / 15)


def covertype(folder: Path) -> Job:
    """K-means on Covertype: numeric columns at mean 0 and deviation 1, all dealt in turn to three parties."""
    values = read(folder / "covtype.parquet", range(54))
    values[:, :10] = (values[:, :10] - values[:, :10].mean(axis=0)) / values[:, :10].std(axis=0)
    values = values[:, np.concatenate([np.arange(first, 54, 3) for first in range(3)])]
    task, ratio = cn.KMeans(n_clusters=15), CLUSTERING_NOISE_RATIO
    return Job("Covertype k-means", values, None, (18, 18, 18), task, 1000, 54, 10, 10.0, ratio, 1 / 8)


JOBS: dict[str, Callable[[Path], Job]] = {"houses": houses, "years": years, "covertype": covertype}


class Measure:
    """Counts the excess of models of a job over the model of all rows."""

    def __init__(self, job: Job) -> None:
        self._job = job
        if job.labels is None:
            self._best = min(self._cost(self._from_start(start)) for start in range(8))
            return
        self._mean = np.append(job.features.mean(axis=0), job.labels.mean())
        centred = np.column_stack([job.features, job.labels]) - self._mean
        self._second = centred.T @ centred / len(centred)
        federation = cn.Federation(cn.split_columns(job.features, job.labels, job.widths))
        self._best = self._cost(federation.fit(job.task, sampler=cn.AllRows()).model)

    def excess(self, model: Any) -> float:
        """Compare with the best."""
        return self._cost(model) / self._best - 1

    def _cost(self, model: Any) -> float:
        if self._job.labels is None:
            return float(nearest_centers(self._job.features, model.cluster_centers_)[1].sum())
        direction = np.append(model.coef_, -1.0)
        offset = self._mean @ direction + model.intercept_
        return float(direction @ self._second @ direction + offset**2 + self._job.task.l2 * model.coef_ @ model.coef_)

    def _from_start(self, start: int) -> Any:
        job = self._job
        federation = cn.Federation(cn.split_columns(job.features, None, job.widths))
        task = cn.KMeans(job.task.n_clusters, n_starts=1)
        return federation.fit(task, sampler=cn.AllRows(), seed=start).model


def fitting_size(federation: cn.Federation, job: Job, arm: Callable[[int], dict[str, Any]]) -> int:
    """Find how many rows the budget holds, by trying; the length of codes varies a little from seed to seed."""
    size = 8 * job.size
    for seed in range(3):
        used = federation.fit(_quick(job.task), **arm(size), seed=seed).ledger.bytes
        size = int(MARGIN * size * job.budget / used)
    return size


def _quick(task: Any) -> Any:
    return cn.KMeans(task.n_clusters, n_starts=1) if isinstance(task, cn.KMeans) else task


def run_job(job: Job, n_seeds: int) -> dict[str, Any]:
    """Run all arms of a job."""
    federation = cn.Federation(cn.split_columns(job.features, job.labels, job.widths))
    measure = Measure(job)
    by_scores, evenly = job.step(by_scores=True), job.step(by_scores=False)
    arms: dict[str, Callable[[int], dict[str, Any]]] = {
        "paper": lambda m: {"sampler": cn.ImportanceSampling(m, draws="independent")},
        "ours": lambda m: {
            "sampler": cn.ImportanceSampling(m, round_scores=True),
            "solver": cn.CompactCentral(by_scores),
        },
        "uniform": lambda m: {"sampler": cn.UniformSampling(m), "solver": cn.CompactCentral(evenly)},
    }
    found: dict[str, Any] = {"job": job.name, "budget": job.budget, "everything": job.everything, "arms": {}}
    for name, arm in arms.items():
        size = job.size if name == "paper" else fitting_size(federation, job, arm)
        excesses, sent = [], []
        for seed in range(n_seeds):
            run = federation.fit(job.task, **arm(size), seed=seed)
            excesses.append(measure.excess(run.model))
            sent.append(job.budget if name == "paper" else run.ledger.bytes)
        found["arms"][name] = {
            "size": size,
            "step": {"ours": by_scores, "uniform": evenly}.get(name),
            "bytes": max(sent),
            "excess": float(np.mean(excesses)),
            "worst": float(np.max(excesses)),
        }
        print(f"  {name:<8} m = {size:>6,}  {max(sent):>9,} bytes  {_shares(excesses)}", flush=True)
    ours = found["arms"]["ours"]
    found["share"] = ours["excess"] / found["arms"]["paper"]["excess"]
    found["passed"] = bool(found["share"] <= job.allowed and ours["bytes"] <= job.budget)
    return found


def _shares(excesses: list[float]) -> str:
    return f"excess {100 * np.mean(excesses):8.3f} % on average, {100 * np.max(excesses):8.3f} % at worst"


def speed(job: Job, size: int, step: float, repeats: int = 15) -> dict[str, Any]:
    """Time encoding and decoding of rows and ids, least of several runs, interleaved, against zstd level 3."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(len(job.features), size=size))
    columns = job.features if job.labels is None else np.column_stack([job.features, job.labels])
    ends = np.cumsum(job.widths)
    ends[-1] = columns.shape[1]
    blocks = [np.asfortranarray(part) for part in np.split(columns, ends[:-1], axis=1)]
    whitenings = [whiten(lambda block=block: iter([block])) for block in blocks]  # type: ignore[misc]
    taken = [np.ascontiguousarray(block[rows]) for block in blocks]

    def ours() -> int:
        n_bytes = _ids_there_and_back(rows)
        for values, whitening in zip(taken, whitenings, strict=True):
            codes = round_with_dither(whitening.of(values), step, np.random.default_rng(1))
            data = encode_codes(codes)
            codes = decode_codes(data, len(whitening.mixing), len(values))
            mix(restore_dithered(codes, step, np.random.default_rng(1)), whitening.mean, whitening.mixing)
            n_bytes += len(data)
        return n_bytes

    zstd = pa.Codec("zstd", compression_level=3)

    def theirs() -> int:
        n_bytes = 0
        for array in (rows, *taken):
            raw = array.tobytes()
            packed = zstd.compress(raw)
            zstd.decompress(packed, len(raw))
            n_bytes += len(packed)
        return n_bytes

    seconds: dict[str, list[float]] = {"ours": [], "zstd": []}
    sizes = {}
    for _ in range(repeats):
        for name, work in (("ours", ours), ("zstd", theirs)):
            started = time.process_time()
            sizes[name] = work()
            seconds[name].append(time.process_time() - started)
    found = {name: {"ms": 1e3 * min(times), "bytes": sizes[name]} for name, times in seconds.items()}
    faster, smaller = (found["ours"][what] < found["zstd"][what] for what in ("ms", "bytes"))
    return {"job": job.name, "size": size, **found, "passed": bool(faster and smaller)}


def _ids_there_and_back(rows: Rows) -> int:
    data = encode_row_ids(rows)
    decode_row_ids(data, len(rows))
    return len(data)


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="Excess loss against bytes.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA"), help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default=",".join(JOBS), help="which jobs, with commas")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the data sets: --data FOLDER, or COLONNADE_DATA")
    results: dict[str, list[dict[str, Any]]] = {"jobs": [], "speed": []}
    for name in options.only.split(","):
        job = JOBS[name](options.data)
        print(f"{job.name}: {job.budget:,} bytes; all rows are {job.everything:,}", flush=True)
        found = run_job(job, options.seeds)
        verdict = "PASS" if found["passed"] else "FAIL"
        print(f"  {verdict}  1/{1 / found['share']:.1f} of the paper's excess; the bar is 1/{1 / job.allowed:.0f}")
        results["jobs"].append(found)
        if job.labels is not None:
            ours = found["arms"]["ours"]
            timed = speed(job, ours["size"], ours["step"])
            results["speed"].append(timed)
            print(f"  {'PASS' if timed['passed'] else 'FAIL'}  rows and ids there and back, {ours['size']:,} rows:")
            print(
                *(
                    f"    {kind}: {timed[kind]['ms']:.1f} ms, {timed[kind]['bytes']:,} bytes"
                    for kind in ("ours", "zstd")
                )
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return 0 if all(found["passed"] for kind in results.values() for found in kind) else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
