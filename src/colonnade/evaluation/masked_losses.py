"""An evaluation by one party: it learns the rows' residuals or distances and sums them up; the server learns the sums.

The others' parts reach it in sum, under masks, as predictions do that only one party learns.
"""

from typing import Annotated, ClassVar

from colonnade.contracts import Roster, Script
from colonnade.evaluation.masked import WIDTH, Applied, common_magnitude, masked_sum
from colonnade.evaluation.reports import Losses
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import Lost, compare, until_kept
from colonnade.privacy.pairwise import Seal
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks


class SummedLosses(Message, frozen=True):
    """The weight of all rows, their cost, the losses' deviation and the absolute residuals' sum; sizes of clusters.

    Nothing where the party lost its own part.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    sums: Annotated[Floats, Reveals.TOTALS]
    sizes: Annotated[Rows, Reveals.TOTALS]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskLosses(Message, frozen=True):
    """The sum of the others' masked parts, for the party that holds the last one; and the intercept."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = SummedLosses

    total: Annotated[bytes, Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]
    magnitude: Annotated[int, Reveals.NOTHING]
    n_centers: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return len(self.total) // WIDTH + 1


def masked_losses(roster: Roster, rows: Rows, model: Applied) -> Script[tuple[Losses, float]]:
    """Let one party evaluate a model on the selected rows.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    rows : ndarray of int64, shape (m,)
        These.
    model : Applied
        What is evaluated, and by whom.

    Returns
    -------
    losses : Losses
        As the party sums them up; rows weigh what they weigh to it.
    label_spread : float
        sum_i w_i (y_i - mean y)^2, 0 of centres.
    """
    magnitude = yield from common_magnitude(roster, model)
    return (yield from until_kept(lambda: _attempt(roster, rows, model, magnitude)))


def _attempt(roster: Roster, rows: Rows, model: Applied, magnitude: int) -> Script[tuple[Losses, float] | Lost]:
    masked = yield from masked_sum(roster, rows, model, magnitude)
    if isinstance(masked, Lost):
        return masked
    inbox = yield {model.to: AskLosses(masked.total, model.intercept, magnitude, model.n_centers)}
    reply = checks.replies(inbox, SummedLosses)[model.to]
    if not len(reply.sums):
        return Lost(model.to)
    losses = _read(model.to, reply, len(rows), model.n_centers)
    sealed = losses_digest(masked.seals[model.to].digest, masked.total, reply.sums, reply.sizes)
    yield from compare(roster, masked.transcript, {**masked.seals, model.to: Seal(sealed, reply.signature)})
    return losses, masked.label_spread


def _read(party: str, reply: SummedLosses, n_rows: int, n_centers: int) -> Losses:
    checks.shape(party, reply, reply.sums, (4,))
    checks.non_negative(party, reply, reply.sums)
    checks.shape(party, reply, reply.sizes, (n_centers,))
    if n_centers and (reply.sizes.min() < 0 or reply.sizes.sum() != n_rows):
        raise checks.wrong(party, reply, f"sizes of clusters that do not add up to {n_rows} rows")
    weight, cost, deviation, absolute = reply.sums.tolist()
    return Losses(n_rows, weight, cost, deviation, absolute, tuple(reply.sizes.tolist()))


def losses_digest(sealed: bytes, total: bytes, sums: Floats, sizes: Rows) -> bytes:
    """Hash what the party sent before, what it was sent, and what it made of it."""
    return digest(sealed, total, sums.astype("<f8").tobytes(), sizes.astype("<i8").tobytes())
