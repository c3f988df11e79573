"""Which column of a table may be its key, and which its label: guesses, for the owner to confirm."""

import re
from collections.abc import Sequence

from colonnade.data.checking.columns import ColumnSeen

# Whatever has such a name, it is no quantity.
SURELY_KEY = r"id|ids|key|uid|uuid|guid|iban|ssn"
KEY = rf"{SURELY_KEY}|ref|reference|code|number|no|nr|customer|clients?|person|patient|member|user|account"
LABEL = r"label|target|outcome|response|class|y"
# The parts of "customerId", "CUSTOMER-ID" and "customer_id".
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def guessed_key(columns: Sequence[ColumnSeen]) -> ColumnSeen | None:
    """Find the column that names rows: text or integers, a value of its own in each, and called like a key.

    If none is, the first column of the table will do, and then text: no two rows share a name.
    """
    different = [each for each in columns if _names_rows(each)]
    named = [each for each in different if _called(each.name, KEY)]
    first = [each for each in different if each is columns[0]]
    return next(iter([*named, *first, *(each for each in different if each.kind == "text")]), None)


def spoilt_keys(columns: Sequence[ColumnSeen]) -> list[ColumnSeen]:
    """List columns that are called like a key but have gaps or repeat values."""
    return [each for each in columns if _could_be_key(each) and _called(each.name, KEY) and not _names_rows(each)]


def called_like_keys(columns: Sequence[ColumnSeen]) -> list[str]:
    """List columns of integers or text that are called like a key: to learn from them is a mistake, and tells them."""
    return [each.name for each in columns if _could_be_key(each) and _called(each.name, SURELY_KEY)]


def suggested_label(columns: Sequence[ColumnSeen]) -> ColumnSeen | None:
    """Find a column that may be the label: one that is called so, or else the last of numbers."""
    numbers = [each for each in columns if each.kind in ("number", "yes/no") and not each.constant]
    called = [each for each in numbers if _called(each.name, LABEL)]
    return next(iter([*called, *reversed(numbers)]), None)


def _could_be_key(column: ColumnSeen) -> bool:
    return column.kind == "text" or (column.kind == "number" and "int" in column.type)


def _names_rows(column: ColumnSeen) -> bool:
    return _could_be_key(column) and not column.missing and 1 < column.n_rows == column.distinct


def _called(name: str, words: str) -> bool:
    return any(re.fullmatch(words, word, re.IGNORECASE) for word in WORD.findall(name))
