"""Logistic regression where one party has the labels and is shown few directions of the others' columns.

Of the others' columns X_o it is shown z_k = X_o d_k, one direction d_k a step, and minimises over the span of all z_k
and its own columns: no step length need be known, and each step's objective is no larger than the one before. What it
gives back is the gradient there, g = X_o'W(p - y) + 2 n l2 theta_o. The next direction is B^-1 g, made orthogonal to
those before it, with B = h X'WX + 2 n l2: the Gram matrix is all that is known of the curvature, and h = pi (1 - pi),
for the share pi of a class, is what it is where nothing is known of a row. On a quadratic these are conjugate gradients
preconditioned by B.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.gram import Summary
from colonnade.kernels.linear import RANK_TOLERANCE

# Of a direction: what is left of it beside earlier ones is rounding.
NOTHING_NEW = 1e-9


@dataclass(frozen=True, eq=False)
class Curvature:
    """B, as far as rows tell it: B^-1 = outward outward', shape (d, r)."""

    outward: Floats

    def newton_step(self, gradient: Floats) -> Floats:
        """Compute B^-1 g, shape (d,)."""
        step: Floats = self.outward @ (self.outward.T @ gradient)
        return step

    def gain(self, gradient: Floats) -> float:
        """Compute g'B^-1 g / 2: by how much the objective would fall if it were a quadratic with this curvature."""
        return 0.5 * float(np.square(self.outward.T @ gradient).sum())


def curvature_of(summary: Summary, pi: float, l2: float, *, fit_intercept: bool) -> tuple[Curvature, Floats]:
    """Find B of features and a label of two values, and the first direction, all columns' (d,): that of least squares.

    `pi` is the weighted share of one class; `l2` is n times the penalty.
    """
    triangle = summary.triangle if fit_intercept else summary.about(np.zeros_like(summary.mean))
    features, label = triangle[:, :-1], triangle[:, -1]
    h = pi * (1 - pi) if fit_intercept else 0.25
    A = np.vstack([np.sqrt(h) * features, np.sqrt(2 * l2) * np.eye(features.shape[1])])
    norms = np.linalg.norm(A, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    _, S, Vt = np.linalg.svd(A / scale, full_matrices=False)
    kept = RANK_TOLERANCE * S.max(initial=0.0) < S
    outward = (Vt[kept] / S[kept, None]).T / scale[:, None]
    curvature = Curvature(outward)
    return curvature, curvature.newton_step(features.T @ label)


def new_direction(step: Floats, earlier: Floats, units: Floats) -> Floats | None:
    """Make a step, (d,), orthogonal to earlier directions, (k, d), in these units, of length 1; None if none is left.

    Directions are orthonormal once multiplied by the units.
    """
    scaled, known = step * units, earlier * units
    length = np.linalg.norm(scaled)
    for _ in range(2):  # once more, for what rounding left
        scaled = scaled - known.T @ (known @ scaled)
    left = np.linalg.norm(scaled)
    if not left > NOTHING_NEW * length:
        return None
    direction: Floats = scaled / left / units
    return direction


def told_of_one_row(columns: Floats, rows: Rows) -> float:
    """Tell how much of a row sums by these weights tell, added and subtracted: of the worst row, from 0 to 1.

    `columns`, shape (m, k), are the weights of rows, which may repeat, in k sums. Of all combinations that have the row
    once, the one that has least of the others has so much of these that squares add up to one over this, less one.
    """
    _, places = np.unique(rows, return_inverse=True)
    weights = np.stack([np.bincount(places, column) for column in columns.T], axis=1)
    norms = np.linalg.norm(weights, axis=0)
    U, S, _ = np.linalg.svd(weights / np.where(norms > 0, norms, 1.0), full_matrices=False)
    return float(np.square(U[:, RANK_TOLERANCE * S.max(initial=0.0) < S]).sum(axis=1).max(initial=0.0))
