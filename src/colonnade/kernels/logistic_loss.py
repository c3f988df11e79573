"""The logistic loss of rows in coordinates that suit it, its derivatives, and the way back to coefficients."""

from dataclasses import dataclass

import numpy as np
import scipy

from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.linear import RANK_TOLERANCE, ROUNDING, reduce_rows
from colonnade.kernels.logits import log_loss, probabilities

Solution = tuple[Floats, Floats]  # coef, shape (k, d), and intercept, (k,)


def contrasts(n_classes: int) -> Floats:
    """Give orthonormal columns, shape (K, K - 1), that sum to zero; for two classes the logit of class 1 alone.

    What is added to all of a row's logits changes no probability: K classes have K - 1 margins.
    """
    if n_classes == 2:
        return np.array([[0.0], [1.0]])
    return np.asarray(scipy.linalg.helmert(n_classes).T)


@dataclass(frozen=True, eq=False)
class Space:
    """Coordinates u = (x - centre) outward of the columns `live`; the others are constant and have no part.

    The centre is the weighted mean with an intercept, zero without. `outward`, shape (d, r), and `inward`, (r, d), are
    inverses in the r directions that the rows have. With an intercept rows have one column more, which is `constant`
    (0 without). `back`, shape (k, q), leads from margins to the model's k logits: one of two classes, else K.
    """

    live: Flags
    centre: Floats
    inward: Floats
    outward: Floats
    constant: float
    back: Floats

    @property
    def rank(self) -> int:
        """How many coordinates there are, without the intercept's."""
        return len(self.inward)

    def rows(self, X: Floats) -> Floats:
        """Lead rows (m, d) to their coordinates."""
        U = (X[:, self.live] - self.centre) @ self.outward
        return np.column_stack([U, np.full(len(U), self.constant)]) if self.constant else U

    def enter(self, solution: Solution) -> Floats:
        """Lead a solution to parameters psi, shape (q, p)."""
        coef, intercept = solution
        theta = coef[:, self.live]
        phi = self.back.T @ theta @ self.inward.T
        if not self.constant:
            return np.asarray(phi)
        at_centre = self.back.T @ (intercept + theta @ self.centre)
        return np.column_stack([phi, at_centre / self.constant])

    def leave(self, theta: Floats, psi: Floats) -> Solution:
        """Give the solution of theta, shape (k, columns alive), with the intercepts of psi, (q, p)."""
        coef = np.zeros((len(theta), len(self.live)))
        coef[:, self.live] = theta
        if not self.constant:
            return coef, np.zeros(len(theta))
        intercept = self.constant * self.back @ psi[:, -1] - theta @ self.centre
        return coef, intercept - intercept.mean() if len(intercept) > 1 else intercept

    def theta(self, psi: Floats) -> Floats:
        """Lead parameters (q, p) to coefficients of the columns alive, those of least norm; shape (k, d)."""
        return np.asarray(self.back @ psi[:, : self.rank] @ self.outward.T)


def space_of(X: Floats, weights: Floats, n_classes: int, l2: float, *, fit_intercept: bool) -> Space:
    """Find coordinates in which the most that the curvature can be, weights / 4 and the l2 penalty, is 1 all over."""
    problem = reduce_rows(X, np.zeros(len(X)), weights, fit_intercept=fit_intercept)
    live = np.asarray(problem.lhs.any(axis=0))
    A = np.vstack([0.5 * problem.lhs[:, live], np.sqrt(2 * l2) * np.eye(int(live.sum()))])
    scale = np.linalg.norm(A, axis=0)
    _, S, Vt = np.linalg.svd(A / scale, full_matrices=False)
    S, Vt = S[S > 0, None], Vt[S > 0]
    # Nor is a direction one that rounding alone, of values far larger than their spread, could have made.
    rounding = 0.5 * ROUNDING * np.sqrt(weights @ np.square(X[:, live]))
    kept = (S[:, 0] / S.max(initial=0.0) > RANK_TOLERANCE) & (np.linalg.norm(Vt / S / scale * rounding, axis=1) < 1.0)
    S, Vt = S[kept], Vt[kept]
    constant = 0.5 / np.sqrt(weights.sum()) if fit_intercept else 0.0
    E = contrasts(n_classes)
    back = E[1:] if n_classes == 2 else E
    return Space(live, problem.centre[:-1][live], S * Vt * scale, (Vt / S / scale).T, constant, back)


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of rows u, shape (m, p), under parameters psi, (q, p): margins are u psi', logits margins contrasts'."""

    rows: Floats
    codes: Rows
    weights: Floats
    contrasts: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the parameters."""
        return self.contrasts.shape[1], self.rows.shape[1]

    def margins(self, psi: Floats) -> Floats:
        """Compute the margins, shape (m, q), which are linear in psi."""
        return np.asarray(self.rows @ psi.T)

    def value(self, margins: Floats) -> float:
        """Sum the rows' weighted losses."""
        logits = margins[:, 0] if len(self.contrasts) == 2 else margins @ self.contrasts.T
        return float(self.weights @ log_loss(logits, self.codes))

    def gradient(self, margins: Floats) -> Floats:
        """Compute the first derivatives, shape (q, p)."""
        pulls = probabilities(margins @ self.contrasts.T)
        own = np.arange(len(pulls)), self.codes
        pulls[own] = 0.0
        pulls[own] = -pulls.sum(axis=1)  # and not p - 1, which is lost in rounding when p is nearly 1
        return np.asarray((pulls @ self.contrasts * self.weights[:, None]).T @ self.rows)

    def hessian(self, margins: Floats) -> Floats:
        """Compute the second derivatives, shape (q, p, q, p)."""
        q, p = self.shape
        H = np.empty((q, p, q, p))
        covariances = self._covariances(probabilities(margins @ self.contrasts.T))
        for a in range(q):
            for b in range(a + 1):
                H[a, :, b] = self.rows.T @ (covariances[a, b, :, None] * self.rows)
                H[b, :, a] = H[a, :, b].T
        return H

    def _covariances(self, shares: Floats) -> Floats:
        """Compute w times the contrasts' covariances under each row's probabilities: (q, q, m), the lower half."""
        q = self.contrasts.shape[1]
        result = np.zeros((q, q, len(shares)))
        for code in range(shares.shape[1]):
            mine = np.flatnonzero(self.codes == code)
            # About the row's own class, whose probability may be nearly 1: nothing is lost in rounding.
            E, p = self.contrasts - self.contrasts[code], shares[mine]
            means = p @ E
            for a in range(q):
                for b in range(a + 1):
                    result[a, b, mine] = p @ (E[:, a] * E[:, b]) - means[:, a] * means[:, b]
        return result * self.weights
