"""Columns of text where numbers are asked for: which value is the slip, found while rows come in."""

from typing import Any

from colonnade.preparation.reading import NUMBER, NUMBER_OR_COMMA, SHOWN, Place


class _Numbers:
    """Which texts of a column are numbers, of one writing: whether any is, and the first that is none."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.has_any = False
        self.first_other: tuple[int, str] | None = None

    def look(self, texts: Any, first_row: int) -> None:
        import pyarrow.compute as pc

        if self.has_any and self.first_other is not None:
            return
        found = pc.match_substring_regex(texts, self._pattern)  # of a gap neither
        self.has_any = self.has_any or bool(pc.any(found).as_py())
        place = found.index(False).as_py()
        if self.first_other is None and place >= 0:
            self.first_other = first_row + place, texts[place].as_py()


class Slip:
    """What a column, a `pyarrow.Field`, has in place of numbers."""

    def __init__(self, field: Any) -> None:
        import pyarrow.types as t

        self.name, self.kind = field.name, field.type
        self._is_text = t.is_string(field.type) or t.is_large_string(field.type)
        self._with_comma, self._plain = _Numbers(NUMBER_OR_COMMA), _Numbers(NUMBER)

    def look(self, column: Any, first_row: int) -> None:
        """Look at the next values, of rows from this one on."""
        if self._is_text:
            self._with_comma.look(column, first_row)
            self._plain.look(column, first_row)

    def said(self, place: Place) -> str:
        """Name the column, its type, and the first text that is no number, where it or another one looks like a number.

        A column of names is none that was meant to be numbers, and they may be of persons.
        """
        return f"{self.name!r} ({self.kind}{self._value(place) if self._is_text else ''})"

    def _value(self, place: Place) -> str:
        all_by_comma = self._with_comma.has_any and self._with_comma.first_other is None
        numbers = self._plain if all_by_comma else self._with_comma
        if numbers.first_other is None:
            return "; all are numbers, written as text"
        row, value = numbers.first_other
        if not numbers.has_any and not value.lstrip("-+., ")[:1].isdigit():
            return ""
        return f"; {place(row)}: {value if len(value) <= SHOWN else value[:SHOWN] + '...'!r}"
