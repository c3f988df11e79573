"""Diagnoses of classifications, over the parties and in one place, and the size that theory asks for."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback

N = 6000
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 5))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.7] - 1 + RNG.logistic(size=N) > 0, "late", "on time")
TASK, WIDTHS = cn.Classification(l2=1e-4), [2, 2, 1]


def parties(label: Any = Y) -> list[cn.Party]:
    return cn.split_columns(X, label, WIDTHS)


def test_over_the_parties_it_is_nearly_what_it_is_in_one_place() -> None:
    federation = cn.Federation(parties())
    coreset = federation.coreset(TASK, cn.ImportanceSampling(800)).coreset
    over, exact = federation.diagnose(TASK, coreset=coreset), cn.diagnose(parties(), TASK, coreset=coreset)
    assert over.mu is not None
    assert exact.mu is not None
    assert over.mu.halves is not None
    assert over.mu.value == pytest.approx(exact.mu.value, rel=0.3)
    assert over.mu.imbalance == pytest.approx(exact.mu.imbalance, rel=0.15)
    assert over.gamma is not None
    assert exact.gamma is not None
    assert over.gamma.effective == pytest.approx(exact.gamma.effective, rel=0.15)
    assert over.sensitivity.total == pytest.approx(exact.sensitivity.total)
    # 5 columns and 3 constants; and the part of classes.
    assert exact.sensitivity.total == pytest.approx(8 + 5 * 2 / 3)
    for found in (over, exact):
        assert found.sensitivity.zeta < found.sensitivity.bound
        assert found.epsilon is not None
        assert found.epsilon.worst is None
        assert found.epsilon.near_max is not None
        assert found.epsilon.near_max < 0.3
        assert found.concerns == ()
    assert exact.robustness is not None
    assert over.epsilon is not None
    assert over.epsilon.floor is not None


def test_words_and_what_it_shows() -> None:
    found = cn.Federation(parties()).diagnose(TASK, sampler=cn.ImportanceSampling(500))
    words = str(found)
    assert "mu = " in words
    assert "how much more any model has rows on the right side" in words
    assert "What to do: nothing." in words
    assert found.reveals == ("schema", "levels", "labels", "totals", "row ids", "scores", "features")


def test_a_coreset_of_all_rows_is_no_farther_off_than_the_floor() -> None:
    every = cn.Coreset(np.arange(N), np.ones(N), N, float(N))
    exact = cn.diagnose(parties(), TASK, coreset=every)
    assert exact.epsilon is not None
    assert exact.epsilon.random_max < 1e-9
    over = cn.Federation(parties()).diagnose(TASK, coreset=every)
    assert over.epsilon is not None
    assert over.epsilon.floor is not None
    assert over.epsilon.random_max < 2 * over.epsilon.floor


def test_rare_classes_are_a_concern_and_separable_ones_too() -> None:
    rare = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.7] + RNG.logistic(size=N) > 6, 1.0, 0.0)
    with pytest.warns(cn.AssumptionWarning, match="Nothing is promised below mu G"):
        found = cn.Federation(parties(rare)).diagnose(TASK, sampler=cn.ImportanceSampling(300))
    assert found.mu is not None
    assert found.mu.value > found.mu.imbalance > 20
    apart = (X[:, 0] + X[:, 4] > 0).astype(float)
    with pytest.warns(cn.AssumptionWarning, match="mu is infinite"):
        found = cn.Federation(parties(apart)).diagnose(TASK, sampler=cn.ImportanceSampling(300))
    assert found.sensitivity.bound == float("inf")


def test_without_an_intercept_and_over_bytes() -> None:
    task = cn.Classification(l2=1e-4, fit_intercept=False, standardize=True)
    here, bytes_ = (cn.Federation(parties(), transport=each) for each in (InProcess, Loopback))
    assert here.diagnose(task, sampler=cn.ImportanceSampling(500)) == bytes_.diagnose(
        task, sampler=cn.ImportanceSampling(500)
    )


def test_of_more_classes_nothing_is_known() -> None:
    three = np.digitize(X[:, 0] + RNG.normal(size=N), [-0.5, 0.5]).astype(float)
    refused = "of 3 classes cannot be diagnosed: only one of two can"
    with pytest.raises(cn.UnsupportedError, match=refused):
        cn.Federation(parties(three)).diagnose(TASK)
    with pytest.raises(cn.UnsupportedError, match=refused):
        cn.diagnose(parties(three), TASK)


def test_a_policy_that_never_tells_labels_refuses_it() -> None:
    kept = parties()
    kept[-1] = cn.Party("party3", X[:, 4:], label=Y, policy=cn.Policy(level="open", never=["labels"]))
    with pytest.raises(cn.PolicyRefusedError, match="labels"):
        cn.Federation(kept).diagnose(TASK)


def test_theory_sizes() -> None:
    asked: dict[str, Any] = {"epsilon": 0.1, "n_features": 20, "n_parties": 2}
    by_mu = {n: cn.theory_size(TASK, **asked, mu=5.0, gamma=0.5, n_rows=n) for n in (10_000, 1_000_000)}
    assert by_mu[10_000].theorem == "Theorem 3.1, by mu"
    assert 9 < by_mu[1_000_000].size / by_mu[10_000].size < 14, "with the root of the number of rows, and its logarithm"
    known = cn.theory_size(TASK, **asked, zeta=0.5, total=35.0)
    assert known.theorem == "Theorem 3.1"
    assert known.size < by_mu[10_000].size
    for wrong in ({}, {"gamma": 0.5}, {"mu": 3.0}, {"beta": 0.1}, {"tau": 2.0}):
        with pytest.raises(
            cn.InputError, match=r"No theorem for Classification takes .*mu=\.\.\., gamma=\.\.\. and n_rows"
        ):
            cn.theory_size(TASK, **asked, **wrong)  # type: ignore[arg-type]
