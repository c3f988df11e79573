"""A table of any number of rows, of which nothing is held: blocks are computed when they are read."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import colonnade as cn
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block, n_blocks_of


class ComputedTable:
    """Two columns that are sines of the row's number, and a third as a label."""

    label_levels = key_digest = keys = row_numbers = alignment = preparing = row_weights = None
    weight_column = split_column = None
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, n_rows: int, *, has_label: bool) -> None:
        self.n_rows = n_rows
        self.feature_names = (f"{name}_0", f"{name}_1")
        self.label_name = f"{name}_label" if has_label else None

    def _block(self, number: int) -> Block:
        places = np.arange(number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, self.n_rows), dtype=float)
        columns = [np.sin(places + len(self.feature_names[0])), np.cos(0.7 * places), np.sin(places)]
        return Block(number, np.stack(columns[: 2 + (self.label_name is not None)], axis=1))

    def map(self, work: Any, numbers: Sequence[int] | None = None) -> Iterator[Any]:
        return (work(self._block(number)) for number in numbers or range(n_blocks_of(self.n_rows)))

    def take(self, rows: Rows) -> Floats:
        parts = [self._block(int(row) // BLOCK_ROWS).values[int(row) % BLOCK_ROWS] for row in rows]
        return np.array(parts).reshape(len(rows), -1)

    def key_columns(self, _: Rows) -> None:
        return None


def computed_federation(n_rows: int, **policy: Any) -> cn.Federation:
    """Let two parties hold so many rows each."""
    parties = [cn.Party(name, np.eye(3), policy=cn.Policy(**policy) if policy else None) for name in ("bank", "shop")]
    for party in parties:
        party.table = ComputedTable(party.name, n_rows, has_label=party.name == "shop")  # type: ignore[assignment]
    return cn.Federation(parties)
