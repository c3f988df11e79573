"""The objective of a model on weighted rows, and what a run tells of it."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn

N = 150
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) * [1.0, 10.0, 0.1, 1.0]
Y = X @ [1.0, 0.2, -3.0, 0.0] + 2.0 + RNG.normal(size=N)
WEIGHTS = RNG.uniform(0, 3, size=N)
TASKS: list[Any] = [
    cn.Regression(),
    cn.Regression(l2=0.3, l1=0.2),
    cn.Regression(l2=0.3, l1=0.2, fit_intercept=False, standardize=True),
    cn.Regression(l1="cv"),
    cn.Regression(l2="cv", l1=0.1, standardize=True),
    cn.KMeans(4),
    cn.KMeans(4, standardize=True),
]


def federation() -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, [2, 2]))


def by_hand(task: Any, model: Any, rows: Any, weights: Any, total: float) -> float:
    unit = np.ones(4) if model.scale_ is None else model.scale_
    if isinstance(task, cn.KMeans):
        return float(
            sum(
                w * min(np.sum(((x - c) / unit) ** 2) for c in model.cluster_centers_)
                for w, x in zip(weights, X[rows], strict=True)
            )
        )
    l2, l1 = (task.l2, task.l1) if model.path is None else (model.path.chosen.l2, model.path.chosen.l1)
    theta = model.coef_ * unit
    losses = [(x @ model.coef_ + model.intercept_ - y) ** 2 for x, y in zip(X[rows], Y[rows], strict=True)]
    return float(np.dot(weights, losses) + total * (l2 * np.sum(theta**2) + l1 * np.sum(np.abs(theta))))


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_it_is_the_papers_objective(task: Any) -> None:
    """Where cross-validation chose the penalty, with the one it chose."""
    model = federation().fit(task, sampler=cn.ImportanceSampling(size=60)).model
    rows = np.arange(N)
    assert task.cost(model, X, Y) == pytest.approx(by_hand(task, model, rows, np.ones(N), N))
    assert task.cost(model, X, Y, WEIGHTS) == pytest.approx(by_hand(task, model, rows, WEIGHTS, WEIGHTS.sum()))
    assert task.cost(model, X, Y, WEIGHTS, 7.0) == pytest.approx(by_hand(task, model, rows, WEIGHTS, 7.0))


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_it_adds_up_over_rows(task: Any) -> None:
    model = federation().fit(task, sampler=cn.ImportanceSampling(size=60)).model
    halves = [slice(0, 40), slice(40, N)]
    parts = [task.cost(model, X[half], Y[half], WEIGHTS[half]) for half in halves]
    assert sum(parts) == pytest.approx(task.cost(model, X, Y, WEIGHTS))
    repeated = np.repeat(np.arange(N), np.arange(N) % 3)
    assert task.cost(model, X[repeated], Y[repeated]) == pytest.approx(
        task.cost(model, X, Y, (np.arange(N) % 3).astype(np.float64))
    )


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(
    "sampler", [cn.AllRows(), cn.ImportanceSampling(size=60), cn.UniformSampling(size=60)], ids=str
)
def test_a_run_tells_the_cost_on_its_coreset(task: Any, sampler: Any) -> None:
    run = federation().fit(task, sampler=sampler, split=cn.HoldOut(0.2))
    rows, weights, total = run.coreset.rows, run.coreset.weights, run.coreset.total_weight
    assert run.diagnostics["cost"] == run.facts["cost"]
    assert run.facts["cost"] == pytest.approx(by_hand(task, run.model, rows, weights, total), rel=1e-9)
    assert run.facts["cost"] == pytest.approx(task.cost(run.model, X[rows], Y[rows], weights, total), rel=1e-9)


@pytest.mark.parametrize(("tolerance", "error"), [(1e-4, 3e-3), (1e-5, 1e-3)])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("task", TASKS[:3], ids=str)
def test_saga_tells_epochs_and_cost(task: cn.Regression, batch: int, tolerance: float, error: float) -> None:
    """From residuals some of which are epochs old: the nearer to the end, the nearer to the model's cost."""
    solver = cn.Saga(batch=batch, tolerance=tolerance)
    run = federation().fit(task, sampler=cn.ImportanceSampling(size=80), solver=solver)
    rows, weights, total = run.coreset.rows, run.coreset.weights, run.coreset.total_weight
    assert run.diagnostics["cost"] == pytest.approx(task.cost(run.model, X[rows], Y[rows], weights, total), rel=error)
    closed = sum(entry.kind == "AskProgress" for entry in run.ledger) / 2
    assert run.diagnostics["epochs"] == closed > 1


def test_distdim_tells_how_many_cells_occur() -> None:
    run = federation().fit(cn.KMeans(4), sampler=cn.AllRows(), solver=cn.DistDim())
    assert 4 <= run.facts["cells"] <= 16


def test_a_coreset_alone_costs_nothing() -> None:
    run = federation().coreset(cn.Regression(), cn.ImportanceSampling(size=20))
    assert run.facts == {}
    assert "cost" not in run.diagnostics


def test_a_regression_without_labels_has_no_cost() -> None:
    model = federation().fit(cn.Regression(), sampler=cn.AllRows()).model
    with pytest.raises(cn.InputError, match=r"cost of a regression needs labels\. Pass them"):
        cn.Regression().cost(model, X, None)
