import math
from typing import Any

import pytest

import colonnade as cn

LINEAR, CENTRES = cn.Regression(), cn.KMeans(n_clusters=4)


@pytest.mark.parametrize(
    ("task", "known", "theorem", "size"),
    [
        (LINEAR, {"gamma": 0.5}, "Theorem 4.2", 4 * 3 / 0.01 * (9 * math.log(12) + math.log(20))),
        (LINEAR, {"zeta": 2, "total": 7}, "Theorem 3.1", 14 / 0.01 * (9 * math.log(14) + math.log(20))),
        (CENTRES, {"zeta": 2, "total": 7}, "Theorem 3.1", 14 / 0.01 * (12 * math.log(14) + math.log(20))),
        (CENTRES, {"tau": 5}, "Theorem 5.2", 40 / 0.01 * (12 * math.log(40) + math.log(20))),
        (LINEAR, {"beta": 0.1}, "Theorem G.3", 81 / (0.01 * 0.01 * 4) * (9 + math.log(20))),
        (CENTRES, {"beta": 0.1}, "Theorem G.4", 256 / (0.01 * 0.01) * (12 + math.log(20))),
    ],
)
def test_each_theorem_has_its_formula(task: Any, known: dict[str, float], theorem: str, size: float) -> None:
    found = cn.theory_size(task, epsilon=0.1, n_features=3, n_parties=2, **known)
    assert (found.theorem, found.size) == (theorem, math.ceil(size))
    assert found.constant == 1.0
    assert "unknown constant that was taken as 1" in str(found)
    assert (found.ratio is None) == ("beta" in known)


def test_theorem_2_5_adds_up() -> None:
    found = cn.theory_size(LINEAR, epsilon=0.1, n_features=3, n_parties=2, gamma=0.5, constant=0.001)
    m = found.size
    assert found.ratio == pytest.approx(1.3)
    assert found.sampling_units == m + 4 * m + 4
    assert found.units == found.sampling_units + 4 * m + 4 * m  # the rows: three features and the label
    clusters = cn.theory_size(CENTRES, epsilon=0.1, n_features=3, n_parties=2, tau=2, alpha=1.5)
    assert clusters.ratio == pytest.approx(1.95)
    assert clusters.units == clusters.sampling_units + 4 * clusters.size + 3 * clusters.size


def test_sampling_units_are_what_the_ledger_counts() -> None:
    import numpy as np

    federation = cn.Federation(cn.split_columns(np.eye(30, 3), np.arange(30.0), [2, 1]))
    found = cn.theory_size(LINEAR, epsilon=0.5, n_features=3, n_parties=2, gamma=1.0, constant=0.1)
    run = federation.coreset(LINEAR, cn.ImportanceSampling(size=found.size))
    assert run.ledger.units == found.sampling_units


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "No theorem for Regression takes nothing. Pass gamma"),
        ({"tau": 3.0}, "No theorem for Regression takes tau"),
        ({"zeta": 3.0}, "No theorem for Regression takes zeta"),
        ({"gamma": 0.5, "beta": 0.1}, "No theorem for Regression takes gamma, beta"),
        ({"gamma": 0.0}, "gamma must be above 0"),
        ({"gamma": 1.5}, "gamma must lie between 0 and 1"),
        ({"beta": 1.0}, "beta must lie between 0 and 1"),
        ({"gamma": 0.5, "epsilon": 1.0}, "epsilon must lie between 0 and 1"),
        ({"gamma": 0.5, "delta": 0.0}, "delta must be above 0"),
        ({"gamma": 0.5, "n_parties": 0}, "n_parties must be a whole number"),
        ({"gamma": 0.5, "constant": -1.0}, "constant must be a number"),
    ],
)
def test_what_no_theorem_takes_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cn.InputError, match=message):
        cn.theory_size(LINEAR, **{"epsilon": 0.1, "n_features": 3, "n_parties": 2, **options})
