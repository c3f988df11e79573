"""A classification applied through the parties: the label party compares chances with labels, and tells sums."""

from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster, Rounding, Script
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringMaskedClasses,
    ClassLosses,
    DeliverClasses,
    DeliverMaskedClasses,
    MaskedClassLosses,
    class_losses_digest,
    told_of,
)
from colonnade.evaluation.linear import n_models, partial_sums
from colonnade.evaluation.masked.ring import LARGEST_ERROR, rounded_by, too_few_digits
from colonnade.evaluation.masked.server import (
    AppliedModel,
    MaskedParts,
    common_magnitude,
    hand_over,
    masked_parts,
)
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_metrics import MOST_LINES, ClassMetrics
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.selections import Selection
from colonnade.messages import sendable_floats
from colonnade.privacy.pair_keys import LostKey, compare, until_kept
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks
from colonnade.protocol.classes import ClassName


@dataclass(frozen=True, eq=False)
class AppliedClasses:
    """What of a classification is applied: coefficients, (d,) of two classes or (K, d), intercepts, and classes."""

    coef: Floats
    intercepts: Floats
    classes: tuple[ClassName, ...]

    def masked(self, to: str, *, by_weight: bool = False) -> AppliedModel:
        """Give what parties apply of it for this one."""
        return AppliedModel(self.coef, None, None, 0.0, to, evaluating=False, by_weight=by_weight)

    @property
    def named(self) -> tuple[Floats, Floats, tuple[str, ...] | None]:
        """Intercepts and classes, as they travel."""
        return (sendable_floats(self.intercepts), *sent_classes(self.classes))


@dataclass(frozen=True, eq=False)
class Compared:
    """What the label party told; no logit that it rests on is off by more than `bound`."""

    metrics: ClassMetrics
    bound: float


def sent_classes(classes: tuple[ClassName, ...]) -> tuple[Floats, tuple[str, ...] | None]:
    """Write classes as they travel: numbers, or their places and names."""
    if any(isinstance(each, str) for each in classes):
        return sendable_floats(np.arange(len(classes))), tuple(map(str, classes))
    return sendable_floats(classes), None


def deliver_classes(party: str, selected: Selection, found: ClassPredictions) -> Script[None]:
    """Give a party chances of classes of the rows it knows to be selected."""
    for piece in selected.pieces(len(found.names)):
        chances, ends = sendable_floats(found.probabilities[piece.chosen]), (piece.window.first, piece.window.stop)
        yield {party: DeliverClasses(chances, *sent_classes(found.names), *ends)}


def class_losses(
    roster: Roster, selected: Selection, model: AppliedClasses, rounding: Rounding | None, *, by_weight: bool
) -> Script[Compared]:
    """Bring the label party the others' parts of logits of the selected rows, in sum; it tells sums of losses."""
    label_party, bound = roster.label_party or "", 0.0
    others = [party for party in roster.names if party != label_party]
    own = sendable_floats(model.coef[..., roster.parts[label_party]])
    for piece in selected.pieces(n_models(model.coef)):
        parts = yield from partial_sums(roster, others, piece, model.coef, rounding)
        brought, ends = sendable_floats(parts.values), (piece.window.first, piece.window.stop)
        bound = max(bound, parts.bound)
        inbox = yield {label_party: AskClassLosses(own, brought, *model.named, by_weight, *ends)}
        reply = checks.replies(inbox, ClassLosses)[label_party]
        if piece.window.stop < selected.n_places and any(map(len, told_of(reply))):
            raise checks.wrong(label_party, reply, "sums before the last window")
    weight = selected.weight if by_weight else float(len(selected))
    return Compared(read_losses(label_party, reply, len(selected), weight, model, by_weight=by_weight), bound)


def deliver_masked_classes(roster: Roster, selected: Selection, model: AppliedClasses, to: str) -> Script[None]:
    """Let one party learn chances of classes of the selected rows, and nobody else."""
    applied = model.masked(to)
    magnitude, _ = yield from _exact_enough(roster, applied)
    yield from until_kept(lambda: _attempt_delivery(roster, selected, model, applied, magnitude))


def _attempt_delivery(
    roster: Roster, selected: Selection, model: AppliedClasses, applied: AppliedModel, magnitude: int
) -> Script[LostKey | None]:
    parts = yield from masked_parts(roster, selected, applied, magnitude)
    if isinstance(parts, LostKey):
        return parts
    delivery = DeliverMaskedClasses(parts.of_others(applied.to), *model.named, *parts.ends)
    return (yield from hand_over(roster, parts, delivery, delivery.fingerprint(), applied.to))


def masked_class_losses(
    roster: Roster, selected: Selection, model: AppliedClasses, by: str, *, by_weight: bool
) -> Script[Compared]:
    """Let the label party learn logits under masks, compare them with labels, and tell sums."""
    applied = model.masked(by, by_weight=by_weight)
    magnitude, error = yield from _exact_enough(roster, applied)
    metrics = yield from until_kept(lambda: _attempt_losses(roster, selected, model, applied, magnitude))
    return Compared(metrics, error)


def _attempt_losses(
    roster: Roster, selected: Selection, model: AppliedClasses, applied: AppliedModel, magnitude: int
) -> Script[ClassMetrics | LostKey]:
    def bring(parts: MaskedParts) -> tuple[BringMaskedClasses, bytes]:
        brought = BringMaskedClasses(parts.of_others(applied.to), *model.named, *parts.ends)
        return brought, brought.fingerprint()

    parts = yield from masked_parts(roster, selected, applied, magnitude, bring)
    if isinstance(parts, LostKey):
        return parts
    question = AskMaskedClassLosses(parts.of_others(applied.to), *model.named, *parts.ends)
    inbox = yield {applied.to: question}
    reply = checks.replies(inbox, MaskedClassLosses)[applied.to]
    if not len(reply.sums):
        return LostKey(applied.to)
    weight = selected.weight if applied.by_weight else float(len(selected))
    found = read_losses(applied.to, reply, len(selected), weight, model, by_weight=applied.by_weight)
    sent = class_losses_digest(parts.signed[applied.to].other, question, *told_of(reply))
    signed = {**parts.digests, applied.to: SignedDigest(sent, reply.signature)}
    yield from compare(roster, parts.transcript, signed)
    return found


def _exact_enough(roster: Roster, applied: AppliedModel) -> Script[tuple[int, float]]:
    """Find the common magnitude of logits' parts, and how far masks put a logit off: by little."""
    magnitude = yield from common_magnitude(roster, applied)
    error = rounded_by(magnitude, len(roster.cards))
    if error > LARGEST_ERROR:
        raise too_few_digits(error, roster.names)
    return magnitude, error


def read_losses(
    party: str,
    reply: ClassLosses | MaskedClassLosses,
    n_rows: int,
    weight: float,
    model: AppliedClasses,
    *,
    by_weight: bool,
) -> ClassMetrics:
    """Require sums that so many rows of this weight can have."""
    n = len(model.classes)
    n_areas = 1 if n == 2 else n + 1
    checks.shape(party, reply, reply.sums, (3,))
    checks.shape(party, reply, reply.confusion, (n, n))
    checks.shape(party, reply, reply.areas, (n_areas, 2))
    checks.shape(party, reply, reply.calibration, (len(reply.calibration), 3))
    for numbers in (reply.sums, reply.confusion, reply.areas, reply.calibration):
        checks.non_negative(party, reply, numbers)
    cost, deviation, brier = reply.sums.tolist()
    slack = 1 + checks.SLACK
    if abs(float(reply.confusion.sum()) - weight) > checks.SLACK * weight:
        raise checks.wrong(party, reply, f"a table of classes that does not add up to {weight:g} rows")
    if brier > (1 if n == 2 else 2) * weight * slack:
        raise checks.wrong(party, reply, f"squares of {weight:g} errors that add up to {brier:g}")
    if reply.areas[:, 0].max() > slack or reply.areas[:, 1].max() > slack / 4:
        raise checks.wrong(party, reply, "an area above 1, or one that varies by more than 1/4")
    if deviation > (0.0 if by_weight else cost / np.sqrt(n_rows) * slack):
        raise checks.wrong(party, reply, f"losses that vary by {deviation:g} and add up to {cost:g}")
    _check_calibration(party, reply, weight)
    return ClassMetrics(cost, deviation, brier, reply.confusion, reply.areas, reply.calibration)


def _check_calibration(party: str, reply: ClassLosses | MaskedClassLosses, weight: float) -> None:
    """Require rows that are all there, or none, and shares of them that came true as often as the classes say."""
    rows, *shares = reply.calibration.T
    if not len(rows):
        return
    confusion = reply.confusion
    came = float(confusion[1].sum() if len(confusion) == 2 else np.trace(confusion))
    is_off = abs(float(rows.sum()) - weight) > checks.SLACK * weight
    if is_off or len(rows) > MOST_LINES or np.max(shares) > 1 + checks.SLACK or not rows.min() > 0:
        raise checks.wrong(party, reply, f"a calibration table that is not of {weight:g} rows, or of too many lines")
    if abs(float(rows @ shares[1]) - came) > checks.SLACK * weight:
        raise checks.wrong(party, reply, "a calibration table of other labels than its table of classes")
