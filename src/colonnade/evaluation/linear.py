"""Predictions of a linear model: each party adds up its own columns, the server adds up the parties."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Rounding, Script
from colonnade.errors import InputError
from colonnade.evaluation.rounding import RoundedParts, SummedParts, added, read_parts, round_parts, sum_parts
from colonnade.evaluation.windows import of_window
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.kernels.moments import Spread, joined_spread, spread_of
from colonnade.kernels.selections import CountedRows, Piece, Selection, Window
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState


class PartialPredictions(Message, frozen=True):
    """x_i^(j).theta^(j) for each selected row of a window, or each and every class; less the label, if asked so.

    The label's spread, over all selected rows, comes with the first window. Predictions by as many models as there are
    columns are the columns: so they count as features.
    """

    phase: ClassVar[str] = "predicting"

    values: Annotated[Floats, Reveals.FEATURES]
    label_spread: Annotated[float | None, Reveals.LABELS]

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskPartialPredictions(Message, frozen=True):
    """The party's part of the coefficients, a window; whether rows count by their weights in the label's spread."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = PartialPredictions

    coef: Annotated[Floats, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, n_models(self.coef))


class AskRoundedPredictions(Message, frozen=True):
    """As `AskPartialPredictions`, rounded to so many bits with this dither."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = RoundedParts

    coef: Annotated[Floats, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]
    bits: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, n_models(self.coef))


Ask = AskPartialPredictions | AskRoundedPredictions
# What is done with the parts of a window, summed over the parties.
Use = Callable[[Piece, SummedParts], object]


def n_models(coef: Floats) -> int:
    """Count the models that coefficients, (d,) or (K, d), are of: a number each of every row."""
    return 1 if coef.ndim == 1 else len(coef)


def linear_predictions(
    roster: Roster, selected: Selection, coef: Floats, use: Use, rounding: Rounding | None = None
) -> Script[None]:
    """Sum the parties' parts of x_i.theta for the selected rows, without the intercept, and use them window by window.

    `coef`, (d,) or (K, d), is in the roster's column order; sums are of shape (m,) or (m, K). Parts travel as they are,
    or rounded.
    """
    for piece in selected.pieces(n_models(coef)):
        use(piece, (yield from partial_sums(roster, roster.names, piece, coef, rounding)))


def partial_sums(
    roster: Roster, parties: Sequence[str], piece: Piece, coef: Floats, rounding: Rounding | None
) -> Script[SummedParts]:
    """Sum some parties' parts of one window, as `linear_predictions` does; none of no party."""
    if not parties:
        return SummedParts(np.zeros((len(piece), *coef.shape[:-1])))
    return (yield from _parts(roster, parties, piece, coef, rounding, less_label=False))


@dataclass(frozen=True)
class OfAllResiduals:
    """What is known of residuals together: sum_i w_i (y_i - mean y)^2, and how far rounding put any off at most."""

    label_spread: float
    bound: float


def linear_residuals(
    roster: Roster, selected: Selection, coef: Floats, use: Use, *, by_weight: bool, rounding: Rounding | None = None
) -> Script[OfAllResiduals]:
    """Sum partial predictions less labels: the server learns residuals, neither labels nor predictions.

    These are x_i.theta - y_i for each selected row, used window by window. In the labels' spread drawn rows do not
    count by their weights, they were drawn by them. `coef`, (d,), is in the roster's column order.
    """
    label_party = roster.label_party or ""
    # Where the label party's part is its labels and nothing else, each of weight 1.
    is_bare = rounding is None and not coef[roster.parts[label_party]].any()
    is_bare = is_bare and (roster.weight_party is None or not by_weight)
    spread, bound, bare = 0.0, 0.0, list[Spread]()
    for piece in selected.pieces(1):
        parts = yield from _parts(roster, roster.names, piece, coef, rounding, less_label=True, by_weight=by_weight)
        spread, bound = spread + parts.label_spread, max(bound, parts.bound)
        if is_bare and parts.from_label_party is not None:
            reply, values = parts.from_label_party
            bare.append(spread_of(values))
            if piece.window.stop == selected.n_places:
                _check_bare_spread(label_party, reply, spread, joined_spread(bare))
        use(piece, parts)
    return OfAllResiduals(spread, bound)


def _parts(
    roster: Roster,
    parties: Sequence[str],
    piece: Piece,
    coef: Floats,
    rounding: Rounding | None,
    *,
    less_label: bool,
    by_weight: bool = False,
) -> Script[SummedParts]:
    window, shape = piece.window, (len(piece), *coef.shape[:-1])
    own = {party: sendable_floats(coef[..., roster.parts[party]]) for party in parties}
    ends = (window.first, window.stop)
    # It comes once, with the first window.
    spread_of_party = roster.label_party if less_label and window.first == 0 else None
    if rounding is None:
        inbox = yield {party: AskPartialPredictions(part, less_label, by_weight, *ends) for party, part in own.items()}
        replies = checks.replies(inbox, PartialPredictions)
        for party, reply in replies.items():
            checks.shape(party, reply, reply.values, shape)
            checks.in_range(party, reply, reply.values)
        total = added([reply.values for reply in replies.values()])
        labelled = next(
            ((reply, reply.values) for party, reply in replies.items() if party == roster.label_party), None
        )
        return SummedParts(total, label_spread=_spread_in(replies, spread_of_party), from_label_party=labelled)
    inbox = yield {
        party: AskRoundedPredictions(part, less_label, by_weight, rounding.bits, rounding.seeds[party], *ends)
        for party, part in own.items()
    }
    spread = _spread_in(checks.replies(inbox, RoundedParts), spread_of_party)
    parts = sum_parts(read_parts(inbox, (len(piece), math.prod(shape[1:])), rounding, window.first))
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


def _check_bare_spread(party: str, reply: Message, spread: float, found: Spread) -> None:
    """Require the spread of the values themselves."""
    weight, mean, due = found
    if abs(spread - due) > checks.SLACK * (2 * due + weight * mean**2):
        raise checks.wrong(party, reply, f"a label's spread of {spread:g}, where its labels have {due:g}")


def _answer(state: PartyState, request: AskPartialPredictions, data: PartyData) -> tuple[PartyState, Message]:
    partial_products = _own_part(state, request, data)
    return state, PartialPredictions(sendable_floats(partial_products), _own_spread(state, request, data))


def _answer_rounded(state: PartyState, request: AskRoundedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    part = _own_part(state, request, data)
    part = part.reshape(len(part), n_models(request.coef))
    spread = _own_spread(state, request, data)
    return state, round_parts(request, request.bits, request.seed, request.first, part, spread)


def _own_part(state: PartyState, request: Ask, data: PartyData) -> Floats:
    n_features = len(data.table.feature_names)
    checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
    checks.in_range(SERVER, request, request.coef)
    check_classes(request, request.coef, request.stop - request.first, less_label=request.less_label)
    less_label = request.less_label and data.table.label_name is not None
    return of_window(state, request, request.window, data, partial(products, request.coef, less_label))


def products(coef: Floats, less_label: bool, values: Floats) -> Floats:
    """Compute x_i.theta of rows by coefficients, (d,) or (K, d); less the column after the features, if so."""
    n_features = coef.shape[-1]
    found: Floats = values[:, :n_features] @ coef.T
    if less_label:
        found -= values[:, n_features]
    return found


def _own_spread(state: PartyState, request: Ask, data: PartyData) -> float | None:
    """Compute the spread of the labels of all selected rows, with the first window."""
    if not request.less_label or data.table.label_name is None or request.first > 0:
        return None
    return label_spread(state, data, by_weight=request.by_weight)


def label_spread(state: PartyState, data: PartyData, *, by_weight: bool) -> float:
    """Sum up how much labels of the selected rows vary: sum_i w_i (y_i - mean y)^2."""
    rows = state.selection()
    if isinstance(rows, CountedRows):
        return joined_spread(data.table.labels.map(partial(_label_spread, by_weight)))[2]
    row_weights = data.table.row_weights if by_weight else None
    return spread_of(data.table.take(rows)[:, -1], None if row_weights is None else row_weights[rows])[2]


def _label_spread(by_weight: bool, block: Block) -> Spread:
    labels, weights = block.values[:, -1], block.weights
    if weights is None or by_weight:
        return spread_of(labels, weights)
    return spread_of(labels[weights > 0])


def check_classes(request: Message, coef: Floats, n_rows: int, *, less_label: bool) -> None:
    """Require one model, (d,), or one for each of some classes, (K, d), from which no label is taken off."""
    if coef.ndim not in (1, 2) or not 1 <= n_models(coef) <= MOST_CLASSES or (coef.ndim == 2 and less_label):
        raise checks.wrong(SERVER, request, f"coefficients of shape {coef.shape}")
    if n_rows * n_models(coef) > MAX_NUMBERS:
        raise InputError(
            f"predictions of {n_rows:,} rows for {n_models(coef)} classes do not fit one message. Ask for fewer."
        )


def weights_of(state: PartyState, data: PartyData, *, by_weight: bool) -> Floats:
    """Give the selected rows' weights, or 1 each where rows have none or do not count by them."""
    rows, row_weights = state.selection(), data.table.row_weights if by_weight else None
    if row_weights is None:
        return np.ones(len(rows))
    return row_weights.positive() if isinstance(rows, CountedRows) else row_weights[rows]


HANDLERS = (
    Handler(AskPartialPredictions, _answer, after=frozenset({SELECTED}), then=SELECTED, leaves_nothing=True),
    Handler(AskRoundedPredictions, _answer_rounded, after=frozenset({SELECTED}), then=SELECTED, leaves_nothing=True),
)
