"""What an owner allows: a limit on rows counts coded rows too, and phases that are named are all there are."""

from typing import get_args

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import kinds
from colonnade.protocol.policy import ALWAYS, PHASES, Policy
from colonnade.solvers import HANDLERS, AnySolver

REQUESTS = [kind for kind in kinds() if kind.reply is not None]


def federation(limit: int) -> cn.Federation:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)), rng.normal(size=400)
    parties = cn.split_columns(X, y, [2, 2, 2])
    strict = cn.Party("strict", X[:, :1], policy=Policy(level="open", rows_a_request=limit))
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


def test_every_request_belongs_to_a_phase_that_an_owner_can_leave_out_or_that_tells_nothing() -> None:
    assert {kind.phase for kind in REQUESTS} == {*PHASES, *ALWAYS}


def test_a_party_that_answers_sampling_only_is_not_diagnosed() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    guarded = cn.Party("guarded", X[:, :2], policy=cn.Policy(level="open", phases=["framing", "sampling", "summing"]))
    federation = cn.Federation([guarded, cn.Party("open", X[:, 2:], label=X[:, 0])])
    assert len(federation.coreset(cn.Regression(), cn.ImportanceSampling(size=20)).coreset) == 20
    with pytest.raises(cn.PolicyRefusedError, match="framing, sampling, summing, not 'diagnosing'"):
        federation.diagnose(cn.Regression())


def test_every_request_of_a_solver_names_it() -> None:
    named = {handler.solver for handler in HANDLERS}
    assert named == {solver.__struct_config__.tag for solver in get_args(AnySolver)}
