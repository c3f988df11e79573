"""What a pilot tells of models of classes: against runs on all rows."""

from dataclasses import replace

import numpy as np
import pytest

from colonnade.kernels.class_law import ClassLaw, class_law
from colonnade.kernels.logistic import solve_logistic
from colonnade.kernels.logits import log_loss

N = 20_000
RNG = np.random.default_rng(5)
X = RNG.standard_t(6, size=(N, 6)) / np.sqrt(1.5)
Y = (X @ [1.0, -1.0, 0.5, 0.0, 0.7, 0.3] - 1.0 + RNG.logistic(size=N) > 0).astype(np.float64)
SCORES = 0.1 + np.square(X).sum(axis=1) + 3 * np.where(Y == 1, 0.5 / Y.mean(), 0.5 / (1 - Y.mean()))
ALL = solve_logistic(X, Y.astype(np.int64), np.ones(N), 2, 1.0, 0.0, fit_intercept=True)


def drawn(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.flatnonzero(rng.random(N) < chances)


def by_scores(size: float) -> np.ndarray:
    return np.asarray(np.minimum(size * SCORES / SCORES.sum(), 1.0))


def law(seed: int, size: int = 600, *, fit_intercept: bool = True) -> tuple[ClassLaw, np.ndarray]:
    """Make the law of a pilot; give the rows too."""
    chances = by_scores(size)
    rows = drawn(chances, np.random.default_rng([seed, 1]))
    found = class_law(
        [X[rows, :3], X[rows, 3:]],
        [np.full(3, 1e-9), np.full(3, 1e-9)],
        chances[rows],
        np.ones(len(rows)),
        np.eye(6),
        Y[rows],
        (1.0 / N) * np.eye(6),
        fit_intercept=fit_intercept,
    )
    return found, rows


def objective(coef: np.ndarray, intercept: np.ndarray) -> float:
    return float(log_loss(X @ coef[0] + intercept, Y.astype(np.int64)).sum() + coef[0] @ coef[0])


def run(chances: np.ndarray, step: float | None, seed: int) -> float:
    """Learn on drawn rows, rounded, and give the excess on all."""
    rng = np.random.default_rng([seed, 2])
    rows = drawn(chances, rng)
    seen = X[rows] if step is None else X[rows] + step * (rng.random((len(rows), 6)) - 0.5)
    learned = solve_logistic(seen, Y[rows].astype(np.int64), 1 / chances[rows], 2, 1.0, 0.0, fit_intercept=True)
    return objective(*learned) / objective(*ALL) - 1


@pytest.mark.parametrize("evenly", [False, True])
@pytest.mark.parametrize("size", [300, 3000])
def test_rehearsals_are_as_runs_are(evenly: bool, size: int) -> None:
    """Means over 5 pilots and over 40 runs, rows as they are: within a third of each other, and of the first order."""
    chances = np.full(N, size / N) if evenly else by_scores(size)
    actual = np.mean([run(chances, None, seed) for seed in range(40)])
    found = [(each, rows) for each, rows in (law(seed) for seed in range(5))]
    rehearsed = np.mean(
        [each.rehearse(chances[rows], None, 30, np.random.default_rng(0)).mean() for each, rows in found]
    )
    first = np.mean([each.first_order(chances[rows], None) for each, rows in found])
    assert rehearsed == pytest.approx(actual, rel=0.33)
    assert first == pytest.approx(actual, rel=0.4)


def test_what_rounding_draws_models_by() -> None:
    """Of all rows, by a step of 2 and of 1: within half of the truth; it grows with the fourth power of the step."""
    every = np.ones(N)
    actual = {step: np.mean([run(every, step, seed) for seed in range(3)]) for step in (1.0, 2.0)}
    laws = [law(seed)[0] for seed in range(5)]
    for step, truth in actual.items():
        expected = np.mean([each.rehearse(np.ones(len(each.weights)), step, 2, RNG).mean() for each in laws])
        assert expected == pytest.approx(truth, rel=0.5)
    small, large = (laws[0].first_order(np.ones(len(laws[0].weights)), step) for step in (0.25, 0.5))
    assert 4 < large / small < 16.5, "variance by the square, bias by the fourth power"


def test_more_rows_and_finer_steps_lose_less() -> None:
    found, rows = law(0)
    sizes = [found.first_order(by_scores(size)[rows], 0.5) for size in (200, 1000, 5000)]
    steps = [found.first_order(by_scores(1000)[rows], step) for step in (0.1, 0.5, 2.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert steps == sorted(steps)
    assert found.first_order(by_scores(5)[rows], 0.5) == np.inf


def test_moments_explain_less_of_an_even_draw_than_of_one_by_scores() -> None:
    """Heavy rows make up most of what an even draw misses, and their slopes are not linear in anything."""
    laws = [law(seed) for seed in range(4)]
    evenly = np.mean([found._explained(np.full(len(rows), 0.1)) for found, rows in laws])
    scores = np.mean([found._explained(by_scores(2000)[rows]) for found, rows in laws])
    assert 0 <= evenly <= scores + 0.05
    assert replace(laws[0][0], unexplained=None)._explained(np.full(len(laws[0][1]), 0.1)) == 0.3


def test_without_an_intercept_there_is_a_coefficient_less() -> None:
    with_one, without = (law(0, fit_intercept=each)[0] for each in (True, False))
    assert (with_one.n_coefficients, without.n_coefficients) == (7, 6)
    assert without.first_order(np.full(len(without.weights), 0.1), 0.5) > 0
    assert without.rehearse(np.full(len(without.weights), 0.5), 0.5, 3, RNG).max() < 1


def test_rows_that_classes_tell_apart_have_a_law_too() -> None:
    """Few rows may be separable: rehearsals end, and say that much is lost."""
    rows = np.argsort(np.abs(X @ [1.0, -1.0, 0.5, 0.0, 0.7, 0.3] - 1.0))[-80:]
    Z, y = X[rows], (X[rows] @ [1.0, -1.0, 0.5, 0.0, 0.7, 0.3] > 1.0).astype(float)
    found = class_law(
        [Z[:, :3], Z[:, 3:]],
        [np.zeros(3), np.zeros(3)],
        np.full(80, 0.01),
        np.ones(80),
        np.eye(6),
        y,
        np.zeros((6, 6)),
        fit_intercept=True,
    )
    rehearsed = found.rehearse(np.full(80, 0.01), None, 4, RNG)
    assert np.isfinite(rehearsed).all()
    assert rehearsed.mean() > 0.05


def test_a_draw_of_one_class_teaches_nothing() -> None:
    found, rows = law(0)
    one_class = np.where(Y[rows] == 1, 1e-9, 0.1)
    assert found.rehearse(one_class, None, 2, RNG).min() == np.inf
