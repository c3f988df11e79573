"""A party's side of predictions that only one party learns: it masks its part, or unmasks the sum."""

from dataclasses import replace

import numpy as np

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


def _answer_magnitude(state: PartyState, request: AskMagnitude, data: PartyData) -> tuple[PartyState, Message]:
    return state, Magnitude(magnitude_of(_numbers(state, request, data)))


def _answer_masked(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), with_keys(state, request.keys, data)
    numbers = _numbers(state, request, data)
    if not magnitude_of(numbers) <= request.magnitude <= MAX_EXPONENT or request.to not in identity.parties:
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
    state = replace(state, secret=replace(after, kept=words if is_ours else None))
    return state, MaskedPredictions(sent, transcript, signature)


def _answer_delivery(state: PartyState, request: DeliverMasked, data: PartyData) -> tuple[PartyState, Message]:
    rows, ours = state.selected(), paired(state).kept
    if not isinstance(ours, np.ndarray):
        return state, MaskedReceived(b"")
    if len(request.total) != len(ours) * WIDTH or len(ours) != len(rows) * max(request.n_centers, 1):
        raise checks.wrong(SERVER, request, f"{len(request.total)} bytes where {len(ours)} x {WIDTH} are due")
    numbers = _unmasked(ours, request, len(identity_of(data).parties))
    predictions: Floats | Rows = numbers + request.intercept
    if request.n_centers:
        predictions = numbers.reshape(len(rows), request.n_centers).argmin(axis=1)
    return replace(state, received=Delivery(rows, predictions)), MaskedReceived(digest(request.total))


def _unmasked(ours: Words, request: DeliverMasked, n_parties: int) -> Floats:
    """Add our part to the others': all masks cancel, and so do the shifts that made numbers positive."""
    total: Floats = to_numbers(ours + unpack(request.total, WIDTH), ring_of_parts(request.magnitude, n_parties))
    total -= n_parties * np.ldexp(1.0, request.magnitude)
    return total


def _numbers(state: PartyState, request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> Floats:
    """Compute the party's part: a number a row, or one for each row and centre, row by row."""
    n_features, rows = len(data.table.feature_names), state.selected()
    features = data.table.take(rows)[:, :n_features]
    if request.coef is not None and request.centers is None:
        checks.shape(SERVER, request, request.coef, (n_features,))
        checks.in_range(SERVER, request, request.coef)
        products: Floats = features @ request.coef
        return products
    if request.centers is None or request.coef is not None:
        raise checks.wrong(SERVER, request, "neither coefficients nor centres, or both")
    check_centers(request, request.centers, request.scale, n_features)
    if len(rows) * len(request.centers) > MAX_NUMBERS:
        raise InputError(f"distances of {len(rows):,} rows do not fit one message. Ask for fewer rows.")
    return squared_distances(features, request.centers, request.scale).reshape(-1)


HANDLERS = (
    Handler(AskMagnitude, _answer_magnitude, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskMaskedPredictions, _answer_masked, after=frozenset({PAIRED}), then=SHARED),
    Handler(DeliverMasked, _answer_delivery, after=frozenset({SHARED}), then=SHARED),
)
