"""Orthonormal bases of the parties' columns, side by side: γ of Assumption 4.1 and the sensitivity of rows.

U = [U^(1), ..., U^(T)] has a Gram matrix S = U'U with ones on its diagonal and the overlap of the parties' columns
beside it. All that regression diagnostics need is in S: γ² is its smallest eigenvalue, and the sensitivity of row i is
u_i' S⁺ u_i.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats

# Singular values of U below this count as zero. They are accurate to about 1e-8 (S is, to 1e-16); and a direction of
# less than 1e-5 that is no rounding could show only in data of more than 1e10 rows, or a label predicted to ten digits.
NO_LENGTH = 1e-5


def label_last(W: Floats, label: int) -> Floats:
    """Turn a basis so that the label enters its last vector alone: the others are then of features only.

    W, shape (p, r) with r >= 1, leads from rows to coordinates, as `leverage.basis` gives it; `label` is which of the p
    columns the label is. The result is W times a rotation: the same space, the same γ. Its row `label` is zero but for
    the last entry.
    """
    r = W.shape[1]
    onto = np.zeros(r)
    onto[-1] = np.linalg.norm(W[label])
    mirror = W[label] - onto
    squared = float(mirror @ mirror)
    turned = W.copy() if squared == 0 else W - np.outer(W @ mirror, mirror) * (2 / squared)
    turned[label, :-1] = 0.0
    return turned


def gram(U: Floats, weights: Floats | None = None) -> Floats:
    """Compute Σ_i w_i u_i u_i', shape (d', d'), of rows U (m, d'); without weights they are 1."""
    product: Floats = U.T @ (U if weights is None else weights[:, np.newaxis] * U)
    return product


@dataclass(frozen=True, eq=False)
class Spectrum:
    """S taken apart: its eigenvalues that are not zero, shape (r,), ascending, and their unit eigenvectors, (d', r).

    `null`, shape (d', d' - r), has the directions in which the parties' columns are dependent.
    """

    eigenvalues: Floats
    directions: Floats
    null: Floats

    @property
    def gamma(self) -> float:
        """σ_min(U), Assumption 4.1: zero where columns of different parties are dependent."""
        return 0.0 if self.null.shape[1] else self.effective_gamma

    @property
    def effective_gamma(self) -> float:
        """The least singular value of U that is not zero.

        It does all that γ does in the proof of Lemma E.2: every u_i is orthogonal to the null directions, so that
        u_i' S⁺ u_i <= |u_i|² / σ² holds with it. A column that two parties share costs nothing.
        """
        return float(np.sqrt(self.eigenvalues[0])) if len(self.eigenvalues) else 0.0

    @property
    def whitening(self) -> Floats:
        """P, shape (d', r), with P' S P the identity."""
        return self.directions / np.sqrt(self.eigenvalues)


def spectrum(S: Floats) -> Spectrum:
    """Take S, the symmetric Gram matrix of joined bases, apart."""
    eigenvalues, V = np.linalg.eigh(S)
    present = eigenvalues > NO_LENGTH**2
    return Spectrum(eigenvalues[present], V[:, present], V[:, ~present])


def sensitivities(U: Floats, of: Spectrum) -> Floats:
    """Compute sup_θ cost_i(θ) / cost(θ) for each row: its leverage among all columns, label included (Lemma E.2).

    U, shape (m, d'), has rows in the joined bases, and the spectrum is of all rows. Exact without a penalty. With one,
    at most 1/n more.
    """
    lengths: Floats = np.square(U @ of.whitening).sum(axis=1)
    return lengths


def triangle(blocks: Iterable[Sequence[Floats]]) -> Floats:
    """Reduce columns held in several tables to R, shape (at most d, d), with R'R = X'X.

    A block has the same rows of every table, shapes (b, d_j), from the first rows to the last. X is all tables' columns
    side by side.
    """
    R: Floats | None = None
    for parts in blocks:
        rows = np.column_stack(parts)
        R = np.asarray(np.linalg.qr(rows if R is None else np.vstack([R, rows]), mode="r"))
    if R is None:
        raise ValueError("no blocks")
    return R


def inverse_condition(R: Floats) -> float:
    """Compute σ_min / σ_max, which γ is at least (Lemma B.1), of columns reduced to R; 0 where it is all rounding."""
    values = np.linalg.svd(R, compute_uv=False)
    rounding = len(values) * np.finfo(np.float64).eps * values[0]
    return float(values[-1] / values[0]) if len(values) == R.shape[1] and values[-1] > rounding else 0.0


def unit_columns(R: Floats) -> Floats:
    """Scale the columns of R to length one; zero ones stay. γ does not change if a party rescales its columns."""
    lengths = np.linalg.norm(R, axis=0)
    scaled: Floats = R / np.where(lengths > 0, lengths, 1.0)
    return scaled
