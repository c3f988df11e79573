"""Saga with few bits a number: what travels is how numbers differ from what the other end has, rounded.

Both ends go on from the rounded value, so that the next difference holds what rounding left out: errors are fed back
and never add up. A difference is off by less than the block's largest over 2^(bits - 1) - 2, and differences vanish as
coefficients settle.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Script
from colonnade.kernels.arrays import Floats
from colonnade.kernels.fixed_codes import decode_fixed, encode_fixed
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.solvers.saga.messages import Progress
from colonnade.solvers.saga.table import ResidualTable

Play = Callable[[tuple[str, ...], list[int], ResidualTable, float | None], Script[Message]]


class CodedProducts(Message, frozen=True):
    """As `PartialProducts`, but how they differ from what the server has of these rows, coded."""

    phase: ClassVar[str] = "solving"
    steered: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES,)

    size: Annotated[int, Reveals.NOTHING]
    products: Annotated[bytes | None, Reveals.PREDICTIONS]
    less_label: Annotated[bytes | None, Reveals.LABELS]

    def units(self) -> int:
        """Count a number a row of the block."""
        return self.size


class CodedStep(Message, frozen=True):
    """As `SagaStep`, with the changes, and the products that answer it, of so many bits."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = CodedProducts

    size: Annotated[int, Reveals.NOTHING]
    changes: Annotated[bytes, Reveals.LABELS]
    bits: Annotated[int, Reveals.NOTHING]
    block: Annotated[int, Reveals.ROW_IDS]
    step_size: Annotated[float | None, Reveals.TOTALS]

    def units(self) -> int:
        """Count a change a row, the block, and the step size where it is there."""
        return self.size + 1 + (self.step_size is not None)


class AskCodedProgress(Message, frozen=True):
    """Ends an epoch: the last block's changes, coded."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Progress

    size: Annotated[int, Reveals.NOTHING]
    changes: Annotated[bytes, Reveals.LABELS]
    bits: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count a change a row."""
        return self.size


def read_coded(sender: str, message: Message, codes: bytes, size: int, bits: int) -> Floats:
    """Read numbers of a block; anything but so many of them is an error."""
    try:
        values, _ = decode_fixed(codes, size, bits)
    except ValueError as error:
        raise checks.wrong(sender, message, str(error)) from error
    checks.in_range(sender, message, values)
    return values


def coded_epochs(bits: int, size: int) -> Play:
    """Prepare epochs of so many bits a number for a coreset of so many rows."""
    products = np.zeros(size)  # summed over the parties, as the server has them

    def play(parties: tuple[str, ...], blocks: list[int], table: ResidualTable, step: float | None) -> Script[Message]:
        n_changes, changes = 0, encode_fixed(np.empty(0), bits)
        for block in blocks:
            inbox = yield dict.fromkeys(parties, CodedStep(n_changes, changes, bits, block, step))
            rows = table.block(block)
            products[rows] += _sum_differences(checks.replies(inbox, CodedProducts), table, len(rows), bits)
            changes = encode_fixed(table.fresh(rows, products[rows]) - table.residuals[rows], bits)
            table.residuals[rows] += decode_fixed(changes, len(rows), bits)[0]
            n_changes, step = len(rows), None
        return AskCodedProgress(n_changes, changes, bits)

    return play


def _sum_differences(replies: Mapping[str, CodedProducts], table: ResidualTable, size: int, bits: int) -> Floats:
    total = np.zeros(size)
    for party, reply in replies.items():
        due, other = reply.products, reply.less_label
        if party == table.label_party and table.codes is None:
            due, other = other, due
        if due is None or other is not None:
            raise checks.wrong(party, reply, "products less the label where none were due, or none where they were")
        if reply.size != size:
            raise checks.wrong(party, reply, f"products of {reply.size} rows where {size} were asked for")
        total += read_coded(party, reply, due, size, bits)
    return total
