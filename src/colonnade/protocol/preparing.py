"""Preparation: parties make numbers of their columns, by their owners' rules, before a job looks at these.

What a rule leaves open, a mean or which levels are frequent, is learned from the rows that count in the job, and stays
at the party, under a name that tells nothing. A job's sheet says by which names it goes; a model is applied by those
that it was learned with. How many columns there are depends on the rows that count: a server that could choose these at
will would learn which rows share a rare level, so a party prepares for few choices of them.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Script
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.per_row import ones
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.memory import PreparedNote, rows_apart
from colonnade.protocol.preparations import NAME, preparation_name
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.protocol.sheet import MAX_COLUMNS
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.sums import numbered
from colonnade.protocol.viewing import agree_on_view, view_route
from colonnade.routes import END, Ask, Route, then
from colonnade.signing import rows_digest


class PreparedColumns(Message, frozen=True):
    """What the party's columns are called, once they are prepared, and the name of the preparation.

    Levels are told only where the owner wants that.
    """

    phase: ClassVar[str] = "preparing"

    name: Annotated[str, Reveals.SCHEMA]
    feature_names: Annotated[tuple[str, ...], Reveals.SCHEMA]
    levels: Annotated[tuple[str, ...] | None, Reveals.LEVELS]


class PrepareColumns(Message, frozen=True):
    """Prepare your columns by the rows that count in this job."""

    phase: ClassVar[str] = "preparing"
    reply: ClassVar[type[Message]] = PreparedColumns


def prepare(roster: Roster, split: AnySplit | None) -> Script[Roster]:
    """Let parties prepare their columns by the rows that are not held out, and learn what these are called."""
    yield from agree_on_view(roster, split, "train", "own")
    inbox = yield {card.name: PrepareColumns() for card in roster.cards if card.prepared is not None}
    told = checks.replies(inbox, PreparedColumns)
    return replace(roster, cards=tuple(_prepared_card(card, told) for card in roster.cards))


def prepare_route(split: AnySplit | None, roster: Roster, party: str) -> Route:
    """Say what a party is asked by `prepare`."""
    prepares = any(card.name == party and card.prepared is not None for card in roster.cards)
    return then(view_route(split, "train", "own", roster, party), Ask(PrepareColumns) if prepares else END)


def _prepared_card(card: PartyCard, told: Mapping[str, PreparedColumns]) -> PartyCard:
    if card.name not in told:
        return card
    reply = told[card.name]
    names = reply.feature_names if reply.levels is None else reply.levels
    if len(names) > MAX_COLUMNS or not _are_made_of(card.feature_names, reply.feature_names):
        raise checks.wrong(card.name, reply, "columns that are not made of those on its card, or too many")
    if len(names) != len(reply.feature_names) or len(set(names)) != len(names):
        raise checks.wrong(card.name, reply, "a column's name twice, or levels of other columns")
    if NAME.fullmatch(reply.name) is None:
        raise checks.wrong(card.name, reply, "a preparation without a name")
    return replace(card, feature_names=names, prepared=reply.name)


def _are_made_of(names: tuple[str, ...], made: tuple[str, ...]) -> bool:
    columns = frozenset(names)
    return all(name in columns or name.rpartition("#")[0] in columns for name in made)


def _answer(state: PartyState, _: PrepareColumns, data: PartyData) -> tuple[PartyState, Message]:
    table = data.table
    if table.preparing is None:
        raise InputError("its columns are numbers as they are: its owner wrote no [prepare]. Run the same version.")
    note = _note(data)
    if table.preparing.depends_on_rows and data.policy.least_rows > 1:
        _check_few(note, data)
        # Before it is tried: whether it can be done at all tells something of these rows, too.
        data.memory.keep([note])
    with data.preparing():
        fitted = table.preparing.fitted(table.row_weights)
    name = preparation_name(data.table_key, note.rows + note.weights, fitted)
    data.preparations.keep(name, fitted)
    names = data.prepared(name).table.feature_names
    return state, PreparedColumns(name, names, table.preparing.told_names(fitted, table.row_weights))


def _note(data: PartyData) -> PreparedNote:
    """Note which rows count, of which rows the party has: by its own numbers, since a server makes alignments."""
    table, alignment = data.table, data.table.alignment
    weights = ones(table.n_rows) if table.row_weights is None else table.row_weights
    if table.row_numbers is None and alignment is None:  # block by block: there may be many
        bits = b"".join(weights.map(_bits)).rstrip(b"\0")
        return PreparedNote(rows_digest(CountedRows(table.n_rows)), bits, _weights_digest(weights.map(_positive)))
    rows = weights.positive_rows()
    numbers = numbered(data, rows)
    whole = np.arange(table.n_rows)
    if alignment is not None:
        whole = np.arange(len(alignment.positions)) if alignment.numbers is None else np.sort(alignment.numbers)
    counted = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
    counted[numbers] = True
    by_number = _weights_digest(iter([weights[rows][np.argsort(numbers)]]))
    return PreparedNote(rows_digest(whole), np.packbits(counted).tobytes(), by_number)


def _bits(_: int, weights: Floats) -> bytes:
    return np.packbits(weights > 0).tobytes()


def _positive(_: int, weights: Floats) -> Floats:
    return weights[weights > 0]


def _weights_digest(weights: Iterator[Floats]) -> bytes:
    """Tell weights apart, which decide what is rare as the choice of rows does; nothing where all are 1."""
    hashed, are_one = hashlib.sha256(), True
    for some in weights:
        hashed.update(np.ascontiguousarray(some).data)
        are_one = are_one and bool((some == 1).all())
    return b"" if are_one else hashed.digest()


def most_choices(n_rows: int, least_rows: int) -> int | None:
    """Say for how many choices of rows columns are prepared; None is no limit."""
    return None if least_rows == 1 else max(1, int(math.log2(max(n_rows / least_rows, 1))))


def _check_few(note: PreparedNote, data: PartyData) -> None:
    """Require few choices of the rows that the party has, and none that is nearly like an earlier one, of any rows.

    Each tells how many levels are frequent among them, and whether any value is missing; two that are a row apart tell
    that of the row. The same rows by other weights are another choice. A table to which its owner adds rows is another.
    """
    least, earlier = data.policy.least_rows, {each for each in data.memory.notes() if isinstance(each, PreparedNote)}
    most = most_choices(data.table.n_rows, least)
    if most is None or note in earlier:
        return
    if sum(each.table == note.table for each in earlier) >= most:
        raise PolicyRefusedError(
            f"its owner's policy prepares columns for {most} choices of held-out rows at most, by its rows and "
            "least_rows: how many columns there are tells which rows have rare levels. Hold out rows as before, by the "
            "alignment of before.",
            party=data.name,
        )
    if (apart := min((rows_apart(note, each) for each in earlier), default=least)) < least:
        raise PolicyRefusedError(
            f"its owner's policy prepares columns for choices of rows that are {least} rows apart at least; this one "
            f"is {apart} apart from an earlier one{'' if apart else ' of other weights'}, and the two together would "
            "tell of single rows. Hold out rows as before, and weigh them so.",
            party=data.name,
        )


HANDLERS = (Handler(PrepareColumns, _answer, after=frozenset({GREETED}), then=GREETED),)
