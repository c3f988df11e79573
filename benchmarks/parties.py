"""How a whole job grows with parties and with rows drawn: on loopback, between processes, and in one process.

On loopback the server is a process, one party is another, and the other parties are threads of further ones, 25 in each
(benchmarks/many_parties.py): so that the server's and a party's processor time and memory can be told. That one is the
first by name, which of many parties does most: it checks what all have signed to have drawn.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median

import many_parties
import numpy as np
from scale_bars import GRAM_ARITHMETIC
from side_by_side import Line, Store, as_child, in_child, peak_mb, short, time_in_turns

import colonnade as cn
from colonnade.kernels.shares import LIMBS, limb_products
from colonnade.privacy.primitives import ManyWords

PARTIES, LARGE_PARTIES, HERE = [3, 10, 50], [100], [3, 10, 30, 100]
SIZES, SIZE, N_ROWS, REPEATS = [200, 2000, 20_000], 200, 20_000, 7
ROWS_HERE, SIZE_HERE = 5000, 2000  # parties refuse a Gram matrix of few rows
TASK = many_parties.TASK
COLUMNS_AT_ONCE = 32


def sampler(size: int, scores: str) -> cn.ImportanceSampling:
    """Draw so many rows."""
    return cn.ImportanceSampling(size=size, scores="secure" if scores == "secure" else "plain")


def does(n_parties: int, size: int, scores: str) -> Line:
    """Be the server of a federation, fit again and again, and tell medians, and the peaks of both ends."""
    warnings.simplefilter("ignore")
    walls, servers = list[float](), list[float]()
    with many_parties.federation(n_parties, n_rows=N_ROWS, one_apart=True) as (connected, _, processes):
        before = 0.0
        for seed in range(REPEATS + 1):
            wall, server = time.perf_counter(), time.process_time()
            run = connected.fit(TASK, sampler=sampler(size, scores), solver=cn.Central(), seed=seed)
            walls.append(time.perf_counter() - wall)
            servers.append(time.process_time() - server)
            before = before or many_parties.processor_seconds(processes[0])
        a_party = (many_parties.processor_seconds(processes[0]) - before) / REPEATS
        return {
            "seconds": {
                "all": short(median(walls[1:])),
                "server": short(median(servers[1:])),
                "a party": short(a_party),
            },
            "peaks": {"server": peak_mb(), "a party": peak_mb(processes[0])},
            "bytes": run.ledger.bytes,
        }


def gram_arithmetic(n_parties: int, n_columns: int, n_rows: int) -> None:
    """Do what `SecureGram` cannot do without, which grows with the square of the parties.

    Every party stretches a seed to what hides the columns of all others, and multiplies that by its own; the server
    multiplies the shares of every pair.
    """
    words, n_all = ManyWords(bytes(32), b"benchmark"), n_columns * n_parties
    own = words.line(0, n_columns * n_rows).reshape(n_columns, LIMBS, n_rows)
    counts = [min(COLUMNS_AT_ONCE, n_all - start) for start in range(n_columns, n_all, COLUMNS_AT_ONCE)]
    for _ in range(n_parties):
        for count, piece in zip(counts, words.pieces([count * n_rows for count in counts]), strict=True):
            limb_products(piece.reshape(count, LIMBS, n_rows), own)
    shares = words.line(0, n_all * n_rows).reshape(n_all, LIMBS, n_rows)
    for end in range(n_columns, n_all, n_columns):
        limb_products(shares[end - n_columns : end], shares[end:])


def here(n_parties: int) -> dict[str, Callable[[], object]]:
    """Fit in one process: scores in the clear, in secret, and without showing rows, beside the arithmetic of that."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS_HERE, 2 * n_parties)), rng.normal(size=ROWS_HERE)
    federation = cn.Federation(cn.split_columns(X, y, [2] * n_parties))
    plain, secure = sampler(SIZE_HERE, "plain"), sampler(SIZE_HERE, "secure")
    return {
        "plain": lambda: federation.fit(TASK, sampler=plain),
        "secure scores": lambda: federation.fit(TASK, sampler=secure),
        "SecureGram": lambda: federation.fit(TASK, sampler=plain, solver=cn.SecureGram()),
        GRAM_ARITHMETIC: lambda: gram_arithmetic(n_parties, 2, SIZE_HERE),
    }


def measure(store: Store, *, large: bool) -> None:
    """Fit with ever more parties, and with three parties ever more rows."""
    for n_parties in HERE:
        case: Line = {"bench": "parties", "work": "in one process", "parties": n_parties, "size": SIZE_HERE}
        store.fill(case, partial(_here, n_parties))
    grown = [(n_parties, SIZE) for n_parties in PARTIES + LARGE_PARTIES * large]
    for n_parties, size in [*grown, *((PARTIES[0], size) for size in SIZES if size != SIZE)]:
        for scores in ("plain", "secure"):
            case = {"bench": "parties", "work": f"loopback, {scores}", "parties": n_parties, "size": size}
            work = {"n_parties": n_parties, "size": size, "scores": scores}
            store.fill(case, partial(in_child, __file__, work))


def _here(n_parties: int) -> Line:
    return time_in_turns(here(n_parties))


if __name__ == "__main__":
    as_child(does)
