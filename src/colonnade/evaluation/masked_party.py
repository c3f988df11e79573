"""A party's side of predictions that only one party learns: it masks its part, or unmasks the sum."""

import math
from dataclasses import dataclass, replace

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError
from colonnade.evaluation.clustering import check_centers
from colonnade.evaluation.masked import (
    WIDTH,
    AskMagnitude,
    AskMaskedPredictions,
    DeliverMasked,
    Magnitude,
    MaskedPredictions,
    MaskedReceived,
    part_digest,
    ring_of_parts,
    transcript_of_parts,
)
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import squared_distances
from colonnade.kernels.masks import MAX_EXPONENT, Words, magnitude_of, pack, to_numbers, unpack
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message
from colonnade.privacy.pair_keys import PAIRED, SHARED, Paired, frame_of, identity_of, paired, with_keys
from colonnade.privacy.pairwise import seal_statement
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState


@dataclass(frozen=True, eq=False)
class Held:
    """What the party that learns the predictions keeps back: its masked part, and what that is a part of."""

    words: Words
    magnitude: int
    n_centers: int

    def __repr__(self) -> str:
        return "Held(not shown)"


def _answer_magnitude(state: PartyState, request: AskMagnitude, data: PartyData) -> tuple[PartyState, Message]:
    _check_part(state, request, data)
    return state, Magnitude(_bound(request, data))


def _answer_masked(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), with_keys(state, request.keys, data)
    _check_part(state, request, data)
    numbers = _numbers(state, request, data)
    if not _bound(request, data) <= request.magnitude <= MAX_EXPONENT or request.to not in identity.parties:
        raise checks.wrong(SERVER, request, f"the magnitude {request.magnitude}, or a receiver that is no party")
    frame = frame_of(state, data)
    transcript = transcript_of_parts(identity.parties, kept.signed, frame, request.to, request.magnitude, len(numbers))
    after = Paired(None, kept.signed, transcript)
    if kept.secret is None:
        return replace(state, secret=after), MaskedPredictions(None, transcript, b"")
    # Numbers in a ring are positive.
    shifted = numbers + np.ldexp(1.0, request.magnitude)
    words = kept.secret.masked(shifted, ring_of_parts(request.magnitude, len(kept.keys)), kept.keys, transcript)
    part = part_digest(request.coef, request.centers, request.scale)
    is_ours = request.to == identity.name
    sent = b"" if is_ours else pack(words, WIDTH)
    signature = identity.sign(seal_statement(identity.name, transcript, digest(part, sent)))
    held = Held(words, request.magnitude, 0 if request.centers is None else len(request.centers))
    state = replace(state, secret=replace(after, kept=held if is_ours else None))
    return state, MaskedPredictions(sent, transcript, signature)


def _answer_delivery(state: PartyState, request: DeliverMasked, data: PartyData) -> tuple[PartyState, Message]:
    rows, held = state.selected(), paired(state).kept
    if not isinstance(held, Held):
        return state, MaskedReceived(b"")
    if (request.magnitude, request.n_centers) != (held.magnitude, held.n_centers):
        raise checks.wrong(SERVER, request, f"a sum of 2^{request.magnitude} or {request.n_centers} centres, not asked")
    if len(request.total) != len(held.words) * WIDTH:
        raise checks.wrong(SERVER, request, f"{len(request.total)} bytes where {len(held.words)} x {WIDTH} are due")
    numbers = _unmasked(held.words, request, len(identity_of(data).parties))
    predictions: Floats | Rows = numbers + request.intercept
    if held.n_centers:
        predictions = numbers.reshape(len(rows), held.n_centers).argmin(axis=1)
    return replace(state, received=Delivery(rows, predictions)), MaskedReceived(digest(request.total))


def _unmasked(ours: Words, request: DeliverMasked, n_parties: int) -> Floats:
    """Add our part to the others': all masks cancel, and so do the shifts that made numbers positive."""
    total: Floats = to_numbers(ours + unpack(request.total, WIDTH), ring_of_parts(request.magnitude, n_parties))
    total -= n_parties * np.ldexp(1.0, request.magnitude)
    return total


def _check_part(state: PartyState, request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> None:
    n_features, n_rows = len(data.table.feature_names), len(state.selected())
    if (request.coef is None) == (request.centers is None):
        raise checks.wrong(SERVER, request, "neither coefficients nor centres, or both")
    if request.coef is not None:
        checks.shape(SERVER, request, request.coef, (n_features,))
        checks.in_range(SERVER, request, request.coef)
    if request.centers is not None:
        check_centers(request, request.centers, request.scale, n_features)
        if n_rows * len(request.centers) > MAX_NUMBERS:
            raise InputError(f"distances of {n_rows:,} rows do not fit one message. Ask for fewer rows.")


def _numbers(state: PartyState, request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> Floats:
    """Compute the party's part: a number a row, or one for each row and centre, row by row."""
    features = data.table.take(state.selected())[:, : len(data.table.feature_names)]
    if request.centers is not None:
        return squared_distances(features, request.centers, request.scale).reshape(-1)
    products: Floats = features @ _coef(request)
    return products


def _coef(request: AskMagnitude | AskMaskedPredictions) -> Floats:
    """Give the coefficients; `_check_part` saw to it that there are some where there are no centres."""
    return np.empty(0) if request.coef is None else request.coef


def _bound(request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> int:
    """Find an e with no number of the party's part above 2^e, whichever rows are selected.

    It depends on the data by the columns' orders of magnitude alone. That of the numbers themselves would tell a
    server that tries other coefficients and rows where it jumps, and so any value to its last digit.
    """
    reach = np.ldexp(1.0, data.once(_column_magnitudes))
    if request.centers is None:
        largest = float(np.abs(_coef(request)) @ reach)
    else:
        farthest = (reach + np.abs(request.centers)) / (1.0 if request.scale is None else request.scale)
        largest = float(np.square(farthest).sum(axis=1).max(initial=0.0))
    if largest >= math.ldexp(1.0, MAX_EXPONENT):
        raise InputError(f"Numbers of its part could exceed 2^{MAX_EXPONENT}. Use a model of smaller coefficients.")
    return magnitude_of(np.array([largest]))


def _column_magnitudes(table: Table) -> Rows:
    """Find for each feature the smallest e with every value of the table below 2^e."""
    n_features = len(table.feature_names)
    largest = np.zeros(n_features)
    for block in table.blocks():
        largest = np.maximum(largest, np.abs(block[:, :n_features]).max(axis=0, initial=0.0))
    return np.array([magnitude_of(np.array([each])) for each in largest], np.int64)


HANDLERS = (
    Handler(AskMagnitude, _answer_magnitude, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskMaskedPredictions, _answer_masked, after=frozenset({PAIRED}), then=SHARED),
    Handler(DeliverMasked, _answer_delivery, after=frozenset({SHARED}), then=SHARED),
)
