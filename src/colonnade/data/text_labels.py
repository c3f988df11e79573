"""Labels that are text: their levels, in order, and for each row the place of its level among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.preparation.reading import NUMBER_OR_COMMA


def text_label(party: str, name: str, values: Sequence[Any]) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Give numbers to the levels of a label of text; blanks around one do not count.

    Returns
    -------
    codes : ndarray of int64, shape (n_rows,)
        The place of each row's level.
    levels : tuple of str
        In the order of their letters.
    """
    where = f"Party {party!r}, column {name!r}"
    other = next((row for row, value in enumerate(values) if value is not None and not isinstance(value, str)), None)
    if other is not None and not _is_nan(values[other]):
        raise InputError(
            f"{where}: the label is text in some rows, and in row {other} (rows count from 0) it is of type "
            f"{type(values[other]).__name__}. Make all of them text, or all numbers."
        )
    words = [value.strip() if isinstance(value, str) else "" for value in values]
    if missing := words.count(""):
        raise InputError(
            f"{where}: {missing:,} of {len(words):,} labels are missing, the first in row {words.index('')} (rows "
            "count from 0). Leave these rows out, or fill them in."
        )
    levels = tuple(sorted(set(words)))
    if len(levels) > MOST_CLASSES:
        raise InputError(
            f"{where}: the label is text with {len(levels):,} different values, and a label has at most {MOST_CLASSES} "
            "classes. Name another column, or make numbers of it."
        )
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[word] for word in words], dtype=np.int64), levels


def text_label_of_column(
    party: str, name: str, column: Any
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]] | tuple[None, None]:
    """Give numbers to the levels of a label that is text, of a `pyarrow.Table`; nothing where it is none.

    Text of which a part are numbers is no label: a slip, which is told of where numbers are asked for.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or _is_view(column.type)):
        return None, None
    numbers = pc.match_substring_regex(column.cast(pa.large_string()), NUMBER_OR_COMMA)
    if pc.any(numbers).as_py() and not pc.all(numbers).as_py():
        return None, None
    return text_label(party, name, column.to_pylist())


def levels_left(codes: Floats, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out levels that no row has, and number the others anew, in place."""
    present, codes[:] = np.unique(codes.astype(np.int64), return_inverse=True)
    return tuple(levels[place] for place in present.tolist())


def _is_view(kind: Any) -> bool:
    return str(kind) == "string_view"


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)
