"""How long Algorithm 2 takes, against QR and against the arithmetic that no method can avoid.

Three parties hold 30 columns each of a seeded synthetic table; the last one also the label, and a constant for the
intercept. Timed one after the other in every repeat, and summed over the parties:

    scores              what a party runs: LeverageScores(fit_intercept=True).scores(table)
    bare arithmetic     for each of the table's blocks B the products B.T @ B and B @ W, and nothing else
    numpy QR            numpy.linalg.qr of the party's array, row-major as NumPy makes arrays, and row norms of Q
    numpy QR, column    the same on a column-major copy
    scipy QR, column    scipy.linalg.qr(mode="economic") on a column-major copy: LAPACK without a transposition

with one and with two BLAS threads. Seconds on a busy machine mean little; the bars are about ratios of medians:
scores at least 12 times faster than QR (numpy's, on an array as NumPy makes it), and within 1.5 times the bare
arithmetic. The other QRs are reported beside them. Exits with 0 if the bars hold for both thread counts, else 1.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import values_of
from colonnade.sampling.rules.leverage import LeverageScores

WIDTHS = (30, 30, 30)
TIMES_FASTER_THAN_QR = 12.0
TIMES_THE_BARE_ARITHMETIC = 1.5
RULE = LeverageScores(fit_intercept=True)


def synthetic_parties(n_rows: int, seed: int = 0) -> list[cn.Party]:
    """Make columns like measured ones: common factors, means away from zero, scales from 1e-2 to 1e3."""
    rng = np.random.default_rng(seed)
    d = sum(WIDTHS)
    X = rng.standard_normal((n_rows, 12)) @ rng.standard_normal((12, d))
    X += 2.0 * rng.standard_normal((n_rows, d)) + rng.uniform(-10.0, 10.0, d)
    X *= 10.0 ** rng.uniform(-2.0, 3.0, d)
    y = X @ (rng.standard_normal(d) / X.std(axis=0)) + rng.standard_normal(n_rows)
    return cn.split_columns(X, y, WIDTHS)


def scores(parties: Sequence[cn.Party]) -> None:
    """Score every party's rows."""
    for party in parties:
        np.asarray(RULE.scores(party.table))


def bare_arithmetic(parties: Sequence[cn.Party]) -> None:
    """Multiply what the Gram matrix and a change of basis need."""
    for party in parties:
        d = party.table.values.shape[1]
        W, gram = np.eye(d) + 0.1, np.zeros((d, d))
        for B in party.table.map(values_of):
            gram += B.T @ B
        for B in party.table.map(values_of):
            B @ W


def numpy_qr(designs: Sequence[Floats]) -> None:
    """Score by numpy's reduced QR."""
    for X in designs:
        Q = np.linalg.qr(X).Q
        np.einsum("ij,ij->i", Q, Q) + 1.0 / len(X)


def scipy_qr(designs: Sequence[Floats]) -> None:
    """Score by scipy's economic QR."""
    for X in designs:
        Q = scipy.linalg.qr(X, mode="economic", check_finite=False)[0]
        np.einsum("ij,ij->i", Q, Q) + 1.0 / len(X)


def design(party: cn.Party) -> Floats:
    """Store what the party's rule scores, constant included, row-major."""
    values = party.table.values
    columns = [values] if party.table.label_name is None else [values, np.ones((len(values), 1))]
    return np.ascontiguousarray(np.column_stack(columns))


def time_interleaved(contenders: Mapping[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each contender, each run once in every repeat, after a round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats + 1):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            if repeat > 0:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}


def measure(n_rows: int, repeats: int) -> dict[int, dict[str, float]]:
    """Time everything with one and with two BLAS threads."""
    parties = synthetic_parties(n_rows)
    row_major = [design(party) for party in parties]
    column_major = [np.asfortranarray(X) for X in row_major]
    contenders = {
        "scores": lambda: scores(parties),
        "bare arithmetic": lambda: bare_arithmetic(parties),
        "numpy QR": lambda: numpy_qr(row_major),
        "numpy QR, column": lambda: numpy_qr(column_major),
        "scipy QR, column": lambda: scipy_qr(column_major),
    }
    found = {}
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            found[threads] = time_interleaved(contenders, repeats)
    return found


def table(found: Mapping[int, Mapping[str, float]]) -> str:
    """Lay out seconds, and how many times the scores' seconds they are."""
    lines = [f"{'BLAS threads':<20}" + "".join(f"{threads:>20}" for threads in found)]
    for name in found[1]:
        cells = (f"{s[name]:>11.3f} s {s[name] / s['scores']:>5.1f} x" for s in found.values())
        lines.append(f"{name:<20}" + "".join(cells))
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description="Time the regression scores of three parties.")
    parser.add_argument("--rows", type=int, default=463_715)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args()

    load_before = os.getloadavg()[0]
    found = measure(options.rows, options.repeats)
    times_faster = min(s["numpy QR"] / s["scores"] for s in found.values())
    times_bare = max(s["scores"] / s["bare arithmetic"] for s in found.values())
    bars = {
        f"{times_faster:.1f} times faster than numpy QR; the bar is {TIMES_FASTER_THAN_QR:g} or more":
            times_faster >= TIMES_FASTER_THAN_QR,
        f"{times_bare:.2f} times the bare arithmetic; the bar is {TIMES_THE_BARE_ARITHMETIC:g} or less":
            times_bare <= TIMES_THE_BARE_ARITHMETIC,
    }  # fmt: skip
    if options.json:
        print(json.dumps({"rows": options.rows, "load_before": load_before, "seconds": found, "bars": bars}, indent=2))
    else:
        print(f"Scores of {options.rows:,} rows, three parties of 30 columns; median of {options.repeats} repeats;")
        print(f"seconds, and times the scores' seconds. Load before: {load_before:.1f} on {os.cpu_count()} cores.\n")
        print(table(found), end="\n\n")
        for bar, holds in bars.items():
            print(f"{'PASS' if holds else 'FAIL'}  {bar} (the worse of one and two threads)")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
