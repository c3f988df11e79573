"""A party's side of models applied so that only one party learns what comes of it: it masks its part, by windows."""

import math
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.evaluation.clustering import check_centers, distances
from colonnade.evaluation.linear import check_classes, label_spread, products
from colonnade.evaluation.masked.messages import (
    AskMagnitude,
    AskMaskedPredictions,
    Magnitude,
    MaskedPredictions,
    SignedPart,
    other_digest,
    part_digest,
    question_digest,
    transcript_of_parts,
)
from colonnade.evaluation.masked.receiving import KeptPart, Masking, check_told, own_identity
from colonnade.evaluation.masked.ring import WIDTH, ring_of_parts
from colonnade.evaluation.telling import model_digest
from colonnade.evaluation.windows import OfRows, made_of_window
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.kernels.center_distances import CenterDistances
from colonnade.kernels.masks import MAX_EXPONENT, magnitude_of, pack
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import PAIRED, SHARED, PhaseKeys, phase_keys, view_digest, with_keys
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.applied import count_applied
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.windows import check_window
from colonnade.signing import digest


def _answer_magnitude(state: PartyState, request: AskMagnitude, data: PartyData) -> tuple[PartyState, Message]:
    _check_part(request, data)
    return state, Magnitude(_bound(request, data))


def _answer_masked(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    identity, window = own_identity(data), request.window
    check_window(state, request, window)
    _check_part(request, data)
    if not _bound(request, data) <= request.magnitude <= MAX_EXPONENT or request.to not in identity.parties:
        raise checks.wrong(SERVER, request, f"the magnitude {request.magnitude}, or a receiver that is no party")
    n_numbers, flags = len(state.selection()) * window.n_numbers, (request.evaluating, request.by_weight)
    question = question_digest(request.to, request.magnitude, n_numbers, *flags)
    asked = digest(question, other_digest(request.part, None))
    if window.first:
        kept, spread = phase_keys(state), None
        before = _masking(state, request, asked, identity)
    else:
        state, kept, spread = _opened(state, request, asked, data)
        before = Masking(asked, other_digest(request.part, spread), 0)
    view = view_digest(state, data)
    transcript = transcript_of_parts(
        identity.parties, kept.relayed, view, request.magnitude, question, kept.transcript, window
    )
    is_ours, is_last = request.to == identity.name, window.stop == state.n_places
    after = replace(before, stop=window.stop)
    if kept.secret is None:
        lost = replace(kept, transcript=transcript, kept=after)
        return replace(state, secret=lost), MaskedPredictions(None, spread, transcript, b"")
    objection = None if is_ours else data.policy.objection_to_rows(MaskedPredictions, n_numbers)
    if objection:
        raise PolicyRefusedError(f"{objection}.", party=data.name)
    # Numbers in a ring are positive.
    shifted = _numbers(state, request, data) + np.ldexp(1.0, request.magnitude)
    ring = ring_of_parts(request.magnitude, len(kept.keys))
    words = kept.secret.masked(shifted, ring, kept.keys, kept.circle, transcript)
    sent = b"" if is_ours else pack(words, WIDTH)
    # Whoever evaluates signs once, in the end: what it makes of the sum.
    signs_later = is_ours and request.evaluating
    statement = sent_statement(identity.name, transcript, part_digest(before.other, sent))
    signed = SignedPart(sent, before.other, b"" if signs_later else identity.sign(statement))
    after = replace(after, ours=KeptPart(words, request, transcript, signed) if is_ours else None)
    kept = replace(kept, secret=None if is_last else kept.secret, transcript=transcript, kept=after)
    return replace(state, secret=kept), MaskedPredictions(sent, spread, transcript, signed.signature)


def _opened(
    state: PartyState, request: AskMaskedPredictions, asked: bytes, data: PartyData
) -> tuple[PartyState, PhaseKeys, float | None]:
    """Begin with the first window: take the keys, count the model, and sum up how labels vary where they go off."""
    if request.keys is None:
        raise checks.wrong(SERVER, request, "no keys with the first window")
    kept, spread = with_keys(state, request.keys, data), None
    if _takes_label_off(request, data):
        state = check_told(state, data, "the spread of labels", 1, by_weight=request.by_weight)
        spread = label_spread(state, data, by_weight=request.by_weight)
    state = require_same_question(state, request, digest(seen_rows(state, data), asked))
    return _count_model(state, request, data), kept, spread


def _masking(state: PartyState, request: AskMaskedPredictions, asked: bytes, identity: Identity) -> Masking:
    """Go on with the next window of what was asked, by the keys that came with the first."""
    before = phase_keys(state).kept
    if not isinstance(before, Masking) or before.stop != request.first or before.asked != asked or request.keys:
        raise checks.wrong(SERVER, request, "another window, question or keys than would be next")
    lacks = phase_keys(state).secret is not None and before.taken.stop != request.first
    if request.to == identity.name and lacks:
        raise checks.wrong(SERVER, request, "a window before the others' parts of the last one came")
    return before


def _count_model(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> PartyState:
    """Count a model that is applied for another party: an equation about every row, one for each centre or class."""
    n_models = len(np.atleast_2d(_coef(request) if request.centers is None else request.centers))
    return count_applied(state, data, model_digest(request.part), n_models)


def _check_part(request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> None:
    n_features = len(data.table.feature_names)
    if (request.coef is None) == (request.centers is None):
        raise checks.wrong(SERVER, request, "neither coefficients nor centres, or both")
    if request.coef is not None:
        checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
        checks.in_range(SERVER, request, request.coef)
        check_classes(request, request.coef, 0, less_label=request.evaluating)
    if request.centers is not None:
        check_centers(request, request.centers, request.scale, n_features)


def _numbers(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> Floats:
    """Compute the party's part of a window: a number a row, or one for each and every centre or class."""
    if request.window.n_numbers * BLOCK_ROWS > MAX_NUMBERS:
        raise InputError(f"{request.window.n_numbers:,} numbers a row do not fit one message. Use fewer centres.")
    if request.centers is not None:
        work: OfRows[np.float64] = partial(distances, CenterDistances.to(request.centers, request.scale))
    else:
        work = products(_coef(request), less_label=_takes_label_off(request, data))
    return made_of_window(state, request.window, data, work).reshape(-1)


def _takes_label_off(request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> bool:
    """Tell whether the party's part is less its label."""
    return request.evaluating and request.coef is not None and data.table.label_name is not None


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
        largest = float(np.max(np.abs(_coef(request)) @ reach)) + (
            float(labels.sum()) if _takes_label_off(request, data) else 0.0
        )
    else:
        farthest = (reach + np.abs(request.centers)) / (1.0 if request.scale is None else request.scale)
        largest = float(np.square(farthest).sum(axis=1).max(initial=0.0))
    if largest >= math.ldexp(1.0, MAX_EXPONENT):
        raise InputError(f"Numbers of its part could exceed 2^{MAX_EXPONENT}. Use a model of smaller coefficients.")
    return magnitude_of(np.array([largest]))


def _column_magnitudes(table: Table) -> Rows:
    """Find for each column, a label too, the smallest e with every value of the table below 2^e."""
    largest = reduce(np.maximum, table.map(_largest_values))
    return np.array([magnitude_of(np.array([each])) for each in largest], np.int64)


def _largest_values(block: Block) -> Floats:
    return np.asarray(np.abs(block.values).max(axis=0, initial=0.0))


HANDLERS = (
    Handler(AskMagnitude, _answer_magnitude, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskMaskedPredictions, _answer_masked, after=frozenset({PAIRED, SHARED}), then=SHARED),
)
