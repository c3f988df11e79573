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
from colonnade.kernels.row_blocks import FirstColumns, Unweighted
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.classes import label_classes
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


class AskWhitenedClassRows(AskWhitenedRows, frozen=True):
    """As `AskWhitenedRows`, where the label has two classes: it is no column, but 1 for the later of them and 0."""


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


def whitened_class_rows(roster: Roster, rows: Rows, *, fit_intercept: bool) -> Script[tuple[Floats, Floats]]:
    """Ask for the selected rows, ascending, in the parties' bases, shape (m, d'), and for classes, 1 or 0, (m,)."""
    inbox = yield {party: AskWhitenedClassRows(fit_intercept) for party in roster.names}
    replies = checks.replies(inbox, WhitenedRows)
    for card in roster.cards:
        reply = replies[card.name]
        _check(card, reply, len(rows), fit_intercept)
        _check_basis(card.name, WhitenedRows(reply.features, None), rows)
        if reply.label is not None and not np.isin(reply.label, (0.0, 1.0)).all():
            raise checks.wrong(card.name, reply, "classes that are neither 0 nor 1")
    (classes,) = (reply.label for reply in replies.values() if reply.label is not None)
    return np.hstack([reply.features for reply in replies.values()]), classes


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
    W = basis(Unweighted(table), constant=fit_intercept and holds_label)
    return label_last(W, len(table.feature_names)) if holds_label and W.shape[1] else W


def coordinates(values: Floats, W: Floats) -> Floats:
    """Turn rows into coordinates: values (b, d) times W (d, rank), or [values, 1] times W (d + 1, rank)."""
    d = values.shape[1]
    product: Floats = values @ W[:d] + (W[d] if len(W) > d else 0.0)
    return product


def own_class_basis(table: Table, *, fit_intercept: bool) -> Floats:
    """Compute the basis of a party's features, and of a column of ones at the label party where there is an intercept.

    From features to coordinates, shape (d_j [+ 1], rank).
    """
    d = len(table.feature_names)
    return basis(FirstColumns(Unweighted(table), d), constant=fit_intercept and table.label_name is not None)


def _answer_classes(state: PartyState, request: AskWhitenedClassRows, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    d = len(table.feature_names)
    W = own_class_basis(table, fit_intercept=request.fit_intercept)
    if len(rows) * (W.shape[1] + 1) > MAX_NUMBERS:
        raise InputError(f"{len(rows):,} rows do not fit one message. Ask for fewer rows.")
    chosen = table.take(rows)
    values = sendable_floats(coordinates(chosen[:, :d], W))
    if table.label_name is None:
        return state, WhitenedRows(values, None)
    classes = data.seen(None).once(label_classes)
    if len(classes) != 2:
        raise InputError(f"its label has {len(classes)} classes; a diagnosis is of two.")
    return state, WhitenedRows(values, sendable_floats(chosen[:, d] == classes[1]))


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


HANDLERS = (
    Handler(AskWhitenedRows, _answer, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskWhitenedClassRows, _answer_classes, after=frozenset({SELECTED}), then=SELECTED),
)
