"""Gram mode, by shares as it is by default: what it finds, what it tells, and who may."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.privacy.identities import identities_here
from colonnade.transports.loopback import Loopback
from secure_trial import Entropy, made_parties

GRAM = cn.SecureGram()
NAMES = ("party1", "party2", "party3")
RIDGE = cn.Regression(l2=0.1)


def federation(**options: Any) -> cn.Federation:
    return cn.Federation(made_parties(**options), transport=Loopback)


CORESET = federation().coreset(RIDGE, cn.ImportanceSampling(40), seed=3).coreset


def fit(coreset: cn.Coreset = CORESET, **options: Any) -> cn.Run[Any]:
    return federation(**options).fit(RIDGE, coreset=coreset, solver=GRAM, seed=1)


@pytest.fixture(scope="module")
def wide() -> tuple[cn.Federation, cn.Coreset, Floats, Floats]:
    """2,000 rows of 3 x 30 columns, heavy-tailed and correlated across parties, far from zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(8_000, 90)) @ (np.eye(90) + 0.3 * rng.normal(size=(90, 90))) + 5
    y = X @ rng.normal(size=90) + 30 * rng.normal(size=8_000)
    parties = cn.Federation(cn.split_columns(X, y, [30, 30, 30]))
    return parties, parties.coreset(cn.Regression(), cn.ImportanceSampling(2_000), seed=1).coreset, X, y


@pytest.mark.parametrize(
    "task",
    [
        cn.Regression(),
        cn.Regression(l2=0.1, standardize=True),
        cn.Regression(l1=5.0),
        cn.Regression(l2=0.01, l1=0.5, fit_intercept=False),
        cn.Regression(l2="cv"),
    ],
)
def test_the_objective_is_centrals_within_1e_8_and_4_mb(task: Any, wide: Any) -> None:
    parties, coreset, X, y = wide
    gram, central = (parties.fit(task, coreset=coreset, solver=solver, seed=1) for solver in (GRAM, cn.Central()))
    costs = [
        task.cost(run.model, X[coreset.rows], y[coreset.rows], coreset.weights, coreset.total_weight)
        for run in (gram, central)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-8)
    assert gram.facts["cost"] == pytest.approx(central.facts["cost"], rel=1e-8)
    assert gram.ledger.bytes <= 4_000_000
    np.testing.assert_allclose(gram.model.coef_, central.model.coef_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("task", [cn.Regression(l2="cv"), cn.Regression(l1="cv")])
def test_the_penalty_path_is_centrals(task: Any) -> None:
    """The same folds, the same penalties, the same errors: rows are known only in sum, fold by fold."""
    parties = federation(n_rows=400)
    coreset = parties.coreset(task, cn.ImportanceSampling(150), seed=3).coreset
    runs: list[Any] = [parties.fit(task, coreset=coreset, solver=s, seed=7) for s in (GRAM, cn.Central())]
    gram, central = (run.model.path for run in runs)
    for ours, theirs in zip(gram.points, central.points, strict=True):
        assert (ours.l2, ours.l1) == pytest.approx((theirs.l2, theirs.l1), rel=1e-9)
        assert ours.error == pytest.approx(theirs.error, rel=1e-6)
    assert (gram.chosen.l2, gram.chosen.l1) == pytest.approx((central.chosen.l2, central.chosen.l1), rel=1e-9)


def odd_columns(kind: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 6))
    if kind == "collinear across parties":
        X[:, 5] = X[:, 0] - 2 * X[:, 2]
    if kind == "nearly collinear across parties":
        X[:, 5] = X[:, 0] + 1e-5 * X[:, 5]
    if kind == "collinear inside a party":
        X[:, 1] = 3 * X[:, 0]
    if kind == "constant":
        X[:, [0, 3]] = 12.5
    if kind == "far from zero":
        X += 1e6
    if kind == "of unlike scales":
        X *= 10.0 ** np.array([-8, 8, 0, 3, -3, 0])
    return X, X @ (np.arange(1.0, 7.0) / np.abs(X).max(axis=0)) + rng.normal(size=200)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        "collinear across parties",
        "nearly collinear across parties",
        "collinear inside a party",
        "constant",
        "far from zero",
        "of unlike scales",
    ],
)
def test_any_rank_and_any_scale(kind: str, intercept: bool) -> None:
    X, y = odd_columns(kind)
    parties = cn.Federation(cn.split_columns(X, y, [2, 2, 2]))
    task = cn.Regression(fit_intercept=intercept)
    gram, central = (parties.fit(task, sampler=cn.AllRows(), solver=solver) for solver in (GRAM, cn.Central()))
    # Of several minimisers any will do: predictions are compared.
    np.testing.assert_allclose(gram.model.predict(X), central.model.predict(X), rtol=1e-6, atol=1e-6 * np.abs(y).max())
    assert gram.facts["cost"] == pytest.approx(central.facts["cost"], rel=1e-8)


def test_parties_without_columns_take_part() -> None:
    X, y = odd_columns("none")
    parties = [cn.Party("label", np.empty((200, 0)), label=y), cn.Party("left", X[:, :3]), cn.Party("right", X[:, 3:])]
    together = cn.Federation(parties)
    runs = [together.fit(RIDGE, sampler=cn.AllRows(), solver=solver) for solver in (GRAM, cn.Central())]
    np.testing.assert_allclose(runs[0].model.coef_, runs[1].model.coef_, rtol=1e-9)


def test_the_sheet_says_moments_and_no_rows() -> None:
    sheet = fit().disclosure
    assert sheet.headline == "Nobody was shown features or labels of any row."
    learned = {(line.who, line.what) for line in sheet.lines}
    assert (SERVER, "moments") in learned
    assert ("party1", "sums of scores") in learned
    assert not {what for who, what in learned if who == SERVER} & {"features", "labels", "predictions", "scores"}


def test_owners_who_keep_rows_scores_and_predictions_take_part() -> None:
    parties = made_parties()
    for party in parties:
        party.policy = cn.Policy(level="open", never=["features", "labels", "scores", "predictions"], solvers=["gram"])
    assert cn.Federation(parties).fit(RIDGE, coreset=CORESET, solver=GRAM).model.coef_.shape == (6,)
    parties[0].policy = cn.Policy(level="open", solvers=["saga"])
    with pytest.raises(cn.PolicyRefusedError, match="not 'gram'"):
        cn.Federation(parties).fit(RIDGE, coreset=CORESET, solver=GRAM)


def test_fewer_rows_than_columns_are_refused() -> None:
    few = r"its 2 columns of .* rows \(effectively, in the Gram matrix of fold 0\) would nearly show"
    with pytest.raises(cn.InputError, match=few):
        fit(coreset=cn.Coreset(np.array([1, 1, 2]), np.ones(3), 300, 300.0))


def test_a_column_of_few_rows_is_refused() -> None:
    """Mean and variance of two values are the two; folds of two rows would show all of them."""
    X = np.random.default_rng(0).normal(size=(50, 4))
    parties = cn.Federation(cn.split_columns(X[:, :3], X[:, 3], [1, 1, 1]))
    few = cn.Coreset(np.array([4, 9, 11, 30]), np.full(4, 12.5), 50, 50.0)
    with pytest.raises(cn.InputError, match=r"party1.*its 1 columns of 4 rows .* and at least 5"):
        parties.fit(RIDGE, coreset=few, solver=GRAM)


def test_two_parties_are_refused_and_told_why() -> None:
    parties = cn.Federation(made_parties(widths=(3, 3)))
    with pytest.raises(cn.InputError, match=r"party1 and party2, each can work out.*allow_two_parties=True"):
        parties.fit(RIDGE, sampler=cn.ImportanceSampling(40), solver=GRAM)
    assert len(parties.ledger) == 4, "only the hello round: refused before anything was sent"
    allowed = cn.SecureGram(allow_two_parties=True)
    run, central = (parties.fit(RIDGE, coreset=CORESET, solver=solver) for solver in (allowed, cn.Central()))
    np.testing.assert_allclose(run.model.coef_, central.model.coef_, rtol=1e-9)


def test_one_party_and_clusterings_are_not_for_it() -> None:
    with pytest.raises(cn.InputError, match="With one party, party1"):
        cn.Federation(made_parties(widths=(6,))).fit(RIDGE, coreset=CORESET, solver=GRAM)
    with pytest.raises(cn.UnsupportedError, match=r"SecureGram cannot do KMeans\. Use SecureLloyd"):
        federation().fit(cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=GRAM)


def test_a_server_that_is_a_party_would_hold_both_shares() -> None:
    parties = federation()
    parties.ledger.run_by = "party2"
    with pytest.raises(cn.InputError, match=r"run by 'party2', a party: it would hold both shares.*products=\"ckks\""):
        parties.fit(RIDGE, coreset=CORESET, solver=GRAM)


def test_a_party_without_an_identity_says_so() -> None:
    people = {**identities_here(NAMES, Entropy()), "party2": None}
    with pytest.raises(cn.InputError, match=r"'party2' did not answer OpenJob.*no identity"):
        fit(identities=people)


SOLVERS_OF_ALL = (cn.Central(), cn.SecureGram())


def test_a_mark_that_two_parties_have_counts_once() -> None:
    """Its numbers are of one size, so that each is rounded alike, and what that takes off adds up."""
    rng, n_rows = np.random.default_rng(0), 65_434
    mark, other = rng.permutation(np.repeat([-1.0, 1.0], n_rows // 2)), rng.normal(size=n_rows)
    label = mark + other + rng.normal(size=n_rows)
    federation = cn.Federation(cn.split_columns(np.column_stack([mark, mark, other]), label, [1, 1, 1]))
    runs = [federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=each) for each in SOLVERS_OF_ALL]
    found = [run.errors for run in runs]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].dependent == found[0].dependent
    np.testing.assert_allclose(runs[1].model.coef_, runs[0].model.coef_, rtol=1e-9)


@pytest.mark.slow
def test_a_column_that_two_parties_have_counts_once_however_many_rows_there_are() -> None:
    """Of millions of rows, what limbs leave out is more than a float64's rounding: the two look nearly alike."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1 << 22, 2))
    y = x @ [1.0, 2.0] + rng.normal(size=len(x))
    federation = cn.Federation(cn.split_columns(np.column_stack([x[:, 0], x]), y, [1, 1, 1]))
    models = [federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=each).model for each in SOLVERS_OF_ALL]
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, rtol=1e-9)
    assert models[1].coef_[0] == pytest.approx(models[1].coef_[1], rel=1e-9)
