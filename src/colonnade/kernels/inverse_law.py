"""Cost falls to its limit as 1/m: what a few small coresets tell of larger ones."""

import numpy as np

from colonnade.kernels.arrays import Floats

# Draws of the bootstrap: the ends of a 95 % interval are then good to a few parts in a hundred of its width.
RESAMPLES = 2_000


def fit_inverse_law(sizes: Floats, costs: Floats) -> tuple[float, float]:
    """Fit cost = limit (1 + c / m), trusting a cost the more the larger m: its spread, too, falls as 1/m.

    Parameters
    ----------
    sizes, costs : (b,) arrays
        m and the cost of a model learned on so many rows; two different sizes at least.

    Returns
    -------
    limit, c : float
        The cost at infinite size, and the relative excess times the size.
    """
    # Multiplied by m, with errors then alike: m cost = limit m + limit c.
    design = np.column_stack([sizes, np.ones_like(sizes)])
    limit, slope = np.linalg.lstsq(design, sizes * costs, rcond=None)[0]
    return float(limit), float(slope / limit) if limit > 0 else 0.0


def interval_of_c(sizes: Floats, costs: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Estimate how uncertain c is: the middle 95 % of fits to costs drawn anew among those of the same size.

    Parameters
    ----------
    sizes, costs : (b,) arrays
        As in `fit_inverse_law`.
    rng : numpy.random.Generator
        Draws them.

    Returns
    -------
    low, high : float
        Ends of the interval; `low` may be negative.
    """
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    found = []
    for _ in range(RESAMPLES):
        again = np.concatenate([rng.choice(group, len(group)) for group in groups])
        found.append(fit_inverse_law(sizes[again], costs[again])[1])
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)
