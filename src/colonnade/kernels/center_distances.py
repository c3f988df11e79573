"""Squared distances of rows to centres, for models of clusters that are applied to many rows.

What follows from the centres alone is computed once, and rows pass through the cache in pieces of one shape.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows

# What a distance may be wrong by, of itself.
TOLERANCE = 1e-9
# Numbers of rows in a piece, 8 MB, and rows: powers of 2, which every BLAS cuts evenly.
VALUES_AT_ONCE, LEAST_AT_ONCE, MOST_AT_ONCE = 2**20, 2**8, 2**13


@dataclass(frozen=True, eq=False)
class CenterDistances:
    """Computes |x_i - c_l|^2 of rows, shape (m, d), to centres, (k, d), in units of `scale`, (d,).

    Those of parties' columns add up. They are right to 1e-9 of themselves, and to some ten units in the last place of
    |x_i - o|^2 + |c_l - o|^2, with o the median of the centres: so where columns lie does not matter. A row that equals
    a centre is at exactly 0.

    A row's distances are the same bits whatever rows stand beside it, however many there are, and in whichever order
    they lie in memory, on one kind of processor with one BLAS.
    """

    centers: Floats
    scale: Floats | None
    origin: Floats
    norms: Floats
    largest: float
    factors: Floats

    @classmethod
    def to(cls, centers: Floats, scale: Floats | None = None) -> "CenterDistances":
        """Prepare distances to these centres."""
        origin = _medians(centers)
        offsets = centers - origin if scale is None else (centers - origin) / scale
        norms = np.einsum("lj,lj->l", offsets, offsets)
        # |x|^2 + |c|^2 - 2 x.c as one product: the rows get two columns more.
        factors = np.ones((len(centers), centers.shape[1] + 2))
        factors[:, :-2], factors[:, -2] = -2 * offsets, norms
        return cls(centers, scale, origin, norms, float(norms.max(initial=0.0)), factors)

    def of(self, features: Floats) -> Floats:
        """Compute those of rows; shape (m, k), column-major."""
        distances = np.empty((len(self.centers), len(features)))
        if not distances.size:
            return distances.T
        # Always of one shape, whatever is asked for: the bits of a product depend on its shape, and on a row's place
        # where that is near the end of a shape that BLAS cannot cut evenly.
        n_rows = VALUES_AT_ONCE // max(self.factors.shape)
        n_rows = min(MOST_AT_ONCE, max(LEAST_AT_ONCE, 1 << n_rows.bit_length() - 1))
        rows = np.empty((self.factors.shape[1], n_rows))
        if len(features) < n_rows:
            rows[:] = 0.0  # what stands beside the rows is some number
        rows[-2] = 1.0
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is computed by differences
            for start in range(0, len(features), n_rows):
                chunk = slice(start, start + n_rows)
                self._fill(rows, features[chunk], distances[:, chunk])
        return distances.T

    def _fill(self, rows: Floats, features: Floats, found: Floats) -> None:
        """Compute distances of some rows, (k, c), by a product of all that fit into the place for rows, (d + 2, c)."""
        own, squares = rows[:-2, : len(features)], rows[-1, : len(features)]
        np.subtract(features.T, self.origin[:, np.newaxis], out=own)
        if self.scale is not None:
            own /= self.scale[:, np.newaxis]
        np.einsum("ji,ji->i", rows[:-2], rows[:-2], out=rows[-1])
        if len(features) == rows.shape[1]:
            np.matmul(self.factors, rows, out=found)
        else:
            found[:] = (self.factors @ rows)[:, : len(features)]
        # Bounds the rounding of |x|^2, |c|^2, of all sums, and of the differences from the median.
        part = (2 * len(own) + 8) * float(np.finfo(np.float64).eps) / TOLERANCE
        # Mostly the smallest of all tells, and else that of each row. Not "<": what is no number is lost as well.
        if found.min() >= part * (self.largest + squares.max()):
            return
        is_right = found.min(axis=0) >= part * (self.largest + squares)
        (doubtful,) = np.nonzero(~is_right)
        bounds = part * (self.norms[:, np.newaxis] + squares[doubtful])
        label, place = np.nonzero(~(found[:, doubtful] >= bounds))
        found[label, doubtful[place]] = self._by_differences(features, label, doubtful[place])

    def _by_differences(self, features: Floats, label: Rows, row: Rows) -> Floats:
        """Differences first, then squares: no cancellation. Column by column, whose order no shape changes."""
        total = np.zeros(len(row))
        for column, own in enumerate(self.centers.T):
            apart = features[row, column] - own[label]
            total += np.square(apart if self.scale is None else apart / self.scale[column])
        return total


def _medians(columns: Floats) -> Floats:
    """Give the median of each column, 0 where there are no rows; `np.median` looks for NaN, and takes its time."""
    middle, ordered = len(columns) // 2, np.sort(columns, axis=0)
    if not len(columns):
        return np.zeros(columns.shape[1])
    return np.asarray(ordered[middle] if len(columns) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)
