"""Distinct draws by seeds that the server knows: in which order rows were laid end to end, and where the points fell.

Each row that was drawn bounds two sums of scores. Nothing of a sum under masks is needed, only row ids.
"""

import numpy as np
from scipy.optimize import linprog

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import _line, draw_distinct
from colonnade.sampling.rules.leverage import LeverageScores
from hostile_trial import N_ROWS, made_parties

OWN = LeverageScores(fit_intercept=True).scores(made_parties()[0].table)
SCORES = np.asarray(OWN)
TOTAL, COUNT = 4.0, 5
# All scores together, as whole steps.
STEPS = _line(OWN).total


def line_of(seed: int) -> tuple[Rows, float]:
    """Give the order of rows in their only block, and where the first point falls, in units of its distance."""
    rng = np.random.default_rng(seed)
    rng.permutation(1)
    key = int(rng.integers(2**63))
    return np.random.default_rng([key, 0]).permutation(N_ROWS), int(rng.integers(STEPS)) / STEPS


def bounds_of(seed: int) -> tuple[Floats, Floats]:
    """Give what one draw tells: sums of scores, and what they are no larger than."""
    factor, drawn = draw_distinct(OWN, COUNT, np.random.default_rng(seed))
    assert (factor * SCORES).max() < 1, "nobody is certain"
    order, start = line_of(seed)
    points = (np.arange(COUNT) + start) * (TOTAL / COUNT)
    places = np.sort(np.argsort(order)[drawn])
    before = np.argsort(order) < places[:, np.newaxis]
    up_to = np.argsort(order) <= places[:, np.newaxis]
    return np.vstack([before, -1.0 * up_to]), np.append(points, -points)


def median_error(n_draws: int, first: int) -> float:
    """Take the scores that keep farthest from all bounds, of so many seeds from the first; give their error."""
    told = [bounds_of(first + number) for number in range(n_draws)]
    sums, limits = np.vstack([each for each, _ in told]), np.concatenate([each for _, each in told])
    found = linprog(
        np.append(np.zeros(N_ROWS), -1.0),
        A_ub=np.column_stack([sums, np.ones(len(sums))]),
        b_ub=limits,
        A_eq=[np.append(np.ones(N_ROWS), 0.0)],
        b_eq=[TOTAL],
        bounds=[(1 / N_ROWS, 1.0)] * N_ROWS + [(0.0, None)],
    )
    return float(np.median(np.abs(found.x[:N_ROWS] / SCORES - 1)))


def test_draws_of_a_day_tell_scores_coarsely() -> None:
    """As many row ids as rows: to a quarter in the median of 60 days, 14 to 56 %; that all score the same, to 38 %."""
    errors = [median_error(N_ROWS // COUNT, first) for first in range(0, 900, 100)]
    assert np.median(np.abs(TOTAL / N_ROWS / SCORES - 1)) > 0.3
    assert min(errors) > 0.1
    assert np.median(errors) > 0.18


def test_draws_of_ten_days_do() -> None:
    """An open attack: what a day's budget of row ids is for. As many draws with replacement tell scores to 13 %."""
    assert np.median([median_error(10 * N_ROWS // COUNT, first) for first in (0, 1000, 2000)]) < 0.025
