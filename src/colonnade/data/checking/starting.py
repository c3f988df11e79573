"""What can be guessed of a table for whoever starts with it: key, rules of columns; never the label."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from colonnade.data.checking.columns import ColumnSeen, Tell, columns_seen, in_silence
from colonnade.data.checking.roles import called_like_keys, guessed_key, spoilt_keys, suggested_label
from colonnade.data.checking.tables import table_to_look_at
from colonnade.data.column_rules import no_such_column
from colonnade.errors import InputError
from colonnade.options import listed
from colonnade.preparation.choosing import chosen


class Role(NamedTuple):
    """Columns that have a role, or none and a suggestion; and a remark on it."""

    columns: tuple[str, ...]
    suggestion: str | None
    remark: str


class Start(msgspec.Struct, frozen=True):
    """A table to start from: what was seen of each column, and what is made of it."""

    name: str
    file: str
    n_rows: int
    seen: dict[str, ColumnSeen]
    key: Role
    label: Role
    rules: dict[str, dict[str, Any]]
    left_out: dict[str, str]
    notes: tuple[str, ...] = ()


def start_from(
    name: str,
    data: str,
    file: str,
    *,
    key: Sequence[str] = (),
    label: str | None = None,
    tell: Tell = in_silence,
) -> Start:
    """Look at a table, which files are to name as `file`; `tell` is told what is under way.

    Key and label are as given. Without a key one is guessed: a column whose values all differ.
    """
    tell("reading the table")
    table, notes, _ = table_to_look_at(name, data, list, keys=key, as_text=lambda _: [], tell=tell)
    _check(name, table, {**dict.fromkeys(key, "key"), **({} if label is None else {label: "label"})})
    seen = columns_seen(table, {}, key, tell=tell)
    key_role = _key(seen, tuple(key), label)
    label_role = _label([each for each in seen if each.name not in key_role.columns], label)
    tell("choosing rules")
    rules, left_out = _rules(name, table, seen, [*key_role.columns, *label_role.columns])
    by_name = {each.name: each for each in seen}
    return Start(name, file, table.num_rows, by_name, key_role, label_role, rules, left_out, notes)


def _check(party: str, table: Any, roles: Mapping[str, str]) -> None:
    names: list[str] = table.column_names
    if not table.num_rows:
        raise InputError(f"Party {party!r}: the table has no rows. Check that it is the right file.")
    for name, role in roles.items():
        if name not in names:
            raise InputError(no_such_column(party, name, names, role=role))


def _key(seen: Sequence[ColumnSeen], given: tuple[str, ...], label: str | None) -> Role:
    if given:
        return Role(given, None, "what names rows")
    others = [each for each in seen if each.name != label]
    guess = guessed_key(others)
    if guess is not None:
        return Role((guess.name,), None, f"guessed: its {guess.distinct:,} values all differ")
    if spoilt := next(iter(spoilt_keys(others)), None):
        why = f"{spoilt.missing:,} are missing" if spoilt.missing else f"only {spoilt.distinct:,} of them differ"
        return Role((), spoilt.name, f"what names rows? Of its {spoilt.n_rows:,} values {why}")
    return Role((), None, "what names rows; no column has a value of its own in each")


def _label(seen: Sequence[ColumnSeen], given: str | None) -> Role:
    if given is not None:
        return Role((given,), None, "what to learn")
    suggestion = suggested_label(seen)
    remark = "what to learn, at one party only; its line below then goes"
    return Role((), None if suggestion is None else suggestion.name, remark)


def _rules(
    party: str, table: Any, seen: Sequence[ColumnSeen], roles: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Give the rules that "auto" chooses, but for what is usual in them, and why other columns are left out."""
    others = [each for each in seen if each.name not in roles]
    keys = called_like_keys(others)
    names = [each.name for each in others if each.name not in keys]
    left_out = dict.fromkeys(keys, "left out, it is called like a key")
    if not others:
        return {}, {}
    if not names:  # without a rule all columns would be read
        raise InputError(
            f"Party {party!r}: nothing but {listed([repr(name) for name in keys])} could enter, called like a key. "
            "Drop what is no key from the table, or write its [prepare] yourself."
        )
    try:
        prepare, lines = chosen(table, [*roles, *keys])
    except InputError as error:
        raise InputError(f"Party {party!r}: {error}") from None
    rules = {name: _written(rule) for name, rule in prepare.columns.items()}
    words = {name: line.removeprefix(f"{name}: ") for name, line in zip(names, lines, strict=True) if name not in rules}
    return rules, {**words, **left_out}


def _written(rule: msgspec.Struct) -> dict[str, Any]:
    usual = msgspec.to_builtins(type(rule)())
    return {name: value for name, value in msgspec.to_builtins(rule).items() if name == "kind" or value != usual[name]}
