"""How many bytes rows take, coded as a run would code them: told from a pilot's rows, drawn again as a run would."""

import math
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from colonnade.branches import SCORE_STEP
from colonnade.job_sheets import PILOT_STEP
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.column_codes import encode_columns
from colonnade.kernels.level_codes import level_bits
from colonnade.kernels.quantise import expected_bits
from colonnade.kernels.score_codes import encode_scores
from colonnade.planning.pilot import PilotRows
from colonnade.solvers.scaled_columns import ScaledRows
from colonnade.solvers.whitened_columns import WhitenedRows

# Rows of the pilot are drawn again to so many, in as many parts as tell how much lengths vary.
DRAWN_AGAIN, PARTS = 2048, 8
# Lengths are measured at these steps. In between they are nearly straight in the step's logarithm, and below the
# finest they grow by a bit a value where the step halves.
MEASURED = (0.03, 0.12, 0.35, 0.7, 1.4)


@dataclass(frozen=True, eq=False)
class Lengths:
    """Bytes a row, by party, and the standard deviation of their sum over parts of so many rows."""

    by_party: Mapping[str, float]
    deviation: float
    part: float

    def relative_error(self, size: float) -> float:
        """Tell how far off the bytes of `size` rows are, relative: as they vary, and as the pilot did."""
        total = sum(self.by_party.values())
        return self.deviation / total * float(np.sqrt(1 / PARTS + self.part / size)) if total > 0 else 0.0


@dataclass(frozen=True, eq=False)
class RowLengths:
    """Lengths of rows by the step they are rounded by, from those measured at some steps; and a row's values."""

    measured: Callable[[float], Lengths]
    n_values: Mapping[str, int]

    def at(self, step: float) -> Lengths:
        """Give the lengths where rows are rounded by this step."""
        place = bisect(MEASURED, step)
        below, above = MEASURED[max(place - 1, 0)], MEASURED[min(place, len(MEASURED) - 1)]
        share = math.log2(step / below) / math.log2(above / below) if above > below else 0.0
        ends = [(1 - share, below), (share, above)] if share else [(1.0, below)]

        def length(party: str) -> float:
            values = self.n_values[party] / 8
            return sum(part * (self.measured(at).by_party[party] + values * math.log2(at / step)) for part, at in ends)

        nearest = self.measured(below if share <= 0.5 else above)
        return Lengths({party: length(party) for party in self.n_values}, nearest.deviation, nearest.part)


def score_lengths(pilot: PilotRows, names: tuple[str, ...], shares: Floats) -> Lengths:
    """Predict the bytes of a score.

    `shares`, shape (m0,), are how often each row of the pilot stands for one that would be drawn, relative.
    """

    def lengths(rows: Rows) -> dict[str, int]:
        return {name: len(encode_scores(own[rows], SCORE_STEP)) for name, own in zip(names, pilot.scores, strict=True)}

    return _measured(lengths, shares, pilot.weights)


def row_lengths(pilot: PilotRows, shares: Floats) -> RowLengths:
    """Predict the bytes of a row's codes; shares as in `score_lengths`."""
    even = pilot.weights / pilot.weights.sum()
    exact = {name: _exact_bits(own, shares) for name, own in pilot.columns.items() if isinstance(own, WhitenedRows)}

    @cache
    def lengths(step: float) -> Lengths:
        whitened = {name: each for name, each in pilot.columns.items() if isinstance(each, WhitenedRows)}
        if whitened:
            sizes = {name: (_rounded_bits(own, step, shares) + exact[name]) / 8 for name, own in whitened.items()}
            return _counted(sizes, shares, pilot.weights)
        scaled = {name: each for name, each in pilot.columns.items() if isinstance(each, ScaledRows)}
        rng = np.random.default_rng(0)
        return _measured(
            lambda rows: {name: _code_length(own, rows, step, rng, even) for name, own in scaled.items()},
            shares,
            pilot.weights,
        )

    n_values = {name: columns.n_rounded for name, columns in pilot.columns.items()}
    return RowLengths(lengths, n_values)


def _rounded_bits(columns: WhitenedRows, step: float, shares: Floats) -> Floats:
    return expected_bits(columns.values[:, columns.exact.shape[1] :], step, shares)


def _exact_bits(columns: WhitenedRows, shares: Floats) -> Floats:
    return sum((level_bits(column, shares) for column in columns.exact.T), start=np.zeros(len(shares)))


def _counted(sizes: Mapping[str, Floats], shares: Floats, weights: Floats) -> Lengths:
    """Average the bytes of each of the pilot's rows: those of one do not depend on those beside it."""
    by_party = {name: float(np.average(size, weights=shares)) for name, size in sizes.items()}
    total = np.sum(list(sizes.values()), axis=0)
    sums = [total[part] @ shares[part] / shares[part].sum() for part in _parts(weights)]
    return Lengths(by_party, float(np.std(sums, ddof=1)), len(shares) / PARTS)


def _code_length(columns: ScaledRows, rows: Rows, step: float, rng: np.random.Generator, even: Floats) -> int:
    own_step = columns.step * step / PILOT_STEP
    return len(encode_columns(columns.values[rows], even @ columns.values, own_step, rng)[1])


def _measured(lengths: Callable[[Rows], dict[str, int]], shares: Floats, weights: Floats) -> Lengths:
    whole = _again(shares, np.arange(len(shares)))
    by_party = {name: length / len(whole) for name, length in lengths(whole).items()}
    parts = [_again(shares, part) for part in _parts(weights)]
    sums = [sum(lengths(part).values()) / len(part) for part in parts]
    return Lengths(by_party, float(np.std(sums, ddof=1)), len(shares) / PARTS)


def _parts(weights: Floats) -> list[Rows]:
    """Deal rows in the order of their weights, as they are drawn: parts then vary as draws do."""
    order = np.argsort(weights, kind="stable")
    return [order[number::PARTS] for number in range(PARTS)]


def _again(shares: Floats, rows: Rows) -> Rows:
    """Draw rows of the pilot again, as evenly as may be: each its share of times, up to one."""
    ends = np.cumsum(shares[rows])
    count = max(DRAWN_AGAIN * len(rows) // len(shares), 1)
    points = (np.arange(count) + 0.5) / count * ends[-1]
    return np.asarray(rows[np.minimum(np.searchsorted(ends, points, side="right"), len(rows) - 1)])
