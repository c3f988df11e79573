"""Logistic and softmax regression with l2 and l1 penalties, safe for any rank and any scale of the columns.

Damped Newton steps, in coordinates in which the curvature is at most 1 in every direction, and is less only where rows
are told well: neither the scales of the columns nor their dependence matter there. With an l1 penalty each step's
quadratic is left to `solve_elastic_net`, so that zeros are exact.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import expit, logsumexp, softmax

from colonnade.errors import ConvergenceWarning
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.class_separation import separated, told_apart
from colonnade.kernels.elastic_net import solve_elastic_net
from colonnade.kernels.linear import RANK_TOLERANCE, LinearProblem, reduce_rows

DECREASE = 1e-13  # of the objective: what a Newton step must still promise
L1_DECREASE = 1e-10  # an elastic net is solved to 1e-9 of what it leaves
STEPS = 300
SINGULAR = 1e-14
ROUNDING = 1e-15

Solution = tuple[Floats, Floats]


class Separable(ValueError):  # noqa: N818
    """Classes that a hyperplane tells apart: without a penalty the coefficients grow without an end."""


def log_loss(logits: Floats, codes: Rows) -> Floats:
    """Compute each row's -log probability of its class, shape (m,).

    Logits have shape (m, K), or (m,) for two classes: those of class 1.
    """
    if logits.ndim == 1:
        return np.logaddexp(0.0, np.where(codes == 1, -logits, logits))
    own = np.take_along_axis(logits, codes[:, None], axis=1)[:, 0]
    return np.asarray(np.maximum(logsumexp(logits, axis=1) - own, 0.0))


def probabilities(logits: Floats) -> Floats:
    """Turn logits (m, K) into the classes' probabilities (m, K); or (m,), those of class 1, into its, (m,)."""
    return np.asarray(expit(logits) if logits.ndim == 1 else softmax(logits, axis=1))


def curvature(logits: Floats) -> Floats:
    """Compute p (1 - p) of each logit: a row's second derivative of the loss, shape (m,) or, each class's, (m, K)."""
    if logits.ndim == 1:
        return np.asarray(expit(logits) * expit(-logits))
    shares = probabilities(logits)
    return shares * (1.0 - shares)


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
        Where no penalty ends the growth of coefficients that tell classes apart.
    """
    kept = weights > 0
    X, codes, weights = X[kept], codes[kept], weights[kept]
    _check_classes(codes, n_classes)
    space = _space(X, weights, l2 if l1 == 0 else 0.0, fit_intercept=fit_intercept)
    loss = _Loss(space.rows(X), codes, weights, _contrasts(n_classes))
    terms = _L1(loss, space, l2, l1) if l1 > 0 and space.live.any() else _Smooth(loss, space, l2)
    point, converged = _descend(terms, terms.begin(start), unless_told_apart=l1 == l2 == 0)
    if l1 == l2 == 0 and separated(loss.rows, codes, loss.contrasts, loss.margins(terms.psi(point))):
        raise Separable(
            "The columns tell classes apart without error, or some columns rows of one class only: without a penalty "
            "coefficients grow without an end. Pass an l2 above 0, or leave out those columns."
        )
    if not converged:
        warnings.warn(
            f"The logistic loss was still falling after {STEPS} steps. Raise l2, or leave out columns that others "
            "determine.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return terms.solution(point)


def _check_classes(codes: Rows, n_classes: int) -> None:
    counts = np.bincount(codes, minlength=n_classes)
    if len(counts) != n_classes or n_classes < 2 or not counts.all():
        raise ValueError(
            f"Rows of weight in each class, by code: {counts.tolist()}, and {n_classes} classes are expected. Each "
            "needs at least one, and there must be two or more: draw more rows, or leave out classes without any."
        )


def _contrasts(n_classes: int) -> Floats:
    """Give orthonormal columns, shape (K, K - 1), that sum to zero; for two classes the logit of class 1."""
    if n_classes == 2:
        return np.array([[0.0], [1.0]])
    return np.asarray(scipy.linalg.helmert(n_classes).T)


@dataclass(frozen=True, eq=False)
class _Space:
    """Coordinates u = (x - centre) outward of the columns `live`, the others being constant.

    `inward`, shape (r, d), leads theta to phi, and `outward`, (d, r), back, where the rows have a part. Rows get a last
    column of `constant` with an intercept (it is 0 without).
    """

    live: Flags
    centre: Floats
    inward: Floats
    outward: Floats
    constant: float

    def rows(self, X: Floats) -> Floats:
        U = (X[:, self.live] - self.centre) @ self.outward
        return np.column_stack([U, np.full(len(U), self.constant)]) if self.constant else U


def _space(X: Floats, weights: Floats, l2: float, *, fit_intercept: bool) -> _Space:
    """Find coordinates in which the most that the curvature can be, weights / 4 and the l2 penalty, is 1 all over."""
    problem = reduce_rows(X, np.zeros(len(X)), weights, fit_intercept=fit_intercept)
    live = np.asarray(problem.lhs.any(axis=0))
    A = np.vstack([0.5 * problem.lhs[:, live], np.sqrt(2 * l2) * np.eye(np.count_nonzero(live))])
    scale = np.linalg.norm(A, axis=0)
    _, S, Vt = np.linalg.svd(A / scale, full_matrices=False)
    rank = np.count_nonzero(S / S.max(initial=0.0) > RANK_TOLERANCE) if len(S) else 0
    S, Vt = S[:rank, None], Vt[:rank]
    constant = 0.5 / np.sqrt(weights.sum()) if fit_intercept else 0.0
    return _Space(live, problem.centre[:-1][live], S * Vt * scale, (Vt / S / scale).T, constant)


@dataclass(frozen=True, eq=False)
class _Loss:
    """The loss of rows u, shape (m, p), under parameters psi, (q, p): margins u psi', logits margins contrasts'."""

    rows: Floats
    codes: Rows
    weights: Floats
    contrasts: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return self.contrasts.shape[1], self.rows.shape[1]

    def margins(self, psi: Floats) -> Floats:
        return np.asarray(self.rows @ psi.T)

    def value(self, margins: Floats) -> float:
        return float(self.weights @ log_loss(margins @ self.contrasts.T, self.codes))

    def gradient(self, margins: Floats) -> Floats:
        pulls = probabilities(margins @ self.contrasts.T)
        own = np.arange(len(pulls)), self.codes
        pulls[own] = 0.0
        pulls[own] = -pulls.sum(axis=1)  # and not p - 1, which is lost in rounding when p is nearly 1
        return np.asarray((pulls @ self.contrasts * self.weights[:, None]).T @ self.rows)

    def hessian(self, margins: Floats) -> Floats:
        """Compute the second derivatives, shape (q, p, q, p)."""
        q, p = self.shape
        shares = probabilities(margins @ self.contrasts.T)
        H = np.empty((q, p, q, p))
        for a in range(q):
            for b in range(a + 1):
                H[a, :, b] = self.rows.T @ (self._covariances(shares, a, b)[:, None] * self.rows)
                H[b, :, a] = H[a, :, b].T
        return H

    def _covariances(self, shares: Floats, a: int, b: int) -> Floats:
        """Compute w times the covariance of two contrasts under each row's probabilities, shape (m,)."""
        result = np.empty(len(shares))
        for code in range(shares.shape[1]):
            mine = self.codes == code
            # About the row's own class, whose probability may be nearly 1: nothing is lost in rounding.
            first, second = (
                self.contrasts[:, a] - self.contrasts[code, a],
                self.contrasts[:, b] - self.contrasts[code, b],
            )
            p = shares[mine]
            result[mine] = p @ (first * second) - (p @ first) * (p @ second)
        return result * self.weights


class _Smooth:
    """Loss and l2 penalty of psi, which is the point."""

    decrease = DECREASE

    def __init__(self, loss: _Loss, space: _Space, l2: float) -> None:
        self.loss, self.space = loss, space
        self.back = _back(loss.contrasts)
        r = space.outward.shape[1]
        self.P = np.zeros((loss.shape[1], loss.shape[1]))
        self.P[:r, :r] = 2 * l2 * space.outward.T @ space.outward

    def begin(self, start: Solution | None) -> Floats:
        if start is None:
            return np.zeros(self.loss.shape)
        coef, intercept = start
        theta = coef[:, self.space.live]
        phi = self.back.T @ theta @ self.space.inward.T
        if not self.space.constant:
            return np.asarray(phi)
        at_centre = self.back.T @ (intercept + theta @ self.space.centre)
        return np.column_stack([phi, at_centre / self.space.constant])

    def psi(self, point: Floats) -> Floats:
        return point

    def penalty(self, point: Floats) -> float:
        return float(0.5 * np.sum((point @ self.P) * point))

    def step(self, point: Floats, margins: Floats) -> tuple[Floats, float]:
        q, p = self.loss.shape
        gradient = self.loss.gradient(margins) + point @ self.P
        H = self.loss.hessian(margins).reshape(q * p, q * p) + np.kron(np.eye(q), self.P)
        step = -_solve(H, gradient.ravel()).reshape(q, p)
        return step, float(np.sum(gradient * step))

    def solution(self, point: Floats) -> Solution:
        r = self.space.outward.shape[1]
        theta = self.back @ point[:, :r] @ self.space.outward.T
        constants = self.back @ point[:, r] * self.space.constant if self.space.constant else np.zeros(len(theta))
        return _full(self.space, theta, constants)


class _L1:
    """Loss and both penalties of a point: theta, flat, and then the intercepts at the centre as psi has them."""

    decrease = L1_DECREASE

    def __init__(self, loss: _Loss, space: _Space, l2: float, l1: float) -> None:
        self.loss, self.space, self.l2, self.l1 = loss, space, l2, l1
        self.back = _back(loss.contrasts)
        self.inward = np.kron(self.back.T, space.inward)
        self.n_theta = self.inward.shape[1]

    def begin(self, start: Solution | None) -> Floats:
        if start is None:
            return np.zeros(self.n_theta + (self.loss.shape[0] if self.space.constant else 0))
        psi = _Smooth(self.loss, self.space, 0.0).begin(start)
        theta = start[0][:, self.space.live].ravel()
        return np.concatenate([theta, psi[:, -1]]) if self.space.constant else theta

    def psi(self, point: Floats) -> Floats:
        phi = (self.inward @ point[: self.n_theta]).reshape(self.loss.shape[0], -1)
        return np.column_stack([phi, point[self.n_theta :]]) if self.space.constant else phi

    def penalty(self, point: Floats) -> float:
        theta = point[: self.n_theta]
        return float(self.l2 * theta @ theta + self.l1 * np.abs(theta).sum())

    def step(self, point: Floats, margins: Floats) -> tuple[Floats, float]:
        theta = point[: self.n_theta]
        gradient, H = self.loss.gradient(margins), self.loss.hessian(margins)
        r = self.space.inward.shape[0]
        q = len(gradient)
        g, g0 = gradient[:, :r].ravel(), gradient[:, r:].ravel()
        H_aa, H_ba = H[:, :r, :, :r].reshape(q * r, q * r), H[:, r:, :, :r].reshape(-1, q * r)
        H_bb = H[:, r:, :, r:].reshape(len(g0), len(g0))
        # What the intercepts would follow with is taken out: they are free.
        follow = _solve(H_bb, np.column_stack([g0, H_ba]))
        g, H_aa = g - H_ba.T @ follow[:, 0], H_aa - H_ba.T @ follow[:, 1:]
        values, vectors = np.linalg.eigh(H_aa)
        root = np.sqrt(np.maximum(values, SINGULAR * values.max(initial=0.0)) / 2)[:, None]
        triangle = root * (vectors.T @ self.inward)
        rhs = triangle @ theta - (vectors.T @ g) / (2 * root[:, 0])
        problem = LinearProblem(np.column_stack([triangle, rhs]), np.zeros(self.n_theta + 1))
        new = solve_elastic_net(problem, self.l2, self.l1, theta)
        change = self.inward @ (new - theta)
        step = np.concatenate([new - theta, -follow[:, 0] - follow[:, 1:] @ change])
        slope = g @ change + 2 * self.l2 * theta @ (new - theta)
        slope += self.l1 * (np.abs(new).sum() - np.abs(theta).sum()) - g0 @ follow[:, 0]
        return step, float(slope)

    def solution(self, point: Floats) -> Solution:
        theta = point[: self.n_theta].reshape(len(self.back), -1)
        return _full(
            self.space,
            theta,
            self.back @ point[self.n_theta :] * self.space.constant if self.space.constant else np.zeros(len(theta)),
        )


def _back(contrasts: Floats) -> Floats:
    """Give the matrix that leads from margins to the model's rows: one of two classes, else K."""
    return contrasts[1:] if len(contrasts) == 2 else contrasts


def _full(space: _Space, theta: Floats, constants: Floats) -> Solution:
    coef = np.zeros((len(theta), len(space.live)))
    coef[:, space.live] = theta
    if not space.constant:
        return coef, constants
    intercept = constants - theta @ space.centre
    return coef, intercept - intercept.mean() if len(intercept) > 1 else intercept


def _solve(H: Floats, rhs: Floats) -> Floats:
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), rhs))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        kept = values > SINGULAR * values[-1]
        return np.asarray((vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ rhs))


def _descend(terms: "_Smooth | _L1", start: Floats, *, unless_told_apart: bool) -> tuple[Floats, bool]:
    """Take damped steps from `start`, or from zero where that is lower; say whether the last promised no decrease."""
    loss = terms.loss
    point = min(start, np.zeros_like(start), key=lambda at: loss.value(loss.margins(terms.psi(at))) + terms.penalty(at))
    margins = loss.margins(terms.psi(point))
    value = loss.value(margins) + terms.penalty(point)
    for _ in range(STEPS):
        if unless_told_apart and told_apart(margins @ loss.contrasts.T, loss.codes):
            break
        step, slope = terms.step(point, margins)
        if -slope <= terms.decrease * value:
            return point, True
        along = loss.margins(terms.psi(step))
        length = 1.0
        while True:
            new = loss.value(margins + length * along) + terms.penalty(point + length * step)
            if new <= value + 1e-4 * length * slope + ROUNDING * value:
                break
            length /= 2
            if length < 1e-15:
                return point, True
        point, margins, value = point + length * step, margins + length * along, new
    return point, False
