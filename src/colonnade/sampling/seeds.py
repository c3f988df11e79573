"""Seeds of a draw: one that all sides share, and one for each party's own draw, which it alone is told.

They are the first that a sampler takes of its generator: so they can stand on the job sheet, the parties' own as
digests, before anything is known of the data.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from colonnade.kernels.arrays import Rows
from colonnade.kernels.draws import draw_evenly
from colonnade.kernels.per_row import PerRow
from colonnade.signing import seed_digest


@dataclass(frozen=True)
class Seeds:
    """The shared seed, and the parties' own in the order of the roster."""

    shared: int
    own: tuple[int, ...]

    @classmethod
    def of(cls, rng: np.random.Generator, n_parties: int) -> Self:
        """Draw them."""
        shared = int(rng.integers(2**63))
        return cls(shared, tuple(rng.integers(2**63, size=n_parties).tolist()))

    def digests(self, parties: tuple[str, ...]) -> tuple[bytes, ...]:
        """Hash the parties' own."""
        return tuple(seed_digest(party, seed) for party, seed in zip(parties, self.own, strict=True))


def count_even(shared: int, size: int, even_share: float) -> int:
    """Draw how many of so many rows are drawn evenly."""
    return int(np.random.default_rng([shared, 0]).binomial(size, even_share)) if even_share else 0


def even_quota(size: int, even_share: float) -> int:
    """Say how many of so many distinct rows are drawn evenly."""
    return round(even_share * size)


def even_rows(n_rows: int, count: int, shared: int, weights: PerRow | None) -> Rows:
    """Draw the rows that all sides draw alike, evenly, or by their weight; they ascend."""
    return draw_evenly(n_rows, count, even_rng(shared), weights) if count else np.empty(0, np.int64)


def even_rng(shared: int) -> np.random.Generator:
    """Give the generator of the rows that are drawn evenly."""
    return np.random.default_rng([shared, 1])
