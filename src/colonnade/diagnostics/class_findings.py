"""What follows from rows in the parties' bases and their classes, wherever they come from: of a classification."""

from dataclasses import dataclass

import numpy as np

from colonnade.diagnostics.records import Epsilon, Mu, Sensitivity
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.bases import Spectrum, sensitivities
from colonnade.kernels.class_complexity import mu_complexity, sensitivity_bounds
from colonnade.kernels.logistic import Separable, solve_logistic
from colonnade.kernels.logits import curvature, log_loss
from colonnade.kernels.measured_error import relative_errors

N_RANDOM, N_NEAR = 300, 100
# Of models at random: the root of the mean square of their logits.
SIZES = (0.3, 1.0, 3.0, 10.0)
# Near the best: logits move by so much, in root mean square over rows by their curvature.
MOVES = (0.0, 0.1, 0.3, 1.0)
# Of the weight of all rows: rows looked at may be told apart where all are not.
LEAST_PENALTY = 1e-6


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows in coordinates of all parties, (m, r), the constant among them if there is an intercept; classes, 1 or 0.

    With weights, (m,), they stand for all.
    """

    rows: Floats
    classes: Floats
    weights: Floats

    def some(self, which: Flags) -> "ClassRows":
        """Take some, to stand for all."""
        factor = self.weights.sum() / self.weights[which].sum()
        return ClassRows(self.rows[which], self.classes[which], factor * self.weights[which])

    def costs(self, models: Floats) -> Floats:
        """Compute the log-loss of models, (k, r), shape (k,)."""
        return np.asarray(self.weights @ self.losses(models))

    def losses(self, models: Floats) -> Floats:
        """Compute each row's of each model, shape (m, k)."""
        codes = self.classes.astype(np.int64)
        return np.stack([log_loss(logits, codes) for logits in models @ self.rows.T], axis=1)

    def mu(self, halves: Flags | None) -> Mu:
        """Find mu; where it is an estimate, also of the rows that are marked and of the others."""
        value = mu_complexity(self.rows, self.classes, self.weights)
        share = float(self.weights @ self.classes / self.weights.sum())
        parts = None
        if halves is not None:
            first, second = (self.some(which) for which in (halves, ~halves))
            parts = tuple(mu_complexity(each.rows, each.classes, each.weights) for each in (first, second))
        return Mu(value, max(share, 1 - share) / max(min(share, 1 - share), 1e-300), parts)  # type: ignore[arg-type]

    def models(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw models at random, and near the best of these rows."""
        r, total = self.rows.shape[1], self.weights.sum()
        covariance = (self.rows * (self.weights / total)[:, np.newaxis]).T @ self.rows
        random = rng.standard_normal((N_RANDOM, r))
        lengths = np.sqrt(np.einsum("ij,ij->i", random @ covariance, random))[:, np.newaxis]
        random *= np.resize(np.array(SIZES), N_RANDOM)[:, np.newaxis] / np.maximum(lengths, 1e-300)
        codes = self.classes.astype(np.int64)
        try:
            coef, _ = solve_logistic(self.rows, codes, self.weights, 2, LEAST_PENALTY * total, 0.0, fit_intercept=False)
        except (Separable, ValueError):
            return random, np.empty((0, r))
        bends = self.weights * curvature(self.rows @ coef[0])
        hessian = (self.rows * (bends / max(bends.sum(), 1e-300))[:, np.newaxis]).T @ self.rows
        away = rng.standard_normal((N_NEAR, r))
        lengths = np.sqrt(np.einsum("ij,ij->i", away @ hessian, away))[:, np.newaxis]
        return random, coef + np.resize(np.array(MOVES), N_NEAR)[:, np.newaxis] * away / np.maximum(lengths, 1e-300)

    def sensitivity(self, scores: Floats, whole: Spectrum, mu: Mu, models: Floats, n_rows: int) -> Sensitivity:
        """Set what rows matter, at models tried and at most, against their scores, (m,)."""
        losses = self.losses(models)
        zeta = float((losses / (self.weights @ losses) / scores[:, np.newaxis]).max())
        bound = sensitivity_bounds(sensitivities(self.rows, whole), mu.value, n_rows) / scores
        total = float(self.weights @ scores)
        return Sensitivity(total, zeta, float(bound.max()), None)

    def epsilon(self, core: "ClassRows", random: Floats, near: Floats, half: Flags | None) -> Epsilon:
        """Measure a coreset's error at models; `half` marks half of these rows, where they are a sample themselves."""
        errors, close = (relative_errors(core.costs(models), self.costs(models)) for models in (random, near))
        floor = None
        if half is not None:
            floor = float(relative_errors(self.some(half).costs(random), self.costs(random)).max())
        return Epsilon(
            len(core.weights),
            None,
            float(errors.mean()),
            float(errors.max()),
            float(close.mean()) if len(close) else None,
            float(close.max()) if len(close) else None,
            floor,
        )
