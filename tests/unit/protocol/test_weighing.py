"""Weights that a server tells of distinct rows: what a party that knows only its own scores believes."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import RemoteProtocolError
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.weighing import check_weights, with_coreset
from colonnade.sampling.selecting import UseAllRows
from secure_trial import Wire

N = 200
SAMPLERS = [
    cn.ImportanceSampling(60, draws="distinct"),
    cn.ImportanceSampling(60, 0.5, "distinct"),
    cn.ImportanceSampling(3, draws="distinct"),  # one of the parties draws a single row
    cn.ImportanceSampling(1, draws="distinct"),  # and here all but one draw none
    cn.ImportanceSampling(150, draws="distinct", round_scores=1.0),
    cn.UniformSampling(60),
]


def drawn(sampler: Any, weighted: bool) -> tuple[cn.Coreset, list[tuple[PartyState, PartyData]]]:
    """Let parties draw; give the coreset, and what each of them knows."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.1, 4, size=N) if weighted else None
    parties = cn.split_columns(rng.standard_t(2, size=(N, 6)), rng.normal(size=N), [2, 2, 2], weight=weight)
    for party in parties:
        party.policy = cn.Policy(level="open", known_only=True)
    wire = Wire(lambda _sender, _receiver, data: data)
    coreset = cn.Federation(parties, transport=wire).coreset(cn.Regression(), sampler, seed=4).coreset
    return coreset, [(each.state, each._data.seen(each.state.view)) for each in wire.sessions.values()]


def told(state: PartyState, data: PartyData, weights: Any) -> None:
    check_weights(state, UseAllRows(), np.asarray(weights), data)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_honest_weights_pass_in_the_run_and_when_rows_are_used_again(sampler: Any, weighted: bool) -> None:
    coreset, parties = drawn(sampler, weighted)
    for state, data in parties:
        assert state.rows is not None
        np.testing.assert_array_equal(state.rows, coreset.rows)
        for factor in (1.0, 1e-3):  # up to one factor
            told(state, data, factor * coreset.weights)
        data.memory.keep(with_coreset(state, data).notes)
        again = PartyState(weighing="given", rows=state.rows)
        told(again, data, coreset.weights)


@pytest.mark.parametrize("sampler", [SAMPLERS[0], SAMPLERS[1], SAMPLERS[4], SAMPLERS[5]], ids=str)
def test_a_row_cannot_weigh_more_than_1_over_the_chance_that_the_party_knows_of(sampler: Any) -> None:
    coreset, parties = drawn(sampler, weighted=False)
    for state, data in parties:
        own = np.minimum(1, (state.draw_factor or 0.0) * data.scores(cn.Regression().score_rule())[coreset.rows])
        likeliest = int(np.argmax(own))
        heavy = coreset.weights.copy()
        # Up to one factor: the lightest row of weight 1 and the heaviest allowed one set the scale.
        heavy[likeliest] *= 100 * coreset.weights.max() / coreset.weights.min()
        with pytest.raises(RemoteProtocolError, match="weights that rows drawn as agreed"):
            told(state, data, heavy)


def test_even_distinct_rows_weigh_just_what_they_do() -> None:
    coreset, parties = drawn(cn.UniformSampling(150), weighted=True)
    assert len(np.unique(coreset.weights.round(9))) > 5, "rows that count much are certain, and weigh what they count"
    for state, data in parties:
        told(state, data, coreset.weights)
        other = coreset.weights.copy()
        other[0] *= 1.001
        with pytest.raises(RemoteProtocolError, match="weights that rows drawn as agreed"):
            told(state, data, other)
