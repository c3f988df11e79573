"""The side of the party that learns what comes of a model applied under masks: it unmasks window after window."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colonnade.errors import InputError, RemoteProtocolError
from colonnade.evaluation.linear import weights_of
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMaskedPredictions,
    BringMasked,
    DeliverMasked,
    MaskedReceived,
    SignedPart,
    SummedLosses,
    losses_digest,
)
from colonnade.evaluation.masked.ring import LARGEST_ERROR, WIDTH, ring_of_parts, rounded_by, too_few_digits
from colonnade.evaluation.reports import Losses, all_losses, distance_losses, residual_losses
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Words, to_numbers, unpack
from colonnade.kernels.selections import CountedRows, Window
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import SHARED, identity_of, phase_keys
from colonnade.privacy.pairwise import check_signatures
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import Delivery, Handler, PartyData, PartyState
from colonnade.protocol.sums import Group, check_sums, effective_rows
from colonnade.protocol.windows import Arrived, arrived, check_kept, joined
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


@dataclass(frozen=True, eq=False)
class Taken:
    """What is kept of a window that was unmasked: its losses; or predictions; and how large its numbers were in sum."""

    losses: Losses | None
    predictions: Any
    absolute: float
    n_numbers: int


NOTHING_TAKEN: Arrived[Any] = Arrived(None)


@dataclass(frozen=True, eq=False)
class Masking:
    """What a party keeps while it masks window after window.

    `asked` hashes what is the same in all windows, and `other` what it signs of its part. The next window begins at
    `stop`. Who learns the sum keeps its own part of a window until it is brought the others', and what came of those.
    """

    asked: bytes
    other: bytes
    stop: int
    ours: KeptPart | None = None
    taken: Arrived[Any] = NOTHING_TAKEN

    def __repr__(self) -> str:
        return "Masking(not shown)"


@dataclass(frozen=True, eq=False)
class LetGo:
    """A party's part of a window, which it tells what comes of once; and what came of the windows before."""

    ours: KeptPart
    before: Arrived[Any]

    def with_others(
        self, state: PartyState, request: Message, intercept: float, parts: tuple[SignedPart, ...], data: PartyData
    ) -> Arrived[Taken]:
        """Unmask the window with the others' parts, of the model and intercept that windows before were of."""
        checks.in_range(SERVER, request, np.array([intercept]))
        if not self.ours.n_centers:
            check_kept(state, self.ours.request.window.n_numbers)
        numbers = self.unmasked(parts, data)
        what = (intercept, tuple(part.other for part in parts))
        taken = _taken(numbers, self.ours, intercept, state, data)
        return arrived(self.before, what, request, self.ours.request.window, taken)

    def unmasked(self, parts: tuple[SignedPart, ...], data: PartyData) -> Floats:
        """Add the others' parts to its own: masks cancel."""
        return _unmasked(self.ours, parts, data)


def let_go(
    state: PartyState, request: Message, ends: tuple[int, int], *, evaluating: bool | None, is_brought: bool = False
) -> tuple[LetGo | None, PartyState]:
    """Take out what the party keeps of a window: it tells what comes of it once, and for what it was masked.

    None where it lost it. What is brought is a window that others follow; after the last one nothing is kept.
    """
    keeps = phase_keys(state)
    masking = keeps.kept if isinstance(keeps.kept, Masking) else None
    if masking is None or masking.ours is None:
        return None, state
    ours = masking.ours
    if ends != ours.request.window[:2] or is_brought == (ends[1] == state.n_places):
        raise checks.wrong(SERVER, request, f"parts of rows {ends[0]} to {ends[1]}, or not as they would be next")
    if evaluating is not None and ours.request.evaluating != evaluating:
        raise checks.wrong(SERVER, request, "a question for something else than parts were masked for")
    left = replace(masking, ours=None) if is_brought else None
    return LetGo(ours, masking.taken), replace(state, secret=replace(keeps, kept=left))


def _answer_brought(state: PartyState, request: BringMasked, data: PartyData) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=None, is_brought=True)
    if let is None:
        return state, MaskedReceived(b"")
    taken = let.with_others(state, request, request.intercept, request.parts, data)
    return keep_taken(state, taken), MaskedReceived(request.fingerprint())


def keep_taken(state: PartyState, taken: Arrived[Any]) -> PartyState:
    """Keep what came of windows that others follow."""
    keys = phase_keys(state)
    kept = replace(keys.kept, taken=taken) if isinstance(keys.kept, Masking) else keys.kept
    return replace(state, secret=replace(keys, kept=kept))


def _answer_delivery(state: PartyState, request: DeliverMasked, data: PartyData) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False)
    if let is None:
        return state, MaskedReceived(b"")
    taken = let.with_others(state, request, request.intercept, request.parts, data)
    return replace(state, received=_delivery(state, taken, let.ours, data)), MaskedReceived(request.fingerprint())


def _delivery(state: PartyState, taken: Arrived[Taken], ours: KeptPart, data: PartyData) -> Delivery:
    """Make predictions of what was unmasked.

    That there are too few digits only the party learns: the server chooses how coarse masks are, and from refusals
    would learn how large a number is.
    """
    predictions = joined(tuple(each.predictions for each in taken.parts))
    try:
        _check_digits(taken, ours, data)
    except InputError as error:
        return Delivery(np.arange(0), predictions[:0], str(error))
    return state.delivery(predictions, data.table)


def _answer_losses(state: PartyState, request: AskLosses, data: PartyData) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=True)
    if let is None:
        return state, SummedLosses(sendable_floats(()), sendable_rows(()), b"")
    ours, by_weight = let.ours, let.ours.request.by_weight
    what = f"losses of model {_model_name(ours, request).hex()}"
    state = check_told(state, data, what, 3 + ours.n_centers, by_weight=by_weight)
    data.memory.keep(state.notes)  # a refusal for lack of digits tells of these sums, too
    taken = let.with_others(state, request, request.intercept, request.parts, data)
    if ours.n_centers:
        _check_digits(taken, ours, data)
    losses = all_losses([each.losses for each in taken.parts if each.losses is not None])
    # How much losses vary is of use where rows are drawn, and tells more of them than it is worth elsewhere.
    deviation = 0.0 if by_weight else losses.deviation
    sums, sizes = sendable_floats([losses.cost, losses.absolute, deviation]), sendable_rows(losses.cluster_sizes)
    identity, sent = own_identity(data), losses_digest(ours.signed.other, request, sums, sizes)
    return state, SummedLosses(sums, sizes, identity.sign(sent_statement(identity.name, ours.transcript, sent)))


def _model_name(ours: KeptPart, request: AskLosses) -> bytes:
    """Hash all parties' parts of a model and its intercept.

    Other ones are other sums over the same rows: absolute residuals, summed for many intercepts, are the residuals.
    """
    intercept = np.array(request.intercept, "<f8").tobytes()
    return digest(ours.signed.other, *(part.other for part in request.parts), intercept)


def _unmasked(ours: KeptPart, parts: tuple[SignedPart, ...], data: PartyData) -> Floats:
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


def _taken(numbers: Floats, ours: KeptPart, intercept: float, state: PartyState, data: PartyData) -> Taken:
    """Keep of a window's numbers what all windows together are asked for."""
    facts = float(np.abs(numbers).sum()), len(numbers)
    if not ours.request.evaluating:
        nearest = numbers.reshape(-1, ours.n_centers).argmin(axis=1) if ours.n_centers else numbers + intercept
        return Taken(None, nearest, *facts)
    by_weight = ours.request.by_weight
    weights = _weights_in(state, ours.request.window, data) if by_weight else None
    if not ours.n_centers:
        return Taken(residual_losses(numbers + intercept, weights, with_deviation=not by_weight), None, *facts)
    distances = numbers.reshape(-1, ours.n_centers)
    # No distance is negative: what the masks' steps took below zero is zero.
    nearest = np.maximum(distances.min(axis=1), 0.0)
    losses = distance_losses(distances.argmin(axis=1), nearest, weights, ours.n_centers, with_deviation=not by_weight)
    return Taken(losses, None, *facts)


def _weights_in(state: PartyState, window: Window, data: PartyData) -> Floats | None:
    """Give what the selected rows of a window count, or None where all count 1."""
    rows, row_weights = state.selection(), data.table.row_weights
    if isinstance(rows, CountedRows):
        return rows.weights_in(window)
    return None if row_weights is None else row_weights[rows[window.places]]


def _check_digits(taken: Arrived[Taken], ours: KeptPart, data: PartyData) -> None:
    """Require that what masks' steps took off is little beside predictions, or distances to all centres."""
    error = rounded_by(ours.request.magnitude, len(own_identity(data).parties))
    n_numbers = max(sum(each.n_numbers for each in taken.parts), 1)
    mean = sum(each.absolute for each in taken.parts) / n_numbers
    if error > max(LARGEST_ERROR * mean, NO_ERROR):
        raise too_few_digits(error, own_identity(data).parties)


def check_told(state: PartyState, data: PartyData, what: str, n_numbers: int, *, by_weight: bool) -> PartyState:
    """Require that sums over the selected rows, of one number a row, hide them; remember that they were told."""
    rows = state.selection()
    if isinstance(rows, CountedRows) and (by_weight or rows.row_weights is None):
        group: Group = rows
    else:
        group = state.selected(), weights_of(state, data, by_weight=by_weight)
    if (effective := effective_rows(group)) < FEWEST_ROWS:
        raise InputError(
            f"sums over rows that count as {effective:.3g} tell single ones. Evaluate {FEWEST_ROWS} rows or more."
        )
    if data.policy.least_rows == 1:
        return state
    return check_sums(state, data, what, [group], 1, n_numbers, FEWEST_ROWS, of_each=n_numbers)


def own_identity(data: PartyData) -> Identity:
    """Give the party's identity, without which it masks nothing."""
    return identity_of(data, "let the server predict and evaluate")


HANDLERS = (
    Handler(BringMasked, _answer_brought, after=frozenset({SHARED}), then=SHARED),
    Handler(DeliverMasked, _answer_delivery, after=frozenset({SHARED}), then=SHARED),
    Handler(AskLosses, _answer_losses, after=frozenset({SHARED}), then=SHARED),
)
