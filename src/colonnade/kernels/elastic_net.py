"""Weighted least squares with l1 and l2 penalties, safe for any rank.

scikit-learn's coordinate descent does the work, on the triangle of `linear`, so that its cost does not depend on the
number of rows. On nearly collinear columns with a small penalty it would take millions of sweeps; there an active-set
method takes over, which is exact on each face of signs. The duality gap says which of the two is needed.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from colonnade.errors import ConvergenceWarning
from colonnade.kernels.arrays import Floats
from colonnade.kernels.linear import RANK_TOLERANCE, ROUNDING, LinearProblem, solve_ridge

GAP = 1e-9  # relative to the objective: what is aimed at
WARN_GAP = 1e-6  # what a warning is given for
MOVES = 10  # of a dual point
SWEEPS = 5_000


@dataclass(frozen=True, eq=False)
class _Lasso:
    """Minimise |b - A theta|^2 + penalty |theta|_1; an l2 penalty is among the rows."""

    A: Floats
    b: Floats
    penalty: float

    def objective(self, theta: Floats) -> float:
        residual = self.b - self.A @ theta
        return float(residual @ residual + self.penalty * np.abs(theta).sum())

    def gap(self, theta: Floats) -> float:
        """Bound how far the objective is above its minimum, by the dual point k * residual, or by one beside it.

        The columns count as known up to rounding: a tiny penalty cannot be told from what rounding pulls.
        """
        residual = self.b - self.A @ theta
        norms = np.linalg.norm(self.A, axis=0)
        rounding = ROUNDING * norms * (np.linalg.norm(self.b) + norms @ np.abs(theta))
        points = residual, self._moved(residual, norms, rounding)
        return self.objective(theta) - max(self._bound(point, rounding) for point in points)

    def _bound(self, point: Floats, rounding: Floats) -> float:
        """Give the dual objective at k * point, where no column pulls harder than the penalty."""
        steepest = 2 * (np.abs(self.A.T @ point) - rounding).max()
        k = self.penalty / max(self.penalty, steepest)
        return float(k * (2 * point @ self.b - k * point @ point))

    def _moved(self, point: Floats, norms: Floats, rounding: Floats) -> Floats:
        """Move a point so that columns that pull too hard do not: for a huge column next to nothing is far enough."""
        for _ in range(MOVES):
            pulls = self.A.T @ point
            excess = np.abs(pulls) - rounding - self.penalty / 2
            worst = int(np.argmax(excess))
            if excess[worst] <= 0:
                break
            point = point - self.A[:, worst] * (np.sign(pulls[worst]) * excess[worst] / norms[worst] ** 2)
        return point


def solve_elastic_net(problem: LinearProblem, l2_penalty: float, l1_penalty: float, start: Floats) -> Floats:
    """Minimise |R theta - r|^2 + l2_penalty |theta|^2 + l1_penalty |theta|_1.

    The penalties are n * l2 and n * l1, in the data's own units, where n is the weight of all rows. `start` is zeros,
    or the solution at a larger penalty. The objective comes within 1e-9 of the minimum, relative, where float64 allows;
    where it may be off by more than 1e-6, a `ConvergenceWarning` says so.
    """
    ridge_theta = solve_ridge(problem, l2_penalty)
    if l1_penalty == 0:
        return ridge_theta
    lasso = _with_l2_as_rows(problem, l2_penalty, l1_penalty)
    if l1_penalty >= 2 * np.abs(lasso.A.T @ lasso.b).max(initial=0.0):
        return np.zeros_like(ridge_theta)
    # What ridge leaves is a lower bound of the objective. A penalty that is lost in it changes nothing.
    bound = lasso.objective(ridge_theta) - l1_penalty * np.abs(ridge_theta).sum()
    negligible = GAP * bound + ROUNDING * lasso.b @ lasso.b
    if l1_penalty * np.abs(ridge_theta).sum() <= negligible:
        return ridge_theta
    theta = _coordinate_descent(lasso, start, negligible)
    # From zero the faces stay smaller, and so better conditioned, but there are more of them.
    for begin, wanted in ((theta, GAP), (np.zeros_like(theta), WARN_GAP)):
        if lasso.gap(theta) > wanted * lasso.objective(theta):
            theta = min(theta, _active_set(lasso, begin), key=lasso.gap)
    _warn_unless_closed(lasso, theta)
    return theta


def _with_l2_as_rows(problem: LinearProblem, l2_penalty: float, l1_penalty: float) -> _Lasso:
    if l2_penalty == 0:
        return _Lasso(problem.lhs, problem.rhs, l1_penalty)
    d = problem.lhs.shape[1]
    A = np.vstack([problem.lhs, np.sqrt(l2_penalty) * np.eye(d)])
    return _Lasso(A, np.concatenate([problem.rhs, np.zeros(d)]), l1_penalty)


def _coordinate_descent(lasso: _Lasso, start: Floats, gap: float) -> Floats:
    """Sweep until the duality gap is small, or sweeps run out.

    Each step is the exact minimum in one coordinate, so that the columns' scales do not matter.
    """
    from sklearn.exceptions import ConvergenceWarning as SweepsRanOut
    from sklearn.linear_model import enet_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SweepsRanOut)  # the gap is looked at afterwards
        _, path, _ = enet_path(
            lasso.A,
            lasso.b,
            l1_ratio=1.0,
            alphas=[lasso.penalty / (2 * len(lasso.b))],  # theirs is the mean over rows, halved
            precompute=False,  # the Gram matrix would square the condition number
            coef_init=start.copy(),
            tol=gap / (lasso.b @ lasso.b),
            max_iter=SWEEPS,
        )
    theta: Floats = path[:, 0]
    return theta


def _active_set(lasso: _Lasso, start: Floats) -> Floats:
    """Solve exactly for the signs at hand, drop what reaches zero, let in what pulls hardest; repeat.

    This is the feature-sign search of Lee et al. (2007), in columns scaled to norm 1 and with null directions followed
    until a sign changes, so that collinear columns do no harm. The objective never rises.
    """
    scale = np.linalg.norm(lasso.A, axis=0)
    scale[scale == 0] = 1.0
    A, pull = lasso.A / scale, lasso.penalty / scale
    phi = start * scale
    signs = np.sign(phi)
    rounding = ROUNDING * float(np.linalg.norm(lasso.b))
    for _ in range(10 * len(phi) + 100):
        phi, signs = _descend_face(A, lasso.b, pull, phi, signs)
        gradient = 2 * A.T @ (A @ phi - lasso.b)
        excess = np.where(signs == 0, np.abs(gradient) - pull * (1 + GAP), -np.inf)
        entering = int(np.argmax(excess))
        if excess[entering] <= rounding:
            break
        signs[entering] = -np.sign(gradient[entering])
    theta: Floats = phi / scale
    return theta


def _descend_face(A: Floats, b: Floats, pull: Floats, phi: Floats, signs: Floats) -> tuple[Floats, Floats]:
    """Find the minimum among the points with these signs, leaving out coordinates that reach zero on the way."""
    phi, signs = phi.copy(), signs.copy()
    while signs.any():
        face = np.flatnonzero(signs)
        step, furthest = _face_step(A[:, face], A @ phi - b, 0.5 * (pull * signs)[face])
        falling = np.flatnonzero(step * signs[face] < 0)
        reach = -phi[face][falling] / step[falling]
        length = min(furthest, reach.min(initial=np.inf))
        if not np.isfinite(length):  # a null direction that rounding made up
            break
        phi[face] += length * step
        if length == furthest:
            break
        gone = face[falling[np.argmin(reach)]]
        phi[gone] = signs[gone] = 0.0
    return phi, signs


def _face_step(A: Floats, residual: Floats, pull: Floats) -> tuple[Floats, float]:
    """Give the step to the minimum of |A phi - b|^2 / 2 + pull.phi and its length, 1; or a way down without an end."""
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    rank = np.count_nonzero(S / S[0] > RANK_TOLERANCE)
    U, S, Vt = U[:, :rank], S[:rank], Vt[:rank]
    along = Vt @ pull
    null = pull - Vt.T @ along
    if np.linalg.norm(null) > 1e-9 * np.linalg.norm(pull):
        return -null, np.inf
    return -Vt.T @ ((U.T @ residual + along / S) / S), 1.0


def _warn_unless_closed(lasso: _Lasso, theta: Floats) -> None:
    gap, objective = lasso.gap(theta), lasso.objective(theta)
    if gap > WARN_GAP * objective + ROUNDING * lasso.b @ lasso.b:
        warnings.warn(
            f"The l1 solution may be up to {gap / objective:.1g} above the minimum, relative to the objective: "
            "columns are too nearly collinear for float64. Raise l2 or l1, or leave out columns that others determine.",
            ConvergenceWarning,
            stacklevel=2,
        )
