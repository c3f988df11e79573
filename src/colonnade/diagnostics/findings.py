"""What follows from Gram matrices and distances, wherever they come from: what both forms of a diagnosis share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.diagnostics.records import Epsilon, Gamma, Tau
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bases import Spectrum
from colonnade.kernels.measured_error import (
    RelativeGram,
    costs_of_sets,
    models_near,
    random_models,
    relative_errors,
    relative_gram,
)
from colonnade.kernels.separation import separation_ratios, usual_largest

# Of the rows looked at, those drawn evenly.
EVEN_SHARE = 0.5
N_RANDOM, N_NEAR = 1_000, 100
# Models near the best: their cost is 1 + t² times its.
STEPS = (0.0, 0.1, 0.3, 1.0)
# Centres near the best: each moved by such a part of the way to another one.
MOVES = (0.0, 0.1, 0.3)
# A label's part of a null direction below this is rounding: unit vectors are accurate to about 1e-8 there.
ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class JoinedSpectrum:
    """The spectrum of all rows' Gram matrix in the joined bases, and the coordinate that the label alone enters."""

    spectrum: Spectrum
    label: int | None

    def compare(self, core: Floats) -> RelativeGram:
        """Set a coreset's Gram matrix against that of all rows."""
        return relative_gram(core, self.spectrum, self.label)

    def models(
        self, relative: RelativeGram, n_random: int, n_near: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw random models and models near the best; of the second there are none if it fits perfectly."""
        random = random_models(len(relative.matrix), n_random, rng)
        if relative.optimum is None:
            return random, np.empty((0, len(relative.matrix)))
        return random, models_near(relative.optimum, np.resize(np.array(STEPS), n_near), rng)

    def epsilon(self, core: Floats, size: int, rng: np.random.Generator, floor: float | None) -> Epsilon:
        """Measure a coreset's error at random models, near the best, and at the worst there is."""
        relative = self.compare(core)
        errors, near = (relative.errors(models) for models in self.models(relative, N_RANDOM, N_NEAR, rng))
        return Epsilon(
            size,
            relative.worst()[0],
            float(errors.mean()),
            float(errors.max()),
            float(near.mean()) if len(near) else None,
            float(near.max()) if len(near) else None,
            floor,
        )


def gamma_of(
    whole: JoinedSpectrum,
    *,
    halves: tuple[Spectrum, Spectrum] | None = None,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Gamma:
    """Read gamma off a spectrum; where it is an estimate, also off those of the two halves of the rows.

    The bounds are the lemma's, as written and with columns of one length.
    """
    found = whole.spectrum
    with_label = whole.label is not None and bool(np.any(np.abs(found.null[whole.label]) > ROUNDING))
    parts = None if halves is None else (halves[0].effective_gamma, halves[1].effective_gamma)
    return Gamma(found.gamma, found.effective_gamma, found.null.shape[1], with_label, parts, *bounds)


def tau_of(distances: Floats, parties: Sequence[str]) -> Tau:
    """Read tau off the parties' squared distances of sampled pairs, two or more, shape (n_parties, n_pairs)."""
    ratios = separation_ratios(distances)
    n_pairs = ratios.shape[1]
    values = [usual_largest(own, n_pairs) for own in ratios]
    best = int(np.argmin(values))
    counts = sorted({max(1, n_pairs >> shift) for shift in (6, 4, 2, 0)})
    trend = tuple((count, usual_largest(ratios[best], count)) for count in counts)
    (fewer, before), (all_pairs, now) = trend[-2], trend[-1]
    growth = float(np.log(now / before) / np.log(all_pairs / fewer)) if np.isfinite(before) else float("inf")
    most = float(np.quantile(ratios[best], 0.99, method="inverted_cdf"))
    return Tau(now, parties[best], dict(zip(parties, values, strict=True)), most, n_pairs, trend, growth)


def pool_size(n_clusters: int) -> int:
    """Count the rows that serve as centres: enough for many different sets."""
    return n_clusters + max(n_clusters, 8)


def moved_centers(centers: Floats, rng: np.random.Generator) -> Floats:
    """Make versions of centres, each moved a part of the way to another, shape (len(MOVES), k, d)."""
    k = len(centers)
    others = (np.arange(k) + rng.integers(1, max(k, 2), size=(len(MOVES), k))) % k
    towards: Floats = centers[others] - centers
    return centers + np.array(MOVES)[:, np.newaxis, np.newaxis] * towards


def near_sets(n_clusters: int, n_versions: int, count: int, rng: np.random.Generator) -> Rows:
    """Choose sets of moved centres: the best as they are, then of each centre some version, shape (count + 1, k)."""
    versions = np.vstack(
        [np.zeros((1, n_clusters), dtype=np.int64), rng.integers(n_versions, size=(count, n_clusters))]
    )
    return versions * n_clusters + np.arange(n_clusters)


def clustering_zeta(distances: Floats, weights: Floats, scores: Floats, tried: Sequence[Rows]) -> float:
    """Find the largest ratio of a row's share of the cost to its score, over sets of centres tried: at most zeta.

    Distances, shape (m, p), are squared, from rows to a pool of centres; weights, shape (m,), make the rows' cost that
    of all; sets, shape (s, k), are taken from the pool.
    """
    largest = 0.0
    for chosen in np.vstack(list(tried)):
        losses = distances[:, chosen].min(axis=1)
        cost = float(weights @ losses)
        largest = max(largest, float((losses / scores).max()) / cost if cost > 0 else 0.0)
    return largest


def clustering_epsilon(
    coreset: tuple[Floats, Floats],
    reference: tuple[Floats, Floats],
    random: Rows,
    near: Rows | None,
    half: np.ndarray | None,
) -> Epsilon:
    """Measure a coreset's error over random sets of centres and, if there are any, sets near the best; shape (s, k).

    Coreset and reference are distances to the pool, shape (m, p), and weights, (m,). Where the reference is a sample,
    `half` marks half of its rows: how far off it alone would be is the floor.
    """
    errors = relative_errors(costs_of_sets(*coreset, random), costs_of_sets(*reference, random))
    close = None
    if near is not None:
        close = relative_errors(costs_of_sets(*coreset, near), costs_of_sets(*reference, near))
    floor = None
    if half is not None:
        part = costs_of_sets(reference[0][half], 2 * reference[1][half], random)
        floor = float(relative_errors(part, costs_of_sets(*reference, random)).max())
    return Epsilon(
        len(coreset[1]),
        None,
        float(errors.mean()),
        float(errors.max()),
        None if close is None else float(close.mean()),
        None if close is None else float(close.max()),
        floor,
    )
