"""Drawing rows: by scores (Algorithm 1, line 5), evenly, each at most once, and to hold them out.

Rows are laid end to end on a line, each as long as its score, in whole steps so small that no table shows them: sums
of whole numbers are exact, whoever adds them up. Only how long the parts of each block are is kept; where a point
falls into a block, its rows are scored again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import frexp, ldexp

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS, by_block
from colonnade.kernels.per_row import PerRow, numbers_by

# exp(-35) is below 10^-15.
UNLIKELY = 35.0
# Of a product and a quotient.
ROUNDING = 2.0**-50
# All rows together are fewer steps than 2^62, whatever is rounded up.
TOTAL_BITS = 61
# Smaller scores, which have lost digits, count as none.
SMALLEST, LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
# A float has no larger power of 2: scores that take one are multiplied twice.
MOST_EXPONENT = 1023
# Rows that share fewer steps than a total of so many bits has are laid out anew, by themselves.
COARSE_BITS = 52
# Classes of rows of similar score: four from each power of 2 to the next, by two bits of a float's fraction. With one
# the excess was 11 % above that of sorted scores on soils, with two 4 %, with four 1 %; finer ones gain little there,
# and lose where neighbours in the table are alike (benchmarks/strata.py).
N_CLASSES, FRACTION_BITS = 256, 50
# Of so many rows it is kept where each lies on the line, 12 MB of it; of more it is found again, block by block.
KEPT_PLACES = 1 << 20

Codes = npt.NDArray[np.uint8]


def draw_by_scores(scores: PerRow, count: int, rng: np.random.Generator, *, stratified: bool) -> Rows:
    """Draw rows with replacement, row i count g_i / G times on average.

    Independent draws are Algorithm 1 to the letter. Stratified ones lay the rows end to end, those of similar scores
    together, each as long as its score, cut that line into `count` equal parts and draw one point in each. Both give
    any row the same expected number, so weights and unbiasedness are the same, and the draws stay independent of each
    other; the variance of any weighted sum is never larger, because what varied between the strata no longer does.

    The scores g, one a row, are non-negative, with a sum that is positive and not subnormal. Row ids ascend; a row
    drawn twice is there twice, and one of score zero never.
    """
    if not count:
        return np.empty(0, np.int64)
    line = scores.once(_line)
    drawn = _below(line.total, count, rng)
    return line.rows_at(_cut(line.total, count, drawn) if stratified else np.sort(drawn))


def draw_distinct(scores: PerRow, count: int, rng: np.random.Generator) -> tuple[float, Rows]:
    """Draw so many distinct rows, row i with chance min(1, c g_i); give c, and the rows.

    Chances add up to `count`: a row that c g_i brings to 1 is certain; the rest share what is left, which can bring
    more of them to 1. Where `count` is no less than the number of positive scores, all of these are certain. Rows that
    are not, laid end to end in a random order of blocks and of rows in each, are drawn where the points u, u + 1, ...
    fall, in units of 1 / c. Row ids ascend; one without a score is never among them.
    """
    line, certain = _laid(scores, count)
    factor = line.factor(certain, scores)
    if not certain.left:
        return factor, certain.rows
    order, key = rng.permutation(len(line.lengths)), int(rng.integers(2**63))
    start = int(_below(certain.rest, None, rng))
    rows = line.rows_in_random_order(certain, order, key, _cut(certain.rest, certain.left, start))
    return factor, np.sort(np.concatenate([certain.rows, rows]))


def distinct_factor(scores: PerRow, count: int) -> float:
    """Give the c that `draw_distinct` draws so many rows by."""
    line, certain = _laid(scores, count)
    return line.factor(certain, scores)


def chances(factor: float, scores: Floats) -> Floats:
    """Give the chances min(1, c g_i) of distinct draws."""
    return np.minimum(1.0, factor * scores)


def most_copies(share: Floats, count: int, *, stratified: bool) -> Floats:
    """Bound how often rows, whose g_i / G is `share` at most, can be among `count` draws by scores.

    Stratified, no draw exceeds it: a row as long as b strata meets at most b + 2, those at its ends in part. Else one
    in 10^15 does, by Bernstein's inequality.
    """
    expected: Floats = count * np.minimum(share, 1.0)
    most: Floats = expected + UNLIKELY / 3 + np.sqrt(UNLIKELY**2 / 9 + 2 * UNLIKELY * expected)
    return np.floor(expected) + 2 if stratified else most


def log_of(chance: Floats) -> Floats:
    """Give -log(1 - pi_i), infinite where a row is certain: a row is among several draws with 1 - exp(-their sum)."""
    logs = np.full(len(chance), np.inf)
    np.negative(np.log1p(-chance, where=chance < 1, out=np.zeros(len(chance))), where=chance < 1, out=logs)
    return logs


def draw_evenly(n_rows: int, count: int, rng: np.random.Generator, weights: PerRow | None = None) -> Rows:
    """Draw rows with replacement, ascending: each with probability 1 / n, or by its weight, as if it counted copies."""
    if weights is None:
        return np.sort(rng.integers(n_rows, size=count, dtype=np.int64))
    return draw_by_scores(weights, count, rng, stratified=False)


def draw_evenly_distinct(
    n_rows: int, count: int, rng: np.random.Generator, weights: PerRow | None = None
) -> tuple[float, Rows]:
    """Draw so many distinct rows evenly, or by their weight, as if it counted copies: as `draw_distinct` does."""
    if weights is not None:
        return draw_distinct(weights, count, rng)
    drawn = np.arange(n_rows) if count >= n_rows else np.sort(rng.choice(n_rows, count, replace=False, shuffle=False))
    return even_factor(n_rows, count), drawn


def even_factor(n_rows: int, count: int, weights: PerRow | None = None) -> float:
    """Give the c that `draw_evenly_distinct` draws so many rows by: a row's chance is c times its weight, or 1."""
    return min(count / n_rows, 1.0) if weights is None else distinct_factor(weights, count)


def held_out(n_rows: int, fraction: float, seed: int) -> PerRow:
    """Mark round(fraction n) rows by 1, and the others by 0; each is marked with the same chance.

    A block has its share of the marks, rounded up or down, in places that it draws by itself: no choice of rows is ever
    listed.
    """
    count = round(fraction * n_rows)
    start = int(np.random.default_rng(seed).integers(n_rows))
    return replace(numbers_by(n_rows, partial(_marks, n_rows, count, seed, start)), n_ones=count)


def _marks(n_rows: int, count: int, seed: int, start: int, number: int) -> Floats:
    first, end = number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, n_rows)
    # Of n places, `start` on, every n / count-th has a mark: those before a row are as many as those before another.
    before, until = ((place * count + start) // n_rows for place in (first, end))
    marks = np.zeros(end - first)
    marks[np.random.default_rng([seed, number]).permutation(end - first)[: until - before]] = 1.0
    return marks


def _laid(scores: PerRow, count: int) -> tuple["_Line", "_Certain"]:
    """Lay rows end to end for so many distinct ones, and find which are certain; these may be on another line."""
    line = scores.once(_line)
    certain = line.certain(count)
    if not certain.left or certain.rest >> COARSE_BITS:
        return line, certain
    left_out = by_block(certain.rows // BLOCK_ROWS, certain.rows % BLOCK_ROWS)
    others, more = _laid(scores.changed(partial(_without, left_out)), certain.left)
    return others, more.joined(certain.rows)


def _below(total: int, count: int | None, rng: np.random.Generator) -> Rows:
    """Draw one or so many whole numbers below `total`, which is below 2^62, all with the same chance to within 2^-64.

    Each is total times 64 random bits, without the 64 lowest bits of that. A total that is other in its last digits, as
    another BLAS adds it up, gives all but the same places. NumPy's own way rejects some numbers by these digits, and
    all that come after such a one are then others.
    """
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    bits, t0, t1 = (
        np.uint64(rng.integers(2**64, size=count, dtype=np.uint64)),
        np.uint64(total & 2**32 - 1),
        np.uint64(total >> 32),
    )
    b0, b1 = bits & low, bits >> half
    upper = b1 * t0 + (b0 * t0 >> half)
    return np.asarray(b1 * t1 + (upper >> half) + ((b0 * t1 + (upper & low)) >> half), np.int64)


def _cut(total: int, count: int, within: Rows | int) -> Rows:
    """Cut the numbers below `total` into `count` parts of one length, and give the number at a place of each.

    They ascend: the t-th is floor((t G + r_t) / a), with r_t, the place, below G. G is below 2^62, and a below 2^31.
    """
    whole, rest = divmod(total, count)
    part = np.arange(count)
    return part * whole + (part * rest + within) // count


@dataclass(frozen=True, eq=False)
class _Certain:
    """Rows that every draw has, ascending, and their lengths; so many are left to draw, and so long are the others."""

    rows: Rows
    steps: Rows
    left: int
    rest: int

    def joined(self, rows: Rows) -> "_Certain":
        """Add rows that have no length on this line."""
        order = np.argsort(together := np.append(self.rows, rows))
        return replace(self, rows=together[order], steps=np.append(self.steps, np.zeros_like(rows))[order])


@dataclass(frozen=True, eq=False)
class _Laid:
    """Rows as they lie, class after class: where each ends, and which it is."""

    ends: Rows
    order: npt.NDArray[np.uint32]

    def rows_at(self, places: Rows) -> Rows:
        """Find the rows at places of the line; row ids ascend."""
        return np.sort(self.order[np.searchsorted(self.ends, places, side="right")]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Line:
    """All rows end to end, class after class, and in each class one after another.

    Scores are counted in steps of 2^-exponent; `total` is the steps of all. `laid` has all rows as they lie, unless
    there are many.
    """

    scores: PerRow
    exponent: int
    laid: _Laid | None

    @cached_property
    def lengths(self) -> Rows:
        """The steps of the rows of each block and class, shape (blocks, classes)."""
        return np.array(list(self.scores.map(partial(_measured, self.exponent))))

    @cached_property
    def total(self) -> int:
        """The steps of all rows."""
        return int(self.lengths.sum() if self.laid is None else self.laid.ends[-1])

    def rows_at(self, points: Rows) -> Rows:
        """Find the rows on which points fall, ascending numbers below the total; row ids ascend."""
        if self.laid is not None:
            return self.laid.rows_at(points)
        ends = np.cumsum(self.lengths.T)
        part = np.searchsorted(ends, points, side="right")
        classes, numbers = np.divmod(part, len(self.lengths))
        # A block's own line has its classes in the same order.
        before = np.cumsum(self.lengths, axis=1) - self.lengths
        within = points - (ends - self.lengths.T.reshape(-1))[part] + before[numbers, classes]
        wanted = by_block(numbers, within)
        return self._rows(partial(_rows_by_class, self.exponent, wanted), list(wanted))

    def rows_in_random_order(self, certain: _Certain, order: Rows, key: int, points: Rows) -> Rows:
        """Find the rows on which points fall where blocks, less certain rows, are laid in this order."""
        own = self.lengths.sum(axis=1)
        np.subtract.at(own, certain.rows // BLOCK_ROWS, certain.steps)
        ends = np.cumsum(own[order])
        place = np.searchsorted(ends, points, side="right")
        left_out = by_block(certain.rows // BLOCK_ROWS, certain.rows % BLOCK_ROWS)
        wanted = by_block(order[place], points - (ends - own[order])[place])
        return self._rows(partial(_rows_at_random, self.exponent, left_out, key, wanted), list(wanted))

    def _rows(self, find: Callable[[int, Floats], Rows], numbers: Sequence[int]) -> Rows:
        return np.concatenate(list(self.scores.map(find, numbers)))

    @cached_property
    def n_positive(self) -> int:
        """How many rows have a length."""
        return sum(self.scores.map(partial(_n_positive, self.exponent)))

    def certain(self, count: int) -> _Certain:
        """Find which rows are certain among so many distinct ones."""
        if not count or count >= self.n_positive:
            return _Certain(*self._longest(0 if count else N_CLASSES), left=0, rest=0)
        rest, left, lowest = self.total, count, N_CLASSES
        rows = steps = np.empty(0, np.int64)
        while True:
            # A row as long as the distance of points is met by one: it is certain, and what others share grows.
            distance = -(-rest // left)
            if (longer := int(_classes(np.array([float(distance)]))[0])) < lowest:
                lowest, (rows, steps) = longer, self._longest(longer)
            reached = steps >= distance
            if np.count_nonzero(reached) == count - left:
                return _Certain(rows[reached], steps[reached], left, rest)
            left, rest = count - int(np.count_nonzero(reached)), self.total - int(steps[reached].sum())

    def factor(self, certain: _Certain, scores: PerRow) -> float:
        """Give c, by which the chance of a score, also of a certain row, is min(1, c g_i)."""
        # So that the product with c is no less than 1 for a certain row, however it rounds.
        least = (1 + ROUNDING) / float(scores[certain.rows].min(initial=np.inf))
        if not certain.left:
            return least
        per_step, step = certain.left / certain.rest, ldexp(1.0, -self.exponent)
        return max(per_step / step if per_step < LARGEST * step else LARGEST, least)

    def _longest(self, lowest: int) -> tuple[Rows, Rows]:
        """List the rows of this class and of those above it, and their lengths."""
        numbers = np.flatnonzero(self.lengths[:, lowest:].any(axis=1)).tolist()
        found = [np.empty((2, 0), np.int64), *self.scores.map(partial(_from_class, self.exponent, lowest), numbers)]
        rows, steps = np.concatenate(found, axis=1)
        return rows, steps


def _line(scores: PerRow) -> _Line:
    exponent = TOTAL_BITS - frexp(scores.sum())[1]
    is_kept = scores.n_rows <= KEPT_PLACES
    return _Line(scores, exponent, _by_class(exponent, np.asarray(scores)) if is_kept else None)


def _lengths(exponent: int, scores: Floats) -> Floats:
    """Count the steps of each score, one at least where it is positive."""
    steps = scores * ldexp(1.0, min(exponent, MOST_EXPONENT))
    if exponent > MOST_EXPONENT:
        steps *= ldexp(1.0, exponent - MOST_EXPONENT)
    np.rint(steps, out=steps)
    if steps.min() < 1.0:
        np.maximum(steps, scores >= SMALLEST, out=steps)
    return steps


def _without(left_out: Mapping[int, Rows], number: int, scores: Floats) -> Floats:
    """Score rows that are left out by 0."""
    others = scores.copy()
    others[left_out.get(number, [])] = 0.0
    return others


def _classes(steps: Floats) -> Codes:
    """Tell the classes of lengths, which are 0 or 1 and more: any class where there is none."""
    codes = score_classes(steps).astype(np.uint8)
    codes += 4  # of the 1023 that float64 adds to exponents, times 4, is a multiple of 256
    return codes


def score_classes(numbers: Floats) -> Rows:
    """Tell the classes of non-negative numbers, ascending: four from each power of 2 to the next."""
    classes: Rows = np.ascontiguousarray(numbers).view(np.int64) >> FRACTION_BITS
    return classes


def _measured(exponent: int, _: int, scores: Floats) -> Rows:
    """Add up the steps of each class."""
    steps, totals = _lengths(exponent, scores), np.zeros(N_CLASSES, np.int64)
    np.add.at(totals, _classes(steps), steps.astype(np.int64))  # np.bincount would add floats up
    return totals


def _n_positive(exponent: int, _: int, scores: Floats) -> int:
    return int(np.count_nonzero(_lengths(exponent, scores)))


def _rows_by_class(exponent: int, wanted: Mapping[int, Rows], number: int, scores: Floats) -> Rows:
    return _by_class(exponent, scores).rows_at(wanted[number]) + number * BLOCK_ROWS


def _by_class(exponent: int, scores: Floats) -> _Laid:
    steps = _lengths(exponent, scores)
    order = np.argsort(_classes(steps), kind="stable")
    return _Laid(np.cumsum(np.take(steps, order).astype(np.int64)), order.astype(np.uint32))


def _rows_at_random(
    exponent: int, left_out: Mapping[int, Rows], key: int, wanted: Mapping[int, Rows], number: int, scores: Floats
) -> Rows:
    """Find the rows at places of a block's line, on which rows are in a random order, some left out."""
    steps = _lengths(exponent, scores).astype(np.int64)
    steps[left_out.get(number, [])] = 0
    order = np.random.default_rng([key, number]).permutation(len(steps))
    at = np.searchsorted(np.cumsum(steps[order]), wanted[number], side="right")
    return np.sort(order[at]) + number * BLOCK_ROWS


def _from_class(exponent: int, lowest: int, number: int, scores: Floats) -> Rows:
    """List the rows from a class on that have a length, and that length: shape (2, k)."""
    lengths = _lengths(exponent, scores)
    found = np.flatnonzero((_classes(lengths) >= lowest) & (lengths > 0))
    return np.stack([found + number * BLOCK_ROWS, lengths[found].astype(np.int64)])
