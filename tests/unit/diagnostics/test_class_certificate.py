"""Certificates of classifications: what they say, and what they say nothing of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.logits import log_loss
from colonnade.transports.loopback import Loopback

RNG = np.random.default_rng(8)
X = RNG.standard_t(5, size=(6000, 6))
LOGITS = X @ [1.0, -1.0, 0.5, 0.0, 0.8, -0.4] - 1.5
Y = (LOGITS + RNG.logistic(size=6000) > 0).astype(float)
WIDTHS = [2, 3, 1]
TASK, SAMPLER = cn.Classification(l2=1e-4), cn.ImportanceSampling(600)


@pytest.fixture(scope="module")
def federation() -> cn.Federation:
    return cn.Federation(cn.split_columns(X, Y, WIDTHS))


@pytest.fixture(scope="module")
def run(federation: cn.Federation) -> cn.Run[Any]:
    return federation.fit(TASK, sampler=SAMPLER)


def loss(model: Any, labels: Any = Y) -> float:
    return float(log_loss(model.logits(X), np.asarray(labels, np.int64)).sum())


def test_it_says_what_is_true(federation: cn.Federation, run: cn.Run[Any]) -> None:
    found = federation.certify(run)
    best = federation.fit(TASK, sampler=cn.AllRows()).model
    (low, high), excess = found.cost_interval, TASK.cost(run.model, X, Y) - TASK.cost(best, X, Y)
    assert low < loss(run.model) < high
    assert high - low < 0.3 * loss(run.model)
    assert found.excess is not None
    assert found.relative_excess is not None
    assert 0 < excess < found.excess
    assert found.relative_excess < 0.08
    assert found.trusted
    assert (found.task, found.why_no_bound) == ("Classification", None)
    assert str(found).startswith("cost ")


def test_what_it_shows(federation: cn.Federation, run: cn.Run[Any]) -> None:
    position = len(federation.ledger)
    found = federation.certify(run)
    ledger = federation.ledger.since(position)
    assert found.reveals == ("schema", "levels", "labels", "totals", "row ids", "scores", "features", "moments")
    told = ledger.by_phase()["certifying"].bytes
    assert 3 * 2 * found.rows < told - found.rows // 8 < 3 * (2 * found.rows + 250), "16 bits a row and party, and one"
    assert [entry.kind for entry in ledger if entry.phase == "framing"] == ["AskClasses", "Classes"]


@pytest.mark.parametrize("classes", [("no", "yes"), ("yes", "no")])
def test_classes_of_text_in_any_order(classes: tuple[str, str], run: cn.Run[Any]) -> None:
    federation = cn.Federation(cn.split_columns(X, np.where(Y == 1, "yes", "no"), WIDTHS))
    named = federation.fit(cn.Classification(l2=1e-4, classes=classes), sampler=SAMPLER)
    found = federation.certify(named)
    low, high = found.cost_interval
    assert low < loss(run.model) < high
    assert found.trusted


def test_penalties_and_scales(federation: cn.Federation) -> None:
    for task in (
        cn.Classification(),
        cn.Classification(l2=0.05),
        cn.Classification(l1=0.01),
        cn.Classification(l2=0.01, l1=0.01, fit_intercept=False, standardize=True),
        cn.Classification(l2=1e-3, standardize=True),
    ):
        learned, best = (federation.fit(task, sampler=sampler, seed=2) for sampler in (SAMPLER, cn.AllRows()))
        found = federation.certify(learned)
        assert found.cost == pytest.approx(loss(learned.model), rel=0.15)
        assert found.excess is not None
        assert found.gradient_p is not None
        assert found.gradient_p > 0.01
        assert 0 <= task.cost(learned.model, X, Y) - task.cost(best.model, X, Y) < found.excess


@pytest.mark.parametrize("solver", [cn.CompactCentral(), cn.CompactCentral(1.5)])
@pytest.mark.parametrize("draws", ["stratified", "distinct"])
def test_rounded_rows(federation: cn.Federation, solver: Any, draws: Any) -> None:
    rounded = federation.fit(TASK, sampler=cn.ImportanceSampling(600, draws=draws), solver=solver)
    best = federation.fit(TASK, sampler=cn.AllRows()).model
    found = federation.certify(rounded)
    assert found.excess is not None
    assert TASK.cost(rounded.model, X, Y) - TASK.cost(best, X, Y) < found.excess < 0.3 * TASK.cost(best, X, Y)


def test_all_rows_that_were_rounded_are_not_the_best_possible(federation: cn.Federation) -> None:
    exact, rounded = (
        federation.certify(federation.fit(TASK, sampler=cn.AllRows(), solver=solver))
        for solver in (cn.Central(), cn.CompactCentral(1.5))
    )
    assert exact.excess == 0.0
    assert rounded.excess is not None
    assert rounded.excess > 0


def test_what_rounding_hides_is_looked_for() -> None:
    rng = np.random.default_rng(3)
    shared, rest = rng.normal(size=8000), rng.normal(size=8000)
    columns = np.column_stack([shared, shared + 0.02 * rest])
    label = (shared + 2 * rest + 0.5 * rng.logistic(size=8000) > 0).astype(float)
    federation = cn.Federation(cn.split_columns(columns, label, [1, 1]))
    learned = federation.fit(cn.Classification(l2=1e-9), sampler=cn.ImportanceSampling(800), solver=cn.CompactCentral())
    assert learned.precision is not None
    assert len(learned.precision.hidden) == 1
    found = federation.certify(learned)
    assert found.excess is None
    assert "rounding hides directions" in str(found)


def test_held_out_rows_and_weights_count_as_in_the_run() -> None:
    weight = np.where(np.arange(6000) % 2 == 0, 0.5, 2.0)
    federation = cn.Federation(cn.split_columns(X, Y, WIDTHS, weight=weight))
    split = cn.SplitBy("party1")
    marked = np.arange(6000) < 2000
    parties = cn.split_columns(X, Y, WIDTHS, weight=weight)
    parties[0] = cn.Party("party1", X[:, :2], split=marked)
    federation = cn.Federation(parties)
    learned = federation.fit(TASK, sampler=SAMPLER, split=split)
    losses = log_loss(learned.model.logits(X), Y.astype(np.int64))
    low, high = federation.certify(learned).cost_interval
    assert low < float(weight[2000:] @ losses[2000:]) < high
    assert high < float(weight @ losses)


def test_over_bytes_and_after_saving_it_is_the_same(run: cn.Run[Any], tmp_path: Path) -> None:
    over_bytes = cn.Federation(cn.split_columns(X, Y, WIDTHS), transport=Loopback)
    here = cn.Federation(cn.split_columns(X, Y, WIDTHS))
    saved = cn.Run.load(run.save(tmp_path / "run"))
    assert saved.precision == run.precision
    assert over_bytes.certify(saved) == here.certify(run)


@pytest.mark.parametrize(
    "sampler",
    [
        cn.UniformSampling(600),
        cn.ImportanceSampling(600, class_blind=True),
        cn.ImportanceSampling(600, draws="distinct"),
    ],
)
def test_other_draws(federation: cn.Federation, sampler: Any) -> None:
    found = federation.certify(federation.fit(TASK, sampler=sampler))
    assert found.trusted
    assert found.relative_excess is not None


def test_few_rows_have_no_bound() -> None:
    federation = cn.Federation(cn.split_columns(X, Y, WIDTHS))
    found = federation.certify(federation.fit(TASK, sampler=cn.ImportanceSampling(30)))
    assert found.excess is None
    assert "too few rows" in str(found)


def test_labels_that_were_not_the_true_ones_are_found(federation: cn.Federation) -> None:
    """A fifth of the later class was called the other: the model is off by far more than a draw."""
    bent = np.where((np.random.default_rng(1).random(6000) < 0.2) & (Y == 1), 0.0, Y)
    lying = cn.Federation(cn.split_columns(X, bent, WIDTHS))
    for seed in range(3):
        found = federation.certify(replace(lying.fit(TASK, sampler=SAMPLER, seed=seed), tables=None), seed=seed)
        assert found.gradient_p is not None
        assert found.gradient_p < 0.01 <= found.draws_p


def test_a_policy_that_never_tells_labels_refuses_it(run: cn.Run[Any]) -> None:
    parties = cn.split_columns(X, Y, WIDTHS)
    parties[-1] = cn.Party("party3", X[:, 5:], label=Y, policy=cn.Policy(level="open", never=["labels"]))
    with pytest.raises(cn.PolicyRefusedError, match="labels"):
        cn.Federation(parties).certify(run)


def test_of_more_classes_there_is_no_certificate() -> None:
    three = np.digitize(LOGITS + RNG.logistic(size=6000), [-2.0, 0.0]).astype(float)
    federation = cn.Federation(cn.split_columns(X, three, WIDTHS))
    learned = federation.fit(cn.Classification(l2=1e-3), sampler=SAMPLER)
    with pytest.raises(cn.UnsupportedError, match="of 3 classes cannot be certified: only one of two can"):
        federation.certify(learned)


def test_another_label_is_refused(run: cn.Run[Any]) -> None:
    other = cn.Federation(cn.split_columns(X, Y + 1, WIDTHS))
    with pytest.raises(cn.InputError, match="has the classes 1, 2, and classes= names 0, 1"):
        other.certify(run, changed="allow")


def test_too_few_rows(federation: cn.Federation, run: cn.Run[Any]) -> None:
    with pytest.raises(cn.InputError, match="Draw 90 rows or more"):
        federation.certify(run, rows=89)
