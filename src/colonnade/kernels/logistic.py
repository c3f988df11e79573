"""Logistic and softmax regression with l2 and l1 penalties, safe for any rank and any scale of the columns.

Damped Newton steps, in coordinates in which the curvature is at most 1 in every direction, and is less only where rows
are told well: neither the scales of the columns nor their dependence matter there. With an l1 penalty each step's
quadratic is left to `solve_elastic_net`, so that zeros are exact.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy

from colonnade.errors import ConvergenceWarning
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.class_separation import growing, told_apart
from colonnade.kernels.elastic_net import solve_elastic_net
from colonnade.kernels.linear import LinearProblem
from colonnade.kernels.logistic_loss import Loss, Solution, Space, contrasts, space_of
from colonnade.kernels.logits import curvature, log_loss, probabilities

__all__ = ["Separable", "Solution", "curvature", "log_loss", "probabilities", "solve_logistic"]

DECREASE = 1e-12  # of the objective: what a step must promise for another to follow; each about squares it
FARTHEST = 4.0
STEPS = 300
SINGULAR = 1e-14  # of the largest curvature: what is lost in rounding
ROUNDING = 1e-15
# A Hessian of so many parameters takes 32 MB, and a second to add up on 2,000 rows and to factor. More, and L-BFGS is
# faster, which needs none but takes hundreds of steps.
NEWTON_PARAMETERS = 2_000
QUASI_NEWTON_STEPS = 20_000


class Separable(ValueError):  # noqa: N818
    """Classes that can be told apart without error, in whole or in part, where no penalty ends that.

    `columns` are the places of those whose coefficients grow most.
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        super().__init__(
            "Classes can be told apart without error, in whole or in part: without a penalty the coefficients of "
            f"columns {', '.join(map(str, columns))} grow without an end. Pass an l2 above 0, or leave them out."
        )


def solve_logistic(
    X: Floats,
    codes: Rows,
    weights: Floats,
    n_classes: int,
    l2: float,
    l1: float,
    *,
    fit_intercept: bool,
    start: Solution | None = None,
) -> Solution:
    """Minimise sum_i w_i (logsumexp(f_i) - f_i,y_i) + l2 |Theta|^2 + l1 |Theta|_1, where f_i = Theta x_i + intercept.

    Two classes have one row of Theta, the logit of class 1; that of class 0 is zero. More classes have one each, and
    what no penalty decides sums to zero over them. Of several minimisers that of least norm in scaled columns is given.

    Parameters
    ----------
    X : array, shape (m, d)
    codes : array, shape (m,)
        Each row's class, 0 to K - 1.
    weights : array, shape (m,)
        Non-negative; every class has some.
    n_classes : int
        K, at least 2.
    l2, l1 : float
        The penalties times n, in the columns' own units.
    fit_intercept : bool
        Whether there are intercepts, which no penalty is on.
    start : (coef, intercept), optional
        What was found at a penalty nearby.

    Returns
    -------
    coef : array, shape (1, d) or (K, d)
    intercept : array, shape (1,) or (K,)
        Zeros where it is not fitted.

    Raises
    ------
    Separable
        Without a penalty, where coefficients that tell classes apart grow without an end.
    """
    kept = weights > 0
    X, codes, weights = X[kept], codes[kept], weights[kept]
    _check_classes(codes, n_classes)
    space = space_of(X, weights, n_classes, 0.0 if l1 else l2, fit_intercept=fit_intercept)
    loss = Loss(space.rows(X), codes, weights, contrasts(n_classes))
    terms = _L1(loss, space, l2, l1) if l1 and space.live.any() else _L2(loss, space, l2)
    point = terms.begin(start)
    few = loss.shape[0] * loss.shape[1] <= NEWTON_PARAMETERS
    point, converged = _descend(terms, point) if few else terms.quasi_newton(point)
    if terms.unpenalised:
        _refuse_separable(loss, space, terms.psi(point))
    if not converged:
        warnings.warn(
            "The logistic loss was still falling after the last step. Raise l2, or leave out columns that others "
            "determine.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return terms.solution(point)


def _check_classes(codes: Rows, n_classes: int) -> None:
    counts = np.bincount(codes, minlength=n_classes)
    if n_classes < 2 or len(counts) > n_classes or not counts.all():
        raise ValueError(
            f"{n_classes} classes, of which these have rows with weight: {np.flatnonzero(counts).tolist()}. There must "
            "be two or more, and rows of each: draw more rows, or leave out classes without any."
        )


def _refuse_separable(loss: Loss, space: Space, psi: Floats) -> None:
    direction = growing(loss.rows, loss.codes, loss.contrasts, psi)
    if direction is not None:
        moves = np.abs(space.theta(direction)).max(axis=0) * np.linalg.norm(space.inward, axis=0)
        raise Separable(tuple(np.flatnonzero(space.live)[moves >= 0.5 * moves.max()].tolist()))


class _L2:
    """Loss and l2 penalty. A point is psi, flat."""

    decrease = DECREASE
    certain = True

    def __init__(self, loss: Loss, space: Space, l2: float) -> None:
        self.loss, self.space, self.unpenalised = loss, space, l2 == 0
        r = space.rank
        self.P = np.zeros((loss.shape[1], loss.shape[1]))
        self.P[:r, :r] = 2 * l2 * space.outward.T @ space.outward

    def begin(self, start: Solution | None) -> Floats:
        return np.zeros(self.loss.shape).ravel() if start is None else self.space.enter(start).ravel()

    def psi(self, point: Floats) -> Floats:
        return point.reshape(self.loss.shape)

    def penalty(self, point: Floats) -> float:
        psi = self.psi(point)
        return float(0.5 * np.sum((psi @ self.P) * psi))

    def gradient(self, point: Floats, margins: Floats) -> Floats:
        return np.asarray(self.loss.gradient(margins) + self.psi(point) @ self.P).ravel()

    def step(self, point: Floats, margins: Floats) -> tuple[Floats, float]:
        """Give the step to the minimum of the local quadratic, and the objective's slope along it."""
        gradient = self.gradient(point, margins)
        H = self.loss.hessian(margins).reshape(len(point), len(point)) + np.kron(np.eye(self.loss.shape[0]), self.P)
        step = -_solve(H, gradient)
        return step, float(gradient @ step)

    def quasi_newton(self, point: Floats) -> tuple[Floats, bool]:
        def value(at: Floats) -> tuple[float, Floats]:
            margins = self.loss.margins(self.psi(at))
            return self.loss.value(margins) + self.penalty(at), self.gradient(at, margins)

        return _quasi_newton(value, point, None)

    def solution(self, point: Floats) -> Solution:
        return self.space.leave(self.space.theta(self.psi(point)), self.psi(point))


class _L1:
    """Loss and both penalties. A point is theta, flat, and then what psi has for the intercepts."""

    unpenalised = False
    decrease = 1e-10  # `solve_elastic_net` is not exact

    def __init__(self, loss: Loss, space: Space, l2: float, l1: float) -> None:
        self.loss, self.space, self.l2, self.l1 = loss, space, l2, l1
        self.shape = len(space.back), space.inward.shape[1]

    def begin(self, start: Solution | None) -> Floats:
        if start is None:
            start = np.zeros((len(self.space.back), len(self.space.live))), np.zeros(len(self.space.back))
        return np.append(start[0][:, self.space.live], self.space.enter(start)[:, self.space.rank :])

    def psi(self, point: Floats) -> Floats:
        theta, constants = self._parted(point)
        return np.column_stack([self.space.back.T @ theta @ self.space.inward.T, constants])

    def _parted(self, point: Floats) -> tuple[Floats, Floats]:
        theta, constants = np.split(point, [self.shape[0] * self.shape[1]])
        return theta.reshape(self.shape), constants.reshape(self.loss.shape[0], -1)

    def penalty(self, point: Floats) -> float:
        theta, _ = self._parted(point)
        return float(self.l2 * np.sum(theta**2) + self.l1 * np.abs(theta).sum())

    def step(self, point: Floats, margins: Floats) -> tuple[Floats, float]:
        """Give the step to the minimum of the local quadratic and the penalties, and a bound of the slope along it."""
        theta = self._parted(point)[0].ravel()
        gradient, H = self.loss.gradient(margins), self.loss.hessian(margins)
        inward = np.kron(self.space.back.T, self.space.inward)
        r, size = self.space.rank, len(inward)
        g, g_0 = gradient[:, :r].ravel(), gradient[:, r:].ravel()
        H_0 = H[:, r:, :, :r].reshape(-1, size)
        # The intercepts are free, and follow: what they take is left out of the quadratic.
        follow = _solve(H[:, r:, :, r:].reshape(len(g_0), len(g_0)), np.column_stack([g_0, H_0]))
        g -= H_0.T @ follow[:, 0]
        values, vectors = np.linalg.eigh(H[:, :r, :, :r].reshape(size, size) - H_0.T @ follow[:, 1:])
        root = np.sqrt(np.maximum(values, SINGULAR * values[-1]) / 2)
        A = root[:, None] * (vectors.T @ inward)
        b = A @ theta - vectors.T @ g / (2 * root)
        problem = LinearProblem(np.column_stack([A, b]), np.zeros(len(theta) + 1))
        with warnings.catch_warnings(record=True) as caught:  # on the way they mean nothing
            warnings.simplefilter("always")
            new = solve_elastic_net(problem, self.l2, self.l1, theta)
        self.certain = not caught
        change = inward @ (new - theta)
        slope = g @ change - g_0 @ follow[:, 0] + 2 * self.l2 * theta @ (new - theta)
        slope += self.l1 * (np.abs(new).sum() - np.abs(theta).sum())
        return np.append(new - theta, -follow[:, 0] - follow[:, 1:] @ change), float(slope)

    def quasi_newton(self, point: Floats) -> tuple[Floats, bool]:
        """Descend in theta's positive and negative parts, which the bound 0 makes exact zeros of."""
        theta, constants = self._parted(point)
        scale = np.linalg.norm(self.space.inward, axis=0)
        r, size = self.space.rank, theta.size

        def joined(flat: Floats) -> Floats:
            parts = (flat[:size] - flat[size : 2 * size]).reshape(self.shape) / scale
            return np.append(parts, flat[2 * size :])

        def value(flat: Floats) -> tuple[float, Floats]:
            at = joined(flat)
            margins = self.loss.margins(self.psi(at))
            gradient = self.loss.gradient(margins)
            of_theta = self.space.back @ gradient[:, :r] @ self.space.inward + 2 * self.l2 * self._parted(at)[0]
            parts = ((of_theta + self.l1) / scale).ravel(), ((self.l1 - of_theta) / scale).ravel()
            # Both parts of an entry may be above zero on the way: their sum is what the gradient is of.
            both = self.l1 * np.sum((flat[:size] + flat[size : 2 * size]).reshape(self.shape) / scale)
            total = self.loss.value(margins) + self.l2 * np.sum(self._parted(at)[0] ** 2) + both
            return float(total), np.concatenate([*parts, gradient[:, r:].ravel()])

        first = (theta * scale).ravel()
        bounds = [(0.0, None)] * (2 * size) + [(None, None)] * constants.size
        flat = np.concatenate([np.maximum(first, 0), np.maximum(-first, 0), constants.ravel()])
        found, done = _quasi_newton(value, flat, bounds)
        return joined(found), done

    def solution(self, point: Floats) -> Solution:
        return self.space.leave(self._parted(point)[0], self._parted(point)[1])


def _solve(H: Floats, rhs: Floats) -> Floats:
    """Solve H x = rhs for H without negative eigenvalues; those lost in rounding count as what rounding is."""
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), rhs))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        return np.asarray((vectors / np.maximum(values, SINGULAR * values[-1])) @ (vectors.T @ rhs))


def _quasi_newton(
    value: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Sequence[tuple[float | None, float | None]] | None,
) -> tuple[Floats, bool]:
    limits = {"maxiter": QUASI_NEWTON_STEPS, "maxfun": 2 * QUASI_NEWTON_STEPS, "ftol": 1e-14, "gtol": 0.0, "maxcor": 30}
    found = scipy.optimize.minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
    return found.x, found.nit < QUASI_NEWTON_STEPS


def _descend(terms: "_L2 | _L1", start: Floats) -> tuple[Floats, bool]:
    """Take damped steps from `start`, or from zero where that is lower; say whether the last promised no decrease."""
    loss = terms.loss

    def value(margins: Floats, point: Floats) -> float:
        return loss.value(margins) + terms.penalty(point)

    point = min(start, np.zeros_like(start), key=lambda at: value(loss.margins(terms.psi(at)), at))
    margins = loss.margins(terms.psi(point))
    now = value(margins, point)
    for _ in range(STEPS):
        if terms.unpenalised and told_apart(margins @ loss.contrasts.T, loss.codes):
            break
        step, slope = terms.step(point, margins)
        along = loss.margins(terms.psi(step))
        length = _longest(margins, along)
        while (then := value(margins + length * along, point + length * step)) > now + 1e-4 * length * slope:
            length /= 2
            if length * -slope <= ROUNDING * now:
                return point, terms.certain
        point, margins, now = point + length * step, margins + length * along, then
        if -slope <= terms.decrease * now:
            return point, terms.certain
    return point, False


def _longest(margins: Floats, along: Floats) -> float:
    """Give the length of step, 1 at most, at which no margin leaves for where its row has no curvature any more.

    A margin may double, and change its sign only for a small one.
    """
    return float(1.0 / np.max(np.abs(along) / (FARTHEST + np.abs(margins)), initial=1.0))
