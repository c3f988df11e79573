"""Rows drawn for a first clustering's sake: in one pass, by scores that are rough, with weights that are exact.

What a row would score is guessed from a few rows that were clustered. Rows are drawn by that guess, each on its own;
where it was too low, and too many came, those of the largest u / g go (priority sampling: Duffield, Lund and Thorup,
2007). Any positive guess draws rightly: a row's weight is divided by its chance.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block, RowBlocks
from colonnade.kernels.kmeans import EPS, RANGES, Centers, made_ready
from colonnade.kernels.tiles import Coarse, pieces, with_ones

# A centre is itself rounded: distances of a few units in its last place are none.
ROUNDING = 16 * EPS[np.float64]
# 32 bits show costs that are at least this part of the squares.
RESOLVED = 1e-3


class Guess(NamedTuple):
    """How rows will score: w_i (d(x_i, C)² / cost + what all rows of its cluster share)."""

    centers: Centers
    per_square: float
    shared: Floats
    # |x - c|² - |x - o|² and what is shared, in 32 bits, where these show enough
    origin: Floats
    factors: Coarse | None

    def of(self, X: Floats) -> Floats:
        """Guess what rows score that count 1; infinite where numbers grow too large."""
        scores = np.empty(len(X))
        with np.errstate(over="ignore", invalid="ignore"):
            if self.factors is None:
                labels, squared = self.centers.nearest(X)
                np.add(squared * self.per_square, self.shared[labels], out=scores)
            else:
                for piece in pieces(len(X), max(self.factors.shape)):
                    self._fill_roughly(X[piece], self.factors, scores[piece])
        if not scores.max(initial=0.0) < np.inf:
            scores[~(scores < np.inf)] = np.inf
        return scores

    def _fill_roughly(self, X: Floats, factors: Coarse, scores: Floats) -> None:
        rows = with_ones(X - self.origin if self.origin.any() else X, np.float32)
        gaps = factors @ rows
        least = gaps.min(axis=0)
        shared = self.shared.astype(np.float32) @ (gaps == least).astype(np.float32)
        least += np.einsum("jr,jr->r", rows[:-1], rows[:-1])
        np.maximum(least, 0, out=scores)
        scores *= self.per_square
        scores += shared


def guessed(X: Floats, weights: Floats, centers: Floats) -> Guess:
    """Guess from rows drawn evenly, and their clusters' centres; scores add up to 2 + 2 per cluster, of these rows."""
    ready = made_ready(centers)
    labels, squared = ready.nearest(X)
    total, costs = (np.bincount(labels, each, len(centers)) for each in (weights, weights * squared))
    norms = np.einsum("lj,lj->l", centers, centers)
    cost = max(float(costs.sum()), ROUNDING**2 * float(total @ norms), float(np.finfo(np.float64).tiny))
    # A cluster that none of these rows is in is nobody's: it counts as if one were.
    shared = (costs / cost + 2.0) / np.where(total > 0, total, weights.mean())
    return Guess(ready, 1.0 / cost, shared, *_in_32_bits(X, weights, centers, cost))


def _in_32_bits(X: Floats, weights: Floats, centers: Floats, cost: float) -> tuple[Floats, Coarse | None]:
    origin = weights @ X / weights.sum()
    spread = float(weights @ np.square(X - origin).sum(axis=1))
    # Where zero is as near, nothing need be taken away.
    if origin @ origin * weights.sum() <= spread:
        origin, spread = np.zeros(len(origin)), float(weights @ np.square(X).sum(axis=1))
    least, most = RANGES[np.float32]
    if not (cost > RESOLVED * spread and least**2 < spread / weights.sum() < most**2):
        return origin, None
    offsets = centers - origin
    factors = np.concatenate([-2 * offsets, np.square(offsets).sum(axis=1, keepdims=True)], axis=1)
    return origin, factors.astype(np.float32)


class Drawn(NamedTuple):
    """Rows as columns, (d, m), what they count, their guessed scores, and u / g: which is below a limit where drawn."""

    columns: Floats
    weights: Floats
    scores: Floats
    keys: Floats
    limit: float

    def __len__(self) -> int:
        return len(self.keys)

    def weighted(self) -> tuple[Floats, Floats]:
        """Give the rows, and w_i over the chance of each."""
        return self.columns.T, self.weights / np.minimum(1.0, self.limit * self.scores)

    def some(self, count: int) -> "Drawn":
        """Keep at most so many, in their order: these rows are drawn likewise."""
        if len(self) <= count:
            return self
        order = np.argpartition(self.keys, count)
        return self._at(np.sort(order[:count]), float(self.keys[order[count]]))

    def _at(self, places: Rows, limit: float) -> "Drawn":
        columns, weights, scores, keys = (np.take(each, places, axis=-1) for each in self[:4])
        return Drawn(columns, weights, scores, keys, limit)


def drawn_roughly(rows: RowBlocks, guess: Guess, size: int, chance: float, seed: int) -> Drawn:
    """Draw about, and at most, so many rows: row i with chance min(1, chance g_i), and one of weight 0 never."""
    held, n_held = list[Drawn](), 0
    for part in rows.map(partial(_drawn_in, guess, size, chance, seed)):
        held.append(part)
        n_held += len(part)
        if n_held > 4 * size:
            held = [_joined(held).some(size)]
            n_held = len(held[0])
    return _joined(held).some(size)


def _drawn_in(guess: Guess, size: int, chance: float, seed: int, block: Block) -> Drawn:
    scores = guess.of(block.values)
    if block.weights is not None:
        scores *= np.where(block.weights > 0, block.weights, np.nan)
    keys = np.random.default_rng([seed, block.number]).random(len(scores)) / scores
    here = np.flatnonzero(keys < chance)
    weights = np.ones(len(here)) if block.weights is None else block.weights[here]
    columns = np.take(block.values.T, here, axis=1)
    return Drawn(columns, weights, scores[here], keys[here], chance).some(size)


def _joined(parts: list[Drawn]) -> Drawn:
    """Put parts together, as if all were drawn by the least of their limits."""
    limit = min(part.limit for part in parts)
    columns, weights, scores, keys = (np.concatenate(each, axis=-1) for each in list(zip(*parts, strict=True))[:4])
    found = Drawn(columns, weights, scores, keys, limit)
    return found if (keys < limit).all() else found._at(np.flatnonzero(keys < limit), limit)
