"""Checks that options share: a value comes back as plain Python, or there is an error that names the option."""

import difflib
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.errors import InputError

# A penalty a row, or one that cross-validation is to choose.
Penalty: TypeAlias = float | Literal["cv"]
LARGEST = 1e100  # so that its square, times the number of rows, is a float64


def whole_number(name: str, value: Any, *, least: int, most: int | None = None, example: str) -> int:
    """Require an integer (NumPy's count too) between two bounds; the error names the option and ends with `example`."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{name} must be a whole number {bounds}, got {value!r}. {example}")
    return number


def non_negative_number(name: str, value: Any, *, example: str) -> float:
    """Require a number of zero or more that is not astronomical."""
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= LARGEST:
        raise InputError(f"{name} must be a number from 0 to {LARGEST:g}, got {value!r}. {example}")
    return number


def positive_number(name: str, value: Any, *, example: str) -> float:
    """Require a number above zero."""
    number = non_negative_number(name, value, example=example)
    if number == 0:
        raise InputError(f"{name} must be above 0, got {value!r}. {example}")
    return number


def share(name: str, value: Any, *, example: str) -> float:
    """Require a number from 0 to 1."""
    number = non_negative_number(name, value, example=example)
    if number > 1:
        raise InputError(f"{name} must be a number from 0 to 1, got {value!r}. {example}")
    return number


def flag(name: str, value: Any) -> bool:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}. Pass one of the two.")
    return bool(value)


def check_penalties(options: Any) -> None:
    """Require l2 and l1, of which at most one is "cv", to be chosen; and make plain numbers of them."""
    for name in ("l2", "l1"):
        value = getattr(options, name)
        if not (isinstance(value, str) and value == "cv"):
            example = f'Pass for instance {name}=0.1, or "cv" to let it be chosen.'
            force_setattr(options, name, non_negative_number(name, value, example=example))
    if options.l2 == "cv" and options.l1 == "cv":
        raise InputError(
            'Cross-validation chooses one penalty, got l2="cv" and l1="cv". Make one a number: l1="cv" with l2=0 '
            "is the lasso; for an elastic net try a few values of l2."
        )


def learn_types(*kinds: Any) -> None:
    """Let msgspec look at types that options are read into, when they are imported.

    It does so when a type is first used, and where several threads use it first at once the process dies.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)


def there_is_no(what: str, name: str, names: Sequence[str]) -> str:
    """Say so of something that should be one of the columns."""
    close = difflib.get_close_matches(str(name), names)
    hint = f" Did you mean {' or '.join(repr(one) for one in close)}?" if close else ""
    return f"there is no {what}; the columns are {listed([repr(one) for one in names])}. Name one of them.{hint}"


def listed(words: Sequence[str], limit: int = 20) -> str:
    """Write words one after another, the first of them if there are many."""
    rest = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + rest
