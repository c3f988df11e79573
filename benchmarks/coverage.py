"""How often 95 % intervals of coefficients hold, by `Run.summary`: on houses, the twin of songs, and credit default.

    python benchmarks/coverage.py --data FOLDER --out benchmarks/coverage.jsonl

"Table": the same rows each time, drawn anew; the truth is the model of all rows. "Population": the rows themselves are
drawn anew from KC House, which is then the population. Goes on where it was stopped. Constants were chosen on KC House.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from tables import houses, limit, years
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.kernels.arrays import Floats

SIZES = (500, 1000, 2000)
LEAST_MEAN, MOST_MEAN, LEAST_SINGLE = 0.935, 0.965, 0.90
DRAWS: dict[str, Callable[[int], Any]] = {
    "stratified": lambda size: cn.ImportanceSampling(size),
    "distinct": lambda size: cn.ImportanceSampling(size, draws="distinct"),
    "even": lambda size: cn.UniformSampling(size),
}
WIRES = ("floats", "rounded")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in parties, what is learned of them, how often that is tried, and whether bars are set for it."""

    name: str
    features: Floats
    labels: Floats
    widths: tuple[int, ...]
    task: Any
    seeds: int
    step: float = 0.5
    draws: tuple[str, ...] = ("stratified", "distinct")
    barred: bool = True

    def solver(self, wire: str) -> Any:
        """Say how rows travel."""
        return cn.Central() if wire == "floats" else cn.CompactCentral(self.step)

    def federation(self, rows: Any = slice(None)) -> cn.Federation:
        """Give each party its columns of some rows."""
        return cn.Federation(cn.split_columns(self.features[rows], self.labels[rows], self.widths))


def kc_house(folder: Path) -> Table:
    """KC House without one of three columns of which two give the third: else coefficients are not defined."""
    features, labels, _ = houses(folder)
    return Table("KC House", np.delete(features, 10, axis=1), _some(labels), (9, 8), cn.Regression(), 200)


def songs(folder: Path) -> Table:
    """Make the twin of YearPredictionMSD."""
    features, labels, widths = years(folder)
    return Table("YearPredictionMSD twin", features, _some(labels), widths, cn.Regression(), 100)


def credit(folder: Path) -> Table:
    """Credit default, who will not pay: 23 columns dealt in turn to three parties.

    The usual step would hide how the bills of one month, at one party, differ from those of the next.
    """
    table = pq.read_table(folder / "credit_default.parquet")
    values = np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])
    hands = [np.arange(first, 24, 3) for first in (1, 2, 3)]
    task = cn.Classification(l2=1e-4, standardize=True)
    return Table("credit default, classes", values[:, np.concatenate(hands)], values[:, 24], (8, 8, 7), task, 200, 0.25)


def limits(folder: Path) -> Table:
    """Credit default, the limit: a table that nothing was chosen on."""
    features, labels, widths = limit(folder)
    return Table("credit default, limit", features, _some(labels), widths, cn.Regression(), 100, barred=False)


def _some(labels: Floats | None) -> Floats:
    if labels is None:
        raise ValueError("a table without labels")
    return labels


TABLES = {"houses": kc_house, "songs": songs, "credit": credit, "limit": limits}


@dataclass(frozen=True)
class Arm:
    """One way to learn, and what its intervals are for."""

    of: str
    draws: str
    wire: str
    size: int


def arms(name: str, table: Table) -> Iterator[Arm]:
    """List what is tried on a table."""
    for draws, wire, size in product(table.draws, WIRES, SIZES):
        yield Arm("table", draws, wire, size)
    if name == "houses":
        for wire, size in product(WIRES, SIZES):
            yield Arm("population", "stratified", wire, size)
        for size in SIZES:
            yield Arm("table", "even", "floats", size)


def truth(table: Table) -> Floats:
    """Give the coefficients of all rows."""
    return values_of(table.federation().fit(table.task, sampler=cn.AllRows()).model)


def values_of(model: Any) -> Floats:
    """Give a model's coefficients, without the intercept, which is far from all rows."""
    return np.asarray(np.ravel(model.coef_))


def covered(table: Table, arm: Arm, seeds: range, true: Floats) -> dict[str, Any]:
    """Count how often each coefficient's interval holds the truth, and how errors compare with standard errors."""
    federation = table.federation() if arm.of == "table" else None
    holds, ratios = np.zeros((2, len(seeds), len(true)))
    for place, seed in enumerate(seeds):
        if federation is None or arm.of == "population":
            rows = np.random.default_rng([seed, 7]).integers(len(table.labels), size=len(table.labels))
            federation = table.federation(rows)
        sampler = DRAWS[arm.draws](arm.size)
        run = federation.fit(table.task, sampler=sampler, solver=table.solver(arm.wire), seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cn.AssumptionWarning)
            lines = run.summary("table" if arm.of == "table" else "population").coefficients[1:]
        low, high, error = (
            np.array([getattr(line, name) for line in lines], np.float64) for name in ("low", "high", "standard_error")
        )
        holds[place] = np.where(np.isnan(error), np.nan, (low <= true) & (true <= high))
        ratios[place] = (values_of(run.model) - true) / error
    return {
        "undefined": float(np.round(np.isnan(holds).mean(), 4)),
        "covered": np.round(np.nanmean(holds, axis=0), 4).tolist(),
        "error over standard error": float(np.round(np.sqrt(np.nanmean(np.square(ratios))), 3)),
    }


def passes(found: dict[str, Any], seeds: int) -> bool:
    """Tell whether the bars hold: of a mean, and with 200 seeds of each coefficient."""
    mean = float(np.mean(found["covered"]))
    return LEAST_MEAN <= mean <= MOST_MEAN and (seeds < 200 or min(found["covered"]) >= LEAST_SINGLE)


def main() -> int:
    """Measure what is not stored yet, print, store, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="Coverage of intervals.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA"), help="folder of the data sets")
    parser.add_argument("--only", default=",".join(TABLES), help="which tables, with commas")
    parser.add_argument("--out", type=Path, help="keep the measurements here, a JSON object a line")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the data sets: --data FOLDER, or COLONNADE_DATA")
    stored = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    done = {_place(json.loads(line)) for line in stored}
    passed = True
    for name in options.only.split(","):
        table = TABLES[name](options.data)
        true = truth(table)
        for arm in arms(name, table):
            place = {"table": table.name, "of": arm.of, "draws": arm.draws, "wire": arm.wire, "size": arm.size}
            if _place(place) in done:
                continue
            found = covered(table, arm, range(table.seeds), true)
            barred = table.barred and arm.draws != "even"
            held = passes(found, table.seeds)
            passed &= held or not barred
            mean, least = 100 * np.mean(found["covered"]), 100 * min(found["covered"])
            word = ("PASS" if held else "FAIL") if barred else "    "
            print(
                f"{word} {' '.join(map(str, place.values()))}: {mean:.1f} %, least {least:.1f} %, "
                f"errors over standard errors {found['error over standard error']:.2f}",
                flush=True,
            )
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps({**place, "seeds": table.seeds, "barred": barred, **found}) + "\n")
    return 0 if passed else 1


def _place(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("table", "of", "draws", "wire", "size"))


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
