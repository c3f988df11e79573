"""Scores for k-means and assignment to centres, beside scikit-learn's k-means of the same columns, and faiss's.

Covertype as the paper has it (ten columns at mean 0 and deviation 1, all dealt in turn to three parties), 15 and 200
centres; with `--large` a file of six million rows, too. Each party's columns are clustered on their own, as its scores
need it; seconds and costs are sums over the parties. Costs are those of all rows, over one start of scikit-learn's.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import files
import made_up
import numpy as np
import pyarrow.parquet as pq
from scale_bars import ONE_START, STARTS, TEN_STARTS
from side_by_side import Line, Store, both_times, one_core, short, time_in_turns
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin_min
from verbs import assign, score

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.sampling.rules.clustering import LOCAL_SEED

COVERTYPE, N_PARTIES = "covtype.parquet", 3
FILE, LARGE_ROWS, LARGE_COLUMNS = "a Parquet file", 6_000_000, 30
WORKS = ("assignment", "scores")
HAS_FAISS = importlib.util.find_spec("faiss") is not None
Centres = Callable[[Floats], Floats]


def covertype(folder: Path) -> list[Floats]:
    """Read each party's columns."""
    values = pq.read_table(folder / COVERTYPE).to_pandas().to_numpy(dtype=np.float64)[:, :54]
    values[:, :10] = (values[:, :10] - values[:, :10].mean(axis=0)) / values[:, :10].std(axis=0)
    return [np.asfortranarray(values[:, first::N_PARTIES]) for first in range(N_PARTIES)]


def by_sklearn(k: int, n_starts: int, seed: int = 0) -> Centres:
    """Cluster all rows with so many starts."""
    return lambda X: np.asarray(KMeans(k, n_init=n_starts, random_state=seed).fit(X).cluster_centers_)


def by_batches(k: int) -> Centres:
    """Cluster batches."""
    return lambda X: np.asarray(MiniBatchKMeans(k, n_init=1, random_state=0).fit(X).cluster_centers_)


def by_faiss(k: int) -> Centres:
    """Cluster as faiss does where it is not told otherwise: of rows drawn evenly, in 32 bits."""

    def centres(X: Floats) -> Floats:
        kmeans = importlib.import_module("faiss").Kmeans(X.shape[1], k, seed=1)
        kmeans.train(np.ascontiguousarray(X, dtype=np.float32))
        return np.asarray(kmeans.centroids, dtype=np.float64)

    return centres


def ours(k: int) -> Centres:
    """Cluster a party's own columns as its scores do."""

    def centres(X: Floats) -> Floats:
        return local_kmeans(ArrayBlocks(X), k, np.random.default_rng(LOCAL_SEED))

    return centres


def cost(parts: Sequence[Floats], centres: Sequence[Floats]) -> float:
    """Add up squared distances."""
    nearest = (pairwise_distances_argmin_min(X, C)[1] for X, C in zip(parts, centres, strict=True))
    return sum(float(distances @ distances) for distances in nearest)


class Columns(NamedTuple):
    """Parties' columns in memory, how parties of them are made, and how many centres are sought."""

    table: str
    parts: list[Floats]
    parties: Callable[[], list[cn.Party]]
    k: int


def named(work: str, table: str, n_rows: int, k: int) -> Line:
    """Name what is measured."""
    return {"bench": "clusters", "work": work, "table": table, "rows": n_rows, "k": k}


def time_scores(columns: Columns, *, ten_starts: bool) -> Line:
    """Time the scores, and compare what a party's own clustering costs."""
    (_, parts, parties, k), kept = columns, dict[str, list[Floats]]()

    def keep(name: str, way: Centres) -> Callable[[], None]:
        return lambda: kept.update({name: [way(X) for X in parts]})

    some = [X[:k] for X in parts]
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: score(cn.KMeans(k), parties()),
        "bare": lambda: assign(parts, some),
        ONE_START: keep(ONE_START, by_sklearn(k, 1)),
        "MiniBatchKMeans": keep("MiniBatchKMeans", by_batches(k)),
    }
    if ten_starts:
        contenders[TEN_STARTS] = keep(TEN_STARTS, by_sklearn(k, STARTS))
    if HAS_FAISS:
        contenders["faiss"] = keep("faiss", by_faiss(k))
    with one_core():
        found = time_in_turns(contenders)
    keep("ours", ours(k))()
    costs = {name: cost(parts, centres) for name, centres in kept.items()}
    return found | {"cost": {name: round(each / costs[ONE_START], 4) for name, each in costs.items()}}


def time_start(columns: Columns, start: int) -> Line:
    """Time one of ten starts of scikit-learn's; costs are those of each party, of which the least counts."""
    found = list[Floats]()
    with one_core():
        processor, _ = both_times(lambda: found.extend(by_sklearn(columns.k, 1, start)(X) for X in columns.parts))
    costs = [cost([X], [centres]) for X, centres in zip(columns.parts, found, strict=True)]
    return {"seconds": {ONE_START: short(processor)}, "costs": costs}


def time_assignment(columns: Columns) -> Line:
    """Time predictions of all rows."""
    _, parts, parties, k = columns
    X, federation = np.asfortranarray(np.column_stack(parts)), cn.Federation(parties())
    model = federation.fit(cn.KMeans(k, n_starts=1), sampler=cn.UniformSampling(size=max(2000, 20 * k))).model
    centres, row_major = np.ascontiguousarray(model.cluster_centers_), np.ascontiguousarray(X)
    whole = KMeans(k, n_init=1, max_iter=1, init=centres).fit(X[: 10 * k])
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: federation.predict(model),
        "bare": lambda: assign([X], [centres]),
        "KMeans.predict": lambda: whole.predict(row_major),
    }
    if HAS_FAISS:
        contenders["faiss"] = _faiss_search(centres, row_major)
    with one_core():
        return time_in_turns(contenders)


def _faiss_search(centres: Floats, rows: Floats) -> Callable[[], object]:
    index, wanted = importlib.import_module("faiss").IndexFlatL2(rows.shape[1]), rows.astype(np.float32)
    index.add(centres.astype(np.float32))
    return lambda: index.search(wanted, 1)


def measure(store: Store, *, large: bool, data: Path) -> None:
    """Time both tables; without its file Covertype is left out."""
    if (data / COVERTYPE).exists():
        parts = covertype(data)
        parties = [cn.Party(f"party{number}", X) for number, X in enumerate(parts, start=1)]
        for k in (15, 200):
            columns = Columns("Covertype", parts, lambda: parties, k)
            _both(store, columns, ten_starts=k == 15)
            if large and k != 15:
                _starts(store, columns)
    else:
        print(f"{data / COVERTYPE} is not there: Covertype is left out. Pass --data FOLDER.")
    cases = [named(work, FILE, LARGE_ROWS, 15) for work in WORKS]
    cases += [_start(FILE, LARGE_ROWS, 15, start) for start in range(STARTS)]
    if large and any(map(store.lacks, cases)):
        with store.scratch(made_up.n_bytes(LARGE_ROWS, LARGE_COLUMNS)) as folder:
            columns = _file(Path(folder))
            _both(store, columns, ten_starts=False)
            _starts(store, columns)


def _both(store: Store, columns: Columns, *, ten_starts: bool) -> None:
    ways = (partial(time_assignment, columns), partial(time_scores, columns, ten_starts=ten_starts))
    for work, way in zip(WORKS, ways, strict=True):
        store.fill(named(work, columns.table, len(columns.parts[0]), columns.k), way)


def _starts(store: Store, columns: Columns) -> None:
    """Time ten starts one by one: together they may take longer than anybody waits, and one that is stored is done."""
    for start in range(STARTS):
        case = _start(columns.table, len(columns.parts[0]), columns.k, start)
        store.fill(case, partial(time_start, columns, start))


def _start(table: str, n_rows: int, k: int, start: int) -> Line:
    return {**named("a start", table, n_rows, k), "start": start}


def _file(folder: Path) -> Columns:
    paths = made_up.write_parties(folder, LARGE_ROWS, LARGE_COLUMNS)
    rows = np.asfortranarray(made_up.rows(LARGE_ROWS, LARGE_COLUMNS).features)
    parts = np.split(rows, np.cumsum(made_up.widths(LARGE_COLUMNS))[:-1], axis=1)
    return Columns(FILE, parts, lambda: files.parties(paths), 15)
