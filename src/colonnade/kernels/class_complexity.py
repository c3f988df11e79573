"""How hard classes are for a coreset, whatever the model: mu-complexity, and what it bounds of rows' sensitivities.

Let z_i = y_i (x_i.theta + theta_0) with y_i of -1 and 1. The loss of a row is log(1 + exp(-z_i)), and

    mu = sup over models of (sum of w_i max(z_i, 0)) / (sum of w_i max(-z_i, 0))

(Munteanu, Schwiegelshohn, Sohler and Woodruff 2018). It is at least the ratio of the larger class to the smaller, and
infinite where a model has no row on the wrong side. Both sums differ by sum_i w_i z_i, which is linear in the model:
with that set to 1, the least of the second sum is a linear programme, and mu is 1 + 1 over it.

What follows, for n rows of weight 1 and f the loss of a model on all of them:

- the sum of |z_i| is at most (1 + mu) f, since a row on the wrong side loses |z_i| or more;
- f is at least n / (7 mu): either half of the rows have z_i <= 1, and lose log(1 + 1/e) each, or the others' z_i add up
  to n / 2, and those on the wrong side to n / (2 mu);
- a row loses no more than log 2 + |z_i|, and |z_i| <= sqrt(h_i) |z|_2 <= sqrt(h_i) |z|_1, with h_i its leverage in all
  columns;
- so of the loss of any model a row has no more than (1 + mu) sqrt(h_i) + 5 mu / n.

Scores have leverage, not its root, so this bounds what a row matters by up to sqrt(n) times its score: less is not
known to hold for all models. A penalty makes it no larger.
"""

import numpy as np
import scipy

from colonnade.kernels.arrays import Floats

# Of the sum of all |z_i|: less on the wrong side is none.
SEPARATED = 1e-9


def mu_complexity(rows: Floats, classes: Floats, weights: Floats) -> float:
    """Compute mu of rows, (m, r), the constant among their columns if there is an intercept, of classes 1 and 0, (m,).

    Infinite where a model tells the classes apart, or leaves no row on the wrong side.
    """
    signed = rows * (2.0 * classes - 1.0)[:, np.newaxis] * (weights / weights.sum())[:, np.newaxis]
    scale = np.linalg.norm(signed, axis=0)
    signed = signed[:, scale > 0] / scale[scale > 0]
    sums = signed.sum(axis=0)
    if not np.abs(sums).max(initial=0.0) > SEPARATED:
        return 1.0
    # The dual of the programme, which has as few equations as there are columns: the largest t for which
    # sum_i l_i z_i + t sum_i z_i = 0, as forms in the model, with l_i from 0 to 1.
    found = scipy.optimize.linprog(
        np.append(np.zeros(len(signed)), -1.0),
        A_eq=np.column_stack([signed.T, sums]),
        b_eq=np.zeros(len(sums)),
        bounds=[(0.0, 1.0)] * len(signed) + [(0.0, None)],
        method="highs",
    )
    least = -float(found.fun) if found.success else 0.0
    return 1.0 + 1.0 / least if least > SEPARATED else float("inf")


def sensitivity_bounds(leverage: Floats, mu: float, n_rows: int) -> Floats:
    """Bound which part of the loss of any model each row has, (m,), from its leverage in all columns, (m,)."""
    return np.asarray((1.0 + mu) * np.sqrt(leverage) + 5.0 * mu / n_rows)
