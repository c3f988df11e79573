"""Rounded scores from a hostile party: a named error, and nothing of it used."""

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.score_codes import encode_scores, round_scores
from colonnade.messages import sendable_rows
from colonnade.sampling.plain.messages import AskScoreCodes, DrawnRows, DrawRows, ScoreCodes, Total
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.signing import SIGNATURE_BYTES

ROSTER = Roster(tuple(PartyCard(name, 50, ("x", "y"), None) for name in ("airline", "weather")))
SCORES = np.array([0.5, 0.25, 0.125, 0.1])


def play(airline: ScoreCodes, round_scores: bool | float) -> cn.Coreset:
    """Draw four rows; the second party is honest."""
    sampler = cn.ImportanceSampling(4, round_scores=round_scores)
    script = sampler.sample(ROSTER, LeverageScores(fit_intercept=False), np.random.default_rng(0))
    next(script)
    orders = script.send({name: Total(2.0) for name in ROSTER.names})
    drawn, first = {}, 0
    for party, order in orders.items():
        assert isinstance(order, DrawRows)
        drawn[party] = DrawnRows(sendable_rows(np.arange(first, first + order.count)), bytes(SIGNATURE_BYTES))
        first += order.count
    asked = script.send(drawn)
    assert all(isinstance(request, AskScoreCodes) for request in asked.values())
    with pytest.raises(StopIteration) as end:
        script.send({"airline": airline, "weather": honest(round_scores)})
    coreset: cn.Coreset = end.value.value
    return coreset


def honest(how: bool | float) -> ScoreCodes:
    log_step = 0.0019 if how is True else how
    return ScoreCodes(4, encode_scores(round_scores(SCORES, log_step), log_step))


@pytest.mark.parametrize("how", [True, 0.2])
def test_honest_codes(how: bool | float) -> None:
    scores = round_scores(SCORES, 0.0019 if how is True else how)
    np.testing.assert_allclose(play(honest(how), how).weights, 4.0 / (4 * 2 * scores))


@pytest.mark.parametrize("how", [True, 0.2])
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (ScoreCodes(5, honest(True).codes), "scores of 5 rows where 4 were asked for"),
        (ScoreCodes(3, honest(True).codes), "scores of 3 rows where 4 were asked for"),
        (ScoreCodes(4, b""), "a number that does not end"),
        (ScoreCodes(4, honest(True).codes[:-1]), "bytes|number"),
        (ScoreCodes(4, honest(True).codes + b"\x00"), "bytes|number"),
        (ScoreCodes(4, encode_scores(SCORES[:3])), "bytes|number"),
        # A centre so large, and codes that are not zero: scores overflow.
        (ScoreCodes(4, b"\xfe\xff\xff\xff\x7f\x00\x55"), "NaN, infinity"),
    ],
)
def test_hostile_codes(reply: ScoreCodes, message: str, how: bool | float) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'airline' sent a ScoreCodes with .*({message})") as caught:
        play(reply, how)
    assert (caught.value.party, caught.value.kind) == ("airline", "ScoreCodes")


@pytest.mark.parametrize("how", [True, 0.2])
@pytest.mark.parametrize("factor", [0.0, 1e-3, 30.0, 1e9])
def test_scores_that_no_columns_have(how: bool | float, factor: float) -> None:
    log_step = 0.0019 if how is True else how
    false = ScoreCodes(4, encode_scores(round_scores(factor * SCORES, log_step), log_step))
    with pytest.raises(RemoteProtocolError, match=r"'airline' sent a ScoreCodes with a score of .* of row"):
        play(false, how)
