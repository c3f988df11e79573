"""Means, deviations and medians of numbers that are read piece by piece, as often as it takes, and never held.

Pieces are put together into runs of a fixed length first: how numbers are cut, by a file or by rows that do not count
between them, changes no bit.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS

Places = npt.NDArray[np.uint64]

# Numbers that are sorted at once, 8 MB of them.
MOST_HELD = 1 << 20
# Parts that a range of numbers is cut into: four passes tell all floats apart, and mostly two leave few enough.
N_BINS = 1 << 16
LAST_PLACE, SIGN = (1 << 64) - 1, np.uint64(1 << 63)


class Piece(NamedTuple):
    """Some numbers, and how much each counts: as so many copies, each once if None."""

    values: Floats
    copies: Floats | None


# Reads all numbers, from the first.
Read: TypeAlias = Callable[[], Iterator[Piece]]


@dataclass(frozen=True)
class Moments:
    """How much numbers count together, their mean, and the sum of squares around it."""

    size: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def with_run(self, run: Piece) -> "Moments":
        """Add a run."""
        size = float(len(run.values) if run.copies is None else run.copies.sum())
        mean = float(_weighted(run.values, run.copies).sum()) / size
        squares = float(_weighted(np.square(run.values - mean), run.copies).sum())
        if not self.size:
            return Moments(size, mean, squares)
        both, apart = self.size + size, mean - self.mean
        return Moments(
            both, self.mean + apart * (size / both), self.squares + squares + apart * apart * self.size * (size / both)
        )

    @property
    def deviation(self) -> float:
        """The standard deviation, 1 where nothing but rounding differs, as scikit-learn has it."""
        eps, variance = float(np.finfo(np.float64).eps), self.squares / self.size
        is_constant = variance <= self.size * eps * variance + (self.size * self.mean * eps) ** 2
        return 1.0 if is_constant else float(np.sqrt(variance))


def moments(read: Read) -> Moments:
    """Measure numbers, of which there are some."""
    found = Moments()
    for run in _runs(read()):
        found = found.with_run(run)
    return found


def median(read: Read) -> float:
    """Find the number in the middle of so many copies; between two, their mean."""
    low, up_to, half = _first_reaching(read, None)
    return low if up_to > half else float(np.mean([low, _next(read, low)]))


def quantile(read: Read, n_numbers: int, share: float) -> float:
    """Find the number that this share of so many is at most, each counting once; between two, what is between them."""
    whole, part = divmod(share * (n_numbers - 1), 1.0)
    low, up_to, _ = _first_reaching(read, whole + 1.0)
    high = low if part == 0.0 or up_to > whole + 1.0 else _next(read, low)
    return float(low + (high - low) * part)


def _next(read: Read, low: float) -> float:
    """Find the least number above one."""
    return min(_least_above(low, piece) for piece in read())


def _least_above(low: float, piece: Piece) -> float:
    return float(piece.values.min(initial=np.inf, where=piece.values > low))


def _weighted(values: Floats, copies: Floats | None) -> Floats:
    return values if copies is None else values * copies


def _runs(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Put pieces together into runs of BLOCK_ROWS numbers; the last may be shorter."""
    waiting: list[Piece] = []
    n_waiting = 0
    for piece in pieces:
        start = 0
        while n_waiting + len(piece.values) - start >= BLOCK_ROWS:
            end = start + BLOCK_ROWS - n_waiting
            yield _joined([*waiting, _part(piece, start, end)])
            waiting, n_waiting, start = [], 0, end
        if start < len(piece.values):
            waiting.append(_part(piece, start, len(piece.values)))
            n_waiting += len(piece.values) - start
    if waiting:
        yield _joined(waiting)


def _part(piece: Piece, start: int, end: int) -> Piece:
    return Piece(piece.values[start:end], None if piece.copies is None else piece.copies[start:end])


def _joined(pieces: list[Piece]) -> Piece:
    copies = [piece.copies for piece in pieces if piece.copies is not None]
    return Piece(np.concatenate([piece.values for piece in pieces]), np.concatenate(copies) if copies else None)


def _first_reaching(read: Read, goal: float | None) -> tuple[float, float, float]:
    """Find the first number up to which so many are, half of all if None; how many are up to it, and the goal.

    Of more than are held, the part of the range that has it is cut again and again, by counting.
    """
    least, most = 0, LAST_PLACE
    below, up_to = 0.0, 0.0
    while (held := _held(read, least, most)) is None and least < most:
        width = (most - least) // N_BINS + 1
        reached = below + np.cumsum(_sizes(read, least, most, width))
        goal = float(reached[-1]) / 2 if goal is None else goal
        found = min(int(np.searchsorted(reached, goal)), int(np.searchsorted(reached, reached[-1])))
        below, up_to = float(reached[found - 1]) if found else below, float(reached[found])
        least, most = least + found * width, min(most, least + (found + 1) * width - 1)
    if held is None:  # more copies of one number than are held
        return float(_numbers(np.array([least], np.uint64))[0]), up_to, float(goal or 0.0)
    if held.copies is None:
        goal = (below + len(held.values)) / 2 if goal is None else goal
        place = min(max(math.ceil(goal - below), 1), len(held.values)) - 1
        value = float(np.partition(held.values, place)[place])
        return value, below + np.count_nonzero(held.values <= value), goal
    order = np.argsort(held.values, kind="stable")
    running = np.cumsum(np.append(below, held.copies[order]))[1:]
    goal = float(running[-1]) / 2 if goal is None else goal
    place = min(int(np.searchsorted(running, goal)), len(order) - 1)
    value = float(held.values[order[place]])
    return value, float(running[np.searchsorted(held.values[order], value, "right") - 1]), goal


def _held(read: Read, least: int, most: int) -> Piece | None:
    """Give the numbers of a part of the range, or None where they are too many to be held."""
    found: list[Piece] = []
    n_found = 0
    for run in _runs(read()):
        here = _within(run, least, most)
        n_found += len(here.values)
        if n_found > MOST_HELD:
            return None
        found.append(here)
    return _joined(found)


def _sizes(read: Read, least: int, most: int, width: int) -> Floats:
    """Count the numbers of each bin of a part of the range."""
    sizes = np.zeros(N_BINS)
    for run in _runs(read()):
        here = _within(run, least, most)
        bins = ((_places(here.values) - np.uint64(least)) // np.uint64(width)).astype(np.int64)
        sizes += np.bincount(bins, here.copies, minlength=N_BINS)
    return sizes


def _within(run: Piece, least: int, most: int) -> Piece:
    places = _places(run.values)
    here = (places >= np.uint64(least)) & (places <= np.uint64(most))
    return Piece(run.values[here], None if run.copies is None else run.copies[here])


def _places(values: Floats) -> Places:
    """Give floats numbers in their order: their bits, once those of negative ones are turned round."""
    bits = (values + 0.0).view(np.uint64)  # of the two zeros one
    return np.where(bits >> np.uint64(63), ~bits, bits | SIGN)


def _numbers(places: Places) -> Floats:
    return np.where(places & SIGN, places ^ SIGN, ~places).view(np.float64)
