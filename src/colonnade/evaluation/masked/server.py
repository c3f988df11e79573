"""A model applied so that only one party learns what comes of it: the server adds up the others' parts under masks.

Every party masks its part so that all masks cancel in the sum of all. The one that is to learn the sum keeps its own
masked part; without it, what the server holds is uniform.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import ModelPart, Roster, Script
from colonnade.evaluation.linear import read_spread
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    BringMasked,
    DeliverMasked,
    Magnitude,
    MaskedPredictions,
    MaskedReceived,
    SignedPart,
    SummedLosses,
    losses_digest,
    other_digest,
    question_digest,
    transcript_of_parts,
)
from colonnade.evaluation.masked.ring import LARGEST_ERROR, WIDTH, rounded_by, too_few_digits
from colonnade.evaluation.reports import Losses
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import MAX_EXPONENT
from colonnade.kernels.selections import CountedRows, Piece, Selection, Window
from colonnade.messages import Message, sendable_floats
from colonnade.privacy.pair_keys import LostKey, RelayedKeys, compare, exchange_keys, until_kept
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks


@dataclass(frozen=True, eq=False)
class AppliedModel:
    """A linear model, or centres; one of the two; and for whom it is applied, and what for.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,), or None
        Of a linear model; (k, n_features) for k classes.
    centers : ndarray of float64, shape (k, n_features), or None
        Of a clustering.
    scale : ndarray of float64, shape (n_features,), or None
        The units distances are measured in.
    to : str
        The party that learns what comes of it.
    evaluating, by_weight : bool
        Whether that party evaluates the model; whether rows then count by their weights.
    """

    coef: Floats | None
    centers: Floats | None
    scale: Floats | None
    intercept: float
    to: str
    evaluating: bool = False
    by_weight: bool = False

    @property
    def n_centers(self) -> int:
        """How many centres, 0 of a linear model."""
        return 0 if self.centers is None else len(self.centers)

    @property
    def n_numbers(self) -> int:
        """How many numbers a row's part has."""
        return self.n_centers or (1 if self.coef is None or self.coef.ndim == 1 else len(self.coef))

    def part(self, columns: slice) -> ModelPart:
        """Give a party's part."""
        return (
            None if self.coef is None else sendable_floats(self.coef[..., columns]),
            None if self.centers is None else sendable_floats(self.centers[:, columns]),
            None if self.scale is None else sendable_floats(self.scale[columns]),
        )


@dataclass(frozen=True, eq=False)
class MaskedParts:
    """All parties' signed parts of a window; with that of the one that learns their sum, which it keeps, masks cancel.

    `label_spread` is that of all rows.
    """

    signed: dict[str, SignedPart]
    label_spread: float
    transcript: bytes
    window: Window

    def of_others(self, to: str) -> tuple[SignedPart, ...]:
        """Give what the one that learns the sum lacks, in the order of the names."""
        return tuple(part for party, part in sorted(self.signed.items()) if party != to)

    @property
    def ends(self) -> tuple[int, int]:
        """Where the window begins and ends."""
        return self.window.first, self.window.stop

    @property
    def digests(self) -> dict[str, SignedDigest]:
        """What every party signed."""
        return {party: part.signed_digest for party, part in self.signed.items()}


# The message that brings a window's parts, and its fingerprint.
Bring = Callable[[MaskedParts], tuple[Message, bytes]]


def common_magnitude(roster: Roster, model: AppliedModel) -> Script[int]:
    """Find the smallest e such that no number of any party's part exceeds 2^e."""
    inbox = yield {party: AskMagnitude(*model.part(part), model.evaluating) for party, part in roster.parts.items()}
    told = checks.replies(inbox, Magnitude)
    for party, reply in told.items():
        if abs(reply.exponent) > MAX_EXPONENT:
            raise checks.wrong(party, reply, f"a magnitude of 2^{reply.exponent}")
    return max(reply.exponent for reply in told.values())


def masked_parts(
    roster: Roster, selected: Selection, model: AppliedModel, magnitude: int, bring: Bring | None = None
) -> Script[MaskedParts | LostKey]:
    """Ask for masked parts of the selected rows, none above 2^magnitude; who is to learn their sum keeps its own.

    That one is brought all windows but the last, whose parts are given; by such messages, if not by the usual ones.
    """
    keys = yield from exchange_keys(roster, selected if isinstance(selected, CountedRows) else selected.rows)
    parts: MaskedParts | None = None
    for piece in selected.pieces(model.n_numbers):
        if parts is not None:
            brought = _brought(model, parts) if bring is None else bring(parts)
            if (lost := (yield from _bring(*brought, model.to))) is not None:
                return lost
        found = yield from _window_parts(roster, selected, piece, model, magnitude, keys, parts)
        if isinstance(found, LostKey):
            return found
        parts = found
    return found


def _brought(model: AppliedModel, parts: MaskedParts) -> tuple[BringMasked, bytes]:
    brought = BringMasked(parts.of_others(model.to), model.intercept, *parts.ends)
    return brought, brought.fingerprint()


def _window_parts(
    roster: Roster,
    selected: Selection,
    piece: Piece,
    model: AppliedModel,
    magnitude: int,
    keys: RelayedKeys,
    before: MaskedParts | None,
) -> Script[MaskedParts | LostKey]:
    """Ask for masked parts of one window."""
    flags, window = (model.evaluating, model.by_weight), piece.window
    inbox = yield {
        party: AskMaskedPredictions(
            *model.part(part),
            *flags,
            magnitude,
            model.to,
            keys.to(party) if before is None else None,
            window.first,
            window.stop,
        )
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, MaskedPredictions)
    for party, reply in replies.items():
        if reply.masked is None:
            return LostKey(party)
    question = question_digest(model.to, magnitude, len(selected) * model.n_numbers, *flags)
    told = b"" if before is None else before.transcript
    transcript = transcript_of_parts(keys.parties, keys.keys, keys.view, magnitude, question, told, window)
    spreads = {party: reply.label_spread for party, reply in replies.items()}
    signed = {}
    for party, part in roster.parts.items():
        due = 0 if party == model.to else len(piece) * model.n_numbers
        other = other_digest(model.part(part), spreads[party]) if before is None else before.signed[party].other
        signed[party] = _read_part(party, replies[party], due, transcript, other)
    # It comes once, with the first window.
    label_party = roster.label_party if model.evaluating and model.coef is not None and before is None else None
    spread = read_spread(replies, spreads, label_party)
    return MaskedParts(signed, spread if before is None else before.label_spread, transcript, window)


def _read_part(party: str, reply: MaskedPredictions, count: int, transcript: bytes, other: bytes) -> SignedPart:
    masked = reply.masked or b""
    if len(masked) != count * WIDTH:
        raise checks.wrong(party, reply, f"{len(masked)} bytes where {count} x {WIDTH} are due")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return SignedPart(masked, other, reply.signature)


def deliver_masked(roster: Roster, selected: Selection, model: AppliedModel) -> Script[None]:
    """Let one party learn predictions of the selected rows, shape (m,), and nobody else."""
    magnitude = yield from common_magnitude(roster, model)
    yield from until_kept(lambda: _attempt_delivery(roster, selected, model, magnitude))


def _attempt_delivery(
    roster: Roster, selected: Selection, model: AppliedModel, magnitude: int
) -> Script[LostKey | None]:
    parts = yield from masked_parts(roster, selected, model, magnitude)
    if isinstance(parts, LostKey):
        return parts
    delivery = DeliverMasked(parts.of_others(model.to), model.intercept, *parts.ends)
    return (yield from hand_over(roster, parts, delivery, delivery.fingerprint(), model.to))


def hand_over(
    roster: Roster, parts: MaskedParts, delivery: Message, fingerprint: bytes, to: str
) -> Script[LostKey | None]:
    """Give a party the others' masked parts, in a message of this fingerprint, and let all compare what was signed."""
    if (lost := (yield from _bring(delivery, fingerprint, to))) is not None:
        return lost
    yield from compare(roster, parts.transcript, parts.digests)
    return None


def _bring(brought: Message, fingerprint: bytes, to: str) -> Script[LostKey | None]:
    inbox = yield {to: brought}
    received = checks.replies(inbox, MaskedReceived)[to]
    if not received.digest:
        return LostKey(to)
    if received.digest != fingerprint:
        raise checks.wrong(to, received, "a digest of something else than it was sent")
    return None


def masked_losses(roster: Roster, selected: Selection, model: AppliedModel) -> Script[tuple[Losses, float, float]]:
    """Let one party evaluate a model on the selected rows, and sum up losses.

    Rows count as they do to the parties, or all the same. Gives the losses; the label's spread, sum_i w_i (y_i - mean
    y)^2, with w_i = 1 where all rows count the same, and 0 of centres; and a bound of how far any residual, or squared
    distance, is off.
    """
    magnitude = yield from common_magnitude(roster, model)
    error = rounded_by(magnitude, len(roster.cards))
    losses, spread = yield from until_kept(lambda: _attempt_losses(roster, selected, model, magnitude))
    deviation = np.sqrt(spread / (losses.weight if model.by_weight else losses.n_rows))
    if 0 < LARGEST_ERROR * deviation < error:
        raise too_few_digits(error, roster.names)
    return losses, spread, error


def _attempt_losses(
    roster: Roster, selected: Selection, model: AppliedModel, magnitude: int
) -> Script[tuple[Losses, float] | LostKey]:
    parts = yield from masked_parts(roster, selected, model, magnitude)
    if isinstance(parts, LostKey):
        return parts
    question = AskLosses(parts.of_others(model.to), model.intercept, *parts.ends)
    inbox = yield {model.to: question}
    reply = checks.replies(inbox, SummedLosses)[model.to]
    if not len(reply.sums):
        return LostKey(model.to)
    losses = _read_losses(model, reply, selected)
    sent = losses_digest(parts.signed[model.to].other, question, reply.sums, reply.sizes)
    yield from compare(roster, parts.transcript, {**parts.digests, model.to: SignedDigest(sent, reply.signature)})
    return losses, parts.label_spread


def _read_losses(model: AppliedModel, reply: SummedLosses, selected: Selection) -> Losses:
    party, m, weight = model.to, len(selected), selected.weight
    checks.shape(party, reply, reply.sums, (3,))
    checks.non_negative(party, reply, reply.sums)
    checks.shape(party, reply, reply.sizes, (model.n_centers,))
    if model.n_centers and (reply.sizes.min() < 0 or reply.sizes.sum() != m):
        raise checks.wrong(party, reply, f"sizes of clusters that do not add up to {m} rows")
    cost, absolute, deviation = reply.sums.tolist()
    # Mean and root mean square of residuals bound each other; a sum of losses bounds how much they vary.
    least, most = (selected.least_weight * cost, weight * cost) if model.by_weight else (cost, m * cost)
    if model.n_centers:
        least = most = 0.0
    if not least * (1 - checks.SLACK) <= absolute**2 <= most * (1 + checks.SLACK):
        raise checks.wrong(party, reply, f"a sum {absolute:g} of residuals whose squares add up to {cost:g}")
    if deviation > (0.0 if model.by_weight else cost / np.sqrt(m) * (1 + checks.SLACK)):
        raise checks.wrong(party, reply, f"losses that vary by {deviation:g} and add up to {cost:g}")
    factor = 1.0 if model.by_weight else weight / m
    return Losses(m, weight, factor * cost, deviation, factor * absolute, tuple(reply.sizes.tolist()))
