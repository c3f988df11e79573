"""What a party remembers from run to run: coresets it agreed on, models it was told, which sums it has answered.

Two sums over nearly the same rows tell by their difference what neither of them tells.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.selections import CountedRows

# Weights that come by two ways differ by so much. More would show in the sums.
LAST_BITS = 4e-15


class CoresetNote(msgspec.Struct, frozen=True, array_like=True, tag="coreset"):
    """Rows that all parties drew together, by their digest, and what they may weigh when they are used again.

    `lightest` and `heaviest` are numbers of steps of a logarithm, a byte for each different row, ascending, or nothing
    where all are 0: weights lie between, up to one factor.
    """

    digest: bytes
    lightest: bytes
    heaviest: bytes


class SpoiledNote(msgspec.Struct, frozen=True, array_like=True, tag="spoiled"):
    """Rows, by their digest, for which the server told weights that they cannot have: they are used again no more."""

    digest: bytes


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


class DistancesNote(msgspec.Struct, frozen=True, array_like=True, tag="distances"):
    """That it told, with others, how far rows are from each other, in so many columns of all parties."""

    columns: int


class PreparedNote(msgspec.Struct, frozen=True, array_like=True, tag="prepared"):
    """That the party prepared its columns, or was about to, by the rows that count: a bit a row, by its number.

    `table` is a digest of the numbers of all its rows; `weights` of how much those that count do, empty where all
    count 1.
    """

    table: bytes
    rows: bytes
    weights: bytes = b""


class ScoredNote(msgspec.Struct, frozen=True, array_like=True, tag="scored"):
    """How the party scored its rows, by a digest: which counted, how much, by which rule and in which units."""

    digest: bytes


class SummedScoresNote(msgspec.Struct, frozen=True, array_like=True, tag="summed scores"):
    """In which way scores were added to others' under masks; the digest names how rows were scored, before sharpening.

    `draws` is 0 where scores were added as they are, and else how many distinct rows were drawn by the chances whose
    logarithms were. They were rounded to steps of 2^-exponent. `sharpened` is None, or how much residuals counted in
    sharpened scores.
    """

    digest: bytes
    draws: int
    exponent: int
    sharpened: float | None = None


class SumNote(msgspec.Struct, frozen=True, array_like=True, tag="sum"):
    """What a sum was of: which rows, a bit a row, how much each counted, and its numbers.

    `weights` are float64, one for each row that it was over, the largest 1; empty where all counted the same. So many
    of its numbers are `of_each` value of a row: of moments one, but of a loss its sum, its square's, and others.
    """

    what: str
    rows: bytes
    weights: bytes
    numbers: int
    of_each: int


class TableKey(msgspec.Struct, frozen=True, array_like=True, tag="table key"):
    """The secret with which the party's table gets its fingerprint."""

    key: bytes

    def __repr__(self) -> str:
        return "TableKey(not shown)"


Note = (
    TableKey
    | CoresetNote
    | SpoiledNote
    | ModelNote
    | AppliedNote
    | CommittedNote
    | DistancesNote
    | PreparedNote
    | ScoredNote
    | SummedScoresNote
    | SumNote
)


class Memory(Protocol):
    """What a party remembers."""

    def notes(self) -> frozenset[Note]:
        """Give all of it."""

    def keep(self, notes: Iterable[Note]) -> None:
        """Remember more, before anything follows from it."""


class KeptHere:
    """A memory that ends with the process."""

    def __init__(self, notes: Iterable[Note] = ()) -> None:
        self._notes: set[Note] = set(notes)

    def notes(self) -> frozenset[Note]:
        """Give all of it."""
        return frozenset(self._notes)

    def keep(self, notes: Iterable[Note]) -> None:
        """Remember more."""
        self._notes.update(notes)


def table_key(memory: Memory, fresh: Callable[[], bytes]) -> bytes:
    """Give a party's secret for names that tell nothing; it is made where there is none yet."""
    found = None
    for note in memory.notes():
        found = note if isinstance(note, TableKey) else found
    if found is None:
        found = TableKey(fresh())
        memory.keep([found])
    return found.key


def sum_note(what: str, rows: Rows, weights: Floats, n_rows: int, numbers: int, of_each: int) -> SumNote:
    """Note a sum of so many numbers over rows, shape (m,), that may repeat, by their weights: only ratios matter."""
    counted = np.bincount(rows, weights=weights, minlength=n_rows)
    own = counted[counted > 0] / max(float(counted.max(initial=0.0)), np.finfo(np.float64).tiny)
    told = b"" if len(own) == 0 or own.min() >= 1 - LAST_BITS else own.astype("<f8").tobytes()
    return SumNote(what, np.packbits(counted > 0).tobytes(), told, numbers, of_each)


def counted_note(what: str, rows: CountedRows, numbers: int, of_each: int) -> SumNote:
    """Note a sum over all rows that count, as `sum_note` does, without a list of them."""
    if (counts := rows.row_weights) is None:
        return SumNote(what, np.packbits(np.ones(rows.n_rows, np.bool_)).tobytes(), b"", numbers, of_each)
    bits = b"".join(counts.map(_bits_of_block))
    largest = max(counts.max(), np.finfo(np.float64).tiny)
    is_even = not len(rows) or counts.least_positive() / largest >= 1 - LAST_BITS
    told = b"" if is_even else (counts.positive() / largest).astype("<f8").tobytes()
    return SumNote(what, bits, told, numbers, of_each)


def _bits_of_block(_: int, counts: Floats) -> bytes:
    """Pack which rows of a block count: blocks are of whole bytes, but for the last."""
    return np.packbits(counts > 0).tobytes()


def rows_apart(first: SumNote | PreparedNote, second: SumNote | PreparedNote) -> int:
    """Count the rows that only one of two sums, or of two preparations, is over."""
    n_bytes = max(len(first.rows), len(second.rows))  # the table may have grown in between
    different = np.bitwise_xor(_bits(first, n_bytes), _bits(second, n_bytes))
    return int(np.bitwise_count(different).sum(dtype=np.int64))


def is_same_sum(first: SumNote, second: SumNote) -> bool:
    """Tell whether two sums are over the same rows by the same weights, up to last bits."""
    # Bits end where the numbers of rows did, which an alignment changes.
    is_over_same = first.rows.rstrip(b"\0") == second.rows.rstrip(b"\0")
    return is_over_same and bool(np.abs(_own_weights(first) - _own_weights(second)).max() <= LAST_BITS)


def weights_by_row(note: SumNote, n_rows: int, size: int) -> Iterator[Floats]:
    """Yield which part of the sum's weight each row of the table has, by blocks of this size, a multiple of 8."""
    bits, own, before = _bits(note, -(-n_rows // 8)), _own_weights(note), 0
    total = own.sum() if note.weights else float(np.bitwise_count(bits).sum(dtype=np.int64))
    for start in range(0, n_rows, size):
        parts = np.zeros(min(size, n_rows - start))
        here = np.unpackbits(bits[start // 8 : (start + size) // 8], count=len(parts)).astype(bool)
        n_here = int(np.count_nonzero(here))
        parts[here] = (own[before : before + n_here] if note.weights else 1.0) / total
        before += n_here
        yield parts


def _own_weights(note: SumNote) -> Floats:
    return np.frombuffer(note.weights, "<f8") if note.weights else np.ones(1)


def _bits(note: SumNote | PreparedNote, n_bytes: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(note.rows.ljust(n_bytes, b"\0"), np.uint8)
