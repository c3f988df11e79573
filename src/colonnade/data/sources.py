"""Every kind of data a caller may hand in, made into one: named float64 columns, the label last.

Named tables (frames and files) all go one way, through Arrow; pyarrow is imported only when one comes in.
"""

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.data.keys import digest_of_key
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats

ACCEPTED = (
    "Pass a 2-D array of numbers, a pandas, polars or pyarrow table (collect a lazy one first), "
    "or the path of a .parquet, .csv or .csv.gz file."
)

# A block of a row-major array that stays in cache while its columns are written: five times faster
# than column by column on 463,715 x 90.
COPY_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Source:
    """Columns as they came in, not yet checked for missing or extreme values.

    Attributes
    ----------
    names : tuple of str
        One per column, the label's last.
    values : (n_rows, n_columns) array
        Column-major, a copy that nobody else holds.
    integers : tuple of bool
        Which columns held integers before they became floats.
    label_name : str or None
        The last name, if the last column is the label.
    key_digest : bytes or None
        See `digest_of_key`.
    """

    names: tuple[str, ...]
    values: Floats
    integers: tuple[bool, ...]
    label_name: str | None = None
    key_digest: bytes | None = None


def has_names(data: object) -> bool:
    """Whether the data is a table with column names (a frame or a file), not an array."""
    return isinstance(data, str | os.PathLike) or any(
        hasattr(data, protocol) for protocol in ("__arrow_c_stream__", "__arrow_c_array__")
    )


def from_array(party: str, data: object, label: npt.ArrayLike | None, key: str | None) -> Source:
    """Take a (n_rows, n_features) array and, at the label party, a (n_rows,) label beside it."""
    if key is not None or isinstance(label, str):
        given = f"label={label!r}" if isinstance(label, str) else f"key={key!r}"
        raise InputError(
            f"Party {party!r}: {given} names a column, but an array has no column names. "
            "Pass a named table (a data frame) instead; a label may also be a 1-D array beside the array."
        )
    features = _numeric_array(party, "the data", data, ndim=2)
    names = [f"{party}_{i}" for i in range(features.shape[1])]
    parts = [features]
    if label is not None:
        target = _numeric_array(party, "the label", label, ndim=1)
        if len(target) != len(features):
            raise InputError(
                f"Party {party!r}: the label has {len(target)} values for {len(features)} rows of data. "
                "Pass one label per row, in the same order."
            )
        names.append(f"{party}_label")
        parts.append(target[:, np.newaxis])
    _check_not_empty(party, len(features), len(names))
    integers = [part.dtype.kind in "iu" for part in parts for _ in range(part.shape[1])]
    return Source(tuple(names), _side_by_side(parts), tuple(integers), None if label is None else names[-1])


def from_frame(party: str, data: object, label: object, key: str | None) -> Source:
    """Take a named table, with the names of its label and key columns."""
    if label is not None and not isinstance(label, str):
        raise InputError(
            f"Party {party!r}: the label of a named table is one of its columns, given by name (text), "
            f"not {type(label).__name__}. Add the label as a column and pass its name."
        )
    if key is not None and key == label:
        raise InputError(f"Party {party!r}: {key!r} is both key and label. Name two different columns.")
    table = _to_arrow(party, data, key)
    names: list[str] = table.column_names
    _check_separator(party, names)
    _check_unique(party, names)
    for role, name in (("label", label), ("key", key)):
        if name is not None and name not in names:
            raise InputError(_no_such_column(party, role, name, names))
    ordered = [name for name in names if name not in (label, key)]
    ordered += [] if label is None else [label]
    _check_not_empty(party, table.num_rows, len(ordered))
    _check_numeric(party, table.select(ordered))
    digest = None if key is None else digest_of_key(party, key, table[key])
    return Source(tuple(ordered), *_as_floats(table.select(ordered)), label, digest)


def _numeric_array(party: str, what: str, data: object, *, ndim: int) -> npt.NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        # np.asarray would silently bring masked values back to light.
        data = np.where(np.ma.getmaskarray(data), np.nan, data.data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(f"Party {party!r}: {what} cannot be read as an array ({error}). {ACCEPTED}") from error
    if array.ndim != ndim:
        advice = ACCEPTED if ndim == 2 else "Pass a 1-D array with one label per row."
        raise InputError(
            f"Party {party!r}: {what} must have {ndim} dimension(s), but this {type(data).__name__} has "
            f"{array.ndim} (shape {array.shape}). {advice}"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"Party {party!r}: {what} has type {array.dtype}, not real numbers. "
            "Convert it (astype(float)), encode its categories as numbers, or drop what is not a number."
        )
    return array


def _side_by_side(parts: Sequence[npt.NDArray[Any]]) -> Floats:
    n_rows = len(parts[0])
    values = np.empty((n_rows, sum(part.shape[1] for part in parts)), dtype=np.float64, order="F")
    first = 0
    for part in parts:
        for start in range(0, n_rows, COPY_ROWS):
            rows = slice(start, start + COPY_ROWS)
            values[rows, first : first + part.shape[1]] = part[rows]
        first += part.shape[1]
    return values


def _to_arrow(party: str, data: object, key: str | None) -> Any:
    import pyarrow as pa

    if isinstance(data, str | os.PathLike):
        table = _read_file(party, Path(data), key)
    else:
        try:
            table = pa.table(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            # Only the last part, which names the column, and no cause: the rest of pyarrow's words quote values.
            raise InputError(
                f"Party {party!r}: this {type(data).__name__} cannot be read as a table ({error.args[-1]}). "
                f"Give each column a name of its own and one type. {ACCEPTED}"
            ) from None
    return table.drop_columns(_index_columns(table))


def _index_columns(table: Any) -> list[str]:
    """Name the columns that are a pandas index: it labels rows, the owner did not mean it as a feature."""
    try:
        metadata = table.schema.pandas_metadata or {}
        # A RangeIndex is described by a dict and has no column.
        return [name for name in metadata.get("index_columns", []) if name in table.column_names]
    except (ValueError, AttributeError, TypeError):
        return []  # a file may say anything about itself; what is not pandas' form names no index


def _read_file(party: str, path: Path, key: str | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv, parquet

    if not path.is_file():
        raise InputError(f"Party {party!r}: there is no file {str(path)!r}. Check the path. {ACCEPTED}")
    try:
        if path.name.lower().endswith(".parquet"):
            with parquet.ParquetFile(path) as file:  # not read_table: it makes columns of folder names
                return file.read()
        if path.name.lower().endswith((".csv", ".csv.gz")):
            # A key is read as text: "007" would otherwise be taken for a number.
            as_text = {} if key is None else {key: pa.string()}
            return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=as_text))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"Party {party!r}: the file {str(path)!r} cannot be read ({error}). "
            "Check that it is whole and of the kind its name says, or write it again."
        ) from error
    raise InputError(f"Party {party!r}: the file {str(path)!r} is of an unknown kind. {ACCEPTED}")


def _as_floats(table: Any) -> tuple[Floats, tuple[bool, ...]]:
    import pyarrow as pa

    values = np.empty((table.num_rows, table.num_columns), dtype=np.float64, order="F")
    for i, column in enumerate(table.columns):
        values[:, i] = column.cast(pa.float64(), safe=False).to_numpy()  # a null becomes NaN
    return values, tuple(pa.types.is_integer(kind) for kind in table.schema.types)


def _check_numeric(party: str, table: Any) -> None:
    other = [f"{field.name!r} ({field.type})" for field in table.schema if not _is_numeric(field.type)]
    if other:
        raise InputError(
            f"Party {party!r}: {len(other)} column(s) are not numbers: {_listed(other)}. "
            "Encode them as numbers (one column per category, a date as days), or drop them; "
            "a column that identifies rows can be the key=."
        )


def _is_numeric(kind: Any) -> bool:
    import pyarrow.types as t

    # The null type is a column without any value: it is reported as missing values, not as text.
    return any(is_kind(kind) for is_kind in (t.is_integer, t.is_floating, t.is_boolean, t.is_decimal, t.is_null))


def _check_separator(party: str, names: Sequence[str]) -> None:
    if len(names) == 1 and any(separator in names[0] for separator in ";\t"):
        raise InputError(
            f"Party {party!r}: its only column is called {names[0]!r}: is the file separated by semicolons or tabs? "
            "Write it with commas and decimal points, or pass a data frame."
        )


def _check_unique(party: str, names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"Party {party!r}: column name(s) {_listed([repr(name) for name in repeated])} occur more than once. "
            "Rename or drop the repeated columns."
        )


def _check_not_empty(party: str, n_rows: int, n_columns: int) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InputError(
            f"Party {party!r}: the table has {n_rows} row(s) and {n_columns} column(s) to learn from "
            "(a key does not count). Pass at least one row and one column, be it the label."
        )


def _no_such_column(party: str, role: str, name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(name), names)
    hint = f" Did you mean {' or '.join(repr(one) for one in close)}?" if close else ""
    columns = _listed([repr(one) for one in names])
    return f"Party {party!r}: there is no {role} column {name!r}; the columns are {columns}. Name one of them.{hint}"


def _listed(words: Sequence[str], limit: int = 20) -> str:
    rest = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + rest
