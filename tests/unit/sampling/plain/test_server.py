"""The server's script of Algorithm 1, fed by hand: no parties, no transport."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import colonnade as cn
from colonnade.contracts import Draw, Inbox, Outbox, PartyCard, Roster
from colonnade.coreset import Coreset
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.draws import most_copies
from colonnade.kernels.per_row import numbers_in
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.sampling import ImportanceSampling
from colonnade.sampling.plain.messages import AskScores, DrawnRows, DrawRows, Scores, Total
from colonnade.sampling.plain.server import SumInTheClear, _check_copies, add_scores, relayed, shares_of
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.rounded import rounded_rule
from colonnade.sampling.score_limits import score_limits
from colonnade.signing import SIGNATURE_BYTES, SignedRows

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
            return DrawnRows(rows, f"by {party}".encode().ljust(SIGNATURE_BYTES))
        if isinstance(request, AskScores):
            honest_scores = sendable_floats(np.full(request.units(), self.totals[i] / N))
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
    np.testing.assert_allclose(coreset.weights, 4.0 / (8 * (3.0 / N + 1.0 / N)))
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
    replies = {name: Scores(sendable_floats([0.5, 0.0])) for name in ROSTER.names}
    with pytest.raises(RemoteProtocolError, match="a score of zero, as every other party, for a row that was drawn"):
        add_scores(replies, {name: reply.scores for name, reply in replies.items()})


@pytest.mark.parametrize("rule", [RULE, rounded_rule(RULE, True), rounded_rule(RULE, 0.5), FilledScores(RULE)])
@pytest.mark.parametrize(
    ("scores", "what"),
    [
        ([1e9, 0.5], "a score of 1e.09 of row 1, outside 0.0.* to "),
        ([0.5, 0.019 / 1.3], "a score of 0.0.* of row 2, outside 0.0.* to "),
        ([1.5, 1.4], "scores of 2 rows that add up to 2.9, where all have 2"),
        ([0.0, 0.5], "a score of 0 of row 1, outside"),
    ],
)
def test_scores_that_no_columns_have_beside_the_total_are_refused(rule: Any, scores: Any, what: str) -> None:
    """A party of two columns; a score of 1e9 gave every row that it was told of a weight of nearly zero."""
    draw = replace(draw_of({"airline": [1], "weather": [2]}), totals={"airline": 2.0, "weather": 2.0})
    limits, most = score_limits(rule, None, N, draw.rows), rule.bounds(ROSTER.cards[0], N).score
    assert limits.broken_by(np.array([0.5, 0.5]), most, 1, 2.0, 1e-6) is None
    broken = limits.broken_by(np.array(scores), most, 1, 2.0, 1e-6)
    assert broken is not None
    assert re.match(what, broken), broken
    script = SumInTheClear(rule, None)(ROSTER, draw)
    next(script)
    honest = Scores(sendable_floats([0.5, 0.5]))
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Scores with {what}") as caught:
        script.send({"airline": honest, "weather": Scores(sendable_floats(scores))})
    assert caught.value.party == "weather"


def test_scores_of_all_rows_are_no_less_than_the_total() -> None:
    rows, half = sendable_rows(np.arange(N)), np.ones(N)
    half[N // 2 :] = 0.0
    everything = score_limits(RULE, None, N, rows)
    assert everything.broken_by(np.full(N, 3.0 / N), 2.0, 1, 3.0, 1e-6) is None
    assert everything.broken_by(np.full(N, 6.0 / N), 4.0, 2, 6.0, 1e-6) is None, "of two parties"
    assert "add up to 2.5" in str(everything.broken_by(np.full(N, 2.5 / N), 2.0, 1, 3.0, 1e-6))
    weighted = score_limits(RULE, numbers_in(half), N, rows[: N // 2])
    assert weighted.broken_by(np.full(N // 2, 6.0 / N), 2.0, 1, 3.0, 1e-6) is None
    assert "outside 0.04" in str(weighted.broken_by(np.full(N // 2, 1.0 / N), 2.0, 1, 3.0, 1e-6))


def test_copies_of_a_row_have_one_score() -> None:
    limits = score_limits(RULE, None, N, sendable_rows([3, 3, 4]))
    assert limits.broken_by(np.array([0.5, 0.6, 0.7]), 2.0, 1, 3.0, 1e-6) == "two scores of one row"


@pytest.mark.parametrize("rule", [RULE, ClusteringScores(3)])
@pytest.mark.parametrize("size", [40, 400])
@pytest.mark.parametrize("options", [{}, {"round_scores": True}, {"round_scores": 1.0}, {"totals": "set"}])
def test_scores_of_honest_parties_keep_to_the_limits(rule: Any, size: int, options: Any) -> None:
    """Also where rows weigh very different amounts, a party is of low rank."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(60, 3)) * [1.0, 1e6, 1e-6]
    weight = 10.0 ** rng.uniform(-4, 4, size=60)
    parties = [
        cn.Party("bank", X, label=np.ones(60), weight=weight),
        cn.Party("shop", np.ones((60, 2))),
        cn.Party("post", X[:, :1], split=rng.random(60) < 0.2),
    ]
    task: Any = cn.Regression() if isinstance(rule, LeverageScores) else cn.KMeans(3)
    federation = cn.Federation(parties)
    for draws in ("stratified", "independent"):
        sampler = cn.ImportanceSampling(size, 0.2, draws, **options)
        assert len(federation.coreset(task, sampler, split=cn.SplitBy("post")).coreset) == size


@pytest.mark.parametrize("total", [2.5, 1.001])
def test_a_total_that_is_no_number_of_columns(total: float) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'weather' sent a Total with the total {total:g}, where .* whole"):
        Play(totals=(3.0, total)).run()


@pytest.mark.parametrize("total", [0.9, 1e-50])
def test_a_total_is_no_less_than_the_rows_parts_of_the_weight(total: float) -> None:
    with pytest.raises(RemoteProtocolError, match=r"'weather' sent a Total with the (value|total) .*, where"):
        Play(totals=(3.0, total)).run()


def draw_of(draws: dict[str, list[int]]) -> Draw:
    drawn = {name: SignedRows(name, sendable_rows(sorted(rows)), name.encode()) for name, rows in draws.items()}
    return Draw(sendable_rows(sorted(row for rows in draws.values() for row in rows)), drawn, {}, {})


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4))
def test_a_party_is_told_the_rows_that_others_drew_as_they_signed_them(draws: list[list[int]]) -> None:
    names = [f"party{9 - number}" for number in range(len(draws))]  # not in the order of their names
    roster = Roster(tuple(PartyCard(name, N, ("x",), None) for name in names))
    draw = draw_of(dict(zip(names, draws, strict=True)))
    for party, request in relayed(AskScores, roster, draw).items():
        assert isinstance(request, AskScores)
        assert isinstance(request.others, tuple)
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


@pytest.mark.parametrize("score", [1e-9, 0.5, 40.0])
@pytest.mark.parametrize("stratified", [True, False])
def test_one_copy_more_than_a_score_allows_is_caught_whatever_the_score(stratified: bool, score: float) -> None:
    """Also a score that allows no more than any does, which most rows have; as many as it allows are not."""
    count, total = 200, 100.0
    allowed = int(most_copies(np.array([score / total * (1 + 1e-6)]), count, stratified=stratified)[0])
    for copies in (1, allowed, allowed + 1):
        rows = sendable_rows(np.sort(np.append(np.full(copies, 7), np.arange(10, 10 + count - copies))))
        draw = Draw(rows, {"bank": SignedRows("bank", rows, b"")}, {}, {"bank": total}, 0.0, 0, 0, n_draws=count)
        if copies <= allowed:
            _check_copies(draw, np.full(count, score), stratified=stratified)
        else:
            with pytest.raises(RemoteProtocolError, match=f"'bank' drew row 7 {copies} times among {count}"):
                _check_copies(draw, np.full(count, score), stratified=stratified)
