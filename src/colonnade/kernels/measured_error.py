"""How far a coreset's costs are from those of all rows: ε of Definitions 2.3 and 2.4, for given models or the worst."""

from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bases import Spectrum


@dataclass(frozen=True, eq=False)
class RelativeGram:
    """M, the coreset's Gram matrix of [X, 1, y] in units of that of all rows: the identity for a perfect coreset.

    A model v = (θ, θ_0, -1) has the cost v'Sv on all rows; in coordinates z with z'z = v'Sv the coreset's is z'Mz. So
    the eigenvalues of M are the generalised eigenvalues of the two Gram matrices, and ε of the worst of *all* models is
    their largest distance from 1. (Directions without label are limits of models, and belong to the supremum.)

    M has shape (r, r). `optimum` is the unit z of the best model on all rows, shape (r,); None where that fits
    perfectly.
    """

    matrix: Floats
    optimum: Floats | None

    def worst(self) -> tuple[float, Floats]:
        """Find ε over all models, and the z of the model that has it."""
        eigenvalues, V = np.linalg.eigh(self.matrix)
        worst = int(np.argmax(np.abs(eigenvalues - 1)))
        return float(abs(eigenvalues[worst] - 1)), V[:, worst]

    def errors(self, Z: Floats) -> Floats:
        """Compute ε = |z'Mz / z'z - 1| of models, shape (k, r): one a row, of any length but zero."""
        errors: Floats = np.abs(((Z @ self.matrix) * Z).sum(axis=1) / np.square(Z).sum(axis=1) - 1)
        return errors


def relative_gram(core: Floats, everything: Spectrum, label: int | None) -> RelativeGram:
    """Compare a coreset's Gram matrix, shape (d', d'), with that of all rows in the same basis.

    `label` is the basis vector that the label alone enters, as `bases.label_last` makes it. The result is in the
    coordinates of the spectrum's whitening.
    """
    P = everything.whitening
    # v* minimises v'Sv with its label's part fixed: S⁺ e. In coordinates z it is P' e.
    z = None if label is None else P[label]
    perfect = z is None or bool(np.any(np.abs(everything.null[label]) > np.sqrt(np.finfo(np.float64).eps)))
    return RelativeGram(P.T @ core @ P, None if z is None or perfect else z / np.linalg.norm(z))


def random_models(r: int, count: int, rng: np.random.Generator) -> Floats:
    """Draw models in all directions alike, shape (count, r)."""
    return rng.standard_normal((count, r))


def models_near(optimum: Floats, steps: Floats, rng: np.random.Generator) -> Floats:
    """Step away from the best model, a unit z, in random directions: at a step t the cost is 1 + t² times the least."""
    away = rng.standard_normal((len(steps), len(optimum)))
    # Changes of θ are orthogonal to the optimum in z, as residuals are to fitted values.
    away -= np.outer(away @ optimum, optimum)
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    models: Floats = optimum + steps[:, np.newaxis] * np.divide(away, lengths, out=away, where=lengths > 0)
    return models


def costs_of_sets(distances: Floats, weights: Floats, sets: Rows) -> Floats:
    """Compute Σ_i w_i d(x_i, C)², shape (s,), for sets C of centres out of a pool.

    Squared distances, shape (m, p), are to every centre of the pool; `sets`, shape (s, k), say which centres each set
    has.
    """
    return np.array([weights @ distances[:, chosen].min(axis=1) for chosen in sets])


def random_sets(pool: int, size: int, count: int, rng: np.random.Generator) -> Rows:
    """Draw sets of `size` different centres out of a pool, shape (count, size)."""
    return np.array([rng.choice(pool, size, replace=False) for _ in range(count)], dtype=np.int64)


def relative_errors(core: Floats, everything: Floats) -> Floats:
    """Compute |core / everything - 1|; 0 where both are zero, infinite where only the second is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.abs(core / everything - 1)
    errors[(core == 0) & (everything == 0)] = 0.0
    return errors
