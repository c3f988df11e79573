"""Logistic regression by the scores of the paper's ICML 2025 successor, weighed as coded and correctly.

    python benchmarks/successor.py --data FOLDER [--repeats 20]

Prints the tables of docs/explanation/reproduction.md: credit default, and a part of it of which 1.1 % are
positive. About a minute.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from classification import N_PARTIES, credit
from threadpoolctl import threadpool_limits

from colonnade.paper.successor import SuccessorPlan, successor, table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The successor's scores.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA"), help="folder of the data sets")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the data sets: --data FOLDER, or COLONNADE_DATA")
    plan = SuccessorPlan(repeats=options.repeats)
    for kept in (1.0, 0.0356):
        found = credit(Path(options.data), kept=kept)
        print(f"credit default, {len(found.labels):,} rows, {found.labels.mean():.1%} positive")
        hands = [np.arange(party, found.features.shape[1], N_PARTIES) for party in range(N_PARTIES)]
        features, widths = found.features[:, np.concatenate(hands)], [len(hand) for hand in hands]
        print(table(list(successor(features, found.labels, widths, plan, seed=0))), "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
