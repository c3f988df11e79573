"""The levels of a category, counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.preparation.reading import RowWeights, cells, texts

MISSING, OTHER = "(missing)", "(other)"
# One column for each: more look like ids, and would be more columns than most tables have.
MOST_LEVELS = 1_000
# Levels that are kept to tell rare ones from those never seen.
MOST_KEPT_LEVELS = 100_000


@dataclass(frozen=True)
class Levels:
    """How many rows each level has, a row of weight k being k, and `missing_size` none.

    Of rows without a level there are also `n_missing` as they stand, and the first of them.
    """

    sizes: Mapping[str, float]
    missing_size: float
    n_missing: int
    first_missing: int | None

    @property
    def too_many(self) -> bool:
        """Whether there are more than are kept; the others were not counted."""
        return len(self.sizes) >= MOST_KEPT_LEVELS

    @property
    def reserved(self) -> str | None:
        """A level that is called as one that is made, if there is one."""
        return next((level for level in (MISSING, OTHER) if level in self.sizes), None)

    @property
    def with_missing(self) -> dict[str, float]:
        """The sizes, with missing values as a level."""
        return {**self.sizes, MISSING: self.missing_size} if self.n_missing else dict(self.sizes)


def count_levels(table: Any, name: str, weights: RowWeights | None = None) -> Levels:
    """Count levels of a column of a table, block by block; a row of weight k is k rows, one if None."""
    sizes: dict[str, float] = {}
    n_missing, missing_size, first = 0, 0.0, None
    for block in cells(table, name, weights):
        levels = texts(block)
        gaps = np.asarray(levels.is_null())
        if levels.null_count and first is None:
            first = int(block.rows[gaps.argmax()])
        n_missing += levels.null_count
        counted = np.ones(len(gaps)) if weights is None else weights[block.rows]
        # One after the other, so that how the table is cut changes no bit.
        missing_size = float(np.cumsum(np.append(missing_size, counted[gaps]))[-1])
        if len(sizes) < MOST_KEPT_LEVELS:
            _add(sizes, levels.drop_null().dictionary_encode(), counted[~gaps])
    return Levels(sizes, missing_size, n_missing, first)


def _add(sizes: dict[str, float], levels: Any, weights: Floats) -> None:
    names = levels.dictionary.to_pylist()
    before = [sizes.get(name, 0.0) for name in names]
    places = np.concatenate([np.arange(len(names)), np.asarray(levels.indices)])
    sizes.update(zip(names, np.bincount(places, np.concatenate([before, weights])).tolist(), strict=True))
