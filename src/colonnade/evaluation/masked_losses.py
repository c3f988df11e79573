"""An evaluation by one party: it learns the rows' residuals or distances and sums them up; the server learns the sums.

The others' masked parts are passed on to it, signed, as they are for predictions that only one party learns.
"""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.evaluation.masked import (
    Applied,
    PassedOn,
    common_magnitude,
    masked_parts,
    rounded_by,
    too_few_digits,
)
from colonnade.evaluation.reports import Losses
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import Lost, compare, until_kept
from colonnade.privacy.pairwise import Seal
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks

# Residuals may be off by so much of the label's standard deviation.
LARGEST_ERROR = 1e-3


class SummedLosses(Message, frozen=True):
    """The cost, the absolute residuals' sum and, of drawn rows, the losses' deviation; sizes of clusters, if any.

    Nothing where the party lost its own part. The server chose the model: costs are second moments of its columns.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    sums: Annotated[Floats, Reveals.MOMENTS]
    sizes: Annotated[Rows, Reveals.TOTALS]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskLosses(PassedOn, frozen=True):
    """The others' masked parts, by name, and the intercept. Learn the sum, residuals or distances, and add them up."""

    reply: ClassVar[type[Message]] = SummedLosses


def masked_losses(roster: Roster, rows: Rows, weights: Floats, model: Applied) -> Script[tuple[Losses, float, float]]:
    """Let one party evaluate a model on the selected rows.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    rows : ndarray of int64, shape (m,)
        These.
    weights : ndarray of float64, shape (m,)
        What they count: as they do to the parties, or all the same.
    model : Applied
        What is evaluated, and by whom.

    Returns
    -------
    losses : Losses
        As the party sums them up.
    label_spread : float
        sum_i w_i (y_i - mean y)^2, with w_i = 1 where all rows count the same; 0 of centres.
    error : float
        No residual, or squared distance, is off by more.
    """
    magnitude = yield from common_magnitude(roster, model)
    error = rounded_by(magnitude, len(roster.cards))
    losses, spread = yield from until_kept(lambda: _attempt(roster, rows, weights, model, magnitude))
    deviation = np.sqrt(spread / (losses.weight if model.by_weight else losses.n_rows))
    if 0 < LARGEST_ERROR * deviation < error:
        raise too_few_digits(error)
    return losses, spread, error


def _attempt(
    roster: Roster, rows: Rows, weights: Floats, model: Applied, magnitude: int
) -> Script[tuple[Losses, float] | Lost]:
    parts = yield from masked_parts(roster, rows, model, magnitude)
    if isinstance(parts, Lost):
        return parts
    question = AskLosses(parts.of_others(model.to), model.intercept)
    inbox = yield {model.to: question}
    reply = checks.replies(inbox, SummedLosses)[model.to]
    if not len(reply.sums):
        return Lost(model.to)
    losses = _read(model, reply, weights)
    sealed = losses_digest(parts.sealed[model.to].other, question, reply.sums, reply.sizes)
    yield from compare(roster, parts.transcript, {**parts.seals, model.to: Seal(sealed, reply.signature)})
    return losses, parts.label_spread


def _read(model: Applied, reply: SummedLosses, weights: Floats) -> Losses:
    party, m, weight = model.to, len(weights), float(weights.sum())
    checks.shape(party, reply, reply.sums, (3,))
    checks.non_negative(party, reply, reply.sums)
    checks.shape(party, reply, reply.sizes, (model.n_centers,))
    if model.n_centers and (reply.sizes.min() < 0 or reply.sizes.sum() != m):
        raise checks.wrong(party, reply, f"sizes of clusters that do not add up to {m} rows")
    cost, absolute, deviation = reply.sums.tolist()
    factor = 1.0 if model.by_weight else weight / m
    return Losses(m, weight, factor * cost, deviation, factor * absolute, tuple(reply.sizes.tolist()))


def losses_digest(other: bytes, question: AskLosses, sums: Floats, sizes: Rows) -> bytes:
    """Hash which model the party applied, what it was sent, and what it made of it."""
    return digest(other, question.fingerprint(), sums.astype("<f8").tobytes(), sizes.astype("<i8").tobytes())
