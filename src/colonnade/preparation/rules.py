"""What an owner asks of each column: a number, a category or a date, and how it enters."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from colonnade.errors import InputError
from colonnade.options import LARGEST, flag, learn_types, there_is_no, whole_number

Fill: TypeAlias = float | Literal["error", "mean", "median"]
DatePart = Literal[
    "days", "year", "quarter", "month", "week", "day", "day_of_year", "weekday", "hour", "minute", "second"
]
FILLS = ("error", "mean", "median")
PARTS: tuple[DatePart, ...] = DatePart.__args__  # type: ignore[attr-defined]  # of a Literal
RARE = 10
A_TIME = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)


class Number(
    msgspec.Struct, frozen=True, tag_field="kind", tag="number", forbid_unknown_fields=True, repr_omit_defaults=True
):
    """A column of numbers: filled, clipped, its logarithm taken and scaled, in this order.

    Integers, floats, booleans and decimals are numbers; null and NaN are missing. Text is none, also where it looks
    like one.

    Parameters
    ----------
    missing : {"error", "mean", "median"} or float
        What stands for a missing value. Where some were missing when it was learned, a second column, 1 or 0, says of
        each row whether it is.
    at_least, at_most : float, optional
        What is below or above becomes this.
    log : bool
        Whether log(1 + x) enters instead of x, which must be above -1.
    scale : bool
        Whether it enters at mean 0 and standard deviation 1.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Number(missing="median", at_least=0, log=True)
    Number(missing='median', at_least=0.0, log=True)
    """

    missing: Fill = "error"
    at_least: float | None = None
    at_most: float | None = None
    log: bool = False
    scale: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "missing", _fill(self.missing))
        for name in ("at_least", "at_most"):
            if getattr(self, name) is not None:
                force_setattr(self, name, _number(name, getattr(self, name), "Pass for instance 0, or leave it out."))
        force_setattr(self, "log", flag("log", self.log))
        force_setattr(self, "scale", flag("scale", self.scale))
        check_bounds(self.at_least, self.at_most, self.log)
        if self.log and isinstance(self.missing, float):
            check_log(self.missing, self.at_least, self.at_most)


class Category(
    msgspec.Struct, frozen=True, tag_field="kind", tag="category", forbid_unknown_fields=True, repr_omit_defaults=True
):
    """A column of levels: one column of 1 and 0 for each but the most frequent, to which the others compare.

    Text is taken as it is, and empty text is missing. Integers, booleans, and floats that are whole numbers, count as
    their text.

    Parameters
    ----------
    rare : int
        Levels of fewer rows than this, when it is learned, share one column, "(other)".
    unknown : {"other", "error"}
        What happens to levels that were not there when it was learned: they count as "(other)", or as the most frequent
        level where there is no such column; or they are refused.
    missing : {"error", "level"}
        Whether missing values are refused, or are a level of their own, "(missing)", rare or not like any other.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Category(rare=20, missing="level")
    Category(rare=20, missing='level')
    """

    rare: int = RARE
    unknown: Literal["other", "error"] = "other"
    missing: Literal["error", "level"] = "error"

    def __post_init__(self) -> None:
        force_setattr(
            self, "rare", whole_number("rare", self.rare, least=1, example="Pass for instance 10; with 1 none is rare.")
        )
        _check_choice("unknown", self.unknown, ("other", "error"))
        _check_choice("missing", self.missing, ("error", "level"))


class Date(
    msgspec.Struct, frozen=True, tag_field="kind", tag="date", forbid_unknown_fields=True, repr_omit_defaults=True
):
    """A column of dates or times, as one number or several. Times that have a zone are taken in UTC.

    Parameters
    ----------
    parts : sequence of str
        Of ``days`` (since 1970, with fractions; of a time of day, its fraction of a day), ``year, quarter, month,
        week`` (of the year, as in ISO 8601), ``day, day_of_year, weekday`` (Monday is 0), ``hour, minute, second``.
    format : str, optional
        How dates are written where they are text, as Python's ``strptime`` has it, such as ``"%d.%m.%Y"``; as in ISO
        8601 if left out. Empty text is missing.
    missing : {"error", "mean", "median"} or float
        As in `Number`, for each part; a number where there is one part only.
    scale : bool
        As in `Number`.

    Examples
    --------
    >>> import colonnade as cn
    >>> cn.Date(parts=["year", "month"], format="%d.%m.%Y")
    Date(parts=('year', 'month'), format='%d.%m.%Y')
    """

    parts: Sequence[DatePart] = ("days",)
    format: str | None = None
    missing: Fill = "error"
    scale: bool = False

    def __post_init__(self) -> None:
        given: Any = self.parts
        parts = (given,) if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
        for part in parts:
            _check_choice("parts", part, PARTS)
        if not parts or len(set(parts)) < len(parts):
            raise InputError(
                f"parts must be some parts of a date, each once, got {given!r}. Pass for instance ['days']."
            )
        force_setattr(self, "parts", parts)
        if self.format is not None and not _is_format(self.format):
            raise InputError(f"format must be as '%d.%m.%Y', got {self.format!r}. Leave it out for ISO 8601.")
        force_setattr(self, "missing", _fill(self.missing))
        if isinstance(self.missing, float) and len(parts) > 1:
            raise InputError(
                f"missing={self.missing:g} cannot stand for {' and '.join(parts)} at once. Pass 'mean' or 'median'."
            )
        force_setattr(self, "scale", flag("scale", self.scale))


Rule: TypeAlias = Number | Category | Date


class Prepare(msgspec.Struct, frozen=True, forbid_unknown_fields=True, repr_omit_defaults=True):
    """Which columns of a table enter, and how each becomes numbers: learned from the rows that count, then kept.

    Parameters
    ----------
    columns : dict of str to Number, Category or Date
        By exact name, or by pattern: ``*`` is any text, ``?`` any character, ``[ab]`` one of these; case matters. An
        exact name goes before a pattern, an earlier pattern before a later one. What matches none does not enter.
    tell_levels : bool
        Whether others may learn what made columns are called at the party, such as ``job=clerk`` instead of ``job#1``.

    Examples
    --------
    >>> import colonnade as cn
    >>> prepare = cn.Prepare({"job": cn.Category(), "balance_*": cn.Number(log=True)})
    >>> prepare.by_column(["id", "balance_1", "balance_2", "job"])
    {'balance_1': Number(log=True), 'balance_2': Number(log=True), 'job': Category()}
    """

    columns: dict[str, Rule]
    tell_levels: bool = False

    def __post_init__(self) -> None:
        columns: Any = self.columns
        if not isinstance(columns, Mapping) or not columns:
            raise InputError(
                f"Prepare takes rules by column, got {columns!r}. Pass for instance "
                "{'age': Number(), 'job': Category()}."
            )
        for name, rule in columns.items():
            if not isinstance(name, str) or not name or not isinstance(rule, Rule):
                raise InputError(
                    f"Prepare has the rule {rule!r} for {name!r}. Name a column or a pattern, and give it a Number(), "
                    "a Category() or a Date()."
                )
        force_setattr(self, "columns", dict(columns))
        force_setattr(self, "tell_levels", flag("tell_levels", self.tell_levels))

    def by_column(self, names: Sequence[str], no_features: Mapping[str, str] | None = None) -> dict[str, Rule]:
        """Give the rule of each column that enters, in the order of `names`; `no_features` are roles, by column."""
        roles = no_features or {}
        features = [name for name in names if name not in roles]
        there = set(names)
        patterns = [name for name in self.columns if name not in there]
        for name in self.columns:
            if name in roles:
                raise InputError(
                    f"column {name!r} is the {roles[name]}, and prepare names it too. Take it out of one of the two."
                )
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in features):
                what = f"column {pattern!r}, which prepare names"
                raise InputError(there_is_no(what, pattern, features))
        found = {name: self._rule(name, patterns) for name in features}
        rules = {name: rule for name, rule in found.items() if rule is not None}
        _check_wire_names(rules, names)
        return rules

    def _rule(self, name: str, patterns: Sequence[str]) -> Rule | None:
        return self.columns.get(name) or next(
            (self.columns[pattern] for pattern in patterns if fnmatchcase(name, pattern)), None
        )


def check_bounds(at_least: float | None, at_most: float | None, log: bool) -> None:
    """Require bounds in order, and some room above -1 for a logarithm."""
    if at_least is not None and at_most is not None and at_least > at_most:
        raise InputError(f"at_least={at_least:g} is above at_most={at_most:g}. Exchange them.")
    if log and at_most is not None and at_most <= -1:
        raise InputError(f"log needs values above -1, and at_most is {at_most:g}. Leave out one of the two.")


def check_log(fill: float, at_least: float | None, at_most: float | None) -> None:
    """Require that what stands for missing values has a logarithm."""
    low, high = -math.inf if at_least is None else at_least, math.inf if at_most is None else at_most
    if min(max(fill, low), high) <= -1:
        raise InputError(f"log needs values above -1, and missing is {fill:g}. Pass a larger one.")


def _check_wire_names(rules: Mapping[str, Rule], names: Sequence[str]) -> None:
    """Refuse a column that is called as one that may be made of another."""
    for name in names:
        stem, mark, number = name.rpartition("#")
        if mark and number.isdecimal() and stem in rules:
            raise InputError(
                f"column {name!r} is called as those that are made of {stem!r}. Rename one, or leave out {stem!r}."
            )


def _is_format(form: object) -> bool:
    """Whether dates that are written so can be read."""
    try:
        return isinstance(form, str) and "%" in form and datetime.strptime(A_TIME.strftime(form), form) is not None
    except ValueError:
        return False


def _fill(value: Any) -> Fill:
    if isinstance(value, str) and value in FILLS:
        return value  # type: ignore[return-value]  # it is one of the Literal's
    return _number("missing", value, f"Pass a number or one of: {', '.join(FILLS)}.")


def _number(name: str, value: Any, example: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= LARGEST:
        raise InputError(f"{name} must be a number up to {LARGEST:g} in size, got {value!r}. {example}")
    return number


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} cannot be {value!r}. Choose among: {', '.join(choices)}.")


# Rules, or that they are to be found.
HowToPrepare: TypeAlias = Prepare | Literal["auto"]
learn_types(Prepare)
