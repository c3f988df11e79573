"""How nearly columns depend on each other, and which: from their triangle, whatever the number of rows."""

from dataclasses import dataclass

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import RowBlocks
from colonnade.kernels.linear import RANK_TOLERANCE
from colonnade.kernels.whitening import whiten

# Smaller parts of another column are rounding.
SMALLEST_PART = 1e-8
# Up to this condition number the inverse of a triangle is exact to some ten digits.
WELL_CONDITIONED = 1e6


@dataclass(frozen=True)
class Dependence:
    """A column that others give, but for `rest`: the part of its deviation that they do not explain, 0 to 1."""

    column: int
    others: tuple[int, ...]
    rest: float


def dependences(rows: RowBlocks, least: float) -> tuple[float, list[Dependence]]:
    """Find the condition number of centred columns at length 1, and each column of which others leave a small rest.

    Blocks have shape (b, d). Columns without spread do not count. The condition number is infinite where columns depend
    on each other exactly. A rest below `least` counts as small; the smallest comes first. Weights are not all 0.
    """
    return of_triangle(whiten(rows).mixing, least)


def of_triangle(triangle: Floats, least: float) -> tuple[float, list[Dependence]]:
    """Find the same of columns whose products are those of a triangle's, shape (r, d)."""
    norms = np.linalg.norm(triangle, axis=0)
    spread = np.flatnonzero(norms)
    R = triangle[:, spread] / norms[spread]
    return _condition(R), _dependent(R, spread, least)


Collinearity = tuple[float, list[Dependence], Floats]


def collinearity(triangle: Floats, least: float) -> Collinearity:
    """Find all three of columns whose products are those of a triangle's: with each one's inflation factor, (d,)."""
    return *of_triangle(triangle, least), inflation(triangle)


def inflation(triangle: Floats) -> Floats:
    """Give each column's variance inflation factor, (d,): 1 where no other explains any of it, infinite where all.

    The columns' products are those of a triangle's, shape (r, d). One without spread has none: nan.
    """
    norms = np.linalg.norm(triangle, axis=0)
    there = norms > 0
    found = np.full(len(norms), np.nan)
    if there.any():
        padded = np.vstack([triangle[:, there] / norms[there], np.zeros((np.count_nonzero(there),) * 2)])
        basis, lost = unit_basis(padded)
        found[there] = np.square(basis).sum(axis=1)
        found[np.flatnonzero(there)[(np.abs(lost) > SMALLEST_PART).any(axis=0)]] = np.inf
    return found


def unit_basis(columns: Floats) -> tuple[Floats, Floats]:
    """Find W, shape (d, r), with W'X'XW = I, and orthonormal directions, (d - r, d), in which X is as good as zero.

    X has columns of length 1 or 0, and shape (m, d) with m at least d. W is one of many, which differ by a rotation:
    where columns are far from dependent it is the inverse of their triangle, which takes a tenth of the time.
    """
    R = np.asarray(np.linalg.qr(columns, mode="r"))
    inverse, singular = scipy.linalg.lapack.dtrtri(R) if R.size else (R, 0)
    if not singular and np.linalg.norm(R) * np.linalg.norm(inverse) < WELL_CONDITIONED:
        return np.asarray(inverse), np.empty((0, len(R)))
    _, values, Vt = np.linalg.svd(R)
    kept = values > RANK_TOLERANCE * max(values.max(initial=0.0), 1e-300)
    return np.asarray((Vt[kept] / values[kept, np.newaxis]).T), Vt[~kept]


def _condition(R: Floats) -> float:
    """Divide the largest singular value of R, shape (r, d), by the smallest of d."""
    if not R.size:
        return 1.0
    values = np.linalg.svd(R, compute_uv=False)
    smallest = 0.0 if len(values) < R.shape[1] else values[-1]
    return float(values[0] / smallest) if smallest > RANK_TOLERANCE * values[0] else float("inf")


def _dependent(R: Floats, names: np.ndarray, least: float) -> list[Dependence]:
    """Choose columns that are far from depending on each other, and explain the others by them (pivoted QR)."""
    if not R.size:
        return []
    triangle, order = scipy.linalg.qr(R, mode="r", pivoting=True, check_finite=False)
    rests = np.zeros(R.shape[1])
    rests[: len(triangle)] = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(rests >= least))  # they descend
    factors = scipy.linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:], check_finite=False)
    found = []
    for place, column in enumerate(factors.T):
        rest = float(np.linalg.norm(triangle[rank:, rank + place]))
        # What enters with less than the rest, both at length 1, explains nothing that counts.
        partners = order[:rank][np.abs(column) > max(rest, SMALLEST_PART)]
        found.append(Dependence(int(names[order[rank + place]]), tuple(sorted(names[partners].tolist())), rest))
    return sorted(found, key=lambda each: each.rest)
