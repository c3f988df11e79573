"""Laws that every registered solver passes on every task it takes; a new one is covered by being registered.

Convex tasks are compared by their objective, to the solver's tolerance. K-means ends in local optima, so its laws are
about the mean cost over seeds: 2 % apart at most, where single starts of this data scatter by less than 1 %.
"""

from functools import cache
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.kernels.arrays import Floats
from colonnade.solvers import AnySolver

N = 60
RNG = np.random.default_rng(0)
MIDDLES = np.array([[8.0, 0.0, 0.0, 8.0], [0.0, 8.0, 0.0, -8.0], [0.0, 0.0, 8.0, 0.0]])
X = MIDDLES[np.arange(N) % 3] / 8 + 0.4 * RNG.normal(size=(N, 4))
Y = X @ [1.0, -2.0, 0.0, 0.5] + 3.0 + 0.3 * RNG.normal(size=N)
LATE = np.where(X @ [1.0, -2.0, 0.0, 0.5] + np.random.default_rng(1).logistic(size=N) > 0, 1.0, 0.0)
COPIES = RNG.integers(0, 4, size=N)
KEPT = np.arange(N) % 4 > 0
TASKS: list[Any] = [
    cn.Regression(),
    cn.Regression(l2=0.05, fit_intercept=False),
    cn.Regression(l1=0.05),
    cn.Regression(l2=0.02, l1=0.05),
    cn.Classification(l2=0.02),
    cn.Classification(l2=0.05, fit_intercept=False),
    cn.Classification(l1=0.01),
    cn.KMeans(n_clusters=3),
]
STANDARD = [msgspec.structs.replace(task, standardize=True) for task in TASKS]


ROSTER = Roster(tuple(PartyCard(name, N, (f"{name}_0", f"{name}_1"), None) for name in "abc"))


def takes(solver: Any, task: Any) -> bool:
    try:
        solver.check(task, ROSTER, None)
    except cn.UnsupportedError:
        return False
    return True


# Rounded rows obey the laws as far as they are not rounded.
OPTIONS: dict[Any, dict[str, Any]] = {cn.CompactCentral: {"step": 1e-5}}
SOLVERS = [kind(**OPTIONS.get(kind, {})) for kind in get_args(AnySolver) or (AnySolver,)]
PAIRS = [
    pytest.param(solver, task, id=f"{solver}-{task}")
    for solver in SOLVERS
    for task in [*TASKS, *STANDARD]
    if takes(solver, task)
]
pytestmark = [
    pytest.mark.parametrize(("solver", "task"), PAIRS),
    # Beside the label party's there are two columns, so that there is one step: laws hold all the same.
    pytest.mark.filterwarnings("ignore:SecureGram stopped after 1 steps:colonnade.ConvergenceWarning"),
]


def label_of(task: Any) -> Floats:
    return LATE if isinstance(task, cn.Classification) else Y


def parties(task: Any, rows: Any = slice(None), *, weight: Any = None, split: Any = None) -> list[cn.Party]:
    features, labels = X[rows], label_of(task)[rows]
    return [
        cn.Party("a", features[:, :2], label=labels),
        cn.Party("b", features[:, 2:3], weight=weight),
        cn.Party("c", features[:, 3:], split=split),
    ]


def weighted(weights: Any, rows: Any = None, total: float | None = None) -> cn.Coreset:
    weights = np.asarray(weights, dtype=np.float64)
    rows = np.arange(N) if rows is None else rows
    return cn.Coreset(rows, weights, n_rows=N, total_weight=total or float(COPIES.sum()))


def costs(solver: Any, task: Any, coreset: cn.Coreset, federation: cn.Federation | None = None) -> float:
    """Count a model's objective on the reference rows: those of COPIES, in the first order of columns."""
    federation = federation or cn.Federation(parties(task))
    seeds = range(8) if isinstance(task, cn.KMeans) else range(1)
    return float(np.mean([objective(task, fit(solver, task, coreset, federation, s), federation) for s in seeds]))


@cache
def reference(solver: Any, task: Any) -> float:
    """Give the cost that the laws compare with, made once."""
    return costs(solver, task, weighted(COPIES))


def fit(solver: Any, task: Any, coreset: cn.Coreset, federation: cn.Federation, seed: int) -> Any:
    return federation.fit(task, coreset=coreset, solver=solver, seed=seed).model


def objective(task: Any, model: Any, federation: cn.Federation) -> float:
    names = federation.roster.feature_names
    order = [names.index(name) for name in ("a_0", "a_1", "b_0", "c_0")]
    unit = np.ones(4) if model.scale_ is None else model.scale_[order]
    if isinstance(task, cn.KMeans):
        distances = np.square((X[:, None] - model.cluster_centers_[:, order][None]) / unit).sum(axis=2)
        return float(COPIES @ distances.min(axis=1))
    theta = model.coef_.ravel()[order]
    penalty = COPIES.sum() * (task.l2 * (theta * unit) @ (theta * unit) + task.l1 * np.abs(theta * unit).sum())
    predicted = X @ theta + model.intercept_
    late = isinstance(task, cn.Classification)
    losses = np.logaddexp(0, (1 - 2 * LATE) * predicted) if late else np.square(predicted - Y)
    return float(COPIES @ losses + penalty)


def tolerance(task: Any) -> float:
    return 0.02 if isinstance(task, cn.KMeans) else 1e-3


def test_weight_k_equals_k_copies(solver: Any, task: Any) -> None:
    copies = weighted(np.ones(COPIES.sum()), np.repeat(np.arange(N), COPIES))
    assert reference(solver, task) == pytest.approx(costs(solver, task, copies), rel=tolerance(task))


def test_scaling_weights_and_n_together_changes_nothing(solver: Any, task: Any) -> None:
    scaled = weighted(1000.0 * COPIES, total=1000.0 * COPIES.sum())
    assert reference(solver, task) == pytest.approx(costs(solver, task, scaled), rel=tolerance(task))


def test_rows_of_weight_zero_are_dropped(solver: Any, task: Any) -> None:
    kept = np.flatnonzero(COPIES)
    dropped = weighted(COPIES[kept], kept)
    assert reference(solver, task) == pytest.approx(costs(solver, task, dropped), rel=tolerance(task))


def test_the_order_of_rows_does_not_matter(solver: Any, task: Any) -> None:
    order = np.random.default_rng(1).permutation(N)
    turned = cn.Federation(parties(task, order))
    assert reference(solver, task) == pytest.approx(
        costs(solver, task, weighted(COPIES[order]), turned), rel=tolerance(task)
    )


def test_the_order_of_parties_does_not_matter(solver: Any, task: Any) -> None:
    turned = cn.Federation(parties(task)[::-1])
    assert reference(solver, task) == pytest.approx(costs(solver, task, weighted(COPIES), turned), rel=tolerance(task))


def test_the_same_seed_gives_the_same_bits(solver: Any, task: Any) -> None:
    first, again = (fit(solver, task, weighted(COPIES), cn.Federation(parties(task)), 5) for _ in range(2))
    for name in first.__struct_fields__:
        if isinstance(getattr(first, name), np.ndarray):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_it_learns(solver: Any, task: Any) -> None:
    """A solver that returned anything would pass the laws above; compare with the best known answer."""
    best = reference(cn.Central(), task)
    one_step = isinstance(solver, cn.SecureGram) and isinstance(task, cn.Classification)
    allowed = 1.1 if isinstance(task, cn.KMeans) or one_step else 1 + 1e-3
    assert reference(solver, task) <= allowed * best


# Rows that carry weights, columns that are scaled, rows held out: the same laws.


def mean_cost(solver: Any, task: Any, federation: cn.Federation, **options: Any) -> float:
    """Count models of all rows on the reference rows."""
    seeds = range(8) if isinstance(task, cn.KMeans) else range(1)
    runs = [federation.fit(task, sampler=cn.AllRows(), solver=solver, seed=seed, **options) for seed in seeds]
    return float(np.mean([objective(task, run.model, federation) for run in runs]))


@cache
def cost_by_a_column_of_weights(solver: Any, task: Any) -> float:
    return mean_cost(solver, task, cn.Federation(parties(task, weight=COPIES)))


@cache
def cost_in_a_view(solver: Any, task: Any) -> float:
    return mean_cost(solver, task, cn.Federation(viewed(task)), split=cn.SplitBy("c"))


def viewed(task: Any) -> list[cn.Party]:
    return parties(task, split=~KEPT, weight=COPIES)


def test_a_column_of_weights_equals_copies_of_the_rows(solver: Any, task: Any) -> None:
    repeated = np.repeat(np.arange(N), COPIES)
    copied = cn.Federation(parties(task, repeated))
    ours, theirs = cost_by_a_column_of_weights(solver, task), mean_cost(solver, task, copied)
    assert ours == pytest.approx(theirs, rel=tolerance(task))
    unweighted = mean_cost(solver, task, cn.Federation(parties(task)))
    assert unweighted > ours * (1 + 1e-4) or isinstance(task, cn.KMeans), "weights make a difference that would show"


def test_the_scale_of_a_column_of_weights_changes_nothing(solver: Any, task: Any) -> None:
    thousands = mean_cost(solver, task, cn.Federation(parties(task, weight=1000 * COPIES)))
    assert cost_by_a_column_of_weights(solver, task) == pytest.approx(thousands, rel=tolerance(task))


def test_held_out_rows_might_as_well_not_be_there(solver: Any, task: Any) -> None:
    without = cn.Federation(parties(task, KEPT, weight=COPIES[KEPT]))
    assert cost_in_a_view(solver, task) == pytest.approx(mean_cost(solver, task, without), rel=tolerance(task))


def test_the_order_of_parties_does_not_matter_in_a_view(solver: Any, task: Any) -> None:
    turned = cn.Federation(viewed(task)[::-1])
    assert cost_in_a_view(solver, task) == pytest.approx(
        mean_cost(solver, task, turned, split=cn.SplitBy("c")), rel=tolerance(task)
    )
    in_order = mean_cost(solver, task, cn.Federation(viewed(task)), split=cn.HoldOut(0.3))
    assert in_order == pytest.approx(mean_cost(solver, task, turned, split=cn.HoldOut(0.3)), rel=tolerance(task))
