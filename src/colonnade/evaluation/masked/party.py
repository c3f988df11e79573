"""A party's side of models applied so that only one party learns what comes of it: it masks its part, or unmasks."""

import math
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError, RemoteProtocolError
from colonnade.evaluation.clustering import check_centers
from colonnade.evaluation.linear import check_classes, label_spread, weights_of
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    DeliverMasked,
    Magnitude,
    MaskedPredictions,
    MaskedReceived,
    SignedPart,
    SummedLosses,
    losses_digest,
    other_digest,
    part_digest,
    question_digest,
    transcript_of_parts,
)
from colonnade.evaluation.masked.ring import LARGEST_ERROR, WIDTH, ring_of_parts, rounded_by, too_few_digits
from colonnade.evaluation.reports import Losses, distance_losses, residual_losses
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block
from colonnade.kernels.lloyd import squared_distances
from colonnade.kernels.masks import MAX_EXPONENT, Words, magnitude_of, pack, to_numbers, unpack
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, sendable_floats, sendable_rows
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import PAIRED, SHARED, identity_of, phase_keys, view_digest, with_keys
from colonnade.privacy.pairwise import check_signatures
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.applied import count_applied
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_sums, effective_rows
from colonnade.signing import digest

# An evaluation of fewer rows, or of rows of which fewer make up nearly all the weight, would tell single ones.
FEWEST_ROWS = 10
# Of a model of zeros, whose numbers are zeros.
NO_ERROR = 1e-100


@dataclass(frozen=True, eq=False)
class KeptPart:
    """What the party that learns the sum keeps back: its masked part, what it was asked, and what it signed."""

    words: Words
    request: AskMaskedPredictions
    transcript: bytes
    signed: SignedPart

    @property
    def n_centers(self) -> int:
        """How many centres distances are to, 0 of a linear model."""
        return 0 if self.request.centers is None else len(self.request.centers)

    def __repr__(self) -> str:
        return "KeptPart(not shown)"


def _answer_magnitude(state: PartyState, request: AskMagnitude, data: PartyData) -> tuple[PartyState, Message]:
    _check_part(state, request, data)
    return state, Magnitude(_bound(request, data))


def _answer_masked(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = own_identity(data), with_keys(state, request.keys, data)
    _check_part(state, request, data)
    numbers, spread = _numbers(state, request, data)
    if not _bound(request, data) <= request.magnitude <= MAX_EXPONENT or request.to not in identity.parties:
        raise checks.wrong(SERVER, request, f"the magnitude {request.magnitude}, or a receiver that is no party")
    if spread is not None:
        state = check_told(state, data, "the spread of labels", weights_of(state, data, by_weight=request.by_weight), 1)
    question = question_digest(request.to, request.magnitude, len(numbers), request.evaluating, request.by_weight)
    other = other_digest(request.part, spread)
    state = require_same_question(state, request, digest(seen_rows(state, data), question, other))
    transcript = transcript_of_parts(
        identity.parties, kept.relayed, view_digest(state, data), request.magnitude, question
    )
    after = kept.used(transcript)
    state = _count_model(state, request, data)
    if kept.secret is None:
        return replace(state, secret=after), MaskedPredictions(None, spread, transcript, b"")
    # Numbers in a ring are positive.
    shifted = numbers + np.ldexp(1.0, request.magnitude)
    ring = ring_of_parts(request.magnitude, len(kept.keys))
    words = kept.secret.masked(shifted, ring, kept.keys, kept.circle, transcript)
    is_ours = request.to == identity.name
    sent = b"" if is_ours else pack(words, WIDTH)
    # Whoever evaluates signs once, in the end: what it makes of the sum.
    signs_later = is_ours and request.evaluating
    statement = sent_statement(identity.name, transcript, part_digest(other, sent))
    signed = SignedPart(sent, other, b"" if signs_later else identity.sign(statement))
    ours = KeptPart(words, request, transcript, signed) if is_ours else None
    reply = MaskedPredictions(sent, spread, transcript, signed.signature)
    return replace(state, secret=replace(after, kept=ours)), reply


def _answer_delivery(state: PartyState, request: DeliverMasked, data: PartyData) -> tuple[PartyState, Message]:
    ours, state = let_go(state, request, evaluating=False)
    if ours is None:
        return state, MaskedReceived(b"")
    rows, numbers = state.selected(), unmasked(ours, request.parts, data)
    return replace(state, received=_delivery(rows, numbers, ours, request, data)), MaskedReceived(request.fingerprint())


def _delivery(rows: Rows, numbers: Floats, ours: KeptPart, request: DeliverMasked, data: PartyData) -> Delivery:
    """Make predictions of what was unmasked.

    That there are too few digits only the party learns: the server chooses how coarse masks are, and from refusals
    would learn how large a number is.
    """
    try:
        _check_digits(numbers, ours, data)
    except InputError as error:
        return Delivery(rows[:0], numbers[:0], str(error))
    keys = data.table.key_columns(rows)
    if ours.n_centers:
        return Delivery(rows, numbers.reshape(len(rows), ours.n_centers).argmin(axis=1), keys=keys)
    return Delivery(rows, numbers + request.intercept, keys=keys)


def _answer_losses(state: PartyState, request: AskLosses, data: PartyData) -> tuple[PartyState, Message]:
    ours, state = let_go(state, request, evaluating=True)
    if ours is None:
        return state, SummedLosses(sendable_floats(()), sendable_rows(()), b"")
    weights = weights_of(state, data, by_weight=ours.request.by_weight)
    what = f"losses of model {_model_name(ours, request).hex()}"
    state = check_told(state, data, what, weights, 3 + ours.n_centers)
    data.memory.keep(state.notes)  # a refusal for lack of digits tells of these sums, too
    losses = _losses(unmasked(ours, request.parts, data), ours, request.intercept, weights, data)
    # How much losses vary is of use where rows are drawn, and tells more of them than it is worth elsewhere.
    deviation = 0.0 if ours.request.by_weight else losses.deviation
    sums, sizes = sendable_floats([losses.cost, losses.absolute, deviation]), sendable_rows(losses.cluster_sizes)
    identity, sent = own_identity(data), losses_digest(ours.signed.other, request, sums, sizes)
    return state, SummedLosses(sums, sizes, identity.sign(sent_statement(identity.name, ours.transcript, sent)))


def _model_name(ours: KeptPart, request: AskLosses) -> bytes:
    """Hash all parties' parts of a model and its intercept.

    Other ones are other sums over the same rows: absolute residuals, summed for many intercepts, are the residuals.
    """
    intercept = np.array(request.intercept, "<f8").tobytes()
    return digest(ours.signed.other, *(part.other for part in request.parts), intercept)


def let_go(state: PartyState, request: Message, *, evaluating: bool) -> tuple[KeptPart | None, PartyState]:
    """Take out what the party keeps: it tells what comes of it once, and for what it was masked."""
    keeps = phase_keys(state)
    ours = keeps.kept if isinstance(keeps.kept, KeptPart) else None
    if ours is not None and ours.request.evaluating != evaluating:
        raise checks.wrong(SERVER, request, "a question for something else than parts were masked for")
    return ours, replace(state, secret=replace(keeps, kept=None))


def unmasked(ours: KeptPart, parts: tuple[SignedPart, ...], data: PartyData) -> Floats:
    """Add our part to the others', if they are as those signed them: masks cancel, and shifts that made them positive.

    A server that could change the sum by a little would learn rows from what that does to the losses.
    """
    identity, count = own_identity(data), len(ours.words)
    if any(len(part.masked) != count * WIDTH for part in parts):
        raise RemoteProtocolError(f"The server relayed parts of other lengths than {count} x {WIDTH}.", party=SERVER)
    others = [place for place, party in enumerate(identity.parties) if party != identity.name]
    check_signatures(identity, others, ours.transcript, [part.signed_digest for part in parts])
    n_parties, words = len(identity.parties), ours.words.copy()
    for part in parts:
        words += unpack(part.masked, WIDTH)
    total: Floats = to_numbers(words, ring_of_parts(ours.request.magnitude, n_parties))
    total -= n_parties * np.ldexp(1.0, ours.request.magnitude)
    return total


def _losses(numbers: Floats, ours: KeptPart, intercept: float, weights: Floats, data: PartyData) -> Losses:
    if not ours.n_centers:
        return residual_losses(numbers + intercept, weights, with_deviation=not ours.request.by_weight)
    _check_digits(numbers, ours, data)
    distances = numbers.reshape(len(weights), ours.n_centers)
    # No distance is negative: what the masks' steps took below zero is zero.
    nearest = np.maximum(distances.min(axis=1), 0.0)
    labels, drawn = distances.argmin(axis=1), not ours.request.by_weight
    return distance_losses(labels, nearest, weights, ours.n_centers, with_deviation=drawn)


def _check_digits(numbers: Floats, ours: KeptPart, data: PartyData) -> None:
    """Require that what masks' steps took off is little beside predictions, or distances to all centres."""
    error = rounded_by(ours.request.magnitude, len(own_identity(data).parties))
    if error > max(LARGEST_ERROR * float(np.abs(numbers).mean()), NO_ERROR):
        raise too_few_digits(error, own_identity(data).parties)


def _count_model(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> PartyState:
    """Count a model that is applied for another party: an equation about every row, one for each centre or class."""
    n_models = len(np.atleast_2d(_coef(request) if request.centers is None else request.centers))
    return count_applied(state, data, model_digest(request.part), n_models)


def check_told(state: PartyState, data: PartyData, what: str, weights: Floats, n_numbers: int) -> PartyState:
    """Require that sums over the selected rows, of one number a row, hide them; remember that they were told."""
    rows = state.selected()
    if (effective := effective_rows(rows, weights)) < FEWEST_ROWS:
        raise InputError(
            f"sums over rows that count as {effective:.3g} tell single ones. Evaluate {FEWEST_ROWS} rows or more."
        )
    if data.policy.least_rows == 1:
        return state
    return check_sums(state, data, what, [(rows, weights)], 1, n_numbers, FEWEST_ROWS, of_each=n_numbers)


def own_identity(data: PartyData) -> Identity:
    """Give the party's identity, without which it masks nothing."""
    return identity_of(data, "let the server predict and evaluate")


def _check_part(state: PartyState, request: AskMagnitude | AskMaskedPredictions, data: PartyData) -> None:
    n_features, n_rows = len(data.table.feature_names), len(state.selected())
    if (request.coef is None) == (request.centers is None):
        raise checks.wrong(SERVER, request, "neither coefficients nor centres, or both")
    if request.coef is not None:
        checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
        checks.in_range(SERVER, request, request.coef)
        check_classes(request, request.coef, n_rows, less_label=request.evaluating)
    if request.centers is not None:
        check_centers(request, request.centers, request.scale, n_features)
        if n_rows * len(request.centers) > MAX_NUMBERS:
            raise InputError(f"distances of {n_rows:,} rows do not fit one message. Ask for fewer rows.")


def _numbers(state: PartyState, request: AskMaskedPredictions, data: PartyData) -> tuple[Floats, float | None]:
    """Compute the party's part: a number a row, or one for each and every centre or class; and the label's spread."""
    n_features, values = len(data.table.feature_names), data.table.take(state.selected())
    if request.centers is not None:
        return squared_distances(values[:, :n_features], request.centers, request.scale).reshape(-1), None
    products: Floats = (values[:, :n_features] @ _coef(request).T).reshape(-1)
    if not _takes_label_off(request, data):
        return products, None
    labels = values[:, n_features]
    return products - labels, label_spread(labels, weights_of(state, data, by_weight=request.by_weight))


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
    Handler(AskMaskedPredictions, _answer_masked, after=frozenset({PAIRED}), then=SHARED),
    Handler(DeliverMasked, _answer_delivery, after=frozenset({SHARED}), then=SHARED),
    Handler(AskLosses, _answer_losses, after=frozenset({SHARED}), then=SHARED),
)
