"""Excess log-loss and AUC of classifications against bytes: rounded rows beside float rows, and beside all rows.

    python benchmarks/classification.py --data FOLDER [--seeds 20] [--only credit] [--out FILE.jsonl]

Three parties, to which columns are dealt in turn, at mean 0 and deviation 1, with a ridge that adds 1e-4 / 2 |theta|^2
to the mean loss. Sizes and steps were found on seeds from 1,000 on, and are judged on those from 0. Every line keeps
what each seed gave; scripts/classes_page.py makes the page of them.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score

import colonnade as cn
from colonnade.kernels.arrays import Floats

TASK = cn.Classification(l2=0.5e-4)
N_PARTIES = 3
EVEN, BY_CLASS, SHARPENED = cn.UniformSampling, cn.ImportanceSampling, partial(cn.ImportanceSampling, sharpened=True)
# As a plan draws: each row once, scores in some five bits.
COMPACT = partial(cn.ImportanceSampling, draws="distinct", round_scores=0.8, sharpened=True)
FLOATS: dict[str, Any] = {"even": EVEN, "by class": BY_CLASS, "sharpened": SHARPENED}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a yes/no label, and what is tried: sizes of float rows, and sizes and steps of rounded ones."""

    name: str
    features: Floats
    labels: Floats
    sizes: tuple[int, ...]
    compact: tuple[tuple[int, float], ...]
    fewest_even: int = 0  # of fewer, some draws have but one class

    def federation(self) -> cn.Federation:
        """Deal the columns in turn; the label goes to the last."""
        hands = [np.arange(party, self.features.shape[1], N_PARTIES) for party in range(N_PARTIES)]
        return cn.Federation(
            cn.split_columns(self.features[:, np.concatenate(hands)], self.labels, [len(hand) for hand in hands])
        )


def read(path: Path, columns: range) -> Floats:
    """Read some columns of a Parquet file."""
    table = pq.read_table(path)
    return np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in columns])


def standard(features: Floats) -> Floats:
    """Put columns at mean 0 and deviation 1."""
    spread = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def credit(folder: Path, *, kept: float = 1.0) -> Table:
    """Take credit default, and of its positives a part."""
    values = read(folder / "credit_default.parquet", range(25))
    rows = (values[:, -1] == 0) | (np.random.default_rng(5).random(len(values)) < kept)
    name, steps = ("credit default", (0.7, 0.6, 0.5)) if kept == 1 else ("1.1 % positive", (0.6, 0.5, 0.4))
    compact = tuple(zip((1350, 2600, 5200), steps, strict=True))
    sizes, fewest = (78, 260, 500, 1000, 2000, 4000), 0 if kept == 1 else 1000
    return Table(name, standard(values[rows, 1:24]), values[rows, 24], sizes, compact, fewest)


def covertype(folder: Path) -> Table:
    """Take Covertype, class 2 against the rest."""
    values = read(folder / "covtype.parquet", range(55))
    labels = (values[:, -1] == 2).astype(np.float64)
    compact = ((4000, 0.5), (30_000, 0.4))
    return Table("Covertype class 2", standard(values[:, :-1]), labels, (2000,), compact)


TABLES: dict[str, Callable[[Path], Table]] = {
    "credit": credit,
    "rare": partial(credit, kept=0.0356),
    "covertype": covertype,
}


@dataclass(frozen=True, eq=False)
class Truth:
    """What all rows give: the objective, and the AUC."""

    table: Table
    federation: cn.Federation
    names: tuple[str, ...]
    best: float
    auc: float

    @classmethod
    def of(cls, table: Table) -> "Truth":
        """Learn on all rows."""
        federation = table.federation()
        model = federation.fit(TASK, sampler=cn.AllRows()).model
        found = cls(table, federation, model.feature_names_in_, 1.0, 0.0)
        cost, auc = found.judge(model)
        return cls(table, federation, model.feature_names_in_, cost + 1.0, auc)

    def judge(self, model: Any) -> tuple[float, float]:
        """Give a model's excess on all rows, and its AUC."""
        hands = np.concatenate([np.arange(j, self.table.features.shape[1], N_PARTIES) for j in range(N_PARTIES)])
        features, labels = self.table.features[:, hands], self.table.labels
        cost = TASK.cost(model, features, labels) / len(labels)
        return cost / self.best - 1.0, float(roc_auc_score(labels, model.logits(features)))


def ways(table: Table) -> Iterator[tuple[str, Any, Any]]:
    """List what is tried: an arm's name, a sampler and a solver."""
    for name, sampler in FLOATS.items():
        least = table.fewest_even if sampler is EVEN else 0
        yield from ((name, sampler(size), cn.Central()) for size in table.sizes if size >= least)
    yield from (("compact", COMPACT(size), cn.CompactCentral(step)) for size, step in table.compact)


def measured(truth: Truth, arm: str, sampler: Any, solver: Any, seeds: range) -> dict[str, Any]:
    """Learn with every seed."""
    excess, auc, sent = [], [], []
    for seed in seeds:
        run = truth.federation.fit(TASK, sampler=sampler, solver=solver, seed=seed)
        found = truth.judge(run.model)
        excess.append(found[0])
        auc.append(found[1])
        sent.append(run.ledger.bytes)
    step = getattr(solver, "step", None)
    return {"arm": arm, "size": sampler.size, "step": step, "excess": excess, "auc": auc, "bytes": sent}


def main() -> int:
    """Measure the tables, and keep a line for all rows of each and for every way; those of other tables stay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", choices=TABLES, action="append")
    parser.add_argument("--arm", action="append")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    kept = [] if options.out is None or not options.out.exists() else options.out.read_text().splitlines()
    lines: list[dict[str, Any]] = [json.loads(line) for line in kept]
    for name in options.only or TABLES:
        truth = Truth.of(TABLES[name](options.data))
        table = truth.table
        lines = [line for line in lines if line["table"] != table.name]
        everything = 8 * (table.features.size + table.labels.size)
        lines.append({"table": table.name, "rows": len(table.labels), "auc": truth.auc, "bytes": everything})
        for arm, sampler, solver in ways(table):
            if options.arm and arm not in options.arm:
                continue
            line = {"table": table.name, **measured(truth, arm, sampler, solver, seeds)}
            lines.append(line)
            mean, error = np.mean(line["excess"]), np.std(line["excess"]) / np.sqrt(len(seeds))
            place = f"{table.name:18} {arm:10} {sampler.size:6,} {line['step'] or '':4} {max(line['bytes']):9,} bytes"
            auc = f"AUC {np.mean(line['auc']):.4f} of {truth.auc:.4f}"
            print(f"{place}  excess {100 * mean:.3f} +- {100 * error:.3f} %  {auc}", flush=True)
            if options.out is not None:
                options.out.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
