"""Draws in whole numbers alone: from the same key and the same integers every machine draws the same rows.

A key is stretched by SHAKE-256 to 64-bit words, and a word u becomes a number below N as the high half of u N. No
float64 is added or divided, so no order of summation, no processor and no library can change a draw; and whoever knows
the key and the integers can do it again.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, n_blocks_of, rows_of_block
from colonnade.kernels.masks import Words
from colonnade.kernels.per_row import PerRow

# A party's total, in steps, is below 2^62 but for rounding: sums of two fit in a word.
TOTAL_BITS = 62
_LOW = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)
_ALL_WORDS = 1 << 64


def on_grid(values: Floats, exponent: int) -> Floats:
    """Round non-negative values to multiples of 2^-exponent, positive ones up to one at least.

    They are exact multiples: what has more than 53 bits above the step was one already.
    """
    steps = np.rint(np.ldexp(values, exponent))
    return np.ldexp(np.where(values > 0, np.maximum(steps, 1.0), 0.0), -exponent)


def to_steps(values: Floats, exponent: int) -> Words:
    """Count the steps of values that are on the grid."""
    return np.ldexp(values, exponent).astype(np.uint64)


@dataclass(frozen=True)
class Steps:
    """Whole numbers, one for each of n rows, whose sum fits in a word; never all in memory.

    `map` gives those of each block, or of the blocks with these numbers, in order.
    """

    n_rows: int
    map: Callable[[Sequence[int] | None], Iterator[Words]]

    @cached_property
    def block_totals(self) -> Words:
        """What those of each block add up to, exactly."""
        return np.array([block.sum() for block in self.map(None)], np.uint64)

    def sum(self) -> int:
        """Add up all."""
        return int(self.block_totals.sum())


def steps_of(values: PerRow, exponent: int) -> Steps:
    """Count the steps of numbers that are on the grid."""
    return Steps(values.n_rows, partial(_map_steps, values, exponent))


def steps_in(words: Words) -> Steps:
    """Take numbers that are there, shape (n,)."""
    return Steps(len(words), partial(_map_words, words))


def _map_steps(values: PerRow, exponent: int, numbers: Sequence[int] | None) -> Iterator[Words]:
    return values.map(partial(_block_steps, exponent), numbers)


def _block_steps(exponent: int, _: int, values: Floats) -> Words:
    return to_steps(values, exponent)


def _map_words(words: Words, numbers: Sequence[int] | None) -> Iterator[Words]:
    return (words[rows_of_block(number)] for number in (range(n_blocks_of(len(words))) if numbers is None else numbers))


def uniform_words(key: bytes, count: int) -> Words:
    """Stretch a key to uniform 64-bit words: the first of SHAKE-256's output, little-endian."""
    return np.frombuffer(hashlib.shake_256(key).digest(8 * count), "<u8").astype(np.uint64)


def high_product(words: Words, factor: int) -> Words:
    """Compute floor(u N / 2^64), the high 64 bits of products with N < 2^64, by halves of 32 bits.

    They are below N, and each number below N is there within one of 2^64 / N times among all u.
    """
    high, low = words >> _HALF, words & _LOW
    factor_high, factor_low = np.uint64(factor >> 32), np.uint64(factor & 0xFFFF_FFFF)
    middle = high * factor_low + (low * factor_low >> _HALF)
    carried = low * factor_high + (middle & _LOW)
    product: Words = high * factor_high + (middle >> _HALF) + (carried >> _HALF)
    return product


def stratified_points(total: int, count: int, key: bytes) -> Words:
    """Cut the numbers below `total` into `count` parts of one length and draw a number in each, by the key.

    They ascend: the t-th is floor((t G + r_t) / a), with r_t uniform below G. G is below 2^63, and a below 2^24.
    """
    if not count:
        return np.empty(0, np.uint64)
    whole, rest = divmod(total, count)
    part = np.arange(count, dtype=np.uint64)
    within = part * np.uint64(rest) + high_product(uniform_words(key, count), total)
    points: Words = part * np.uint64(whole) + within // np.uint64(count)
    return points


def rows_at(steps: Steps, points: Words) -> Rows:
    """Lay rows end to end in their order, each as long as its score in steps, and find the rows on which points fall.

    The points are below the sum of the steps, and ascend: so only blocks are looked at on which some fall.
    """
    ends = np.cumsum(steps.block_totals)
    places = np.searchsorted(ends, points, side="right")
    numbers, firsts = np.unique(places, return_index=True)
    found = [np.empty(0, np.int64)]
    parts = zip(numbers.tolist(), np.split(points, firsts[1:]), strict=True) if len(numbers) else ()
    for (number, here), block in zip(parts, steps.map(numbers.tolist()), strict=True):
        within = here - (ends[number] - steps.block_totals[number])
        found.append(np.searchsorted(np.cumsum(block), within, side="right") + number * BLOCK_ROWS)
    return np.concatenate(found).astype(np.int64)


def shares(totals: Sequence[int], count: int, key: bytes) -> Rows:
    """Draw, by the key, how many of `count` draws fall to each by totals, whose sum may have more than 64 bits."""
    total, before = sum(totals), 0
    firsts = []  # the first word u with floor(u total / 2^64) >= what is before
    for part in totals:
        firsts.append(-(-before * _ALL_WORDS // total))
        before += part
    falls_to = np.searchsorted(np.array(firsts[1:], dtype=np.uint64), uniform_words(key, count), side="right")
    return np.bincount(falls_to, minlength=len(totals)).astype(np.int64)


def count_even(share: float, count: int, key: bytes) -> int:
    """Draw how many of `count` draws fall evenly on all rows, each with probability `share`."""
    below = int(math.ldexp(share, 64))
    return count if below >= _ALL_WORDS else int(np.count_nonzero(uniform_words(key, count) < np.uint64(below)))


def even_rows(n_rows: int, count: int, key: bytes, weights: PerRow | None = None) -> Rows:
    """Draw rows by the key, ascending: evenly, or by their weights, not all 0."""
    if weights is None:
        return np.sort(high_product(uniform_words(key, count), n_rows)).astype(np.int64)
    _, exponent = math.frexp(n_rows * weights.max())
    steps = steps_of(weights.changed(partial(_gridded, TOTAL_BITS - exponent)), TOTAL_BITS - exponent)
    return rows_at(steps, np.sort(high_product(uniform_words(key, count), steps.sum())))


def _gridded(exponent: int, _: int, values: Floats) -> Floats:
    return on_grid(values, exponent)
