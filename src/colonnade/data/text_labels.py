"""Labels that are text: their levels, in order, and for each row the place of its level among them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.preparation.reading import NUMBER_OR_COMMA

Codes = npt.NDArray[np.int64]
# Levels that are counted, of a column that is no label.
MOST_COUNTED = 1 << 20


def text_label(party: str, name: str, values: Sequence[Any]) -> tuple[Codes, tuple[str, ...]]:
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
    missing = words.count("")
    levels = _levels(where, set(words), len(words), missing, words.index("") if missing else 0)
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[word] for word in words], dtype=np.int64), levels


class LabelWords:
    """A label of text that comes in piece by piece: its words are numbered as they come, and put in order at the end.

    Text of which a part are numbers is no label: a slip, which is told of where numbers are asked for.
    """

    def __init__(self, party: str, name: str) -> None:
        self._where = f"Party {party!r}, column {name!r}"
        self._found: dict[str, int] = {}
        self._n_rows = self._n_missing = self._first_missing = 0
        self._has_numbers = self._has_others = False

    def numbered(self, column: Any) -> Codes:
        """Give the numbers of the next words, by which they have come; -1 where one is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        texts = column.cast(pa.large_string())
        numbers = pc.match_substring_regex(texts, NUMBER_OR_COMMA)
        self._has_numbers = self._has_numbers or bool(pc.any(numbers).as_py())
        self._has_others = self._has_others or numbers.index(False).as_py() >= 0
        encoded = texts.dictionary_encode()
        own = np.array([self._number(word.strip()) for word in encoded.dictionary.to_pylist()] + [-1], np.int64)
        codes: Codes = own[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        missing = codes < 0
        if missing.any():
            if not self._n_missing:
                self._first_missing = self._n_rows + int(missing.argmax())
            self._n_missing += int(missing.sum())
        self._n_rows += len(codes)
        return codes

    def _number(self, word: str) -> int:
        if not word:
            return -1
        if len(self._found) > MOST_COUNTED:
            return self._found.get(word, 0)
        return self._found.setdefault(word, len(self._found))

    def ordered(self) -> tuple[Codes, tuple[str, ...]] | tuple[None, None]:
        """Give the place of each number's level among all, and the levels; nothing where it is no label."""
        if self._has_numbers and self._has_others:
            return None, None
        levels = _levels(self._where, self._found.keys(), self._n_rows, self._n_missing, self._first_missing)
        places = np.empty(len(levels), np.int64)
        places[[self._found[level] for level in levels]] = np.arange(len(levels))
        return places, levels


def is_words(kind: Any) -> bool:
    """Tell whether a type is text, also where each text is kept once."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")


def text_label_of_column(party: str, name: str, column: Any) -> tuple[Codes, tuple[str, ...]] | tuple[None, None]:
    """Give numbers to the levels of a label that is text, of a `pyarrow.Table`; nothing where it is none."""
    if not is_words(column.type):
        return None, None
    words = LabelWords(party, name)
    codes = [words.numbered(chunk) for chunk in column.chunks]
    places, levels = words.ordered()
    if places is None or levels is None:
        return None, None
    return places[np.concatenate(codes)], levels


def levels_left(codes: Floats, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out levels that no row has, and number the others anew, in place."""
    present, codes[:] = np.unique(codes.astype(np.int64), return_inverse=True)
    return tuple(levels[place] for place in present.tolist())


def _levels(where: str, words: Collection[str], n_rows: int, n_missing: int, first_missing: int) -> tuple[str, ...]:
    """Put the words in order: none is missing, and they are few."""
    if n_missing:
        raise InputError(
            f"{where}: {n_missing:,} of {n_rows:,} labels are missing, the first in row {first_missing} (rows "
            "count from 0). Leave these rows out, or fill them in."
        )
    if len(words) > MOST_CLASSES:
        raise InputError(
            f"{where}: the label is text with {'more than ' if len(words) > MOST_COUNTED else ''}"
            f"{min(len(words), MOST_COUNTED):,} different values, and a label has at most {MOST_CLASSES} classes. Name "
            "another column, or make numbers of it."
        )
    return tuple(sorted(words))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)
