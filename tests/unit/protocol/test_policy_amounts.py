"""A limit on rows counts coded rows as it counts arrays."""

import numpy as np
import pytest

import colonnade as cn
from colonnade.protocol.policy import Policy


def federation(limit: int) -> cn.Federation:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)), rng.normal(size=400)
    parties = cn.split_columns(X, y, [2, 2, 2])
    strict = cn.Party("strict", X[:, :1], policy=Policy(rows_a_request=limit))
    return cn.Federation([strict, *parties])


@pytest.mark.parametrize(
    ("sampler", "solver", "task"),
    [
        (cn.ImportanceSampling(50, round_scores=True), cn.Central(), cn.Regression()),
        (cn.UniformSampling(50), cn.CompactCentral(), cn.Regression()),
        (cn.UniformSampling(50), cn.CompactCentral(), cn.KMeans(3)),
        (cn.UniformSampling(50), cn.Central(), cn.KMeans(3)),
    ],
    ids=["rounded scores", "whitened rows", "scaled rows", "plain rows"],
)
def test_coded_rows_are_rows(sampler: cn.ImportanceSampling, solver: cn.Central, task: cn.KMeans) -> None:
    federation(50).fit(task, sampler=sampler, solver=solver)
    with pytest.raises(cn.PolicyRefusedError, match="49"):
        federation(49).fit(task, sampler=sampler, solver=solver)
