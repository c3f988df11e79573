"""The robust definition, measured: how many rows must be set aside for a coreset's cost to be within ε."""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows


def share_set_aside(losses: Floats, rows: Rows, weights: Floats, epsilon: float) -> float:
    """Find a small β for which the coreset is (β, ε)-robust at one model (Definition G.1).

    The rows set aside, O, are to make |f(X without O) - f(S without O)| <= ε f(X). If the coreset's cost is too low,
    rows that it understates are set aside, those it understates most first; if it is too high, those it overstates.
    Each row moves the difference by a fixed amount, so no smaller O does it, unless a row moves it too far.

    The losses f(x_i) >= 0 are of all n rows; `rows` are S, a multiset, with weights w. β is the larger of |O| / n and
    |S ∩ O| / |S|; 1 where nothing less than all rows does.
    """
    n, m = len(losses), len(rows)
    draws = np.bincount(rows, minlength=n)
    overstated = np.bincount(rows, weights, minlength=n) * losses - losses
    difference, allowed = float(overstated.sum()), epsilon * float(losses.sum())
    if abs(difference) <= allowed:
        return 0.0
    sign = np.sign(difference)
    order = np.argsort(-sign * overstated, kind="stable")
    within = np.abs(difference - np.cumsum(overstated[order])) <= allowed
    within[-1] = True  # nothing is left on either side, whatever rounding says
    taken = order[: int(np.argmax(within)) + 1]
    return float(max(len(taken) / n, draws[taken].sum() / m))
