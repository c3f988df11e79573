"""A commitment to many numbers that can be opened one by one: a Merkle tree whose nodes also carry sums.

A leaf hashes a salt, its place and its number; a node hashes its two children with their sums. The root commits to all
numbers, their order and their total. To open a number is to show its salt and, on the way up, each neighbour's hash
and sum. The sums to the left add up to what comes before the number, so an opening also proves where on the line of all
numbers this one lies, and no two openings of different places can overlap. A salt of 16 secret bytes a leaf hides the
numbers that were not opened; an opening shows sums of the rows around it, down to the neighbour's own number.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Rows
from colonnade.kernels.blocks import BLOCK_ROWS, by_block
from colonnade.kernels.integer_draws import Steps
from colonnade.kernels.masks import Words

SALT_BYTES = 16
HASH_BYTES = 32
_SUM_BYTES = 8
# A leaf hashes 32 bytes and a node 80: neither can be taken for the other.
_LEAF_BYTES = SALT_BYTES + 2 * _SUM_BYTES
_NODE_BYTES = 2 * (HASH_BYTES + _SUM_BYTES)
_WORD = np.dtype("<u8")
_NODE_WORDS = (HASH_BYTES + _SUM_BYTES) // _SUM_BYTES
# Of a whole block, whose leaves are a power of two.
BLOCK_LEVELS = (BLOCK_ROWS - 1).bit_length()
# Of one level: hashes, in words, each beside its sum; shape (n, 5).
Nodes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Opening:
    """One number of a tree, its salt, and the neighbours' hashes and sums on the way up from the leaves."""

    number: int
    salt: bytes
    hashes: tuple[bytes, ...]
    sums: tuple[int, ...]


class SumTree:
    """The tree at whoever commits: of one number or more, whose sum is below 2^63.

    The leaves' salts come from the secret. Only what is above whole blocks of leaves is kept, 40 bytes a block: what is
    inside is computed again for a block in which one is opened.
    """

    def __init__(self, numbers: Steps, secret: bytes) -> None:
        self._numbers, self._secret = numbers, secret
        # Of one block all is inside.
        self._inside = min(depth(numbers.n_rows), BLOCK_LEVELS)
        tops = [self._block(place, block)[-1] for place, block in enumerate(numbers.map(None))]
        self._levels = _above(np.vstack(tops), depth(numbers.n_rows) - self._inside)

    @property
    def root(self) -> bytes:
        """The commitment."""
        return self._levels[-1][0, :4].tobytes()

    @property
    def total(self) -> int:
        """The sum of all numbers, which the root commits to."""
        return int(self._levels[-1][0, 4])

    def open(self, places: Rows) -> list[Opening]:
        """Open the numbers at places, which ascend."""
        inside, found = by_block(places // BLOCK_ROWS, places % BLOCK_ROWS), []
        for (number, opened), block in zip(inside.items(), self._numbers.map(list(inside)), strict=True):
            levels, salts = self._block(number, block), self._salts(number, len(block))
            for place in opened.tolist():
                beside = [*_beside(levels[:-1], place), *_beside(self._levels[:-1], number)]
                salt = salts[SALT_BYTES * place : SALT_BYTES * (place + 1)]
                hashes, sums = tuple(each for each, _ in beside), tuple(each for _, each in beside)
                found.append(Opening(int(block[place]), salt, hashes, sums))
        return found

    def _block(self, number: int, block: Words) -> list[Nodes]:
        """Compute the levels inside a block, up to its top."""
        leaves = np.empty((len(block), _LEAF_BYTES // _SUM_BYTES), _WORD)
        leaves[:, :2] = np.frombuffer(self._salts(number, len(block)), _WORD).reshape(-1, 2)
        leaves[:, 2] = np.arange(len(block)) + number * BLOCK_ROWS
        leaves[:, 3] = block
        return _above(_nodes(leaves.tobytes(), _LEAF_BYTES, block), self._inside)

    def _salts(self, number: int, count: int) -> bytes:
        return hashlib.shake_256(self._secret + _eight(number)).digest(SALT_BYTES * count)


def _above(level: Nodes, n_levels: int) -> list[Nodes]:
    """Give nodes, and so many levels above them."""
    levels = [level]
    for _ in range(n_levels):
        pairs = _paired(levels[-1])
        levels.append(_nodes(pairs.tobytes(), _NODE_BYTES, pairs[:, 4] + pairs[:, 9]))
    return levels


def _beside(levels: Sequence[Nodes], place: int) -> Iterator[tuple[bytes, int]]:
    """Give the hash and the sum of the neighbour of a place on each level; zeros where there is none."""
    for level in levels:
        neighbour = place ^ 1
        inside = neighbour < len(level)
        yield (level[neighbour, :4].tobytes(), int(level[neighbour, 4])) if inside else (bytes(HASH_BYTES), 0)
        place //= 2


def depth(count: int) -> int:
    """Count the levels above the leaves of a tree of so many numbers."""
    return (count - 1).bit_length()


def start_of(opening: Opening, place: int, count: int, root: bytes, total: int) -> int | None:
    """Check an opening from somebody who may lie, and find the sum of all numbers before this one on the line.

    The number is said to be at this place among `count`; root and total are what was committed to. None where the
    opening does not belong to the commitment.
    """
    if not len(opening.hashes) == len(opening.sums) == depth(count) or not 0 <= place < count:
        return None
    if len(opening.salt) != SALT_BYTES or any(len(each) != HASH_BYTES for each in opening.hashes):
        return None
    if not all(0 <= each <= total for each in (opening.number, *opening.sums)):
        return None
    hashed = hashlib.sha256(opening.salt + _eight(place) + _eight(opening.number)).digest()
    start, below, at = 0, opening.number, place
    for neighbour, beside in zip(opening.hashes, opening.sums, strict=True):
        left = (neighbour, beside) if at & 1 else (hashed, below)
        right = (hashed, below) if at & 1 else (neighbour, beside)
        start += beside if at & 1 else 0
        below += beside
        if below > total:
            return None
        hashed = hashlib.sha256(left[0] + _eight(left[1]) + right[0] + _eight(right[1])).digest()
        at //= 2
    return start if hashed == root and below == total else None


def pack_openings(openings: Sequence[Opening]) -> tuple[bytes, bytes]:
    """Write the salts and the hashes of openings one after another."""
    return b"".join(each.salt for each in openings), b"".join(part for each in openings for part in each.hashes)


def unpack_openings(
    numbers: Sequence[int], salts: bytes, hashes: bytes, sums: Sequence[int], levels: int
) -> list[Opening] | None:
    """Read openings of trees with so many levels; None where lengths do not fit."""
    count = len(numbers)
    if len(salts) != SALT_BYTES * count or len(hashes) != HASH_BYTES * levels * count or len(sums) != levels * count:
        return None
    each_hash = [hashes[k : k + HASH_BYTES] for k in range(0, len(hashes), HASH_BYTES)]
    return [
        Opening(
            number,
            salts[SALT_BYTES * i : SALT_BYTES * (i + 1)],
            tuple(each_hash[levels * i : levels * (i + 1)]),
            tuple(sums[levels * i : levels * (i + 1)]),
        )
        for i, number in enumerate(numbers)
    ]


def _nodes(texts: bytes, length: int, sums: Words) -> Nodes:
    """Hash texts of one length, and put each hash beside its sum."""
    sha256 = hashlib.sha256
    hashes = b"".join([sha256(text).digest() for (text,) in struct.iter_unpack(f"{length}s", texts)])
    return np.column_stack([np.frombuffer(hashes, _WORD).reshape(-1, 4), sums.astype(_WORD)])


def _paired(level: Nodes) -> Nodes:
    """Put each two nodes beside each other; a last one without a neighbour beside zeros."""
    if len(level) % 2:
        level = np.vstack([level, np.zeros((1, _NODE_WORDS), _WORD)])
    return np.ascontiguousarray(level.reshape(-1, 2 * _NODE_WORDS), _WORD)


def _eight(number: int) -> bytes:
    return number.to_bytes(_SUM_BYTES, "little")
