"""Predictions that only one party learns: the others' masked parts are passed on to it, signed, and it adds them up."""

from typing import Annotated, ClassVar

from colonnade.contracts import Roster, Script
from colonnade.evaluation.masked import Applied, PassedOn, common_magnitude, masked_parts
from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import Lost, compare, until_kept
from colonnade.protocol import checks


class MaskedReceived(Message, frozen=True):
    """The party has them; a digest of what it got, empty where it lost its own part."""

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    digest: Annotated[bytes, Reveals.NOTHING]


class DeliverMasked(PassedOn, frozen=True):
    """The others' masked parts, by name, and the intercept. Learn the sum: these are predictions."""

    reply: ClassVar[type[Message]] = MaskedReceived


def deliver_masked(roster: Roster, rows: Rows, model: Applied) -> Script[None]:
    """Let one party learn predictions of the selected rows, and nobody else.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    rows : ndarray of int64, shape (m,)
        These.
    model : Applied
        What predicts, and for whom.
    """
    magnitude = yield from common_magnitude(roster, model)
    yield from until_kept(lambda: _attempt(roster, rows, model, magnitude))


def _attempt(roster: Roster, rows: Rows, model: Applied, magnitude: int) -> Script[Lost | None]:
    parts = yield from masked_parts(roster, rows, model, magnitude)
    if isinstance(parts, Lost):
        return parts
    delivery = DeliverMasked(parts.of_others(model.to), model.intercept)
    inbox = yield {model.to: delivery}
    for party, received in checks.replies(inbox, MaskedReceived).items():
        if not received.digest:
            return Lost(party)
        if received.digest != delivery.fingerprint():
            raise checks.wrong(party, received, "a digest of something else than it was sent")
    yield from compare(roster, parts.transcript, parts.seals)
    return None
