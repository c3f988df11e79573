"""The levels of a category, counted."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.kernels.arrays import Flags
from colonnade.preparation.reading import cells, texts

MISSING, OTHER = "(missing)", "(other)"
# One column for each: more look like ids, and would be more columns than most tables have.
MOST_LEVELS = 1_000
# Levels that are kept to tell rare ones from those never seen.
MOST_KEPT_LEVELS = 100_000


@dataclass(frozen=True)
class Levels:
    """How many rows each level has, how many have none, and the first of these."""

    sizes: Counter[str]
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
    def with_missing(self) -> Counter[str]:
        """The sizes, with missing values as a level."""
        return self.sizes + Counter({MISSING: self.n_missing})  # adding keeps what is above zero


def count_levels(table: Any, name: str, counts: Flags | None = None) -> Levels:
    """Count levels of a column of a `pyarrow.Table` in the rows that count, block by block."""
    import pyarrow.compute as pc

    sizes: Counter[str] = Counter()
    n_missing, first = 0, None
    for block in cells(table, name, counts):
        levels = texts(block)
        if levels.null_count and first is None:
            first = int(block.rows[np.asarray(levels.is_null()).argmax()])
        n_missing += levels.null_count
        if len(sizes) < MOST_KEPT_LEVELS:
            found = pc.value_counts(levels.drop_null())
            sizes.update(dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)))
    return Levels(sizes, n_missing, first)
