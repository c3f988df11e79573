"""SAGA for weighted least squares on one party's columns (Defazio, Bach and Lacoste-Julien 2014).

Half the objective, over n, is (1/N) sum_k F_k + penalties: the rows are dealt into N blocks, and F_k(theta) =
sum_{i in block k} (u_i / 2) r_i^2 with u_i = N w_i / n and the residual r_i = x_i.theta - y_i. The model is linear, so
the gradient of F_k is sum_i s_i x_i with one scalar a row, s_i = u_i r_i: SAGA's table of gradients is a vector, and
a party that is told how the scalars of a block *change* needs no table at all, only its average gradient. Likewise for
half the logistic loss, whose slope (p_i - y_i) / 2 takes the residual's place.
"""

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats, Rows

EPS = float(np.finfo(np.float64).eps)
# Half the logistic loss has at most this second derivative.
MOST_LOGISTIC = 0.125


def logistic_slopes(products: Floats, codes: Rows) -> Floats:
    """Compute (p - y) / 2, the slope of half the logistic loss at f(x), of rows of class 1 or 0; shape (m,)."""
    signs = np.where(codes == 1, -1.0, 1.0)
    return np.asarray(0.5 * signs * scipy.special.expit(signs * products))


def logistic_losses(slopes: Floats) -> Floats:
    """Compute the logistic loss of rows from what `logistic_slopes` gives of them."""
    return np.asarray(-np.log1p(-np.minimum(2 * np.abs(slopes), 1 - EPS)))


def shuffled(n_rows: int, seed: int) -> Rows:
    """Shuffle the positions of the rows: the server and the parties all deal the same blocks from it."""
    return np.random.default_rng(seed).permutation(n_rows)


def block_bounds(n_rows: int, n_blocks: int, k: int) -> slice:
    """Say where block k, from 0 to N - 1, stands among rows in shuffled order; sizes differ by one at most."""
    return slice(k * n_rows // n_blocks, (k + 1) * n_rows // n_blocks)


def epoch_blocks(epoch: int, n_blocks: int, rng: np.random.Generator) -> Rows:
    """Draw an epoch's blocks: at first each once, which fills the table; then independently, as in theory."""
    return rng.integers(n_blocks, size=n_blocks) if epoch else rng.permutation(n_blocks)


def step_size(curvatures: Floats, n_blocks: int) -> float:
    """Give Defazio's step 1 / (3 L), which suits any strong convexity, none included.

    F_k is smooth with L_k = the largest eigenvalue of sum_{i in block k} u_i x_i x_i', at most the sum of u_i |x_i|^2;
    L is the largest of these. With blocks fixed for the run, the theory of one row a step is the theory of one block a
    step, word for word.

    The curvatures u_i |x_i|^2 are in shuffled order. The step is 1 where there is no curvature at all, and nothing will
    move.
    """
    starts = [block_bounds(len(curvatures), n_blocks, k).start for k in range(n_blocks)]
    largest = float(np.add.reduceat(curvatures, starts).max())
    return 1.0 / (3.0 * largest) if largest > 0 else 1.0


def proximal_step(point: Floats, step: float, l2: Floats, l1: Floats) -> Floats:
    """Minimise |z - point|^2 / 2 + step sum_k (l2_k z_k^2 + l1_k |z_k|) / 2: the soft threshold, then a shrinkage."""
    kept = np.maximum(np.abs(point) - 0.5 * step * l1, 0.0)
    shrunk: Floats = np.copysign(kept, point) / (1.0 + step * l2)
    return shrunk


def saga_step(
    coef: Floats, average: Floats, columns: Floats, changes: Floats, n_blocks: int, step: float, l2: Floats, l1: Floats
) -> tuple[Floats, Floats]:
    """Take one step on a party's own coordinates; the arguments are left as they were.

    theta, `coef`, and (1/N) sum_i s_i x_i, the `average` of the table, have shape (d,), as have the penalties of each
    coordinate. `columns`, shape (b, d), are the block's rows x_i; `changes`, shape (b,), say by how much each of its
    s_i changed.
    """
    innovation = changes @ columns
    return proximal_step(coef - step * (innovation + average), step, l2, l1), average + innovation / n_blocks


def full_step_change(coef: Floats, average: Floats, spreads: Floats, l2: Floats, l1: Floats) -> float:
    """Measure how far from optimal the coefficients are: the change that one full proximal step would make.

    The step has length 1 in standard units (each column divided by its spread), so the measure does not depend on the
    columns' scales, and it does not become small because SAGA's steps are. It is 0 at a minimum and only there.

    `average` is the average gradient; `spreads`, positive, are of the columns in the units theta refers to. The norm of
    the change is in the label's units.
    """
    standard = coef * spreads
    stepped = proximal_step(standard - average / spreads, 1.0, l2 / spreads**2, l1 / spreads)
    return float(np.linalg.norm(stepped - standard))
