"""Classification: equal to scikit-learn on all rows, whatever the labels are; errors that name what is wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.transports.loopback import Loopback

N, D = 400, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) @ np.diag([1.0, 3.0, 0.1, 1.0, 1.0, 5.0]) + 2.0
SIGNAL = X @ [1.0, -0.4, 3.0, 0.0, 0.2, 0.1] - 1.5
LATE = np.where(SIGNAL + RNG.logistic(size=N) > np.median(SIGNAL), "yes", "no")
APART = np.greater(SIGNAL, np.median(SIGNAL))
# More than two, of which the middle one is told by another direction.
KIND = np.where(X[:, 3] + RNG.logistic(size=N) > 2.5, 7, np.where(LATE == "yes", 3, -2))
ALL = cn.AllRows()
PENALTIES = [(0.0, 0.0), (1e-4, 0.0), (0.1, 0.0), (0.0, 1e-3), (0.0, 0.05), (1e-3, 1e-2)]


def federation(labels: Any = LATE, **options: Any) -> cn.Federation:
    return cn.Federation(cn.split_columns(X, labels, [2, 2, 2]), **options)


def scikit_learns(labels: Any, l2: float, l1: float) -> Any:
    if not l2 and not l1:
        return LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-10, max_iter=10_000).fit(X, labels)
    alpha = 2 * l2 + l1
    solver: dict[str, Any] = {"solver": "saga", "l1_ratio": l1 / alpha} if l1 else {"solver": "lbfgs"}
    return LogisticRegression(C=1 / (N * alpha), tol=1e-12, max_iter=200_000, **solver).fit(X, labels)


def objective(labels: Any, l2: float, l1: float, coef: Floats, intercept: Floats) -> float:
    classes, codes = np.unique(labels, return_inverse=True)
    logits = X @ coef.T + intercept
    if len(classes) == 2:
        logits = np.column_stack([np.zeros(N), logits[:, 0]])
    losses = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(N), codes]
    return float(losses.sum() + N * (l2 * np.square(coef).sum() + l1 * np.abs(coef).sum()))


@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
@pytest.mark.parametrize("labels", [LATE, KIND], ids=["two", "three"])
def test_central_equals_scikit_learn_on_all_rows(labels: Any, l2: float, l1: float) -> None:
    model = federation(labels).fit(cn.Classification(l2=l2, l1=l1), sampler=ALL).model
    theirs = scikit_learns(labels, l2, l1)
    ours = objective(labels, l2, l1, model.coef_, model.intercept_)
    best = objective(labels, l2, l1, theirs.coef_, theirs.intercept_)
    assert ours <= best * (1 + 1e-6)
    if not l1:  # theirs stops early
        assert ours == pytest.approx(best, rel=1e-6)
    assert list(model.classes_) == theirs.classes_.tolist()


def test_the_objective_is_that_of_cost() -> None:
    task = cn.Classification(l2=0.01, l1=0.002)
    run = federation().fit(task, sampler=ALL)
    codes = (LATE == "yes").astype(float)
    expected = objective(LATE, 0.01, 0.002, run.model.coef_, run.model.intercept_)
    assert run.facts["cost"] == pytest.approx(expected)
    assert task.cost(run.model, X, codes) == pytest.approx(expected)
    assert task.cost(run.model, X, codes, np.full(N, 2.0)) == pytest.approx(2 * expected), "additive over rows"


@pytest.mark.parametrize("labels", [LATE, KIND], ids=["two", "three"])
def test_standardised_columns_give_a_model_in_own_units(labels: Any) -> None:
    model = federation(labels).fit(cn.Classification(l2=0.05, standardize=True), sampler=ALL).model
    mean, scale = X.mean(axis=0), X.std(axis=0)
    theirs = LogisticRegression(C=1 / (N * 0.1), tol=1e-12, max_iter=10_000).fit((X - mean) / scale, labels)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba((X - mean) / scale), atol=1e-6)
    np.testing.assert_allclose(model.coef_ * scale, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LATE, ("no", "yes")),
        (LATE == "yes", (0, 1)),
        (np.where(LATE == "yes", 1.0, -1.0), (-1, 1)),
        (np.where(LATE == "yes", 0.25, 7.5), (0.25, 7.5)),
        (KIND, (-2, 3, 7)),
    ],
    ids=["text", "flags", "signs", "fractions", "three"],
)
def test_classes_are_the_labels_own_values(labels: Any, classes: tuple[Any, ...], tmp_path: Path) -> None:
    run = federation(labels).fit(cn.Classification(l2=1e-3), sampler=cn.ImportanceSampling(size=200))
    assert run.model.classes_ == classes
    assert set(run.model.predict(X).tolist()) == set(classes)
    run.save(tmp_path / "run")
    again = cn.Run.load(tmp_path / "run")
    assert again.model.classes_ == classes
    np.testing.assert_array_equal(again.model.coef_, run.model.coef_)
    np.testing.assert_array_equal(cn.ClassificationModel.load(tmp_path / "run").intercept_, run.model.intercept_)


def test_the_order_of_classes_is_the_callers() -> None:
    usual, turned = (
        federation().fit(cn.Classification(l2=1e-3, classes=classes), sampler=ALL).model
        for classes in (None, ("yes", "no"))
    )
    assert turned.classes_ == ("yes", "no")
    np.testing.assert_allclose(turned.coef_, -usual.coef_, atol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(X)[:, ::-1], usual.predict_proba(X), atol=1e-6)


def test_parts_add_up_and_scikit_learn_takes_it() -> None:
    model = federation().fit(cn.Classification(l2=1e-3), sampler=ALL).model
    logits = sum(model.part(f"party{j + 1}").logits(X[:, 2 * j : 2 * j + 2]) for j in range(3)) + model.intercept_[0]
    np.testing.assert_allclose(logits, model.logits(X))
    theirs = model.to_sklearn()
    np.testing.assert_allclose(theirs.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert theirs.predict(X).tolist() == model.predict(X).tolist()
    assert "yes" in model.table()


def test_transports_agree() -> None:
    task, sampler = cn.Classification(l2=1e-3), cn.ImportanceSampling(size=150, draws="distinct", round_scores=0.5)
    for solver in (cn.Central(), cn.CompactCentral()):
        for labels in (LATE, KIND):
            ours = federation(labels).fit(task, sampler=sampler, solver=solver, seed=3)
            wired = federation(labels, transport=Loopback).fit(task, sampler=sampler, solver=solver, seed=3)
            np.testing.assert_array_equal(ours.model.coef_, wired.model.coef_)
            assert ours.ledger == wired.ledger


def test_rounded_rows_of_a_fine_step_give_the_same_model() -> None:
    """Labels travel as they are, however many classes there are: 24 take more bits than are few."""
    many = np.arange(N) % 24 + 100
    for labels in (LATE, KIND, many):
        task, sampler = cn.Classification(l2=1e-2), cn.ImportanceSampling(size=300)
        drawn = federation(labels).coreset(task, sampler).coreset
        plain, rounded = (
            federation(labels).fit(task, coreset=cn.Coreset(drawn.rows, drawn.weights, N, N), solver=solver).model
            for solver in (cn.Central(), cn.CompactCentral(step=1e-5))
        )
        np.testing.assert_allclose(rounded.coef_, plain.coef_, atol=1e-3)


# --- scores ---


def test_each_class_is_drawn_about_as_often_and_costs_stay_right_on_average() -> None:
    """Of 1 % positives, a sixth of the class part's draws each: over 40 seeds, sums within 4 standard errors."""
    rare = np.zeros(N)
    rare[:4] = 1.0
    parties = federation(rare)
    runs = [parties.coreset(cn.Classification(), cn.ImportanceSampling(size=120), seed=seed) for seed in range(40)]
    drawn = np.array([(run.coreset.rows < 4).sum() for run in runs])
    # (d / 3) / 2 of d + d / 3 + T parts, and what leverage adds.
    assert drawn.mean() > 120 * (D / 6) / (D + D / 3 + 3)
    blind = parties.coreset(cn.Classification(), cn.ImportanceSampling(size=120, class_blind=True)).coreset
    assert (blind.rows < 4).sum() < drawn.mean() / 2
    weights = np.array([run.coreset.weights[run.coreset.rows < 4].sum() for run in runs])
    assert abs(weights.mean() - 4) < 4 * weights.std() / np.sqrt(40)


def test_what_is_told_of_classes_stands_on_the_ledger() -> None:
    by_class = federation().coreset(cn.Classification(), cn.ImportanceSampling(size=50))
    assert "labels" in by_class.ledger.disclosures()["party3", "server"]
    (entry,) = [each for each in by_class.ledger if each.kind == "Classes"]
    assert dict(zip(entry.reveals, entry.numbers, strict=True)) == {"levels": 2, "labels": 50}
    for sampler in (cn.UniformSampling(50), cn.ImportanceSampling(50, class_blind=True)):
        blind = federation().coreset(cn.Classification(), sampler)
        assert "labels" not in blind.ledger.disclosures()["party3", "server"]


def test_an_owner_who_keeps_labels_draws_blind() -> None:
    parties = [
        cn.Party("bank", X[:, :3], label=LATE, policy=cn.Policy(level="open", never=["labels"])),
        cn.Party("shop", X[:, 3:]),
    ]
    kept = cn.Federation(parties)
    with pytest.raises(cn.PolicyRefusedError, match=r"never reveals labels, which a Classes would.*class_blind"):
        kept.coreset(cn.Classification(), cn.ImportanceSampling(size=50))
    assert len(kept.coreset(cn.Classification(), cn.ImportanceSampling(size=50, class_blind=True)).coreset) == 50
    assert len(kept.coreset(cn.Classification(), cn.UniformSampling(50)).coreset) == 50


# --- wrong labels ---


def fit(labels: Any, task: Any = None, sampler: Any = None) -> Any:
    return federation(labels).fit(task or cn.Classification(l2=0.01), sampler=sampler or ALL)


@pytest.mark.parametrize(
    ("labels", "task", "words"),
    [
        (np.ones(N), None, "Every label of party 'party3' is 1: there is nothing to tell apart"),
        (np.full(N, "a"), None, "Every label of party 'party3' is 'a'"),
        (SIGNAL, None, "more than 100 different values.*Regression"),
        (LATE, cn.Regression(), "'party3_label' of party 'party3' is text. Learn a Classification"),
        (LATE, cn.Classification(classes=("no", "maybe")), "classes 'no', 'yes', and classes= names 'no', 'maybe'"),
        (APART, cn.Classification(), "told apart without error.*Give a penalty"),
    ],
    ids=["one number", "one word", "too many", "text for numbers", "other classes", "separable"],
)
def test_labels_that_cannot_be_learned_are_named(labels: Any, task: Any, words: str) -> None:
    with pytest.raises(cn.InputError, match=words):
        fit(labels, task)


def test_separable_classes_are_learned_under_a_penalty() -> None:
    assert (fit(APART, cn.Classification(l2=1e-8)).model.predict(X) == APART).mean() > 0.99


def test_a_class_that_no_drawn_row_has_is_named() -> None:
    rare = np.where(np.arange(N) == 0, "fraud", LATE)
    with pytest.raises(
        cn.InputError, match=r"No drawn row has the class 'fraud' in the label of party 'party3'.*ImportanceSampling"
    ):
        fit(rare, sampler=cn.UniformSampling(20))


@pytest.mark.parametrize("classes", ["yes", (1,), (1, 1), (1, "yes"), (0, float("nan")), (None, 1), 3])
def test_classes_that_are_none(classes: Any) -> None:
    with pytest.raises(cn.InputError, match=r"classes must be|A class must be"):
        cn.Classification(classes=classes)


def test_solvers_that_take_two_classes_only_or_none_say_so() -> None:
    with pytest.raises(cn.UnsupportedError, match="DistDim"):
        federation().fit(cn.Classification(), sampler=ALL, solver=cn.DistDim())


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(st.text(max_size=4), st.none()), min_size=12, max_size=12), st.booleans())
def test_any_text_is_classes_or_a_named_error(labels: list[str | None], framed: bool) -> None:
    rows = np.random.default_rng(1).normal(size=(12, 2))

    def parties() -> list[cn.Party]:
        if not framed:
            return cn.split_columns(rows, np.array(labels, dtype=object), [1, 1])
        frame = pd.DataFrame({"a": rows[:, 0], "y": pd.Series(labels, dtype=object)})
        return [cn.Party("bank", frame, label="y"), cn.Party("shop", rows[:, 1:])]

    words = {None if each is None else each.strip() for each in labels}
    if words & {None, ""} or len(words) < 2:
        with pytest.raises(cn.InputError):
            cn.Federation(parties()).fit(cn.Classification(l2=0.1), sampler=ALL)
        return
    try:
        model = cn.Federation(parties()).fit(cn.Classification(l2=0.1), sampler=ALL).model
    except cn.InputError as error:
        if "not numbers" not in str(error):  # of which a part are: a slip
            raise
    else:
        assert model.classes_ == tuple(sorted(map(str, words)))
