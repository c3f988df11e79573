"""Parts of predictions and distances in a fixed number of bits, right on average and off by half a step at most.

A party's step is about the range of its own parts over 2^bits: with 16 bits a prediction is off by less than a 65,000th
of that range for each party. Precision is lost: nothing uses it unasked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Inbox, Rounding
from colonnade.kernels.arrays import Floats
from colonnade.kernels.fixed_codes import FEWEST_BITS, MOST_BITS, decode_fixed, encode_fixed
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks


class RoundedParts(Message, frozen=True):
    """For each selected row of a window the party's part of the prediction, or of the distances to the centres, coded.

    Codes are of the differences from the middle of each column's range.
    """

    phase: ClassVar[str] = "predicting"

    size: Annotated[int, Reveals.NOTHING]
    middles: Annotated[Floats, Reveals.FEATURES]
    codes: Annotated[bytes, Reveals.FEATURES]
    label_spread: Annotated[float | None, Reveals.LABELS]

    def units(self) -> int:
        """Count a number a part, and the label's spread, as where nothing is rounded."""
        return self.size * len(self.middles) + (self.label_spread is not None)

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


@dataclass(frozen=True, eq=False)
class SummedParts:
    """Parts summed over the parties, shape (m,) or (m, k), and what rounding did to each sum.

    Its error has mean 0 and this variance, and none is larger than the bound. The label's spread is 0 where none was
    due. What the label party sent, and its numbers, are there where nothing was rounded.
    """

    values: Floats
    variance: float = 0.0
    bound: float = 0.0
    label_spread: float = 0.0
    from_label_party: tuple[Message, Floats] | None = None


def added(parts: Sequence[Floats]) -> Floats:
    """Add arrays of one shape up, in their order; there is one at least."""
    total = parts[0] + parts[1] if len(parts) > 1 else parts[0].copy()
    for part in parts[2:]:
        total += part
    return total


def _dither(seed: int, first: int) -> np.random.Generator:
    """Give the generator of a party's dither in the window that begins there: each has its own."""
    return np.random.default_rng([seed, first] if first else seed)


def round_parts(
    request: Message, bits: int, seed: int, first: int, values: Floats, label_spread: float | None
) -> RoundedParts:
    """Write a party's parts (m, k) of the window that begins there: middles and step are those of its rows."""
    checks.seed(request, seed)
    if not FEWEST_BITS <= bits <= MOST_BITS:
        raise checks.wrong(SERVER, request, f"{bits} bits, outside {FEWEST_BITS} to {MOST_BITS}")
    middles = (values.min(axis=0) + values.max(axis=0)) / 2 if len(values) else np.zeros(values.shape[1])
    codes = encode_fixed((values - middles).ravel(), bits, _dither(seed, first))
    return RoundedParts(len(values), sendable_floats(middles), codes, label_spread)


@dataclass(frozen=True, eq=False)
class RestoredPart:
    """A party's part, shape (m, k); each number is off by half a step at most."""

    values: Floats
    step: float


def read_parts(inbox: Inbox, shape: tuple[int, int], rounding: Rounding, first: int) -> dict[str, RestoredPart]:
    """Check and restore the parties' parts, of shape (m, k), of the window that begins there."""
    replies = checks.replies(inbox, RoundedParts)
    return {party: _read(party, reply, shape, rounding, first) for party, reply in replies.items()}


def sum_parts(parts: Mapping[str, RestoredPart]) -> SummedParts:
    """Add up the parties' parts."""
    steps = [part.step for part in parts.values()]
    values = added([part.values for part in parts.values()])
    return SummedParts(values, float(np.square(steps).sum() / 12), float(np.sum(steps) / 2))


def _read(party: str, reply: RoundedParts, shape: tuple[int, int], rounding: Rounding, first: int) -> RestoredPart:
    size, n_columns = shape
    if reply.size != size:
        raise checks.wrong(party, reply, f"parts of {reply.size} rows where {size} were asked for")
    checks.shape(party, reply, reply.middles, (n_columns,))
    checks.in_range(party, reply, reply.middles)
    rng = _dither(rounding.seeds[party], first)
    try:
        values, step = decode_fixed(reply.codes, size * n_columns, rounding.bits, rng)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    restored: Floats = values.reshape(shape) + reply.middles
    checks.in_range(party, reply, restored)
    return RestoredPart(restored, step)
