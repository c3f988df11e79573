"""Predictions of a linear model: each party adds up its own columns, the server adds up the parties."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.rounding import RoundedParts, SummedParts, read_parts, round_parts, sum_parts
from colonnade.kernels.arrays import Floats
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class PartialPredictions(Message, frozen=True):
    """x_i^(j).theta^(j) for each selected row, or each and every class; less the label at its party, if asked so.

    Predictions by as many models as there are columns are the columns: so they count as features.
    """

    phase: ClassVar[str] = "predicting"

    values: Annotated[Floats, Reveals.FEATURES]
    label_spread: Annotated[float | None, Reveals.LABELS]

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskPartialPredictions(Message, frozen=True):
    """The party's part of the coefficients; whether rows count by their weights in the label's spread."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = PartialPredictions

    coef: Annotated[Floats, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None


class AskRoundedPredictions(Message, frozen=True):
    """As `AskPartialPredictions`, rounded to so many bits with this dither."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = RoundedParts

    coef: Annotated[Floats, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]
    bits: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None


def linear_predictions(roster: Roster, size: int, coef: Floats, rounding: Rounding | None = None) -> Script[Floats]:
    """Sum the parties' parts of x_i.theta for the selected rows, without the intercept; shape (size,), or (size, K).

    `coef`, (d,) or (K, d), is in the roster's column order; parts travel as they are, or rounded.
    """
    parts = yield from partial_sums(roster, roster.names, size, coef, rounding)
    return parts.values


def partial_sums(
    roster: Roster, parties: Sequence[str], size: int, coef: Floats, rounding: Rounding | None
) -> Script[SummedParts]:
    """Sum some parties' parts, as `linear_predictions` does; none of no party."""
    if not parties:
        return SummedParts(np.zeros((size, *coef.shape[:-1])))
    return (yield from _parts(roster, parties, size, coef, rounding, less_label=False))


def linear_residuals(
    roster: Roster, size: int, coef: Floats, *, by_weight: bool, rounding: Rounding | None = None
) -> Script[SummedParts]:
    """Sum partial predictions less labels: the server learns residuals, neither labels nor predictions.

    These are x_i.theta - y_i for each selected row, shape (size,), and sum_i w_i (y_i - mean y)^2 over them. Drawn rows
    do not count by their weights there, they were drawn by them. `coef` is in the roster's column order.
    """
    return (yield from _parts(roster, roster.names, size, coef, rounding, less_label=True, by_weight=by_weight))


def _parts(
    roster: Roster,
    parties: Sequence[str],
    size: int,
    coef: Floats,
    rounding: Rounding | None,
    *,
    less_label: bool,
    by_weight: bool = False,
) -> Script[SummedParts]:
    label_party = roster.label_party if less_label else None
    own = {party: sendable_floats(coef[..., roster.parts[party]]) for party in parties}
    shape = (size, *coef.shape[:-1])
    if rounding is None:
        inbox = yield {party: AskPartialPredictions(part, less_label, by_weight) for party, part in own.items()}
        replies = checks.replies(inbox, PartialPredictions)
        for party, reply in replies.items():
            checks.shape(party, reply, reply.values, shape)
            checks.in_range(party, reply, reply.values)
        total = np.sum([reply.values for reply in replies.values()], axis=0)
        spread = _spread_in(replies, label_party)
        if label_party is not None and not own[label_party].any() and (roster.weight_party is None or not by_weight):
            _check_bare_spread(label_party, replies[label_party], spread)
        return SummedParts(total, label_spread=spread)
    inbox = yield {
        party: AskRoundedPredictions(part, less_label, by_weight, rounding.bits, rounding.seeds[party])
        for party, part in own.items()
    }
    spread = _spread_in(checks.replies(inbox, RoundedParts), label_party)
    parts = sum_parts(read_parts(inbox, (size, math.prod(shape[1:])), rounding))
    return replace(parts, values=parts.values.reshape(shape), label_spread=spread)


def _spread_in(replies: Mapping[str, PartialPredictions | RoundedParts], label_party: str | None) -> float:
    return read_spread(replies, {party: reply.label_spread for party, reply in replies.items()}, label_party)


def read_spread(replies: Mapping[str, Message], spreads: Mapping[str, float | None], label_party: str | None) -> float:
    """Find the label's spread, which the label party must tell, if it was asked so, and nobody else; else 0."""
    for party, spread in spreads.items():
        if (spread is not None) != (party == label_party):
            raise checks.wrong(party, replies[party], "a label's spread where none was due, or none where it was")
        if spread is not None:
            checks.non_negative(party, replies[party], np.array([spread]))
    return next((spread for spread in spreads.values() if spread is not None), 0.0)


def _check_bare_spread(party: str, reply: PartialPredictions, spread: float) -> None:
    """Require the spread of the values themselves, where these are labels and nothing else, each of weight 1."""
    due = label_spread(reply.values, np.ones(len(reply.values)))
    if abs(spread - due) > checks.SLACK * (due + float(np.square(reply.values).sum())):
        raise checks.wrong(party, reply, f"a label's spread of {spread:g}, where its labels have {due:g}")


def _answer(state: PartyState, request: AskPartialPredictions, data: PartyData) -> tuple[PartyState, Message]:
    partial, spread = _own_part(state, request, data)
    return state, PartialPredictions(sendable_floats(partial), spread)


def _answer_rounded(state: PartyState, request: AskRoundedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    partial, spread = _own_part(state, request, data)
    return state, round_parts(request, request.bits, request.seed, partial.reshape(len(partial), -1), spread)


def _own_part(
    state: PartyState, request: AskPartialPredictions | AskRoundedPredictions, data: PartyData
) -> tuple[Floats, float | None]:
    n_features = len(data.table.feature_names)
    checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
    checks.in_range(SERVER, request, request.coef)
    check_classes(request, request.coef, len(state.selected()), less_label=request.less_label)
    values = data.table.take(state.selected())
    partial: Floats = values[:, :n_features] @ request.coef.T
    if not request.less_label or data.table.label_name is None:
        return partial, None
    labels = values[:, n_features]
    return partial - labels, label_spread(labels, weights_of(state, data, by_weight=request.by_weight))


def check_classes(request: Message, coef: Floats, n_rows: int, *, less_label: bool) -> None:
    """Require one model, (d,), or one for each of some classes, (K, d), from which no label is taken off."""
    n_models = 1 if coef.ndim == 1 else len(coef)
    if coef.ndim not in (1, 2) or not 1 <= n_models <= MOST_CLASSES or (coef.ndim == 2 and less_label):
        raise checks.wrong(SERVER, request, f"coefficients of shape {coef.shape}")
    if n_rows * n_models > MAX_NUMBERS:
        raise InputError(
            f"predictions of {n_rows:,} rows for {n_models} classes do not fit one message. Ask for fewer."
        )


def weights_of(state: PartyState, data: PartyData, *, by_weight: bool) -> Floats:
    """Give the selected rows' weights, or 1 each where rows have none or do not count by them."""
    row_weights = data.table.row_weights if by_weight else None
    return np.ones(len(state.selected())) if row_weights is None else row_weights[state.selected()]


def label_spread(labels: Floats, weights: Floats) -> float:
    """Sum up how much labels vary: sum_i w_i (y_i - mean y)^2."""
    if not weights.any():
        return 0.0
    return float(weights @ np.square(labels - np.average(labels, weights=weights)))


HANDLERS = (
    Handler(AskPartialPredictions, _answer, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskRoundedPredictions, _answer_rounded, after=frozenset({SELECTED}), then=SELECTED),
)
