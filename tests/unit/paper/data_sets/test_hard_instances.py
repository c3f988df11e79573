"""On the lower bounds' instances no small coreset works, and the diagnostics notice. Seeds are fixed."""

import warnings
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.paper.data_sets.hard_instances import disjointness_instance, equality_instance
from whole_tables import held

N = 2_000
EQUALITY, DISJOINTNESS = cn.Regression(fit_intercept=False), cn.KMeans(n_clusters=3)
SAMPLERS = [cn.ImportanceSampling(size=100), cn.ImportanceSampling(size=500), cn.UniformSampling(size=500)]
SAMPLERS.append(cn.ImportanceSampling(size=500, uniform_share=0.5))


def bits(parties: list[cn.Party]) -> np.ndarray:
    return np.hstack([held(party.table) for party in parties]).astype(int)


def quietly(call: Any, *arguments: Any, **options: Any) -> cn.Diagnosis:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cn.AssumptionWarning)
        found: cn.Diagnosis = call(*arguments, **options)
        return found


def test_the_instances_are_what_the_proofs_have() -> None:
    rng = np.random.default_rng(0)
    a, b = bits(equality_instance(N, 3, rng)).T
    assert np.not_equal(a, b).sum() == 3
    a, b = bits(disjointness_instance(N, 2, rng)).T
    assert (a & b).sum() == 2
    assert not bits(disjointness_instance(N, 0, rng)).all(axis=1).any()
    with pytest.raises(cn.InputError, match="3 of 2 rows cannot be special"):
        equality_instance(2, 3, rng)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_no_small_coreset_of_equality_is_within_a_half(sampler: Any) -> None:
    """It misses the row (epsilon 1 at theta = 1), or holds it with a weight of about n / m (epsilon n / m - 1)."""
    parties = equality_instance(N, 1, np.random.default_rng(1))
    federation = cn.Federation(parties)
    a, b = bits(parties).T
    different = np.not_equal(a, b)
    for seed in range(30):
        coreset = federation.coreset(EQUALITY, sampler, seed=seed).coreset
        assert abs(float(coreset.weights @ different[coreset.rows]) - 1) > 0.5


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_no_small_coreset_of_disjointness_is_within_a_half(sampler: Any) -> None:
    """Likewise at the centres (0,0), (0,1), (1,0), which cost one."""
    parties = disjointness_instance(N, 1, np.random.default_rng(2))
    federation = cn.Federation(parties)
    common = bits(parties).min(axis=1).astype(float)
    for seed in range(30):
        coreset = federation.coreset(DISJOINTNESS, sampler, seed=seed).coreset
        assert abs(float(coreset.weights @ common[coreset.rows]) - 1) > 0.5


def test_the_exact_diagnosis_of_equality_sees_it_all() -> None:
    parties = equality_instance(N, 1, np.random.default_rng(1))
    coreset = cn.Federation(parties).coreset(EQUALITY, cn.ImportanceSampling(size=500)).coreset
    with pytest.warns(cn.AssumptionWarning, match="columns overlap"):
        found = cn.diagnose(parties, EQUALITY, coreset=coreset, epsilon=0.5)
    assert found.gamma is not None
    assert found.gamma.effective < 0.05
    assert found.sensitivity.zeta > 100, "the row's sensitivity is 1, its score about 4 / n"
    assert found.epsilon is not None
    assert found.epsilon.worst is not None
    assert found.epsilon.worst > 0.9
    assert found.robustness is not None
    assert 0 < found.robustness.share <= 0.005, "a robust coreset it is: one row set aside will do"


def test_over_the_parties_equality_looks_like_a_perfect_fit_or_an_overlap() -> None:
    for seed in range(5):
        federation = cn.Federation(equality_instance(N, 1, np.random.default_rng(seed)))
        with pytest.warns(cn.AssumptionWarning, match="predict the label exactly|columns overlap"):
            found = federation.diagnose(EQUALITY, sampler=cn.ImportanceSampling(size=200), rows=400, seed=seed)
        assert found.concerns


def test_both_forms_notice_disjointness() -> None:
    parties = disjointness_instance(N, 1, np.random.default_rng(2))
    federation = cn.Federation(parties)
    with pytest.warns(cn.AssumptionWarning, match="tau is infinite"):
        found = federation.diagnose(DISJOINTNESS, sampler=cn.ImportanceSampling(size=200))
    assert found.tau is not None
    assert found.tau.by_party == {"alice": np.inf, "bob": np.inf}
    coreset = federation.coreset(DISJOINTNESS, cn.ImportanceSampling(size=200)).coreset
    exact = quietly(cn.diagnose, parties, DISJOINTNESS, coreset=coreset, epsilon=0.5)
    assert exact.epsilon is not None
    assert exact.epsilon.random_max > 0.9
    assert exact.robustness is not None
    assert 0 < exact.robustness.share <= 0.01
    assert exact.sensitivity.zeta > 10


def test_without_the_row_that_decides_the_same_data_is_easy() -> None:
    parties = equality_instance(N, 0, np.random.default_rng(3))
    coreset = cn.Federation(parties).coreset(EQUALITY, cn.ImportanceSampling(size=500)).coreset
    found = quietly(cn.diagnose, parties, EQUALITY, coreset=coreset)
    assert found.epsilon is not None
    assert found.epsilon.worst is not None
    assert found.epsilon.worst < 0.3
