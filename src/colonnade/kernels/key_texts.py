"""Keys as they are compared, held as Arrow has them: no Python object a key; and which rows repeat one."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Flags, Rows

Words = npt.NDArray[np.uint64]
WORD_BYTES = 8
# 2^64 over the golden ratio, odd, with bits all over: to multiply by it spreads bits upwards, to shift downwards.
SPREAD, DOWN = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class KeyTexts(Sequence[bytes]):
    """Keys in row order: a `pyarrow.ChunkedArray` of large_binary, of which a key is made only when it is asked for."""

    def __init__(self, chunks: Any) -> None:
        self.chunks = chunks
        self._filled = [chunk for chunk in chunks.chunks if len(chunk)]

    def __len__(self) -> int:
        return len(self.chunks)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> "KeyTexts": ...
    def __getitem__(self, place: int | slice) -> "bytes | KeyTexts":
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        return bytes(self.chunks[place].as_py())

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._filled:
            yield from chunk.to_pylist()

    def take(self, places: Rows) -> "KeyTexts":
        """Take some, in this order."""
        return KeyTexts(self.chunks.take(places))

    def digest(self) -> bytes:
        """SHA-256 over, for each key, its length in bytes (8 bytes, little endian) and the key."""
        return digest_of(self._filled)

    def let_go(self) -> None:
        """Do nothing: they are nowhere else."""

    def repeats(self, numbers: npt.NDArray[np.integer[Any]] | None = None) -> Flags:
        """Tell which keys are those of an earlier place; numbers, where given, are equal where keys are."""
        repeats = np.zeros(len(self), dtype=np.bool_)
        first: dict[bytes, int] = {}
        hashes = np.concatenate([np.empty(0, np.uint64), *map(hashes_of, self._filled)]) if numbers is None else numbers
        alike = _alike(hashes)
        for place, key in zip(alike.tolist(), self.take(alike), strict=True):
            repeats[place] = first.setdefault(key, place) != place
        return repeats


def digest_of(chunks: Iterable[Any]) -> bytes:
    """SHA-256 over, for each key of arrays of large_binary, its length (8 bytes, little endian) and the key."""
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(with_lengths(chunk))
    return found.digest()


def _alike(numbers: npt.NDArray[np.integer[Any]]) -> Rows:
    """List the places whose number is at another place, too."""
    if (numbers[1:] > numbers[:-1]).all():  # as rows of a table with a running number are
        return np.arange(0)
    ordered = np.sort(numbers)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(numbers, twice)) if len(twice) else np.arange(0)


def prefixed(texts: Any) -> Any:
    """Put the length of each text, of a `pyarrow.Array` of large_binary, before it.

    Neighbours, and parts of a key, are so not taken for others.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.asarray(pc.binary_length(texts)).astype("<i8")
    eight = pa.Array.from_buffers(pa.binary(8), len(lengths), [None, pa.py_buffer(lengths)])
    return joined(eight.cast(pa.large_binary()), texts)


def joined(*parts: Any) -> Any:
    """Join texts row by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def with_lengths(texts: Any) -> Any:
    """Give the bytes of all texts, each after its length."""
    offsets, content = _offsets_and_content(texts)
    lengths = np.diff(offsets)
    if not len(lengths) or lengths.min() != lengths.max():
        return prefixed(texts).buffers()[2] or b""
    rows = np.empty((len(lengths), WORD_BYTES + lengths[0]), np.uint8)
    rows[:, :WORD_BYTES] = lengths[:1].astype("<i8").view(np.uint8)
    rows[:, WORD_BYTES:] = content.reshape(len(lengths), lengths[0])
    return rows


def _offsets_and_content(texts: Any) -> tuple[Rows, npt.NDArray[np.uint8]]:
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return offsets, np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]


def hashes_of(texts: Any) -> Words:
    """Hash each text, eight bytes at a time, all at once: hashes of equal ones are equal, and few others are."""
    offsets, content = _offsets_and_content(texts)
    room = np.concatenate([content, np.zeros(WORD_BYTES, np.uint8)])
    words = np.ndarray(len(content) + 1, np.dtype("<u8"), room, strides=(1,))  # one begins at every byte
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    found: Words = lengths.astype(np.uint64) * SPREAD
    going = np.arange(len(lengths))  # the texts that are not over
    for done in range(0, int(lengths.max(initial=0)), WORD_BYTES):
        going = going[lengths[going] > done]
        beyond = np.maximum(done + WORD_BYTES - lengths[going], 0)  # bytes of others: they are shifted out
        word = words[starts[going] + done] << (beyond * 8).astype(np.uint64)
        mixed = (found[going] ^ word) * SPREAD
        found[going] = mixed ^ (mixed >> DOWN)
    return found
