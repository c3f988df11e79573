"""Every kind of data a caller may hand in, made into one: named columns of numbers, the label last.

Named tables (frames and files) all go one way, through Arrow; pyarrow is imported only when one comes in.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Keys
from colonnade.data.column_rules import allowed_columns, no_such_column
from colonnade.data.csv_reading import RereadError
from colonnade.data.databases import Query
from colonnade.data.filed_columns import FileColumns
from colonnade.data.filed_keys import read_filed_keys
from colonnade.data.files import ACCEPTED, Opened, open_table
from colonnade.data.filling import Filled, Sized, filled, largest_in_size, sized
from colonnade.data.held_columns import AnyColumn, HeldColumns, Kind, kind_of
from colonnade.data.keys import Duplicates, read_keys
from colonnade.data.marks import read_marks, read_marks_of_chunks
from colonnade.data.slips import Slip
from colonnade.data.spool import SpooledRows
from colonnade.data.spooling import spooled
from colonnade.data.text_labels import text_label, text_label_of_column
from colonnade.data.unprepared import Unprepared, columns_of_text, columns_to_prepare, unprepared_columns
from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats
from colonnade.options import listed
from colonnade.preparation.reading import Place, is_number
from colonnade.preparation.rules import HowToPrepare
from colonnade.protocol.policy import Policy

# A block of a row-major array that stays in cache while its columns are written: five times faster
# than column by column on 463,715 x 90.
COPY_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Roles:
    """What columns are that are no features: each a name in a named table, or, beside an array, a 1-D array."""

    label: object = None
    key: object = None
    weight: object = None
    split: object = None
    duplicates: Duplicates = "error"

    def items(self) -> list[tuple[str, object]]:
        """List those that were given."""
        pairs = [(name, getattr(self, name)) for name in ("label", "key", "weight", "split")]
        return [(role, column) for role, column in pairs if column is not None]


@dataclass(frozen=True, eq=False)
class Source:
    """Columns as they came in, not yet checked for missing or extreme values.

    Attributes
    ----------
    names : tuple of str
        One per column, the label's last.
    values : HeldColumns or SpooledRows
        A copy that nobody else holds, in memory or in a file.
    integers : tuple of bool
        Which columns held integers before they became floats.
    largest : (n_columns,) array
        The largest value in size of each column, NaN where one is missing.
    label_levels : tuple of str, or None
        Where the label is text: its levels, whose places are the label's values.
    notes : tuple of str
        What whoever handed it in should know of how it was read.
    """

    names: tuple[str, ...]
    values: HeldColumns | SpooledRows
    integers: tuple[bool, ...]
    largest: Floats
    label_name: str | None = None
    keys: Keys | None = None
    weights: Floats | None = None
    held_out: Flags | None = None
    notes: tuple[str, ...] = ()
    unprepared: Unprepared | None = None
    label_levels: tuple[str, ...] | None = None
    key_digest: bytes | None = None

    def column(self, place: int) -> Iterator[AnyColumn]:
        """Give one column, piece by piece."""
        if isinstance(self.values, SpooledRows):
            return self.values.column(self.names[place])
        return iter([self.values.column(place)])


def has_names(data: object) -> bool:
    """Whether the data is a table with column names (a frame, a file or a query), not an array."""
    return isinstance(data, str | os.PathLike | Query) or any(
        hasattr(data, protocol) for protocol in ("__arrow_c_stream__", "__arrow_c_array__", "scanner")
    )


def from_array(party: str, data: object, roles: Roles, policy: Policy, prepare: HowToPrepare | None) -> Source:
    """Take a (n_rows, n_features) array and, beside it, (n_rows,) arrays for the label, weights and split."""
    if prepare is not None:
        raise InputError(
            f"Party {party!r}: prepare= names columns, and an array has none that have names. Pass a data frame."
        )
    named = [f"{role}={column!r}" for role, column in roles.items() if isinstance(column, str) or role == "key"]
    if named:
        raise InputError(
            f"Party {party!r}: {named[0]} names a column, but an array has no column names. "
            "Pass a named table (a data frame) instead; all but a key may also be a 1-D array beside the array."
        )
    features = _numeric_array(party, "the data", data, ndim=2)
    beside = {role: _beside(party, role, column, len(features)) for role, column in roles.items()}
    label, levels = beside.get("label"), None
    if label is not None and label.dtype.kind in "OUT":
        label, levels = text_label(party, f"{party}_label", label.tolist())
    labelled = {} if label is None else {f"{party}_label": "label"}
    every = [f"{party}_{i}" for i in range(features.shape[1])] + list(labelled)
    names = allowed_columns(party, every, labelled, policy)
    if len(names) < len(every):
        features = features[:, [name in names for name in every[: features.shape[1]]]]
    parts = [features] if label is None else [features, label[:, np.newaxis]]
    _check_not_empty(party, len(features), len(names))
    integers = [part.dtype.kind in "iu" for part in parts for _ in range(part.shape[1])]
    values = _side_by_side(parts)
    return Source(
        tuple(names),
        values,
        tuple(integers),
        largest_in_size(values.columns()),
        None if label is None else names[-1],
        weights=None if "weight" not in beside else beside["weight"].astype(np.float64),
        held_out=None if "split" not in beside else read_marks(party, beside["split"]),
        label_levels=levels,
    )


def from_frame(
    party: str, data: object, roles: Roles, policy: Policy, prepare: HowToPrepare | None, most: int
) -> Source:
    """Take a named table, with the names of its columns that are no features.

    Where its numbers take more bytes than `most`, and it is not in memory already, they are put into a file.
    """
    taken = taken_columns(party, roles)
    named = {role: [name for name, its in taken.items() if its == role] for role in taken.values()}
    label, keys = named.get("label", []), named.get("key", [])

    def as_text(names: Sequence[str]) -> list[str]:
        return columns_of_text(names, prepare, taken)

    from pyarrow import default_memory_pool
    from pyarrow.types import is_integer

    chosen = partial(columns_read, party, taken, policy, prepare)
    opened = open_table(party, data, chosen, keys=keys, as_text=as_text, most=most)
    schema = opened.batches.schema
    features = [name for name in schema.names if name not in taken]
    ordered = features + label if prepare is None else label
    numbers = [*ordered, *named.get("weight", [])]
    row_bytes = 8 * len({*features, *numbers})
    found = None if opened.is_held else sized(opened.batches, opened.n_rows, row_bytes, most)
    if found is not None and found.is_large:
        try:
            return _spooled_source(party, opened, found, features, taken, prepare, roles.duplicates)
        except RereadError as error:
            file = error.file  # which is written otherwise than it begins
        return from_frame(party, file, roles, policy, prepare, most)
    batches, n_rows, _ = found or Sized(opened.batches, opened.n_rows, False)
    read = filled(party, batches, n_rows, numbers)
    rest, n_columns = read.rest, len(ordered)
    unprepared = None if prepare is None else unprepared_columns(party, rest.select(features), prepare, opened.place)
    _check_not_empty(party, len(read.values), len(features + label))
    levels = _fill_text_label(party, label, read, n_columns - 1)
    text = label if levels else []
    slips = _slips([name for name in numbers if name not in text], rest)
    _check_numeric(party, slips, len(read.values), opened.place)
    own = read_keys(party, keys, rest, roles.duplicates) if keys else None
    source = Source(
        tuple(ordered),
        read.values.first(n_columns),
        tuple(is_integer(schema.field(name).type) for name in ordered),
        read.largest[:n_columns],
        label[0] if label else None,
        own,
        read.values.column(-1).astype(np.float64) if "weight" in named else None,
        read_marks_of_chunks(party, rest[named["split"][0]]) if "split" in named else None,
        opened.notes,
        unprepared,
        levels,
        None if own is None else own.values.digest(),
    )
    default_memory_pool().release_unused()  # what batches took, which Arrow keeps for others
    return source


def _spooled_source(
    party: str,
    opened: Opened,
    found: Sized,
    features: Sequence[str],
    taken: dict[str, str],
    prepare: HowToPrepare | None,
    duplicates: Duplicates,
) -> Source:
    """Read a table that is too large to be held."""
    from pyarrow import default_memory_pool
    from pyarrow.types import is_integer

    schema = found.batches.schema
    label, names = ([name for name, its in taken.items() if its == role] for role in ("label", "key"))
    columns = [*features, *label] if prepare is None else label
    read = spooled(party, found.batches, found.n_rows, columns, taken)
    default_memory_pool().release_unused()
    _check_not_empty(party, read.n_rows, len([*features, *label]))
    _check_numeric(party, read.slips, read.n_rows, opened.place)
    others = schema.empty_table() if read.others is None else FileColumns(read.others, ())
    unprepared = None if prepare is None else unprepared_columns(party, others.select(features), prepare, opened.place)
    keys, digest = read_filed_keys(party, names, others.select(names), duplicates) if names else (None, None)
    if read.unmarked is not None:
        raise read.unmarked
    return Source(
        tuple(columns),
        read.rows,
        tuple(is_integer(schema.field(name).type) for name in columns),
        read.largest,
        label[0] if label else None,
        keys,
        read.weights,
        read.held_out,
        opened.notes,
        unprepared,
        read.label_levels,
        digest,
    )


def _fill_text_label(party: str, label: Sequence[str], read: Filled, place: int) -> tuple[str, ...] | None:
    """Put numbers in the place of a label that is text, and give its levels."""
    if not label or label[0] not in read.rest.column_names:
        return None
    codes, levels = text_label_of_column(party, label[0], read.rest[label[0]])
    if codes is not None:
        read.values.column(place)[:] = codes
    return levels


def taken_columns(party: str, roles: Roles) -> dict[str, str]:
    """Give the role of each column of a named table that has one."""
    taken: dict[str, str] = {}
    for role, given in roles.items():
        for name in _column_names(party, role, given):
            if name in taken:
                raise InputError(
                    f"Party {party!r}: {name!r} is both {taken[name]} and {role}. Name two different columns."
                )
            taken[name] = role
    return taken


def columns_read(
    party: str, taken: Mapping[str, str], policy: Policy, prepare: HowToPrepare | None, names: Sequence[str]
) -> list[str]:
    """List the columns that the policy lets in, and of these what is prepared; those with a role must be there."""
    for name, role in taken.items():
        if name not in names:
            raise InputError(no_such_column(party, name, names, role=role))
    allowed = allowed_columns(party, names, taken, policy)
    return allowed if prepare is None else columns_to_prepare(party, allowed, prepare, taken)


def _column_names(party: str, role: str, given: object) -> list[str]:
    """Give the columns that a role names: a key may have several."""
    names = list(given) if role == "key" and isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"Party {party!r}: the {role} of a named table is one of its columns, given by name (text), "
            f"not {type(given).__name__}. Add the {role} as a column and pass its name."
        )
    return names  # type: ignore[return-value]  # all are text


def _beside(party: str, role: str, column: object, n_rows: int) -> npt.NDArray[Any]:
    array = _numeric_array(
        party, f"the {role}", column, ndim=1, kinds="biufOUT" if role in ("split", "label") else "biuf"
    )
    if len(array) != n_rows:
        raise InputError(
            f"Party {party!r}: the {role} has {len(array)} values for {n_rows} rows of data. "
            f"Pass one {role} per row, in the same order."
        )
    return array


def _numeric_array(party: str, what: str, data: object, *, ndim: int, kinds: str = "biuf") -> npt.NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        # np.asarray would silently bring masked values back to light.
        data = np.where(np.ma.getmaskarray(data), np.nan, data.data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(f"Party {party!r}: {what} cannot be read as an array ({error}). {ACCEPTED}") from error
    if array.ndim != ndim:
        advice = ACCEPTED if ndim == 2 else f"Pass a 1-D array with one {what.removeprefix('the ')} per row."
        raise InputError(
            f"Party {party!r}: {what} must have {ndim} dimension(s), but this {type(data).__name__} has "
            f"{array.ndim} (shape {array.shape}). {advice}"
        )
    if array.dtype.kind not in kinds:
        raise InputError(
            f"Party {party!r}: {what} has type {array.dtype}, not real numbers. "
            "Convert it (astype(float)), encode its categories as numbers, or drop what is not a number."
        )
    return array


def _side_by_side(parts: Sequence[npt.NDArray[Any]]) -> HeldColumns:
    alike = groupby(parts, key=lambda part: kind_of(part.dtype))
    return HeldColumns(tuple(_column_major(list(some), kind) for kind, some in alike))


def _column_major(parts: Sequence[npt.NDArray[Any]], kind: Kind) -> npt.NDArray[Any]:
    n_rows = len(parts[0])
    values = np.empty((n_rows, sum(part.shape[1] for part in parts)), kind, order="F")
    first = 0
    for part in parts:
        for start in range(0, n_rows, COPY_ROWS):
            rows = slice(start, start + COPY_ROWS)
            values[rows, first : first + part.shape[1]] = part[rows]
        first += part.shape[1]
    return values


def _slips(names: Sequence[str], rest: Any) -> list[Slip]:
    """Look at the columns that were to be numbers, and are none."""
    found = [Slip(rest.schema.field(name)) for name in names if name in rest.column_names]
    for slip in found:
        start = 0
        for chunk in rest[slip.name].chunks:
            slip.look(chunk, start)
            start += len(chunk)
    return found


def _check_numeric(party: str, slips: Sequence[Slip], n_rows: int, place: Place) -> None:
    # The null type is a number's, of which the next error tells.
    if other := [slip.said(place) for slip in slips if not is_number(slip.kind)]:
        raise InputError(
            f"Party {party!r}: {len(other)} column(s) are not numbers: {listed(other)}. Correct a value that should be "
            "one: 12000 for '12k', 0.5 for '0,5'. Pass prepare= for categories and dates, or encode them as numbers, "
            "or drop them; a column that identifies rows can be the key=."
        )
    if slips:  # rows may be any number: those without a value take no room in a file
        raise InputError(
            f"Party {party!r}, column {slips[0].name!r}: {n_rows} of {n_rows} values are missing (null), the first in "
            "row 0 (rows count from 0). Drop the column, or fill it in."
        )


def _check_not_empty(party: str, n_rows: int, n_columns: int) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InputError(
            f"Party {party!r}: the table has {n_rows} row(s) and {n_columns} column(s) to learn from "
            "(a key does not count). Pass at least one row and one column; the label alone will do."
        )
