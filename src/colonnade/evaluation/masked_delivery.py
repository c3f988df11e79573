"""Predictions that only one party learns: the others' parts reach it in sum, and the server sees them under masks."""

from typing import Annotated, ClassVar

from colonnade.contracts import Roster, Script
from colonnade.evaluation.masked import WIDTH, Applied, common_magnitude, masked_sum
from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import Lost, compare, until_kept
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks


class MaskedReceived(Message, frozen=True):
    """The party has them; a digest of what it got, empty where it lost its own part."""

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    digest: Annotated[bytes, Reveals.NOTHING]


class DeliverMasked(Message, frozen=True):
    """The sum of the others' masked parts, for the party that holds the last one; and the intercept."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedReceived

    total: Annotated[bytes, Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]
    magnitude: Annotated[int, Reveals.NOTHING]
    n_centers: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return len(self.total) // WIDTH + 1


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
    masked = yield from masked_sum(roster, rows, model, magnitude)
    if isinstance(masked, Lost):
        return masked
    inbox = yield {model.to: DeliverMasked(masked.total, model.intercept, magnitude, model.n_centers)}
    for party, received in checks.replies(inbox, MaskedReceived).items():
        if not received.digest:
            return Lost(party)
        if received.digest != digest(masked.total):
            raise checks.wrong(party, received, "a digest of another sum than it was sent")
    yield from compare(roster, masked.transcript, masked.seals)
    return None
