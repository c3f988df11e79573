"""The server's search for centres of small cost: from several starts, then with centres more and fewer in turn.

Lloyd's iterations end in the minimum next to where they start, and starts scatter by some per cent of the cost. Centres
that are added where the cost is, and as many given up that are needed least, go from clusters that have one too many to
those that have one too few (Fritzke's breathing k-means, 2020). In the time of ten full starts that ends much lower.
"""

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.kmeans import CHUNK_VALUES, best_of_starts, nearest_centers, quiet_thread, refined, started

# Rows that are searched: at least so many, and for each cluster; of more rows, some. So often.
SEARCHED, FOR_EACH, SEARCHES = 10_000, 200, 3
# Iterations of a start, and of half a turn: which is better shows long before the end.
SHORT, TURN, LOOSE = 5, 10, 1e-3
# Centres that are added at a time, at first; after so many turns without gain half as many.
MORE, PATIENCE, GAIN = 10, 2, 1e-6


def weighted_kmeans(
    X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Minimise Σ_i w_i d(x_i, C)², by Lloyd's iterations from one k-means++ start, or by a search from several.

    A row of weight 0 plays no part, and scaling all weights changes nothing. Gives C, shape (k, d), and its cost; an
    `InputError` if fewer than k distinct rows have positive weight.
    """
    used = weights > 0
    X, weights = X[used], weights[used]
    n_distinct = len(np.unique(X, axis=0))
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
    n_searched = min(max(SEARCHED, FOR_EACH * n_clusters), len(X))
    with quiet_thread():
        # One search in some ends per cents above the others.
        tried = [_among(n_searched, X, weights, n_clusters, -(-n_starts // SEARCHES), rng) for _ in range(SEARCHES)]
        return refined(X, weights, min(tried, key=lambda found: found[1])[0])[0]


def _among(
    n_searched: int, X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Search some rows, and tell about what the centres would cost on all."""
    some = np.sort(rng.choice(len(X), n_searched, replace=False, shuffle=False))
    return refined(X, weights, _search(X[some], weights[some], n_clusters, n_starts, rng), TURN, LOOSE)


def _search(X: Floats, weights: Floats, n_clusters: int, n_starts: int, rng: np.random.Generator) -> Floats:
    centers, cost = started(X, weights, n_clusters, n_starts, rng, most=SHORT)
    n_more, failed = min(MORE, n_clusters, len(X) - n_clusters), 0
    while n_more and cost > 0:
        tried, tried_cost = _turn(X, weights, centers, n_more, rng)
        failed += 1
        if tried_cost < cost * (1 - GAIN):
            centers, cost, failed = tried, tried_cost, 0
        if failed == PATIENCE:
            n_more, failed = n_more // 2, 0
    return centers


def _turn(X: Floats, weights: Floats, centers: Floats, n_more: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Add rows as centres, drawn by their part of the cost, and give up as many centres; tell the cost."""
    parts = np.cumsum(weights * _two_nearest(X, centers)[1])
    places = np.searchsorted(parts, rng.random(n_more) * parts[-1], side="right")
    added = X[np.minimum(places, len(X) - 1)]  # rounding may reach the end
    more, _ = refined(X, weights, np.concatenate([centers, added]), TURN, LOOSE)
    return refined(X, weights, more[_kept(X, weights, more, n_more)], TURN, LOOSE)


def _kept(X: Floats, weights: Floats, centers: Floats, n_fewer: int) -> Flags:
    """Give up the centres without which the cost rises least, but none whose neighbour is gone: at most half of all."""
    labels, nearest, second = _two_nearest(X, centers)
    gaps = np.square(centers[:, np.newaxis] - centers).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    kept, needed = np.ones(len(centers), dtype=bool), np.zeros(len(centers), dtype=bool)
    for center in np.argsort(np.bincount(labels, weights * (second - nearest), len(centers)), kind="stable"):
        if n_fewer and not needed[center]:
            kept[center], needed[gaps[center].argmin()] = False, True
            n_fewer -= 1
    return kept


def _two_nearest(X: Floats, centers: Floats) -> tuple[Rows, Floats, Floats]:
    """Give each row's nearest centre, and the squared distances to it and to the next one, up to rounding."""
    labels, nearest, second = np.empty(len(X), np.int64), np.empty(len(X)), np.empty(len(X))
    origin = centers.mean(axis=0)
    offsets = centers - origin
    n_chunk_rows = max(1, CHUNK_VALUES // max(centers.shape))
    for start in range(0, len(X), n_chunk_rows):
        chunk = slice(start, start + n_chunk_rows)
        rows, place = X[chunk] - origin, np.arange(len(X[chunk]))
        squared = np.square(offsets).sum(axis=1) - 2 * rows @ offsets.T
        labels[chunk] = squared.argmin(axis=1)
        nearest[chunk] = squared[place, labels[chunk]]
        squared[place, labels[chunk]] = np.inf
        second[chunk] = squared.min(axis=1)
        own = np.square(rows).sum(axis=1)
        nearest[chunk] += own
        second[chunk] += own
    return labels, np.maximum(nearest, 0.0), second
