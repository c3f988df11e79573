"""An owner who names phases has named them all: no request slips through because its phase is not on the list."""

from typing import get_args

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import kinds
from colonnade.protocol.policy import ALWAYS, PHASES
from colonnade.solvers import HANDLERS, AnySolver

REQUESTS = [kind for kind in kinds() if kind.reply is not None]


def test_every_request_belongs_to_a_phase_that_an_owner_can_leave_out_or_that_tells_nothing() -> None:
    assert {kind.phase for kind in REQUESTS} == {*PHASES, *ALWAYS}


def test_a_party_that_answers_sampling_only_is_not_diagnosed() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    guarded = cn.Party("guarded", X[:, :2], policy=cn.Policy(phases=["framing", "sampling", "summing"]))
    federation = cn.Federation([guarded, cn.Party("open", X[:, 2:], label=X[:, 0])])
    assert len(federation.coreset(cn.Regression(), cn.ImportanceSampling(size=20)).coreset) == 20
    with pytest.raises(cn.PolicyRefusedError, match="framing, sampling, summing, not 'diagnosing'"):
        federation.diagnose(cn.Regression())


def test_every_request_of_a_solver_names_it() -> None:
    named = {handler.solver for handler in HANDLERS}
    assert named == {solver.__struct_config__.tag for solver in get_args(AnySolver)}
