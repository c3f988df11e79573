"""Looks at a table as a party would start with it, and says what stops it, what is odd, and what is good to know."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from colonnade.data.checking.columns import ColumnSeen, Tell, columns_seen, counted, in_silence
from colonnade.data.checking.findings import (
    Finding,
    of_all_columns,
    of_columns,
    of_key,
    of_label,
    of_no_rules,
    of_reading,
    of_size,
    told_by,
    worst_first,
)
from colonnade.data.checking.key_and_label import KeySeen, LabelSeen, key_seen, label_seen
from colonnade.data.checking.numbers import Together, seen_together
from colonnade.data.checking.roles import guessed_key
from colonnade.data.checking.tables import prepared_rows, table_to_look_at
from colonnade.data.column_rules import allowed_columns, may_enter, no_such_column
from colonnade.data.filed_columns import FileColumns
from colonnade.data.keys import Duplicates
from colonnade.data.sources import Roles
from colonnade.data.tables import read_table
from colonnade.data.unprepared import columns_of_text
from colonnade.errors import InputError
from colonnade.preparation.choosing import chosen
from colonnade.preparation.columns import AnyColumn, CategoryColumn
from colonnade.preparation.fitting import fitted
from colonnade.preparation.preparation import Preparation
from colonnade.preparation.reading import BY_NUMBER, Place
from colonnade.preparation.rules import Category, HowToPrepare, Number, Prepare, Rule
from colonnade.protocol.policy import Policy

T = TypeVar("T")
Preparing = HowToPrepare | None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a table; a party starts with it if nothing stops it. Roles and rules are by column."""

    party: str
    rows: int = 0
    starts: bool
    roles: dict[str, str] = {}
    rules: dict[str, Rule] = {}
    columns: tuple[ColumnSeen, ...] = ()
    key: KeySeen | None = None
    label: LabelSeen | None = None
    prepared_columns: int = 0
    together: Together | None = None
    findings: tuple[Finding, ...]


@dataclass
class _Notes:
    """Findings as they come; what stops a step is one of them, and the next step is taken all the same."""

    findings: list[Finding] = field(default_factory=list)
    place: Place = BY_NUMBER
    tell: Tell = in_silence

    def tried(self, kind: str, columns: tuple[str, ...], step: Callable[..., T], *arguments: object) -> T | None:
        """Give what a step gives, or None and a finding."""
        try:
            return step(*arguments)
        except InputError as error:
            self.findings.append(told_by(error, kind, *columns))
            return None

    def has(self, kind: str, column: str) -> bool:
        """Whether something of this kind was found in a column."""
        return any(each.kind == kind and each.columns[:1] == (column,) for each in self.findings)

    @property
    def stopped(self) -> bool:
        return any(each.severity == "stops" for each in self.findings)


def check_table(
    party: str,
    data: object,
    roles: Roles,
    prepare: Preparing,
    policy: Policy,
    *,
    show_keys: bool = False,
    tell: Tell = in_silence,
) -> Check:
    """Check what a party holds, given as to `Party`; columns that the policy does not let in are not looked at.

    Rows that stand out are told by their numbers; by their keys, too, only if asked. `tell` is told what is under way.
    """
    notes = _Notes(tell=tell)
    tell("reading the table")
    there: dict[str, str] = {}  # roles of columns that are there
    table = notes.tried("unreadable", (), _read, party, data, roles, prepare, policy, there, notes)
    if table is None or not table.num_rows or not table.num_columns:
        notes.findings += of_size(table)
        return Check(party=party, starts=False, findings=worst_first(notes.findings))
    keys = [name for name, role in there.items() if role == "key"]
    rules = _rules(table, there, prepare, notes)
    seen = _columns(table, there, rules, notes)
    preparation = _preparation(table, rules, notes)
    if prepare is None and notes.stopped:
        notes.findings.append(of_no_rules())
    tell("looking at columns together")
    together = _together(preparation, table, keys if show_keys else [], notes)
    tell("looking at key and label")
    key = _key(party, there, table, seen, roles.duplicates, notes)
    label = _label(there, table, notes)
    if not notes.stopped:
        tell("starting as the party would")
        given = Prepare(rules) if prepare is not None and rules else None
        notes.tried("does-not-start", (), _start, party, data, table, roles, given, policy)
    return Check(
        party=party,
        rows=table.num_rows,
        starts=not notes.stopped,
        roles=there,
        rules=rules,
        columns=tuple(seen),
        key=key,
        label=label,
        prepared_columns=len(preparation.names),
        together=together,
        findings=worst_first(notes.findings),
    )


def _by_column(roles: Roles) -> dict[str, str]:
    """Name the role of each column that has one."""
    listed = {role: [given] if isinstance(given, str) else given for role, given in roles.items()}
    return {name: role for role, names in listed.items() for name in names}  # type: ignore[attr-defined]  # text, or texts


def _read(
    party: str,
    data: object,
    roles: Roles,
    prepare: Preparing,
    policy: Policy,
    there: dict[str, str],
    notes: _Notes,
) -> Any:
    """Read the columns that the policy lets in, and enter those that have a role into `there`."""
    named = _by_column(roles)

    def choose(names: Sequence[str]) -> list[str]:
        for name, role in named.items():
            if name not in names:
                error = InputError(no_such_column(party, name, names, role=role))
                notes.findings.append(told_by(error, "no-such-column", name))
        roles_there = {name: role for name, role in named.items() if name in names}
        notes.tried("not-allowed", (), allowed_columns, party, names, roles_there, policy)
        allowed = [name for name in names if may_enter(name, policy)]
        there.update({name: role for name, role in roles_there.items() if name in allowed})
        return allowed

    def as_text(names: Sequence[str]) -> list[str]:
        with suppress(InputError):  # what is wrong with the rules is said where they are looked at
            return columns_of_text(names, prepare, there)
        return []

    keys = [name for name, role in named.items() if role == "key"]
    table, told, notes.place = table_to_look_at(party, data, choose, keys=keys, as_text=as_text, tell=notes.tell)
    notes.findings += of_reading(told)
    return table


def _rules(table: Any, roles: Mapping[str, str], prepare: Preparing, notes: _Notes) -> dict[str, Rule]:
    """Give the rule of each column that enters; without preparation all are numbers."""
    names = table.column_names
    if prepare is None:
        return {name: Number() for name in names if name not in roles}
    if prepare == "auto":
        choice = notes.tried("nothing-to-prepare", (), chosen, table, roles)
        prepare = None if choice is None else choice[0]
    if prepare is None:
        return {}
    with suppress(InputError):
        return prepare.by_column(names, roles)
    rules: dict[str, Rule] = {}
    # One by one: each that is wrong is a finding.
    for name, rule in prepare.columns.items():
        found = notes.tried("rule", (name,), Prepare({name: rule}).by_column, names, roles)
        rules |= {column: its for column, its in (found or {}).items() if column not in rules or column == name}
    return rules


def _columns(table: Any, roles: Mapping[str, str], rules: Mapping[str, Rule], notes: _Notes) -> list[ColumnSeen]:
    rare = {name: rule.rare for name, rule in rules.items() if isinstance(rule, Category)}
    seen = columns_seen(table, rare, [name for name, role in roles.items() if role == "key"], tell=notes.tell)
    notes.findings += of_columns(seen, rules, table, notes.place)
    return seen


def _preparation(table: Any, rules: Mapping[str, Rule], notes: _Notes) -> Preparation:
    """Learn what prepared columns are, of each column that can be; gaps that stop the party are filled for that."""
    columns: list[AnyColumn] = []
    for name, rule in counted(notes.tell, "preparing column", rules.items()):
        if notes.has("missing", name):
            filled = msgspec.structs.replace(rule, missing="level" if isinstance(rule, Category) else "mean")
            with suppress(InputError):
                columns += fitted({name: filled}, table).columns
        elif learned := notes.tried("unprepared", (name,), fitted, {name: rule}, table):
            columns += learned.columns
    return Preparation(tuple(columns))


def _together(preparation: Preparation, table: Any, keys: Sequence[str], notes: _Notes) -> Together:
    rows = prepared_rows(table, preparation)
    together = seen_together(rows, preparation.own_names, _continuous(preparation)).without(
        {frozenset(each.columns) for each in notes.findings if each.kind == "repeated"}
    )
    if shown := [name for name in keys if name in table.column_names]:
        together = together.with_keys(table.select(shown))
    notes.findings += of_all_columns(together, table.num_rows, len(preparation.names))
    return together


def _continuous(preparation: Preparation) -> list[int]:
    """Find the places of columns that are quantities, neither levels nor marks of what was missing."""
    places: list[int] = []
    first = 0
    for column in preparation.columns:
        if not isinstance(column, CategoryColumn):
            places += range(first, first + len(column.names) - column.indicator)
        first += len(column.names)
    return places


def _key(
    party: str,
    roles: Mapping[str, str],
    table: Any,
    seen: Sequence[ColumnSeen],
    duplicates: Duplicates,
    notes: _Notes,
) -> KeySeen | None:
    columns = [name for name, role in roles.items() if role == "key"]
    key = key_seen(party, columns, table) if columns else None
    guess = guessed_key([each for each in seen if each.name not in roles])
    notes.findings += of_key(key, duplicates, None if guess is None else guess.name)
    return key


def _label(roles: Mapping[str, str], table: Any, notes: _Notes) -> LabelSeen | None:
    name = next((name for name, role in roles.items() if role == "label"), None)
    if name is None:
        return None
    label = label_seen(table, name)
    notes.findings += of_label(name, label)
    return label


def _start(party: str, data: object, table: Any, roles: Roles, prepare: Prepare | None, policy: Policy) -> None:
    """Read the table as a party does, but for a key that was read into memory: whatever else would stop it."""
    given: dict[str, Any] = dict(roles.items())
    if isinstance(table, FileColumns):
        found = read_table(party, data, duplicates=roles.duplicates, prepare=prepare, policy=policy, **given)
        found.look_through()
        return
    given.pop("key", None)
    rules = None if prepare is None else prepare.columns
    used = [name for name in table.column_names if rules is None or name in rules or name in given.values()]
    keys = [name for name, role in _by_column(roles).items() if role == "key"]
    features = table.select([name for name in used if name not in keys])
    read_table(party, features, prepare=prepare, **given)
