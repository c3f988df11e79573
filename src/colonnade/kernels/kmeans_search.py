"""The server's search for centres of small cost: from several starts, then with centres more and fewer in turn.

Lloyd's iterations end in the minimum next to where they start, and starts scatter by some per cent of the cost. Centres
that are added where the cost is, and as many given up that are needed least, go from clusters that have one too many to
those that have one too few (Fritzke's breathing k-means, 2020). In the time of ten full starts that ends much lower.
"""

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.kmeans import MOST_ITERATIONS, TOLERANCE, best_of_starts, nearest_centers
from colonnade.kernels.quick_lloyd import (
    Points,
    around_mean,
    best_start,
    cost_of,
    count_distinct,
    drawn,
    lloyd,
    offsets,
    squared_distances,
)
from colonnade.kernels.tiles import TILE_ROWS, Coarse, rows_in

# Rows that are searched: at least so many, and for each cluster; of more rows, some. So often.
SEARCHED, FOR_EACH, SEARCHES = 4_000, 200, 5
# Which search was best is judged on so many times the rows.
JUDGED = 5
# Iterations of a start, and of a turn with more centres, and with as many as before: which is better shows long before
# the end.
SHORT, GROWN, TURN, LOOSE = 5, 5, 10, 1e-3
# Centres that are added at a time, at first; after so many turns without gain half as many.
MORE, PATIENCE, GAIN = 10, 2, 1e-6
# Searches that end at costs no farther apart, of themselves, found the same.
SAME = 1e-5


def weighted_kmeans(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Minimise Σ_i w_i d(x_i, C)², by Lloyd's iterations from one k-means++ start, or by a search from several.

    A row of weight 0 plays no part, and scaling all weights changes nothing. Gives C, shape (k, d), and its cost; an
    `InputError` if fewer than k distinct rows have positive weight.
    """
    used = weights > 0
    X, weights = X[used], weights[used]
    n_distinct = count_distinct(X, n_clusters)
    if n_distinct < n_clusters:
        raise InputError(
            f"{n_clusters} clusters need as many distinct rows, but only {n_distinct} distinct rows have a "
            f"positive weight. Use a larger size, or at most {n_distinct} clusters."
        )
    found = best_of_starts if n_starts == 1 else searched
    centers = found(X, weights, n_clusters, n_starts, rng)
    return centers, float(weights @ nearest_centers(X, centers)[1])


def searched(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    """Search for k centres of small cost; at least k of the rows, (m, d), are distinct, and all weights positive."""
    n_searched = max(SEARCHED, FOR_EACH * n_clusters)
    rows = drawn(len(X), JUDGED * n_searched, rng)
    judged, origin, unit = around_mean(X[rows], weights[rows])
    # One search in some ends per cents above the others; two that end alike are none of those.
    best, least = _search(judged, n_searched, n_clusters, -(-n_starts // SEARCHES), rng)
    for _ in range(1, SEARCHES):
        found, cost = _search(judged, n_searched, n_clusters, -(-n_starts // SEARCHES), rng, least)
        alike = _alike(cost, least)
        if cost < least:
            best, least = found, cost
        if alike:
            break
    whole, middle, size = around_mean(X, weights)
    return lloyd(whole, (best * unit + origin - middle) / size, MOST_ITERATIONS, TOLERANCE) * size + middle


def _alike(cost: float, other: float) -> bool:
    return abs(cost - other) <= SAME * other


def _search(
    judged: Points, n_searched: int, n_clusters: int, n_starts: int, rng: np.random.Generator, known: float = 0.0
) -> tuple[Floats, float]:
    """Search some of the rows, and tell the cost of what was found on all of them; a cost that is known may be met."""
    rows = judged.some(n_searched, rng)
    is_whole = rows is judged
    for tried in (rows.coarse(), rows):
        centers, cost = best_start(tried, n_clusters, n_starts, rng, SHORT, LOOSE)
        if tried.resolves(cost):
            rows, judged = tried, judged.coarse()
            break
    found = _breathed(rows, centers, rng, known if is_whole else 0.0)
    if not is_whole:
        found = lloyd(judged, found, TURN, LOOSE)
    return found.astype(np.float64), cost_of(judged, found)


def _breathed(rows: Points, centers: Coarse, rng: np.random.Generator, known: float) -> Coarse:
    """Add and give up centres in turn, fewer and fewer, as long as that gains, and until a known cost is met."""
    parts, failed = _running_cost(rows, centers), 0
    n_more = min(MORE, len(centers), rows.n_rows - len(centers))
    while n_more and parts[-1] > 0 and not _alike(parts[-1], known):
        tried = _turn(rows, centers, parts, n_more, rng)
        tried_parts = _running_cost(rows, tried)
        failed += 1
        if tried_parts[-1] < parts[-1] * (1 - GAIN):
            centers, parts, failed = tried, tried_parts, 0
        if failed == PATIENCE:
            n_more, failed = n_more // 2, 0
    return centers


def _running_cost(rows: Points, centers: Coarse) -> Floats:
    """Add up the rows' parts of the cost one by one; the last sum is the cost."""
    return np.cumsum(rows.weights * squared_distances(rows, centers), dtype=np.float64)


def _turn(rows: Points, centers: Coarse, parts: Floats, n_more: int, rng: np.random.Generator) -> Coarse:
    """Add rows as centres, drawn by their part of the cost, and give up as many centres."""
    places = np.searchsorted(parts, rng.random(n_more) * parts[-1], side="right")
    added = rows_in(rows.tiles, np.minimum(places, rows.n_rows - 1))  # rounding may reach the end
    more = lloyd(rows, np.concatenate([centers, added]), GROWN, LOOSE)
    return lloyd(rows, more[_kept(rows, more, n_more)], TURN, LOOSE)


def _kept(rows: Points, centers: Coarse, n_fewer: int) -> Flags:
    """Give up the centres without which the cost rises least, but none whose neighbour is gone: at most half of all."""
    gaps = np.square(centers[:, np.newaxis] - centers).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    neighbours = gaps.argmin(axis=1).tolist()
    kept, needed = np.ones(len(centers), dtype=bool), set[int]()
    for center in np.argsort(_rises(rows, centers), kind="stable").tolist():
        if n_fewer and center not in needed:
            kept[center] = False
            needed.add(neighbours[center])
            n_fewer -= 1
    return kept


def _rises(rows: Points, centers: Coarse) -> Floats:
    """Tell how much the cost rises without each centre; a row with two nearest ones misses neither."""
    weights, rises = rows.weights.reshape(-1, TILE_ROWS), np.zeros(len(centers))
    for piece, gaps in offsets(rows, centers):
        nearest = np.minimum.reduce(gaps, axis=1, keepdims=True)
        is_nearest = gaps == nearest
        np.copyto(gaps, np.inf, where=is_nearest)
        own = is_nearest.astype(gaps.dtype)
        farther = np.where(own.sum(axis=1) == 1, gaps.min(axis=1) - nearest[:, 0], 0)
        missed = weights[piece] * farther
        rises += np.add.reduce(own @ missed[..., np.newaxis], axis=0, dtype=np.float64)[:, 0]
    return rises
