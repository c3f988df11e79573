"""What the coefficients of a fitted model owe to single rows, and so how far they vary: standard errors.

A model that minimises sum_i w_i loss_i(x_i.theta + theta_0) + ridge |theta|^2 / 2 moves by -H^-1 g_i when row i counts
a little more, where g_i = s_i x_i is its gradient, s_i the slope of its loss, and H = sum_i w_i k_i x_i x_i' + ridge,
k_i the curvature. For least squares, halved, the slope is the residual and the curvature 1.

The draw: drawn rows stand for all, each with its weight. The errors of independent draws are w_i g_i, less their mean,
so the covariance of the gradient is the sum of their squares; of distinct rows only 1 - pi_i of that is chance (Hajek).

The rows: all rows are themselves drawn from a population. The covariance is then sum over all rows of g_i g_i', which
drawn rows estimate by sum_i w_i g_i g_i' (sandwich), or sum_i w_i k_i x_i x_i' times the variance of residuals where
that is the same everywhere (classical).

Residuals of rows that were fitted to are too small: their squares are divided by 1 - leverage (HC2).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.dependence import unit_basis
from colonnade.kernels.draws import score_classes
from colonnade.kernels.linear import LinearProblem

BLOCK_ROWS = 8192
# On each side. Chosen on KC House, judged on other tables (benchmarks/coverage.py).
NEIGHBOURS = 1
# A row that decides a direction alone says nothing of how wrong it is there.
MOST_LEVERAGE = 0.9999
# A coefficient that has less of a direction that no row decides has nothing of it: what is left is rounding.
LEAST_PART = 1e-6
# Of the largest square, which is less than rounding leaves of it.
NOTHING = 1e-20


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Rows that a model was fitted to.

    Parameters
    ----------
    features : (m, d) array
        X.
    slopes, curvatures : (m,) array, and None where all are 1
        First and second derivative of a row's loss, by its prediction.
    weights : (m,) array
        w, with which a row stands for all.
    counts : (m,) array or None
        How many rows it is itself; 1 each if None.
    """

    features: Floats
    slopes: Floats
    curvatures: Floats | None
    weights: Floats
    counts: Floats | None = None

    @property
    def bends(self) -> Floats:
        """w_i k_i, (m,)."""
        return self.weights if self.curvatures is None else self.weights * self.curvatures


@dataclass(frozen=True, eq=False)
class RoundedSlopes:
    """Rows with rounding errors, and what was done about these.

    Parameters
    ----------
    features, slopes : (m, d) and (m,) array
        As they came.
    removed, kept : (d,) array
        The parts of a row's gradient, by its curvature, that are rounding's: taken off, and left.
    covariance : (d + 1, d + 1) array
        Of a row's rounding errors: in its features, and last in its prediction, less the label if that is rounded.
    left : callable
        Takes the rows' parts of the gradient, shape (m, p), and gives what of them calibrated weights do not correct.
    """

    features: Floats
    slopes: Floats
    removed: Floats
    kept: Floats
    covariance: Floats
    left: Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Entered:
    """How columns entered: less `shift` and divided by `scale`, (d,) each, if at all; and whether with an intercept."""

    shift: Floats | None
    scale: Floats | None
    intercept: bool


@dataclass(frozen=True, eq=False)
class Curvature:
    """H^-1, by a basis in which H is the identity, and in which units coefficients are wanted.

    Parameters
    ----------
    centre : (d,) array
        Seen from there the intercept is free of the others.
    basis : (d, r) array
        basis'(X'X + ridge) basis = I, for X less the centre.
    one : float
        The intercept's part of each row, likewise; 0 where there is none.
    leads : (r + 1, d + 1) array
        Leads from steps along the basis, and along the intercept, to coefficients, the intercept's last.
    undecided : (d + 1,) array of bool
        Which coefficients no row decides: their column depends on others, or does not vary.
    """

    centre: Floats
    basis: Floats
    one: float
    leads: Floats
    undecided: Flags

    def directions(self, features: Floats) -> Floats:
        """Give rows along the basis and the intercept, (m, r + 1)."""
        return np.column_stack([(features - self.centre) @ self.basis, np.full(len(features), self.one)])


def curvature(problem: LinearProblem, ridge: float, bend: float, entered: Entered) -> Curvature:
    """Invert H, of rows that were reduced with weights w_i k_i, of the sum `bend`."""
    intercept, shift, scale = entered.intercept, entered.shift, entered.scale
    triangle, centre = problem.triangle[:, :-1], problem.centre[:-1]
    d = triangle.shape[1]
    varies = triangle.any(axis=0)
    lhs = np.vstack([triangle, np.sqrt(ridge) * np.diag(varies)])
    norms = np.where(varies, np.linalg.norm(lhs, axis=0), 1.0)
    basis, lost = unit_basis(lhs / norms)
    basis = basis / norms[:, np.newaxis]
    one = 1.0 / np.sqrt(bend) if intercept else 0.0
    units = np.ones(d) if scale is None else scale
    # The intercept at the centre is that at zero, and what coefficients add on the way.
    way = centre + (0.0 if shift is None else shift / units)
    leads = np.zeros((basis.shape[1] + 1, d + 1))
    leads[:-1, :-1] = basis.T / units
    leads[:-1, -1] = -(way @ basis) * intercept
    leads[-1, -1] = one
    lost = np.where(np.abs(lost) > LEAST_PART, lost, 0.0) * varies
    ways = lost * (way / norms)
    undecided = np.append(~varies | lost.any(axis=0), False)
    undecided[-1] = intercept and bool((np.abs(ways.sum(axis=1)) > LEAST_PART * np.abs(ways).sum(axis=1)).any())
    return Curvature(centre, basis, one, leads, undecided)


@dataclass(frozen=True, eq=False)
class Spread:
    """Variances of the coefficients, (d + 1,), the intercept's last, and effective degrees of freedom of each.

    A variance is nan where a single row decides a coefficient: nothing then tells how wrong it is.
    """

    variance: Floats
    degrees: Floats


@dataclass(frozen=True, eq=False)
class Drawn:
    """How rows were drawn: the chances of distinct ones, (m,), or None; and whether others were stratified."""

    chances: Floats | None
    stratified: bool


@dataclass(frozen=True, eq=False)
class Spreads:
    """How coefficients vary, and which of them no row decides, (d + 1,).

    With the draw, where rows were drawn or rounded; with all rows, by the sandwich where they were seen, and if
    residuals vary alike.
    """

    draw: Spread | None
    sandwich: Spread | None
    classical: Spread
    undecided: Flags


def spreads(
    rows: FittedRows,
    problem: LinearProblem,
    ridge: float,
    coef: Floats,
    entered: Entered,
    drawn: Drawn | None,
    rounded: RoundedSlopes | None,
) -> Spreads:
    """Say how the coefficients of columns as they were before they entered vary.

    The problem is that of the rows, with weights w_i k_i. `drawn` is None where there are all rows, and `rounded` where
    they are as they are. Where curvatures are 1, the loss is a square, and the variance of residuals is estimated;
    where not, it is what the curvature says.
    """
    at = curvature(problem, ridge, float(rows.bends.sum()), entered)
    pull = ridge * coef
    draw = None
    by_rows, rank = spread_of_rows(rows, at, pull, drawn=drawn is not None)
    if drawn is not None or rounded is not None:
        draw = spread_of_draw(rows, at, pull, drawn or Drawn(np.ones(len(rows.weights)), False), rounded)
    if rows.curvatures is None:
        variance, degrees = _residual_variance(rows, rank, drawn=drawn is not None)
    else:
        variance, degrees = 1.0, np.inf
        by_rows = by_rows if drawn is not None else Spread(by_rows.variance, np.full_like(by_rows.variance, np.inf))
    return Spreads(draw, by_rows, _classical(at, ridge, variance, degrees), at.undecided)


def spreads_of_sums(problem: LinearProblem, ridge: float, coef: Floats, total: float, entered: Entered) -> Spreads:
    """Say the same of all rows, of this weight, that are known only in sum: if residuals vary alike."""
    at = curvature(problem, ridge, total, entered)
    rank = at.basis.shape[1] - ridge * float(np.square(at.basis).sum()) + entered.intercept
    squares = float(np.sum(np.square(problem.lhs @ coef - problem.rhs)))
    return Spreads(None, None, _classical(at, ridge, *_per_degree(squares, total - rank, total)), at.undecided)


def spread_of_draw(
    rows: FittedRows, found: Curvature, pull: Floats, drawn: Drawn, rounded: RoundedSlopes | None
) -> Spread:
    """Say how coefficients vary with the draw of the rows, and with their rounding.

    `pull`, (d,), is the penalty's gradient, ridge theta, which the sum of the rows' own makes up for.
    """
    chances = drawn.chances
    m, weights = len(rows.weights), rows.weights
    uncertain = np.ones(m) if chances is None else 1.0 - chances
    directions = found.directions(rows.features)
    leverage = _leverage(rows, directions, weights)
    factors = _hc2(leverage)
    if rounded is None:
        gradients = directions * (rows.slopes * factors)[:, np.newaxis]
    else:
        gradients = found.directions(rounded.features) * (rounded.slopes * factors)[:, np.newaxis]
        gradients[:, :-1] -= rounded.removed @ found.basis
        gradients = rounded.left(gradients)
    influences = weights[:, np.newaxis] * (gradients @ found.leads)
    if chances is None:
        influences += (pull @ found.basis / m) @ found.leads[:-1]
    if drawn.stratified:
        influences = _about_neighbours(influences, weights)
    squares = uncertain[:, np.newaxis] * np.square(influences)
    if rounded is not None and (uncertain < 1).any():
        squares += (np.square(weights) * (1.0 - uncertain))[:, np.newaxis] * _rounding(rows, found, rounded)
    variance = squares.sum(axis=0)
    if rounded is not None and not uncertain.any():
        variance += np.square((rows.bends.sum() * rounded.kept @ found.basis) @ found.leads[:-1])
    variance[_decided_alone(directions[(leverage > MOST_LEVERAGE) & (uncertain > 0)], found)] = np.nan
    return Spread(variance, satterthwaite(squares))


def _about_neighbours(influences: Floats, weights: Floats) -> Floats:
    """Take off each influence, (m, p), the mean of those next to it: what strata share does not vary.

    A party lays rows out by classes of its own scores, and by number there; weights are 1 over the sum of all parties':
    neighbours by classes of these, and by number, share a part of that.
    """
    order, m = np.argsort(score_classes(weights), kind="stable"), len(weights)
    sums = np.vstack([np.zeros((1, influences.shape[1])), np.cumsum(influences[order], axis=0)])
    places = np.arange(m)
    first, end = np.maximum(places - NEIGHBOURS, 0), np.minimum(places + NEIGHBOURS + 1, m)
    count = (end - first)[:, np.newaxis]
    rests = np.empty_like(influences)
    rests[order] = (influences[order] - (sums[end] - sums[first]) / count) * np.sqrt(count / np.maximum(count - 1, 1))
    return rests


def _rounding(rows: FittedRows, found: Curvature, rounded: RoundedSlopes) -> Floats:
    """Give the variance that rounding adds to each row's part of the coefficients, (m, d + 1), to first order.

    An error e in a row changes its gradient by slope e, and by x times the change of the slope.
    """
    towards = found.basis @ found.leads[:-1]
    S, along = rounded.covariance[:-1, :-1], rounded.covariance[:-1, -1]
    own, both, slope = np.einsum("dj,dj->j", S @ towards, towards), along @ towards, rounded.covariance[-1, -1]
    parts = found.directions(rounded.features) @ found.leads
    if rows.curvatures is not None:
        parts *= rows.curvatures[:, np.newaxis]
    slopes = rounded.slopes[:, np.newaxis]
    return np.asarray(np.square(slopes) * own + 2 * slopes * parts * both + np.square(parts) * slope)


def spread_of_rows(rows: FittedRows, found: Curvature, pull: Floats, *, drawn: bool) -> tuple[Spread, float]:
    """Say how coefficients vary with the rows that there are, drawn from a population: by the sandwich.

    And how many coefficients rows decide, by their leverage.
    """
    total = float(rows.weights.sum())
    own = pull @ found.basis / total
    squares, fourths, counted, alone = np.zeros((4, found.leads.shape[1]))
    rank = 0.0
    for block in _blocks(rows):
        directions = found.directions(block.features)
        single = _leverage(block, directions, block.weights / (1.0 if block.counts is None else block.counts))
        gradients = directions * (block.slopes * _hc2(single))[:, np.newaxis]
        gradients[:, :-1] += own
        parts = block.weights[:, np.newaxis] * np.square(gradients @ found.leads)
        squares += parts.sum(axis=0)
        fourths += np.square(parts).sum(axis=0)
        counted += np.count_nonzero(parts, axis=0)
        alone += _decided_alone(directions[single > MOST_LEVERAGE], found)
        rank += float(block.weights @ single)
    unknown, rest = _per_degree(0.0, total - rank, total)
    degrees = np.full(len(squares), rest)
    if drawn:
        degrees = np.minimum(_degrees(squares, fourths, counted), degrees)
    return Spread(np.where(alone > 0, np.nan, squares) + unknown, degrees), rank


def _classical(found: Curvature, ridge: float, variance: float, degrees: float) -> Spread:
    """Say the same where residuals vary alike everywhere, with this variance."""
    # basis'(X'X) basis is what the ridge leaves of the identity.
    steps = np.eye(len(found.leads))
    steps[:-1, :-1] -= ridge * found.basis.T @ found.basis
    variances = variance * np.einsum("ij,ij->j", steps @ found.leads, found.leads)
    return Spread(np.maximum(variances, 0.0), np.full(len(variances), degrees))


def _residual_variance(rows: FittedRows, rank: float, *, drawn: bool) -> tuple[float, float]:
    """Estimate the variance of residuals, and count its degrees of freedom: of all rows, n less the rank."""
    parts, total = rows.weights * np.square(rows.slopes), float(rows.weights.sum())
    variance, degrees = _per_degree(float(parts.sum()), total - rank, total)
    of_draw = float(satterthwaite(parts[:, np.newaxis])[0])
    return variance, min(degrees, of_draw) if drawn else degrees


def _per_degree(squares: float, degrees: float, total: float) -> tuple[float, float]:
    """Divide squares of residuals by degrees of freedom; where coefficients left none, nothing tells a variance: nan.

    Fewer than 1, as a penalty or weights leave, count as 1 where intervals are made.
    """
    return squares / degrees if degrees > LEAST_PART * total else np.nan, max(degrees, 1.0)


def satterthwaite(squares: Floats) -> Floats:
    """Count degrees of freedom of sums of squares, (m, p): as many as rows where these are normal, fewer if heavy."""
    # Copies of a row among copies vary by what rounding leaves, which is another number on each kind of processor.
    counted = np.count_nonzero(squares > NOTHING * squares.max(axis=0, initial=0.0), axis=0)
    return _degrees(squares.sum(axis=0), np.square(squares).sum(axis=0), counted)


def _degrees(squares: Floats, fourths: Floats, counted: Floats) -> Floats:
    counted = np.maximum(counted, 1)
    shares = fourths / np.where(squares > 0, np.square(squares), 1.0)
    return np.asarray(np.clip(2.0 / np.maximum(shares - 1.0 / counted, 1e-300), 1.0, counted))


def _leverage(rows: FittedRows, directions: Floats, weights: Floats) -> Floats:
    bends = weights if rows.curvatures is None else weights * rows.curvatures
    return np.asarray(bends * np.einsum("ij,ij->i", directions, directions))


def _hc2(leverage: Floats) -> Floats:
    return np.asarray(1.0 / np.sqrt(1.0 - np.minimum(leverage, MOST_LEVERAGE)))


def _decided_alone(directions: Floats, found: Curvature) -> Flags:
    """Tell which coefficients lie along single rows, (k, r + 1)."""
    lengths = np.linalg.norm(found.leads, axis=0)
    parts = (directions / np.linalg.norm(directions, axis=1, keepdims=True)) @ found.leads
    return np.asarray((np.abs(parts) > LEAST_PART * lengths).any(axis=0))


def _blocks(rows: FittedRows) -> Iterator[FittedRows]:
    for start in range(0, len(rows.weights), BLOCK_ROWS):
        some = slice(start, start + BLOCK_ROWS)
        curvatures, counts = (None if each is None else each[some] for each in (rows.curvatures, rows.counts))
        yield FittedRows(rows.features[some], rows.slopes[some], curvatures, rows.weights[some], counts)
