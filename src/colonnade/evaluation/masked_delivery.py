"""Predictions that only one party learns: the others' masked parts are passed on to it, signed, and it adds them up."""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.evaluation.masked import WIDTH, Applied, SealedPart, common_magnitude, masked_parts
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
    """The others' masked parts, in the order of their names, for the party that holds the last one; the intercept."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedReceived

    parts: Annotated[tuple[SealedPart, ...], Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return sum(len(part.masked) for part in self.parts) // WIDTH + 1


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
    others = parts.of_others(model.to)
    inbox = yield {model.to: DeliverMasked(others, model.intercept)}
    for party, received in checks.replies(inbox, MaskedReceived).items():
        if not received.digest:
            return Lost(party)
        if received.digest != received_digest(others, model.intercept):
            raise checks.wrong(party, received, "a digest of something else than it was sent")
    yield from compare(roster, parts.transcript, parts.seals)
    return None


def received_digest(parts: tuple[SealedPart, ...], intercept: float) -> bytes:
    """Hash what the party that learns the sum is sent."""
    return digest(np.array(intercept, "<f8").tobytes(), *(part.seal.digest for part in parts))
