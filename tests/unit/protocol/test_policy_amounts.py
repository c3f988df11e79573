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


@pytest.mark.parametrize("bits", [None, 16])
@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(3)], ids=str)
def test_rounded_parts_are_rows(task: cn.KMeans, bits: int | None) -> None:
    model = federation(400).fit(task, sampler=cn.UniformSampling(50)).model
    federation(400).evaluate(model, bits=bits)
    with pytest.raises(cn.PolicyRefusedError, match="399"):
        federation(399).evaluate(model, bits=bits)


@pytest.mark.parametrize("bits", [None, 16])
def test_coded_products_are_rows(bits: int | None) -> None:
    """A block has 20 rows, but squared norms are of all 50 at once."""
    options = {"sampler": cn.UniformSampling(50), "solver": cn.Saga(batch=20, tolerance=0.1, bits=bits)}
    federation(50).fit(cn.Regression(), **options)  # type: ignore[arg-type]
    with pytest.raises(cn.PolicyRefusedError, match="49"):
        federation(49).fit(cn.Regression(), **options)  # type: ignore[arg-type]
