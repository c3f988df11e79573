"""What a plan promises against what its runs give: on tables nobody tuned it to, and beside fixed ways at equal bytes.

    python benchmarks/promises.py --data FOLDER [--seeds 20] [--only houses,bill] [--half judged] [--jobs 2]
    python benchmarks/promises_report.py       # the bars alone, from what was stored
    python scripts/promises_page.py            # the figure and the tables of docs/explanation/promises.md

For each table of `tables.py` four budgets: the least that works (as the error of a smaller one names it), that of all
rows at 8 bytes a value, and two between: the larger is a quarter of a byte a value, the smaller halfway from the least
in logarithm. The whole of KC House and of the twin are tried at the bytes of the paper's wire too. For each budget a
plan and its runs; then, but where the budget holds all rows, fixed arms whose size is the largest that fits:

    importance, uniform    by ImportanceSampling(round_scores=0.2) of distinct rows, or UniformSampling; each with rows
                           as they are (Central), and rounded to 0.3, 0.5 and 0.8 standard deviations (CompactCentral)
    paper                  ImportanceSampling(draws="independent"), Central: Algorithm 1 to the letter

The best fixed arm is chosen by five seeds, and measured by as many others as the plan has runs. The excess is over the
least cost on all rows (`excess.py`). One line of JSON a plan; what --out has already is not measured again. Exits with
0 if all bars hold, else 1.
"""

import argparse
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from excess import ClusteringExcess, LinearExcess
from promises_report import key, read, report
from tables import TABLES, Table, load
from threadpoolctl import threadpool_limits

import colonnade as cn

OUT = Path(__file__).with_suffix(".jsonl")
ARM_SEEDS, STEPS = 5, (0.3, 0.5, 0.8)
FEW_SEEDS = 5  # where all rows are sent, runs differ in nothing but their dither
PATIENCE = 60.0  # seconds for an arm's five seeds; two are taken in any case
MARGIN = 0.985  # lengths of codes vary from seed to seed
Line = dict[str, Any]
Arm = Callable[[int], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A table with its parties, and how models of it are measured."""

    table: Table
    federation: cn.Federation
    excess: Callable[[Any], float]

    @classmethod
    def of(cls, table: Table) -> "Trial":
        """Give each party its columns, and find the least cost."""
        excess = ClusteringExcess(table) if table.labels is None else LinearExcess(table)
        return cls(table, table.federation(), excess)

    def plan(self, budget: int, seed: int) -> Any:
        """Ask for a plan."""
        return self.federation.plan(self.table.task, budget_bytes=budget, seed=seed)

    def run(self, seed: int, **ways: Any) -> tuple[int, float]:
        """Count the bytes and the excess of a run."""
        run = self.federation.fit(self.table.task, seed=seed, **ways)
        return run.ledger.bytes, float(f"{self.excess(run.model):.6g}")

    def runs(self, seeds: range, patience: float = float("inf"), **ways: Any) -> Line:
        """Do as many runs, or two at least when patience ends."""
        found, started = [], perf_counter()
        for seed in seeds:
            found.append(self.run(seed, **ways))
            if len(found) > 1 and perf_counter() - started > patience:
                break
        return {"bytes": [sent for sent, _ in found], "excess": [excess for _, excess in found]}


def least_budget(trial: Trial, seed: int) -> tuple[int, Line]:
    """Ask for one byte, and for what the error says then; tell how often that took, and whether less would do."""
    budget, named = 1, []
    while (refusal := _refusal(trial, budget, seed)) is not None:
        numbers = re.findall(r"[Aa]llow (\d[\d,]*)", refusal) or re.findall(r"\d[\d,]*", refusal)
        budget = max(*(int(number.replace(",", "")) for number in numbers), budget + budget // 50 + 1)
        named.append(budget)
    return budget, {"named": named, "less_works": _refusal(trial, int(0.97 * budget), seed) is None}


def _refusal(trial: Trial, budget: int, seed: int) -> str | None:
    try:
        trial.plan(budget, seed)
    except cn.InputError as error:
        return str(error)
    return None


def budgets(table: Table, least: int) -> dict[str, int]:
    """Name the budgets."""
    source, everything = TABLES[table.name], table.everything
    paper = {"paper": source.paper_bytes} if source.paper_bytes and table.whole else {}
    if source.paper_only:
        return paper
    upper = max(everything // 32, 2 * least)
    return {"least": least, "middle": round((least * upper) ** 0.5), "upper": upper, "all": everything, **paper}


def arms() -> dict[str, Arm]:
    """Name the fixed ways; each takes a size."""
    samplers = {"importance": _importance, "uniform": cn.UniformSampling}
    solvers = {"": cn.Central(), **{f" {step}": cn.CompactCentral(step) for step in STEPS}}
    found: dict[str, Arm] = {
        f"{draw}{step}": partial(_ways, sampler, solver)
        for draw, sampler in samplers.items()
        for step, solver in solvers.items()
    }
    return {**found, "paper": partial(_ways, partial(cn.ImportanceSampling, draws="independent"), cn.Central())}


def _importance(size: int) -> Any:
    draws: dict[str, Any] = {"draws": "distinct"}
    try:
        return cn.ImportanceSampling(size, round_scores=0.2, **draws)
    except cn.InputError:  # of a version without them
        return cn.ImportanceSampling(size, round_scores=0.2)


def _ways(sampler: Callable[[int], Any], solver: Any, size: int) -> dict[str, Any]:
    return {"sampler": sampler(size), "solver": solver}


def fitting_size(trial: Trial, arm: Arm, budget: int) -> int | None:
    """Find how many rows the budget holds, along the line of the last two tried; None where it holds too few to fit."""
    n_rows, n_features = trial.table.features.shape
    least, allowed = n_features + 2, MARGIN * budget
    sizes = [least, min(2 * least, n_rows)]
    sent = [trial.run(0, **arm(size))[0] for size in sizes]
    if sent[0] > allowed:
        return None
    for _ in range(3):
        rows_a_byte = (sizes[-1] - sizes[-2]) / (sent[-1] - sent[-2])
        size = max(least, min(n_rows, int(sizes[-1] + (allowed - sent[-1]) * rows_a_byte)))
        if abs(size - sizes[-1]) < 0.02 * size:  # no more than chance moves them
            break
        sizes.append(size)
        sent.append(trial.run(1, **arm(size))[0])
    return sizes[-1] if sent[-1] <= budget else int(sizes[-1] * allowed / sent[-1])


def measured_within(trial: Trial, arm: Arm, size: int, budget: int) -> Line:
    """Measure an arm, with fewer rows until no seed is over the budget: a plan is not over it either."""
    while True:
        line = {"size": size, **trial.runs(range(ARM_SEEDS), PATIENCE, **arm(size))}
        if (most := max(line["bytes"])) <= budget:
            return line
        size = int(size * MARGIN * budget / most)


def fixed_arms(trial: Trial, budget: int, n_seeds: int) -> Line:
    """Measure each fixed arm that fits, and the best of them once more with other seeds."""
    found: Line = {}
    for name, arm in arms().items():
        try:
            if (size := fitting_size(trial, arm, budget)) is not None:
                found[name] = measured_within(trial, arm, size, budget)
        except cn.ColonnadeError as error:
            found[name] = {"error": str(error)}
    measured = {name: line for name, line in found.items() if "excess" in line and name != "paper"}
    if not measured:
        return {"arms": found}
    best = min(measured, key=lambda name: float(np.mean(measured[name]["excess"])))
    others = range(ARM_SEEDS, ARM_SEEDS + n_seeds)
    return {
        "arms": found,
        "best": {"arm": best, **trial.runs(others, 4 * PATIENCE, **arms()[best](found[best]["size"]))},
    }


def promise(trial: Trial, budget: int, seed: int, n_seeds: int) -> Line:
    """Make a plan, and do it as often as there are seeds."""
    started = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            plan = trial.plan(budget, seed)
        except cn.ColonnadeError as error:
            return {"error": str(error)}
    planned = perf_counter() - started
    if isinstance(plan.sampler, cn.AllRows):
        n_seeds = min(n_seeds, FEW_SEEDS)
    found: Line = {
        "planned": _interval(plan.excess),
        "one_run": _interval(getattr(plan, "one_run", None)),
        "warnings": [str(each.message) for each in caught if issubclass(each.category, cn.AssumptionWarning)],
        "sampler": str(plan.sampler),
        "solver": str(plan.solver),
        "pilot_bytes": plan.pilot_bytes,
        "plan_seconds": round(planned, 3),
    }
    started = perf_counter()
    try:
        found |= trial.runs(range(n_seeds), plan=plan)
    except cn.ColonnadeError as error:
        return {**found, "error": str(error)}
    return {**found, "run_seconds": round((perf_counter() - started) / n_seeds, 3)}


def _interval(excess: Any) -> list[float] | None:
    return None if excess is None else [float(f"{value:.6g}") for value in (excess.mean, excess.low, excess.high)]


def lines_of(trial: Trial, options: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[Line]:
    """Measure what is not done yet of a table, a line at a time."""
    table = trial.table
    for pilot in range(options.pilots):
        least, asked = least_budget(trial, pilot)
        for place, budget in budgets(table, least).items():
            line = {"table": table.name, "half": table.half, "rows": len(table.features), "place": place}
            line |= {"budget": budget, "pilot": pilot, "seeds": options.seeds}
            if key(line) in done:
                continue
            if place == "least":
                line |= asked
            line |= promise(trial, budget, pilot, options.seeds)
            if place != "all" and not options.no_arms:
                line |= fixed_arms(trial, budget, options.seeds)
            yield line


def measure_table(name: str, options: argparse.Namespace) -> None:
    """Measure a table, and add its lines to the file as they come."""
    stored = read(options.out) if options.out.exists() else []
    done = {key(line) for line in stored if "error" not in line}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines_of(Trial.of(load(name, options.data, options.rows)), options, done):
            append(options.out, line)
            print(f"{name:<20} {line['place']:<7} {_said(line)}", flush=True)


def append(path: Path, line: Line) -> None:
    """Add a line in one piece: other processes add theirs."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode())
    finally:
        os.close(file)


def _said(line: Line) -> str:
    if "error" in line:
        return str(line["error"])
    planned = "no number"
    if line["planned"] is not None:
        planned = "{:.4g} % ({:.4g} to {:.4g})".format(*(100 * value for value in line["planned"]))
    return f"{line['budget']:>11,} bytes: planned {planned}, came {100 * np.mean(line['excess']):.4g} %"


def main() -> int:
    """Measure, keep, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="What plans promise, and what their runs give.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA", "."), help="folder of the tables")
    parser.add_argument("--seeds", type=int, default=20, help="runs of a plan")
    parser.add_argument("--pilots", type=int, default=1, help="plans for each budget")
    parser.add_argument("--only", help="which tables, with commas; if left out, all but extra ones")
    parser.add_argument("--half", choices=("chosen", "judged"), help="tables of one half")
    parser.add_argument("--rows", type=int, help="of larger tables, an even draw of so many rows")
    parser.add_argument("--no-arms", action="store_true", help="plans and their runs alone")
    parser.add_argument("--jobs", type=int, default=1, help="how many tables at a time")
    parser.add_argument("--out", type=Path, default=OUT, help="keep the measurements here, a JSON object a line")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [name for name, source in TABLES.items() if not source.extra]
    if unknown := set(names) - TABLES.keys():
        parser.error(f"there is no table {', '.join(sorted(unknown))}. Name some of: {', '.join(TABLES)}")
    names = [name for name in names if options.half in (None, TABLES[name].half)]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(measure_table, name, options) for name in names]
    code = report([line for line in read(options.out) if line["table"] in names])
    for job in jobs:  # last: a table that fails stops no other
        job.result()
    return code


if __name__ == "__main__":
    sys.exit(main())
