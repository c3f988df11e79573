"""How long the scores take: Algorithm 2 against QR, and against the arithmetic no method can avoid.

Three parties hold 30 columns each of a seeded synthetic table; the last one holds the label and a constant too.
Timed, one after the other in every repeat, and summed over the parties:

    scores     colonnade.kernels.leverage.regression_scores
    QR         reduced QR and row norms of Q, by numpy and by scipy; the faster counts
    bare       G += B.T @ B and B @ W for every block B, without norms or constant, on the table's blocks and on
               blocks of 1,024 rows; the faster counts

with one and with two BLAS threads. The numbers of a busy machine mean little; the ratios of the medians are what
the two bars are about. Exits with 0 if both hold for both thread counts, 1 otherwise.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Literal

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from colonnade.kernels.arrays import Floats
from colonnade.kernels.leverage import regression_scores

COLUMNS_PER_PARTY = 30
N_PARTIES = 3
SMALL_BLOCK = 1024
Order = Literal["F", "C"]
TIMES_FASTER_THAN_QR = 12.0
TIMES_THE_BARE_ARITHMETIC = 1.5


@dataclass(frozen=True)
class PartyColumns:
    """What one party holds: columns (n, d), and whether a constant goes with them."""

    stored: Floats
    constant: bool
    block_rows: int
    order: Order

    def blocks(self) -> Iterator[Floats]:
        """Yield the rows from the start, as views of the stored columns."""
        return row_blocks(self.stored, self.block_rows)

    def design(self) -> Floats:
        """Return the columns with the constant stored beside them: what QR needs."""
        if not self.constant:
            return self.stored
        return np.asarray(np.column_stack([self.stored, np.ones(len(self.stored))]), order=self.order)


def row_blocks(X: Floats, size: int) -> Iterator[Floats]:
    """Yield consecutive views of `size` rows."""
    return (X[start : start + size] for start in range(0, len(X), size))


def synthetic_parties(n_rows: int, block_rows: int, order: Order, seed: int = 0) -> list[PartyColumns]:
    """Make columns like measured ones: common factors, means away from zero, scales from 1e-2 to 1e3."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_rows, 12))
    parties, label = [], rng.standard_normal(n_rows)
    for party in range(N_PARTIES):
        X = factors @ rng.standard_normal((12, COLUMNS_PER_PARTY))
        X += 2.0 * rng.standard_normal((n_rows, COLUMNS_PER_PARTY))
        X += rng.uniform(-10.0, 10.0, COLUMNS_PER_PARTY)
        X *= 10.0 ** rng.uniform(-2.0, 3.0, COLUMNS_PER_PARTY)
        label += X @ (rng.standard_normal(COLUMNS_PER_PARTY) / X.std(axis=0))
        last = party == N_PARTIES - 1
        stored = np.asarray(np.column_stack([X, label]) if last else X, order=order)
        parties.append(PartyColumns(stored, last, block_rows, order))
    return parties


def scores(parties: Sequence[PartyColumns]) -> None:
    """Compute Algorithm 2 for every party."""
    for party in parties:
        regression_scores(party.blocks, constant=party.constant)


def bare_arithmetic(parties: Sequence[PartyColumns], block_rows: int) -> None:
    """Multiply one Gram matrix and one product per party, and do nothing else."""
    for party in parties:
        d = party.stored.shape[1]
        W = np.eye(d) + 0.1
        G = np.zeros((d, d))
        for B in row_blocks(party.stored, block_rows):
            G += B.T @ B
        for B in row_blocks(party.stored, block_rows):
            B @ W


def numpy_qr(designs: Sequence[Floats]) -> None:
    """Compute the scores from numpy's reduced QR."""
    for X in designs:
        Q = np.linalg.qr(X).Q
        np.einsum("ij,ij->i", Q, Q) + 1.0 / len(X)


def scipy_qr(designs: Sequence[Floats]) -> None:
    """Compute the scores from scipy's economic QR."""
    for X in designs:
        Q = scipy.linalg.qr(X, mode="economic", check_finite=False)[0]
        np.einsum("ij,ij->i", Q, Q) + 1.0 / len(X)


def time_interleaved(contenders: Mapping[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each contender, all of them run once in every repeat, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats + 1):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            if repeat > 0:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}


def measure(n_rows: int, repeats: int, block_rows: int, order: Order) -> list[dict[str, float]]:
    """Time everything with one and with two BLAS threads: one record of seconds and ratios for each."""
    parties = synthetic_parties(n_rows, block_rows, order)
    designs = [party.design() for party in parties]
    contenders = {
        "scores": partial(scores, parties),
        "bare_table_blocks": partial(bare_arithmetic, parties, block_rows),
        "bare_small_blocks": partial(bare_arithmetic, parties, SMALL_BLOCK),
        "qr_numpy": partial(numpy_qr, designs),
        "qr_scipy": partial(scipy_qr, designs),
    }
    records = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            seconds = time_interleaved(contenders, repeats)
        qr = min(seconds["qr_numpy"], seconds["qr_scipy"])
        bare = min(seconds["bare_table_blocks"], seconds["bare_small_blocks"])
        ratios = {"qr_over_scores": qr / seconds["scores"], "scores_over_bare": seconds["scores"] / bare}
        records.append({"threads": threads, **seconds, **ratios})
    return records


def table(records: Sequence[dict[str, float]]) -> str:
    """Lay the records out as aligned columns, one row per measured quantity."""
    lines = ["".join([f"{'BLAS threads':<22}", *(f"{record['threads']:>10}" for record in records)])]
    for name in [name for name in records[0] if name != "threads"]:
        unit = "x" if "_over_" in name else "s"
        values = "".join(f"{record[name]:>9.3f}{unit}" for record in records)
        lines.append(f"{name.replace('_', ' '):<22}{values}")
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="Time the regression scores of three parties.")
    parser.add_argument("--rows", type=int, default=463_715)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--block-rows", type=int, default=16_384, help="rows in a block of the table")
    parser.add_argument("--order", choices=["F", "C"], default="F", help="column-major (F) or row-major storage")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args()

    load_before = os.getloadavg()[0]
    records = measure(options.rows, options.repeats, options.block_rows, options.order)
    times_faster = min(record["qr_over_scores"] for record in records)
    times_bare = max(record["scores_over_bare"] for record in records)
    bars = {
        f"at least {TIMES_FASTER_THAN_QR:g} times faster than QR": times_faster >= TIMES_FASTER_THAN_QR,
        f"within {TIMES_THE_BARE_ARITHMETIC:g} times the bare arithmetic": times_bare <= TIMES_THE_BARE_ARITHMETIC,
    }
    if options.json:
        settings = {key: value for key, value in vars(options).items() if key != "json"}
        report = {**settings, "load_before": load_before, "measurements": records, "bars": bars}
        print(json.dumps(report, indent=2))
    else:
        print(
            f"Scores of {options.rows:,} rows, three parties of 30 columns (the last also y and a constant), "
            f"{options.order} order,\nblocks of {options.block_rows:,} rows; median seconds of {options.repeats} "
            f"interleaved repeats; load before: {load_before:.1f} on {os.cpu_count()} cores\n"
        )
        print(table(records), end="\n\n")
        for bar, holds in bars.items():
            print(f"{'PASS' if holds else 'FAIL'}  {bar} (worst of the thread counts)")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
