"""Preparation: parties make numbers of their columns, by their owners' rules, before a job looks at these.

What a rule leaves open, a mean or which levels are frequent, is learned from the rows that count in the job, and stays
at the party, under a name that tells nothing. A job's sheet says by which names it goes; a model is applied by those
that it was learned with. How many columns there are depends on the rows that count: a server that could choose these at
will would learn which rows share a rare level, so a party prepares for few choices of them.
"""

import hmac
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Script
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Flags
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.fingerprints import table_key
from colonnade.protocol.memory import PreparedNote
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import GREETED, PREPARED_BYTES, Handler, PartyData, PartyState
from colonnade.protocol.splits import AnySplit
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
    if len(names) != len(reply.feature_names) or len(set(names)) != len(names):
        raise checks.wrong(card.name, reply, "a column's name twice, or levels of other columns")
    if len(reply.name) != 2 * PREPARED_BYTES:
        raise checks.wrong(card.name, reply, "a preparation without a name")
    return replace(card, feature_names=names, prepared=reply.name)


def _answer(state: PartyState, _: PrepareColumns, data: PartyData) -> tuple[PartyState, Message]:
    table = data.table
    if table.preparing is None:
        raise InputError("its columns are numbers as they are: its owner wrote no [prepare]. Run the same version.")
    counts = None if table.row_weights is None else table.row_weights > 0
    note = _note(counts, data)
    _check_few(note, data)
    with data.preparing():
        fitted = table.preparing.fitted(counts)
    name = hmac.digest(table_key(data), fitted, "sha256")[:PREPARED_BYTES].hex()
    data.preparations.keep(name, fitted)
    names = data.prepared(name).table.feature_names
    reply = PreparedColumns(name, names, table.preparing.told_names(fitted))
    return replace(state, notes=(*state.notes, note)), reply


def _note(counts: Flags | None, data: PartyData) -> PreparedNote:
    """Note which rows counted, of which rows the party has: by its own numbers, since a server makes alignments."""
    table, alignment = data.table, data.table.alignment
    numbers = np.arange(table.n_rows) if table.row_numbers is None else table.row_numbers
    counted = numbers if counts is None else numbers[counts]
    if alignment is not None:
        numbers = np.arange(len(alignment.positions)) if alignment.numbers is None else alignment.numbers
    return PreparedNote(rows_digest(np.sort(numbers)), rows_digest(np.sort(counted)))


def most_choices(policy: Policy, n_rows: int) -> int | None:
    """Count the choices of rows that a party prepares its columns for; None is no limit."""
    least = policy.least_rows
    return None if least == 1 else max(1, int(math.log2(max(n_rows / least, 1))))


def _check_few(note: PreparedNote, data: PartyData) -> None:
    """Require few choices of rows: each tells how many levels are frequent among them."""
    most = most_choices(data.policy, data.table.n_rows)
    earlier = {each for each in data.memory.notes() if isinstance(each, PreparedNote) and each.table == note.table}
    if most is not None and len(earlier | {note}) > most:
        raise PolicyRefusedError(
            f"its owner's policy prepares columns for {most} choices of held-out rows at most, by its rows and "
            "least_rows: how many columns there are tells which rows have rare levels. Hold out rows as before, by the "
            "alignment of before.",
            party=data.name,
        )


HANDLERS = (Handler(PrepareColumns, _answer, after=frozenset({GREETED}), then=GREETED),)
