"""Rows in an orthonormal basis of each party's own columns: all that is needed to see how the columns overlap.

A party tells coordinates, not values: columns in units and directions that only the party knows. With a single column
they are the values up to one factor, so they count as features, and where the label enters, as labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Script, Table
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bases import label_last
from colonnade.kernels.leverage import basis
from colonnade.kernels.possible import first_copies, norm_fits
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class WhitenedRows(Message, frozen=True):
    """u_i^(j) for each selected row; at the label party the last coordinate, which the label enters, apart."""

    phase: ClassVar[str] = "diagnosing"

    features: Annotated[Floats, Reveals.FEATURES]
    label: Annotated[Floats | None, Reveals.LABELS]


class AskWhitenedRows(Message, frozen=True):
    """Tell the selected rows in an orthonormal basis of your columns, as Assumption 4.1 has them."""

    phase: ClassVar[str] = "diagnosing"
    reply: ClassVar[type[Message]] = WhitenedRows

    fit_intercept: Annotated[bool, Reveals.NOTHING]


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Rows in all parties' bases, side by side, shape (m, d'); the label alone enters the last, number `label`."""

    values: Floats
    label: int | None


def whitened_rows(roster: Roster, rows: Rows, *, fit_intercept: bool) -> Script[JoinedRows]:
    """Ask for the selected rows, ascending, in the parties' bases. Costs their number times the joined rank in units.

    With an intercept, the label party counts a column of ones among its own.
    """
    inbox = yield {party: AskWhitenedRows(fit_intercept) for party in roster.names}
    return _join(checks.replies(inbox, WhitenedRows), roster, rows, fit_intercept)


def _join(replies: Mapping[str, WhitenedRows], roster: Roster, rows: Rows, fit_intercept: bool) -> JoinedRows:
    for card in roster.cards:
        _check(card, replies[card.name], len(rows), fit_intercept)
        _check_basis(card.name, replies[card.name], rows)
    labels = [reply.label[:, np.newaxis] for reply in replies.values() if reply.label is not None]
    values = np.hstack([*(reply.features for reply in replies.values()), *labels])
    return JoinedRows(values, values.shape[1] - 1 if labels else None)


def _check(card: PartyCard, reply: WhitenedRows, size: int, fit_intercept: bool) -> None:
    holds_label = card.label_name is not None
    most = card.n_features + (holds_label and fit_intercept)
    rank = reply.features.shape[-1]
    checks.shape(card.name, reply, reply.features, (size, min(rank, most)))
    checks.in_range(card.name, reply, reply.features)
    if (reply.label is not None) != holds_label:
        raise checks.wrong(card.name, reply, "a label's coordinate where none was due, or none where it was")
    if reply.label is not None:
        checks.shape(card.name, reply, reply.label, (size,))
        checks.in_range(card.name, reply, reply.label)


def _check_basis(party: str, reply: WhitenedRows, rows: Rows) -> None:
    """Require coordinates in an orthonormal basis: no sum of squares over rows exceeds 1."""
    label = np.empty((len(rows), 0)) if reply.label is None else reply.label[:, np.newaxis]
    values = np.hstack([reply.features, label])
    checks.copies(party, reply, rows, values, checks.SLACK)
    if not norm_fits(values[first_copies(rows)], 1.0, 0.0):
        raise checks.wrong(party, reply, "longer rows than an orthonormal basis has")


def own_basis(table: Table, *, fit_intercept: bool) -> Floats:
    """Compute the basis that Assumption 4.1 has for a party.

    From rows to coordinates, shape (d_j [+ label] [+ 1], rank). With an intercept, the label party counts a column of
    ones among its own. The label enters the last coordinate alone.
    """
    holds_label = table.label_name is not None
    W = basis(table.blocks, constant=fit_intercept and holds_label)
    return label_last(W, len(table.feature_names)) if holds_label and W.shape[1] else W


def coordinates(values: Floats, W: Floats) -> Floats:
    """Turn rows into coordinates: values (b, d) times W (d, rank), or [values, 1] times W (d + 1, rank)."""
    d = values.shape[1]
    product: Floats = values @ W[:d] + (W[d] if len(W) > d else 0.0)
    return product


def _answer(state: PartyState, request: AskWhitenedRows, data: PartyData) -> tuple[PartyState, Message]:
    rows: Rows = state.selected()
    W = own_basis(data.table, fit_intercept=request.fit_intercept)
    if len(rows) * (W.shape[1] + 1) > MAX_NUMBERS:
        raise InputError(f"{len(rows):,} rows do not fit one message. Ask for fewer rows.")
    values = coordinates(data.table.take(rows), W)
    if data.table.label_name is None:
        return state, WhitenedRows(sendable_floats(values), None)
    # A label of zeros, and nothing else, spans nothing: its coordinate is zero.
    label = values[:, -1] if values.shape[1] else np.zeros(len(rows))
    return state, WhitenedRows(sendable_floats(values[:, :-1]), sendable_floats(label))


HANDLERS = (Handler(AskWhitenedRows, _answer, after=frozenset({SELECTED}), then=SELECTED),)
