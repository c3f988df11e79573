"""What a party remembers from run to run: coresets it agreed on, models it was told, which sums it has answered.

Two sums over nearly the same rows tell by their difference what neither of them tells.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows
from colonnade.signing import digest


class CoresetNote(msgspec.Struct, frozen=True, array_like=True, tag="coreset"):
    """Rows that all parties drew together, by their digest, and what they may weigh when they are used again.

    `lightest` and `heaviest` are numbers of steps of a logarithm, a byte a row: weights lie between, up to one factor.
    """

    digest: bytes
    lightest: bytes
    heaviest: bytes


class ModelNote(msgspec.Struct, frozen=True, array_like=True, tag="model"):
    """The party's part of a model that it helped to learn, by its digest."""

    digest: bytes


class AppliedNote(msgspec.Struct, frozen=True, array_like=True, tag="applied"):
    """The party's part of a model that it applied so that somebody learned what came of it, by its digest.

    And how many numbers it gives of a row: of a clustering, one a centre.
    """

    digest: bytes
    numbers: int


class CommittedNote(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """Scores that the party committed to, by a digest of what makes this draw different from any other."""

    digest: bytes


class SumNote(msgspec.Struct, frozen=True, array_like=True, tag="sum"):
    """What a sum was of, which rows it was over, a bit a row, a digest of how much each counted, and its numbers."""

    what: str
    rows: bytes
    weights: bytes
    numbers: int


Note = CoresetNote | ModelNote | AppliedNote | CommittedNote | SumNote


class Memory(Protocol):
    """What a party remembers."""

    def notes(self) -> frozenset[Note]:
        """Give all of it."""

    def keep(self, notes: Iterable[Note]) -> None:
        """Remember more, before anything follows from it."""


class KeptHere:
    """A memory that ends with the process."""

    def __init__(self) -> None:
        self._notes: set[Note] = set()

    def notes(self) -> frozenset[Note]:
        """Give all of it."""
        return frozenset(self._notes)

    def keep(self, notes: Iterable[Note]) -> None:
        """Remember more."""
        self._notes.update(notes)


def sum_note(what: str, rows: Rows, weights: Floats, n_rows: int, numbers: int) -> SumNote:
    """Note a sum of so many numbers over rows, shape (m,), that may repeat, by their weights: only ratios matter."""
    counted = np.bincount(rows, weights=weights, minlength=n_rows)
    relative = counted / max(float(counted.max(initial=0.0)), np.finfo(np.float64).tiny)
    # Weights that come by two ways differ in their last bits.
    steps = np.rint(relative * 2.0**40).astype("<i8")
    return SumNote(what, np.packbits(counted > 0).tobytes(), digest(steps[counted > 0].tobytes()), numbers)


def rows_apart(first: SumNote, second: SumNote) -> int:
    """Count the rows that only one of two sums is over."""
    different = np.bitwise_xor(_bits(first), _bits(second))
    return int(np.unpackbits(different).sum())


def _bits(note: SumNote) -> npt.NDArray[np.uint8]:
    return np.frombuffer(note.rows, np.uint8)
