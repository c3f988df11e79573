"""The server's search for centres of small cost: from several starts, then with centres more and fewer in turn.

Lloyd's iterations end in the minimum next to where they start, and starts scatter by some per cent of the cost. Centres
that are added where the cost is, and as many given up that are needed least, go from clusters that have one too many to
those that have one too few (Fritzke's breathing k-means, 2020). In the time of ten full starts that ends much lower.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.kmeans import CHUNK_VALUES, best_of_starts, nearest_centers, quiet_thread, refined, started

# Rows that are searched: at least so many, and for each cluster; of more rows, some. So often.
SEARCHED, FOR_EACH, SEARCHES = 4_000, 200, 3
# Which search was best is judged on so many times the rows.
JUDGED = 5
# Iterations of a start, and of half a turn: which is better shows long before the end.
SHORT, TURN, LOOSE = 5, 10, 1e-3
# Centres that are added at a time, at first; after so many turns without gain half as many.
MORE, PATIENCE, GAIN = 10, 2, 1e-6
# 32 bits halve the time, where a start costs at least this part of what one centre would: below, they hide too much.
RESOLVED = 1e-3

Coarse = NDArray[np.floating[Any]]  # of 32 or 64 bits


class _Sample(NamedTuple):
    """Some rows around their mean, (n, d), their weights, and |x|², all of one precision."""

    X: Coarse
    weights: Coarse
    squares: Coarse

    def part(self, rows: slice | Rows) -> "_Sample":
        return _Sample(self.X[rows], self.weights[rows], self.squares[rows])

    def some(self, count: int, rng: np.random.Generator) -> "_Sample":
        return self if count >= len(self.X) else self.part(_drawn(len(self.X), count, rng))

    def coarse(self) -> "_Sample":
        return _Sample(*(values.astype(np.float32) for values in self))


def weighted_kmeans(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Minimise Σ_i w_i d(x_i, C)², by Lloyd's iterations from one k-means++ start, or by a search from several.

    A row of weight 0 plays no part, and scaling all weights changes nothing. Gives C, shape (k, d), and its cost; an
    `InputError` if fewer than k distinct rows have positive weight.
    """
    used = weights > 0
    X, weights = X[used], weights[used]
    n_distinct = _count_distinct(X, n_clusters)
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
    rows = _drawn(len(X), JUDGED * n_searched, rng)
    judged, origin, unit = _sample(X[rows], weights[rows])
    with quiet_thread():
        # One search in some ends per cents above the others.
        tried = [_search(judged, n_searched, n_clusters, -(-n_starts // SEARCHES), rng) for _ in range(SEARCHES)]
        best = min(tried, key=lambda found: found[1])[0]
        return refined(X, weights, best * unit + origin)[0]


def _count_distinct(X: Floats, enough: int) -> int:
    """Count the distinct rows, or at least so many: rows are looked at only until there are enough."""
    count = 2 * enough
    while (found := len(np.unique(X[:count], axis=0))) < enough and count < len(X):
        count *= 8
    return found


def _drawn(n_rows: int, count: int, rng: np.random.Generator) -> Rows:
    if count >= n_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, count, replace=False, shuffle=False))


def _sample(X: Floats, weights: Floats) -> tuple[_Sample, Floats, float]:
    """Put rows around their mean, at most 1 from it in each column; give the mean and the unit too."""
    origin = np.average(X, axis=0, weights=weights)
    offsets = X - origin
    unit = float(np.abs(offsets).max()) or 1.0
    offsets /= unit
    return _Sample(offsets, weights / weights.mean(), np.einsum("ij,ij->i", offsets, offsets)), origin, unit


def _search(
    judged: _Sample, n_searched: int, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Search some of the rows, and tell the cost of what was found on all of them."""
    rows = judged.some(n_searched, rng)
    centers, cost = started(
        np.asarray(rows.X, np.float64), np.asarray(rows.weights, np.float64), n_clusters, n_starts, rng, most=SHORT
    )
    if cost > RESOLVED * (rows.weights @ rows.squares):
        rows, judged = rows.coarse(), judged.coarse()
    found = _breathed(rows, centers.astype(rows.X.dtype), rng)
    if len(judged.X) > len(rows.X):
        found = _lloyd(judged, found)
    return found.astype(np.float64), _cost(judged, found)


def _breathed(rows: _Sample, centers: Coarse, rng: np.random.Generator) -> Coarse:
    """Add and give up centres in turn, fewer and fewer, as long as that gains."""
    cost, failed = _cost(rows, centers), 0
    n_more = min(MORE, len(centers), len(rows.X) - len(centers))
    while n_more and cost > 0:
        tried = _turn(rows, centers, n_more, rng)
        tried_cost = _cost(rows, tried)
        failed += 1
        if tried_cost < cost * (1 - GAIN):
            centers, cost, failed = tried, tried_cost, 0
        if failed == PATIENCE:
            n_more, failed = n_more // 2, 0
    return centers


def _turn(rows: _Sample, centers: Coarse, n_more: int, rng: np.random.Generator) -> Coarse:
    """Add rows as centres, drawn by their part of the cost, and give up as many centres."""
    parts = np.cumsum(rows.weights * _two_nearest(rows, centers)[1], dtype=np.float64)
    places = np.searchsorted(parts, rng.random(n_more) * parts[-1], side="right")
    added = rows.X[np.minimum(places, len(rows.X) - 1)]  # rounding may reach the end
    more = _lloyd(rows, np.concatenate([centers, added]))
    return _lloyd(rows, more[_kept(rows, more, n_more)])


def _kept(rows: _Sample, centers: Coarse, n_fewer: int) -> Flags:
    """Give up the centres without which the cost rises least, but none whose neighbour is gone: at most half of all."""
    labels, nearest, second = _two_nearest(rows, centers)
    gaps = np.square(centers[:, np.newaxis] - centers).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    kept, needed = np.ones(len(centers), dtype=bool), np.zeros(len(centers), dtype=bool)
    for center in np.argsort(np.bincount(labels, rows.weights * (second - nearest), len(centers)), kind="stable"):
        if n_fewer and not needed[center]:
            kept[center], needed[gaps[center].argmin()] = False, True
            n_fewer -= 1
    return kept


def _lloyd(rows: _Sample, centers: Coarse) -> Coarse:
    """Run a few of Lloyd's iterations; scikit-learn's take longer to set up than to run here. No rows: it stays."""
    still = LOOSE * (rows.weights @ rows.squares) / rows.X.size
    for _ in range(TURN):
        sums, totals = np.zeros_like(centers), np.zeros_like(centers[:, :1])
        for some, gaps in _parts(rows, centers):
            members = np.zeros_like(gaps.T)
            members[gaps.argmin(axis=1), np.arange(len(gaps))] = some.weights
            sums += members @ some.X
            totals += members.sum(axis=1, keepdims=True)
        moved = np.divide(sums, totals, out=centers.copy(), where=totals > 0)
        centers, step = moved, np.square(moved - centers).sum()
        if step <= still:
            break
    return centers


def _cost(rows: _Sample, centers: Coarse) -> float:
    return float(rows.weights @ _two_nearest(rows, centers)[1])


def _two_nearest(rows: _Sample, centers: Coarse) -> tuple[Rows, Coarse, Coarse]:
    """Give each row's nearest centre, and the squared distances to it and to the next one, up to rounding."""
    found = []
    for some, gaps in _parts(rows, centers):
        labels, place = gaps.argmin(axis=1), np.arange(len(gaps))
        nearest = gaps[place, labels] + some.squares
        gaps[place, labels] = np.inf
        found.append((labels, np.maximum(nearest, 0), gaps.min(axis=1) + some.squares))
    labels, nearest, second = (np.concatenate(each) for each in zip(*found, strict=True))
    return labels, nearest, second


def _parts(rows: _Sample, centers: Coarse) -> Iterator[tuple[_Sample, Coarse]]:
    """Cut the rows into chunks, and give |x - c|² - |x|² for each row and centre of a chunk."""
    n_chunk_rows = max(1, CHUNK_VALUES // max(centers.shape))
    squares, twice = np.square(centers).sum(axis=1), 2 * centers.T
    for start in range(0, len(rows.X), n_chunk_rows):
        some = rows.part(slice(start, start + n_chunk_rows))
        yield some, squares - some.X @ twice
