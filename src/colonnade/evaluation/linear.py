"""Predictions of a linear model: each party adds up its own columns, the server adds up the parties."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class PartialPredictions(Message, frozen=True):
    """x_i^(j).theta^(j) for each selected row; at the label party, if it was asked so, less the label."""

    phase: ClassVar[str] = "predicting"

    values: Annotated[Floats, Reveals.PREDICTIONS]
    label_spread: Annotated[float | None, Reveals.LABELS]


class AskPartialPredictions(Message, frozen=True):
    """The party's part of the coefficients; whether rows count by their weights in the label's spread."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = PartialPredictions

    coef: Annotated[Floats, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]


def linear_predictions(roster: Roster, size: int, coef: Floats) -> Script[Floats]:
    """Sum the parties' partial predictions of the selected rows, without the intercept.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    size : int
        How many rows are selected.
    coef : ndarray of float64, shape (n_features,)
        In the roster's column order.

    Returns
    -------
    ndarray of float64, shape (size,)
        x_i.theta for each selected row.
    """
    values, _ = yield from _partials(roster, size, coef, less_label=False)
    return values


def linear_residuals(roster: Roster, size: int, coef: Floats, *, by_weight: bool) -> Script[tuple[Floats, float]]:
    """Sum partial predictions less labels: the server learns residuals, neither labels nor predictions.

    Parameters
    ----------
    roster : Roster
        The parties, one of which holds the label.
    size : int
        How many rows are selected.
    coef : ndarray of float64, shape (n_features,)
        In the roster's column order.
    by_weight : bool
        Whether rows count by their weights in the label's spread; drawn ones do not, they were drawn by them.

    Returns
    -------
    residuals : ndarray of float64, shape (size,)
        x_i.theta - y_i for each selected row.
    label_spread : float
        sum_i w_i (y_i - mean y)^2 over the selected rows.
    """
    return (yield from _partials(roster, size, coef, less_label=True, by_weight=by_weight))


def _partials(
    roster: Roster, size: int, coef: Floats, *, less_label: bool, by_weight: bool = False
) -> Script[tuple[Floats, float]]:
    inbox = yield {
        party: AskPartialPredictions(sendable_floats(coef[part]), less_label, by_weight)
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, PartialPredictions)
    _check(replies, size, roster.label_party if less_label else None)
    spread = next((reply.label_spread for reply in replies.values() if reply.label_spread is not None), 0.0)
    return np.sum([reply.values for reply in replies.values()], axis=0), spread


def _check(replies: Mapping[str, PartialPredictions], size: int, label_party: str | None) -> None:
    for party, reply in replies.items():
        checks.shape(party, reply, reply.values, (size,))
        checks.in_range(party, reply, reply.values)
        if (reply.label_spread is not None) != (party == label_party):
            raise checks.wrong(party, reply, "a label's spread where none was due, or none where it was")
        if reply.label_spread is not None:
            checks.non_negative(party, reply, np.array([reply.label_spread]))


def _answer(state: PartyState, request: AskPartialPredictions, data: PartyData) -> tuple[PartyState, Message]:
    n_features = len(data.table.feature_names)
    checks.shape(SERVER, request, request.coef, (n_features,))
    checks.in_range(SERVER, request, request.coef)
    values = data.table.take(state.selected())
    partial = values[:, :n_features] @ request.coef
    if not request.less_label or data.table.label_name is None:
        return state, PartialPredictions(sendable_floats(partial), None)
    labels = values[:, n_features]
    row_weights = data.table.row_weights if request.by_weight else None
    weights = np.ones(len(labels)) if row_weights is None else row_weights[state.selected()]
    return state, PartialPredictions(sendable_floats(partial - labels), _spread(labels, weights))


def _spread(labels: Floats, weights: Floats) -> float:
    if not weights.any():
        return 0.0
    return float(weights @ np.square(labels - np.average(labels, weights=weights)))


HANDLERS = (Handler(AskPartialPredictions, _answer, after=frozenset({SELECTED}), then=SELECTED),)
