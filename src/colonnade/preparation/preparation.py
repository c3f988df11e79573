"""What was learned of a party's table: applied to its rows, to new ones, and kept as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.options import learn_types
from colonnade.preparation.columns import AnyColumn, CategoryColumn
from colonnade.preparation.reading import cells

MAX_JSON_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Applied:
    """Prepared rows, (n_rows, n_columns), column-major, and what their owner should know of them, in counts only."""

    values: Floats
    notes: tuple[str, ...] = ()


class Preparation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How each column becomes numbers; `fitted` makes it. It holds levels and means, and stays at the party."""

    columns: tuple[AnyColumn, ...]
    format: int = 1

    def __post_init__(self) -> None:
        if self.format != 1:
            raise InputError(f"a preparation of format {self.format} is of a later version. Upgrade colonnade.")
        _check_distinct([column.column for column in self.columns])
        _check_distinct(self.names)
        _check_distinct(self.own_names)

    @property
    def names(self) -> tuple[str, ...]:
        """What the prepared columns are called to others: job#1, job#2, age."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def own_names(self) -> tuple[str, ...]:
        """What they are called at the party: job=clerk, job=(other), age."""
        return tuple(name for column in self.columns for name in column.own_names)

    @property
    def references(self) -> tuple[str, ...]:
        """The levels that have no column, to which the others of their column compare."""
        found = [each for each in self.columns if isinstance(each, CategoryColumn) and each.names]
        return tuple(f"{each.column}={each.reference}" for each in found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner should know of what was learned."""
        return tuple(
            f"{each.column}: {'it has one level only' if len(each.known) == 1 else 'all its levels are rare'}, so it "
            "gives no column"
            for each in self.columns
            if isinstance(each, CategoryColumn) and not each.names
        )

    def apply(self, table: Any, room: int = 0) -> Applied:
        """Prepare the rows of a `pyarrow.Table`; columns that it does not know are not looked at.

        After those that are made there are as many columns of zeros as there is to be room for.
        """
        values = np.zeros((table.num_rows, len(self.names) + room), order="F")
        notes, first = [], 0
        for column in self.columns:
            out = values[:, first : first + len(column.names)]
            first += len(column.names)
            count = sum(
                column.write(block, out[block.rows[0] : block.rows[-1] + 1]) for block in cells(table, column.column)
            )
            if count:
                notes.append(column.note(count))
        return Applied(values, tuple(notes))

    def looked_through(self, table: Any) -> tuple[Floats, tuple[str, ...]]:
        """Prepare rows, and keep none: the largest value in size of each column, and what the owner should know."""
        notes, largest = [], []
        for column in self.columns:
            count, most = 0, np.zeros(len(column.names))
            for block in cells(table, column.column):
                out = np.zeros((len(block.rows), len(column.names)), order="F")
                count += column.write(block, out)
                # NaN and infinity cannot hide from the extremes.
                most = np.maximum(most, np.maximum(-out.min(axis=0), out.max(axis=0)))
            largest.append(most)
            if count:
                notes.append(column.note(count))
        return np.concatenate([np.zeros(0), *largest]), tuple(notes)

    def to_json(self) -> bytes:
        """Write it, to be kept at the party."""
        written = msgspec.json.encode(self)
        if len(written) > MAX_JSON_BYTES:
            raise InputError(
                f"what was learned takes {len(written):,} bytes, more than {MAX_JSON_BYTES:,}: levels of some column "
                "look like free text. Leave it out."
            )
        return written

    @classmethod
    def from_json(cls, written: bytes) -> Self:
        """Read what `to_json` wrote, without trust."""
        try:
            if len(written) > MAX_JSON_BYTES:
                raise ValueError(f"it has {len(written):,} bytes, more than {MAX_JSON_BYTES:,}")
            return msgspec.json.decode(written, type=cls)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The preparation cannot be read ({str(error).rstrip('.')}). Take it as it was written, or fit again."
            ) from None


def _check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two prepared columns would be called {name!r}. Rename the column, or the level.")
        seen.add(name)


learn_types(Preparation)
