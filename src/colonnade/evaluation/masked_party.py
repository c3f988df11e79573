"""A party's side of models applied so that only one party learns what comes of it: it masks its part, or unmasks."""

import math
from dataclasses import dataclass, replace

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError
from colonnade.evaluation.clustering import check_centers
from colonnade.evaluation.linear import label_spread, weights_of
from colonnade.evaluation.masked import (
    WIDTH,
    AskMagnitude,
    AskMaskedPredictions,
    Magnitude,
    MaskedPredictions,
    asked_digest,
    part_digest,
    ring_of_parts,
    sealed_digest,
    transcript_of_parts,
)
from colonnade.evaluation.masked_delivery import DeliverMasked, MaskedReceived
from colonnade.evaluation.masked_losses import AskLosses, SummedLosses, losses_digest
from colonnade.evaluation.reports import Losses, distance_losses, residual_losses
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import squared_distances
from colonnade.kernels.masks import MAX_EXPONENT, Words, magnitude_of, pack, to_numbers, unpack
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import PAIRED, SHARED, Paired, frame_of, identity_of, paired, with_keys
from colonnade.privacy.pairwise import seal_statement
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState


@dataclass(frozen=True, eq=False)
class Held:
    """What the party that learns the sum keeps back: its masked part, what that is a part of, and what it signed."""

    words: Words
    request: AskMaskedPredictions
    transcript: bytes
    sealed: bytes

    @property
    def n_centers(self) -> int:
        """How many centres distances are to, 0 of a linear model."""
        return 0 if self.request.centers is None else len(self.request.centers)

    def __repr__(self) -> str:
        return "Held(not shown)"


def _answer_magnitude(state: PartyState, request: AskMagnitude, data: PartyData) -> tuple[PartyState, Message]:
    _check_part(state, request, data)
    return state, Magnitude(_bound(request, data))


def _answer_masked(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), with_keys(state, request.keys, data)
    _check_part(state, request, data)
    numbers, spread = _numbers(state, request, data)
    if not _bound(request, data) <= request.magnitude <= MAX_EXPONENT or request.to not in identity.parties:
        raise checks.wrong(SERVER, request, f"the magnitude {request.magnitude}, or a receiver that is no party")
    transcript = _transcript(state, request, data, len(numbers))
    after = Paired(None, kept.signed, transcript)
    if kept.secret is None:
        return replace(state, secret=after), MaskedPredictions(None, spread, transcript, b"")
    # Numbers in a ring are positive.
    shifted = numbers + np.ldexp(1.0, request.magnitude)
    words = kept.secret.masked(shifted, ring_of_parts(request.magnitude, len(kept.keys)), kept.keys, transcript)
    is_ours = request.to == identity.name
    sent = b"" if is_ours else pack(words, WIDTH)
    sealed = sealed_digest(part_digest(request.coef, request.centers, request.scale), sent, spread)
    signature = identity.sign(seal_statement(identity.name, transcript, sealed))
    held = Held(words, request, transcript, sealed) if is_ours else None
    return replace(state, secret=replace(after, kept=held)), MaskedPredictions(sent, spread, transcript, signature)


def _transcript(state: PartyState, request: AskMaskedPredictions, data: PartyData, count: int) -> bytes:
    flags = {"less_label": request.less_label, "by_weight": request.by_weight}
    asked = asked_digest(request.to, request.magnitude, count, **flags)
    parties, frame = identity_of(data).parties, frame_of(state, data)
    return transcript_of_parts(parties, request.keys, frame, request.magnitude, asked)


def _answer_delivery(state: PartyState, request: DeliverMasked, data: PartyData) -> tuple[PartyState, Message]:
    rows, held = state.selected(), paired(state).kept
    if not isinstance(held, Held):
        return state, MaskedReceived(b"")
    if held.request.less_label:
        raise checks.wrong(SERVER, request, "predictions where labels went off them")
    numbers = _unmasked(held, request, data)
    predictions: Floats | Rows = numbers + request.intercept
    if held.n_centers:
        predictions = numbers.reshape(len(rows), held.n_centers).argmin(axis=1)
    return replace(state, received=Delivery(rows, predictions)), MaskedReceived(digest(request.total))


def _answer_losses(state: PartyState, request: AskLosses, data: PartyData) -> tuple[PartyState, Message]:
    identity, held = identity_of(data), paired(state).kept
    if not isinstance(held, Held):
        return state, SummedLosses(sendable_floats(()), sendable_rows(()), b"")
    if not held.n_centers and not held.request.less_label:
        raise checks.wrong(SERVER, request, "a question for residuals of what was not asked for less labels")
    weights = weights_of(state, data, by_weight=held.request.by_weight)
    losses = _losses(_unmasked(held, request, data), request, weights)
    sums = sendable_floats([losses.weight, losses.cost, losses.deviation, losses.absolute])
    sizes = sendable_rows(losses.cluster_sizes)
    sealed = losses_digest(held.sealed, request.total, sums, sizes)
    signature = identity.sign(seal_statement(identity.name, held.transcript, sealed))
    return state, SummedLosses(sums, sizes, signature)


def _losses(numbers: Floats, request: AskLosses, weights: Floats) -> Losses:
    if not request.n_centers:
        return residual_losses(numbers + request.intercept, weights)
    distances = numbers.reshape(len(weights), request.n_centers)
    # No distance is negative: what the masks' steps took below zero is zero.
    nearest = np.maximum(distances.min(axis=1), 0.0)
    return distance_losses(distances.argmin(axis=1), nearest, weights, request.n_centers)


def _unmasked(held: Held, request: DeliverMasked | AskLosses, data: PartyData) -> Floats:
    """Add our part to the others': all masks cancel, and so do the shifts that made numbers positive."""
    if (request.magnitude, request.n_centers) != (held.request.magnitude, held.n_centers):
        raise checks.wrong(SERVER, request, f"a sum of 2^{request.magnitude} or {request.n_centers} centres, not asked")
    if len(request.total) != len(held.words) * WIDTH:
        raise checks.wrong(SERVER, request, f"{len(request.total)} bytes where {len(held.words)} x {WIDTH} are due")
    n_parties = len(identity_of(data).parties)
    ring = ring_of_parts(request.magnitude, n_parties)
    total: Floats = to_numbers(held.words + unpack(request.total, WIDTH), ring)
    total -= n_parties * np.ldexp(1.0, request.magnitude)
    return total


def _check_part(state: PartyState, request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> None:
    n_features, n_rows = len(data.table.feature_names), len(state.selected())
    if (request.coef is None) == (request.centers is None):
        raise checks.wrong(SERVER, request, "neither coefficients nor centres, or both")
    if request.less_label and request.coef is None:
        raise checks.wrong(SERVER, request, "distances less labels")
    if request.coef is not None:
        checks.shape(SERVER, request, request.coef, (n_features,))
        checks.in_range(SERVER, request, request.coef)
    if request.centers is not None:
        check_centers(request, request.centers, request.scale, n_features)
        if n_rows * len(request.centers) > MAX_NUMBERS:
            raise InputError(f"distances of {n_rows:,} rows do not fit one message. Ask for fewer rows.")


def _numbers(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[Floats, float | None]:
    """Compute the party's part: a number a row, or one for each row and centre, row by row; and the label's spread."""
    n_features, values = len(data.table.feature_names), data.table.take(state.selected())
    if request.centers is not None:
        return squared_distances(values[:, :n_features], request.centers, request.scale).reshape(-1), None
    products: Floats = values[:, :n_features] @ _coef(request)
    if not _goes_off(request, data):
        return products, None
    labels = values[:, n_features]
    return products - labels, label_spread(labels, weights_of(state, data, by_weight=request.by_weight))


def _goes_off(request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> bool:
    """Tell whether the party takes its label off its part."""
    return request.less_label and data.table.label_name is not None


def _coef(request: AskMagnitude | AskMaskedPredictions) -> Floats:
    """Give the coefficients; `_check_part` saw to it that there are some where there are no centres."""
    return np.empty(0) if request.coef is None else request.coef


def _bound(request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> int:
    """Find an e with no number of the party's part above 2^e, whichever rows are selected.

    It depends on the data by the columns' orders of magnitude alone. That of the numbers themselves would tell a
    server that tries other coefficients and rows where it jumps, and so any value to its last digit.
    """
    n_features = len(data.table.feature_names)
    reach, labels = np.split(np.ldexp(1.0, data.once(_column_magnitudes)), [n_features])
    if request.centers is None:
        largest = float(np.abs(_coef(request)) @ reach) + (float(labels.sum()) if _goes_off(request, data) else 0.0)
    else:
        farthest = (reach + np.abs(request.centers)) / (1.0 if request.scale is None else request.scale)
        largest = float(np.square(farthest).sum(axis=1).max(initial=0.0))
    if largest >= math.ldexp(1.0, MAX_EXPONENT):
        raise InputError(f"Numbers of its part could exceed 2^{MAX_EXPONENT}. Use a model of smaller coefficients.")
    return magnitude_of(np.array([largest]))


def _column_magnitudes(table: Table) -> Rows:
    """Find for each column, a label too, the smallest e with every value of the table below 2^e."""
    largest = np.zeros(len(table.feature_names) + (table.label_name is not None))
    for block in table.blocks():
        largest = np.maximum(largest, np.abs(block).max(axis=0, initial=0.0))
    return np.array([magnitude_of(np.array([each])) for each in largest], np.int64)


HANDLERS = (
    Handler(AskMagnitude, _answer_magnitude, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskMaskedPredictions, _answer_masked, after=frozenset({PAIRED}), then=SHARED),
    Handler(DeliverMasked, _answer_delivery, after=frozenset({SHARED}), then=SHARED),
    Handler(AskLosses, _answer_losses, after=frozenset({SHARED}), then=SHARED),
)
