"""Excess loss against bytes: the paper's wire, ours, ours on an even draw, and sending everything.

    python benchmarks/wire.py --data FOLDER [--seeds 20] [--only houses,years,covertype] [--out benchmarks/wire.jsonl]
    python scripts/wire_page.py        # the figure and the table of docs/explanation/wire.md, from what was stored

Three jobs: least squares on KC House (two parties), ridge on the twin of YearPredictionMSD (three), k-means on
Covertype (three). In each, at the bytes of the paper's wire (8 bytes a unit, T + 3 m T + m d units, d counting y on KC
House), and at some multiples of them:

    paper     ImportanceSampling(m, draws="independent"), Central: Algorithm 1 to the letter, the rows as they are
    ours      ImportanceSampling(round_scores=0.2), CompactCentral; as many rows as the same bytes hold
    uniform   UniformSampling, CompactCentral; likewise
    all       every row, 8 bytes a value: no excess, by definition

The step is `best_step`'s. All arms have the same seeds, the same number of k-means starts, and the same reference: the
model of all rows, for k-means the best of eight starts. Then the time and size of encoding and decoding rows and ids
against zstd level 3 (`wire_speed.py`). Exits with 0 if all bars hold, else 1.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits
from wire_speed import speed

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.row_ids import row_id_bytes
from colonnade.kernels.value_bits import value_bits
from colonnade.paper.data_sets.year_twin import year_twin

ROUND_SCORES, SCORE_BITS = 0.2, 5.0
MARGIN = 0.985
# How often the unexplained variance (of residuals, of distances to centres) fits into what one unit of rounding
# variance in every whitened, or scaled, column adds. For least squares that is the squared length of (coefficients, -1)
# in whitened columns over the residuals' variance; calibrated weights make it larger. For k-means it is the variance of
# all columns over the cost a row. Chosen by trial on KC House, the YearPredictionMSD twin and Covertype.
REGRESSION_NOISE_RATIO, CLUSTERING_NOISE_RATIO = 10.0, 2.5
STEPS = np.geomspace(0.05, 2.0, 38)


def best_step(n_values: int, other_bits: float, noise_ratio: float) -> float:
    """Choose the step that gives the least excess loss for the bytes, in standard deviations; 0.4 to 1 as a rule.

    With b bytes there are m = b / (bytes a row) rows. The excess loss falls as 1 / m. Rounding adds variance to what
    the model leaves unexplained, in proportion to step^2 / 12, and the excess grows by that factor. A row has so many
    rounded values, over all parties, and takes other bits besides: its id and its score for each party, exact columns.
    The minimum is flat: a step twice or half as large costs some 10 %.
    """
    costs = [(1 + noise_ratio * s**2 / 12) * (other_bits + n_values * value_bits(s)) for s in STEPS.tolist()]
    return float(STEPS[int(np.argmin(costs))])


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
    multiples: tuple[float, ...]  # of the paper's size

    def budget(self, size: int) -> int:
        """Count the bytes of the paper's wire."""
        n_parties = len(self.widths)
        return 8 * (n_parties + 3 * size * n_parties + size * self.n_numbers)

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
    task, multiples = cn.Regression(), (0.5, 1.0, 2.0, 4.0)
    return Job("KC House", values[:, 1:], values[:, 0], (9, 9), task, 100, 19, 19, 0.0, ratio, 1 / 15, multiples)


def years(folder: Path) -> Job:
    """Ridge on the twin of YearPredictionMSD: 90 features in three parties."""
    features, labels = year_twin(folder / "year_msd_sample7000.parquet").train
    task, ratio, name = cn.Regression(l2=0.1), REGRESSION_NOISE_RATIO, "YearPredictionMSD twin"
    return Job(name, features, labels, (30, 30, 30), task, 1000, 90, 91, 0.0, ratio, 1 / 15, (0.25, 0.5, 1.0))


def covertype(folder: Path) -> Job:
    """K-means on Covertype: numeric columns at mean 0 and deviation 1, all dealt in turn to three parties."""
    values = read(folder / "covtype.parquet", range(54))
    values[:, :10] = (values[:, :10] - values[:, :10].mean(axis=0)) / values[:, :10].std(axis=0)
    values = values[:, np.concatenate([np.arange(first, 54, 3) for first in range(3)])]
    task, ratio, name = cn.KMeans(n_clusters=15), CLUSTERING_NOISE_RATIO, "Covertype k-means"
    return Job(name, values, None, (18, 18, 18), task, 1000, 54, 10, 10.0, ratio, 1 / 8, (0.25, 1.0))


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


def fitting_size(federation: cn.Federation, job: Job, arm: Callable[[int], dict[str, Any]], budget: int) -> int:
    """Find how many rows the budget holds, by trying; the length of codes varies a little from seed to seed."""
    size = max(8 * budget * job.size // job.budget(job.size), 50)
    for seed in range(3):
        used = federation.fit(_quick(job.task), **arm(size), seed=seed).ledger.bytes
        size = int(MARGIN * size * budget / used)
    return size


def _quick(task: Any) -> Any:
    return cn.KMeans(task.n_clusters, n_starts=1) if isinstance(task, cn.KMeans) else task


def run_job(job: Job, n_seeds: int, keep: Callable[[dict[str, Any]], None]) -> bool:
    """Run all arms of a job at each budget; tell whether the bar holds at the paper's."""
    federation = cn.Federation(cn.split_columns(job.features, job.labels, job.widths))
    measure = Measure(job)
    steps = {"ours": job.step(by_scores=True), "uniform": job.step(by_scores=False)}
    arms: dict[str, Callable[[int], dict[str, Any]]] = {
        "paper": lambda m: {"sampler": cn.ImportanceSampling(m, draws="independent")},
        "ours": lambda m: {
            "sampler": cn.ImportanceSampling(m, round_scores=ROUND_SCORES),
            "solver": cn.CompactCentral(steps["ours"]),
        },
        "uniform": lambda m: {"sampler": cn.UniformSampling(m), "solver": cn.CompactCentral(steps["uniform"])},
    }
    means, passed = {}, True
    for multiple in sorted(job.multiples, key=lambda multiple: multiple != 1.0):  # the bar's first
        paper_size = round(multiple * job.size)
        budget = job.budget(paper_size)
        for name, arm in arms.items():
            size = paper_size if name == "paper" else fitting_size(federation, job, arm, budget)
            runs = [federation.fit(job.task, **arm(size), seed=seed) for seed in range(n_seeds)]
            excesses = [measure.excess(run.model) for run in runs]
            sent = [budget if name == "paper" else run.ledger.bytes for run in runs]
            means[name] = float(np.mean(excesses))
            print(f"  {name:<8} m = {size:>6,}  {max(sent):>9,} bytes  {_shares(excesses)}", flush=True)
            place = {"job": job.name, "arm": name, "budget": budget, "size": size, "step": steps.get(name)}
            keep({**place, "bytes": sent, "excess": [float(f"{excess:.6g}") for excess in excesses]})
            passed &= max(sent) <= budget
        if multiple == 1.0:
            share = means["ours"] / means["paper"]
            passed &= share <= job.allowed
            print(f"  {_verdict(passed)}  1/{1 / share:.1f} of the paper's excess; the bar is 1/{1 / job.allowed:.0f}")
    return passed


def _shares(excesses: list[float]) -> str:
    return f"excess {100 * np.mean(excesses):8.3f} % on average, {100 * np.max(excesses):8.3f} % at worst"


def _verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def run_speed(job: Job, keep: Callable[[dict[str, Any]], None]) -> bool:
    """Time the codes against zstd at the size that the paper's bytes hold."""
    step = job.step(by_scores=True)
    federation = cn.Federation(cn.split_columns(job.features, job.labels, job.widths))

    def arm(m: int) -> dict[str, Any]:
        return {"sampler": cn.ImportanceSampling(m, round_scores=ROUND_SCORES), "solver": cn.CompactCentral(step)}

    size = fitting_size(federation, job, arm, job.budget(job.size))
    found = speed(job.features, job.labels, job.widths, size, step)
    passed = all(found["ours"][what] < found["zstd"][what] for what in ("ms", "bytes"))
    print(f"  {_verdict(passed)}  rows and ids there and back, {size:,} rows:")
    print(*(f"    {kind}: {found[kind]['ms']:.2f} ms, {found[kind]['bytes']:,} bytes" for kind in ("ours", "zstd")))
    keep({"job": job.name, "size": size, "speed": found})
    return passed


def main() -> int:
    """Measure, print, keep, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="Excess loss against bytes.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA"), help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default=",".join(JOBS), help="which jobs, with commas")
    parser.add_argument("--out", type=Path, help="keep the measurements here, a JSON object a line")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the data sets: --data FOLDER, or COLONNADE_DATA")
    kept: list[str] = []

    def keep(found: dict[str, Any]) -> None:
        kept.append(json.dumps(found))
        if options.out:
            options.out.write_text("\n".join(kept) + "\n")

    passed = True
    for name in options.only.split(","):
        job = JOBS[name](options.data)
        print(f"{job.name}: {job.budget(job.size):,} bytes; all rows are {job.everything:,}", flush=True)
        keep({"job": job.name, "bar": job.allowed, "budget": job.budget(job.size), "everything": job.everything})
        passed &= run_speed(job, keep)
        passed &= run_job(job, options.seeds, keep)
    return 0 if passed else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
