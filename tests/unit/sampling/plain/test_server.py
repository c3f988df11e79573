"""The server's script of Algorithm 1, fed by hand: no parties, no transport."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.contracts import Draw, Inbox, Outbox, PartyCard, Roster
from colonnade.coreset import Coreset
from colonnade.errors import RemoteProtocolError
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.sampling import ImportanceSampling
from colonnade.sampling.plain.messages import AskScores, DrawnRows, DrawRows, Scores, Total
from colonnade.sampling.plain.server import relayed, shares_of, sum_in_the_clear
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.signing import SignedRows

N = 50
ROSTER = Roster(tuple(PartyCard(name, N, ("x", "y"), None) for name in ("airline", "weather")))
RULE = LeverageScores(fit_intercept=False)


class Play:
    """Drives the script, with one reply changed."""

    def __init__(self, totals: Any = (3.0, 1.0), rows: Any = None, scores: Any = None) -> None:
        self.totals, self.rows, self.scores = totals, rows, scores

    def reply(self, outbox: Outbox) -> Inbox:
        return {party: self._one(i, party, request) for i, (party, request) in enumerate(outbox.items())}

    def _one(self, i: int, party: str, request: object) -> Any:
        if isinstance(request, DrawRows):
            honest = sendable_rows(np.arange(request.count) % N if request.count < N else np.zeros(request.count))
            rows = honest if self.rows is None or party == "airline" else sendable_rows(self.rows(honest.tolist()))
            return DrawnRows(rows, f"by {party}".encode())
        if isinstance(request, AskScores):
            honest_scores = sendable_floats(np.full(request.units(), 0.25))
            cheats = self.scores is not None and party == "weather"
            return Scores(sendable_floats(self.scores) if cheats else honest_scores)
        return Total(self.totals[i])

    def run(self, size: int = 8) -> Coreset:
        script = ImportanceSampling(size).sample(ROSTER, RULE, np.random.default_rng(0))
        outbox = next(script)
        try:
            while True:
                outbox = script.send(self.reply(outbox))
        except StopIteration as end:
            coreset: Coreset = end.value
            return coreset


def test_weights_are_the_papers() -> None:
    coreset = Play().run()
    assert len(coreset) == 8
    np.testing.assert_array_equal(coreset.weights, 4.0 / (8 * 0.5))
    assert coreset.total == 4.0


def test_quotas_add_up_and_follow_the_totals() -> None:
    script = ImportanceSampling(4000).sample(ROSTER, RULE, np.random.default_rng(0))
    next(script)
    outbox = script.send({"airline": Total(3.0), "weather": Total(1.0)})
    quotas = [request.count for request in outbox.values() if isinstance(request, DrawRows)]
    assert sum(quotas) == 4000
    assert quotas[0] == pytest.approx(3000, abs=5 * np.sqrt(4000 * 0.75 * 0.25))  # five sigma
    seeds = {request.seed for request in outbox.values() if isinstance(request, DrawRows)}
    assert len(seeds) == 2, "each party draws from a seed of its own"


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan, np.inf, 1e308, 5e-324])
def test_a_total_must_be_finite_and_positive(total: float) -> None:
    with pytest.raises(RemoteProtocolError, match="'weather' sent a Total with the value") as caught:
        Play(totals=(3.0, total)).run()
    assert (caught.value.party, caught.value.kind) == ("weather", "Total")


@pytest.mark.parametrize(("total", "most"), [(3.001, "3"), (1e6, "3")])
def test_an_inflated_total_is_an_error_and_no_bigger_share(total: float, most: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Total with .* add up to {most} at most") as caught:
        Play(totals=(3.0, total)).run()
    assert (caught.value.party, caught.value.kind) == ("weather", "Total")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: [], "shape"),
        (lambda rows: rows[:-1], "shape"),
        (lambda _: [1] * 100, "shape"),
        (lambda rows: [-1, *rows[1:]], "ascend within"),
        (lambda rows: [*rows[:-1], N], "ascend within"),
        (lambda rows: rows[::-1], "ascend within"),
    ],
    ids=["none", "one too few", "too many", "negative", "beyond the last", "descending"],
)
def test_rows_must_be_as_many_as_asked_and_exist(change: Any, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a DrawnRows with .*{message}"):
        Play(totals=(3.0, 3.0), rows=change).run(size=40)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones(7), "shape"),
        (np.ones((8, 1)), "shape"),
        (np.full(8, -0.1), "negative value"),
        (np.full(8, np.nan), "NaN, infinity"),
        (np.full(8, np.inf), "NaN, infinity"),
        (np.full(8, 1e308), "magnitude above 1e.100"),
    ],
)
def test_scores_must_be_finite_non_negative_and_as_many_as_asked(scores: Any, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Scores with .*{message}"):
        Play(scores=scores).run(size=8)


def test_a_row_that_was_drawn_cannot_score_zero_everywhere() -> None:
    script = sum_in_the_clear(ROSTER, draw_of({"airline": [1], "weather": [2]}))
    next(script)
    with pytest.raises(RemoteProtocolError, match="a score of zero, as every other party, for a row that was drawn"):
        script.send({name: Scores(sendable_floats([0.5, 0.0])) for name in ROSTER.names})


def draw_of(draws: dict[str, list[int]]) -> Draw:
    drawn = {name: SignedRows(name, sendable_rows(sorted(rows)), name.encode()) for name, rows in draws.items()}
    return Draw(sendable_rows(sorted(row for rows in draws.values() for row in rows)), drawn, {})


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4))
def test_a_party_is_told_the_rows_that_others_drew_as_they_signed_them(draws: list[list[int]]) -> None:
    names = [f"party{9 - number}" for number in range(len(draws))]  # not in the order of their names
    roster = Roster(tuple(PartyCard(name, N, ("x",), None) for name in names))
    draw = draw_of(dict(zip(names, draws, strict=True)))
    for party, request in relayed(AskScores, roster, draw).items():
        assert isinstance(request, AskScores)
        assert [each.party for each in request.others] == sorted(set(names) - {party})
        assert [each.signature for each in request.others] == [each.party.encode() for each in request.others]
        told = [row for each in request.others for row in each.rows.tolist()]
        assert sorted([*told, *draw.by(party).tolist()]) == draw.rows.tolist()
        assert request.units() == len(draw.rows), "the paper's count"


@pytest.mark.parametrize("totals", [[21.0, 21.0, 21.0], [1.0, 1.0], [3.0, 1.0, 2.0, 6.0], [1e-300, 1.0, 1e300]])
def test_the_last_bit_of_a_total_decides_nothing(totals: list[float]) -> None:
    """Sums differ in their last bits from machine to machine: three equal parties are drawn from by a half."""
    exact = np.array(totals)
    shares = [shares_of(at) for at in (exact, np.nextafter(exact, 0), np.nextafter(exact, np.inf))]
    quotas = [np.random.default_rng(0).multinomial(1000, share).tolist() for share in shares]
    assert quotas[0] == quotas[1] == quotas[2]
