"""Attack 6: scores read off draws, off sums of which the server knows the other terms, and off totals."""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import Ring, to_numbers, unpack
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.statements import SignedKey, key_statement
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.committed.messages import AskOpenings, Openings
from colonnade.sampling.plain.messages import AskTotal, DrawnRows, DrawRows, OpenDraw, Total
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure.messages import (
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
    digest_of,
)
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.tasks.jobs import learn
from hostile_trial import (
    N_ROWS,
    HostileServer,
    features_of,
    hostile_server,
    identity_of,
    made_parties,
)

RULE = LeverageScores(fit_intercept=True)
HIDDEN = ["scores", "features", "labels", "predictions", "moments", "model"]
NO_SCORES = {"never": HIDDEN, "rows_a_day": 1}
MANY = 1 << 20  # up to 2^24 are taken


def scores_by_draws(server: HostileServer, *, stratified: bool) -> dict[str, Floats]:
    """Draw a million rows, all of which are told, though no score is: how often a row was drawn is its score.

    Stratified, one request a party gives every score to 0.1 % of itself, whatever the seed; independently, to 5 %, and
    as exactly as one likes by more seeds. With 2^24 rows, to 0.005 % and 1 %.
    """
    totals = server.told_by_all(AskTotal(RULE), Total)
    drawn = server.told_by_all(DrawRows(MANY, 0, stratified), DrawnRows)
    return {
        party: totals[party].total * np.bincount(drawn[party].rows, minlength=N_ROWS) / MANY
        for party in server.roster.names
    }


def scores_by_seeds(server: HostileServer, party: str) -> Floats:
    """Few draws at a time, but from any number of seeds of the server's choice.

    100 requests of 1,000 draws: scores to some per cent, a correlation above 0.99.
    """
    counts = np.zeros(N_ROWS)
    for seed in range(100):
        reply = server.told(party, OpenDraw(FilledScores(RULE), 1000, seed, False), DrawnRows)
        counts += np.bincount(reply.rows, minlength=N_ROWS)
    return np.asarray(counts / counts.sum())


def scores_by_known_terms(server: HostileServer, target: str) -> Floats:
    """A secure sum in which all but one party are told to score by as many clusters as there are rows: 2 each.

    Nothing tells a party by which rule the others score. What is left of the sum is the target's own score: of all rows
    exact to 1e-7, where only sums of scores may be told.
    """
    known = ClusteringScores(N_ROWS)
    rules = {party: RULE if party == target else known for party in server.roster.names}
    server.told_by_each({party: AskTotal(rule) for party, rule in rules.items()}, Total)
    server.told_by_all(DrawRows(1, 0, True), DrawnRows)
    keys = server.told_by_all(AskPublicKey(), PublicKey)
    signed = tuple(SignedKey(key.key, key.exchanged, key.signature) for _, key in sorted(keys.items()))
    ring = Ring(8, 40)
    request = AskMaskedScores(sendable_rows(np.arange(N_ROWS)), ring.width, ring.exponent, signed)
    replies = server.told_by_all(request, MaskedScores)
    total = np.zeros(N_ROWS, np.uint64)
    for reply in replies.values():
        total += unpack(reply.masked or b"", ring.width)
    return to_numbers(total, ring) - 2.0 * (len(rules) - 1)


def scores_by_openings(server: HostileServer, party: str) -> Floats:
    """Commitments that were never made can be opened: every row's score to 2^-48, one request."""
    request = AskOpenings(IntegerScores(RULE, 48), bytes(32), sendable_rows(np.arange(N_ROWS)))
    return np.ldexp(server.told(party, request, Openings).scores.astype(np.float64), -48)


def categories_by_totals(server: HostileServer, party: str) -> Rows:
    """Only totals: that of leverage scores is a rank, of rows that the server weighs as it likes.

    Two rows of a category that is written as zeros and ones have rank 1, of two categories 2. The categories of all
    100 rows, exact, by a frame and a total for each row and example of a category: 250 pairs.
    """

    def rank(*rows: int) -> int:
        weights = sendable_floats(np.isin(np.arange(N_ROWS), rows).astype(float))
        server.told(party, UseFrame("train", "own", None, None, weights), Moments)
        return round(server.told(party, AskTotal(LeverageScores(False)), Total).total) - 1

    found, examples = np.full(N_ROWS, -1), list[int]()
    for row in range(N_ROWS):
        same = (number for number, example in enumerate(examples) if rank(example, row) == 1)
        found[row] = next(same, len(examples))
        if found[row] == len(examples):
            examples.append(row)
    return found


class DrawingParty:
    """Says that it drew the rows that the server wants, and signs that."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._exchanged: tuple[Message, ...] = ()
        self.wanted: Rows = np.empty(0, np.int64)

    def __call__(self, request: Message, reply: Message) -> Message:
        if isinstance(request, AskTotal):
            self._exchanged = (request, reply)
        if isinstance(request, DrawRows):
            reply = DrawnRows(sendable_rows(np.sort(self.wanted[: request.count])))
            self._exchanged += (request, reply)
        if isinstance(reply, PublicKey):
            exchanged = digest_of(self._exchanged)
            statement = key_statement(self._name, reply.key, exchanged, reply.view)
            signature = identity_of(self._folder, self._name).sign(statement)
            return PublicKey(reply.key, exchanged, reply.view, signature)
        return reply


def rows_by_collusion(server: HostileServer, drawer: DrawingParty, target: str) -> Floats:
    """The server plays honestly; one party says that it drew the rows it wants: the same as ever, but for one.

    60 honest fits by SecureGram on coresets of 40 rows drawn by scores, which are summed in secret. Each differs from
    the others by a row, and their means are 60 equations for 60 rows: all of them to 1e-8. The party's share of others'
    rows is not used.
    """
    n_rows, means, shares = server.roster.n_rows, [], []
    for row in range(n_rows):
        drawer.wanted = np.array([row, *range(n_rows)])
        server.new_run(solver="gram")
        sampler = cn.ImportanceSampling(size=40, scores="secure")
        script = learn(cn.Regression(), sampler, cn.SecureGram(), None, server.roster, 0)
        summed = server.play_until(script, AskMaskedScores)
        asked = server.play_until(script, AskGramShares, summed)
        means.append(server.told_by_each(asked, GramShares)[target].means[0])
        rows, weights = summed[target], asked[target]
        assert isinstance(rows, AskMaskedScores)
        assert isinstance(weights, AskGramShares)
        share = np.bincount(rows.rows, weights=weights.weights, minlength=n_rows)
        shares.append(share / share.sum())
    return np.asarray(np.linalg.lstsq(np.stack(shares), np.stack(means), rcond=None)[0])


def own_scores(party: cn.Party) -> Floats:
    return RULE.scores(party.table)


@pytest.mark.parametrize(("stratified", "error"), [(True, 2e-3), (False, 0.1)])
def test_how_often_rows_are_drawn_tells_scores(tmp_path: Path, stratified: bool, error: float) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, NO_SCORES) as server:
        found = scores_by_draws(server, stratified=stratified)
        assert server.disclosed() == {Reveals.TOTALS, Reveals.ROW_IDS}
        assert server.rows_disclosed() == 0
    for party in parties:
        np.testing.assert_allclose(found[party.name], own_scores(party), rtol=error)


def test_draws_from_many_seeds_tell_scores(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, NO_SCORES) as server:
        found = scores_by_seeds(server, "party1")
    scores = FilledScores(RULE).scores(parties[0].table)
    assert np.corrcoef(found, scores)[0, 1] > 0.99


def test_a_secure_sum_of_known_terms_tells_scores(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"never": ["scores", "features", "labels", "moments"]}) as server:
        found = scores_by_known_terms(server, "party1")
        assert server.disclosed() == {Reveals.TOTALS, Reveals.ROW_IDS, Reveals.SCORE_SUMS}
    np.testing.assert_allclose(found, own_scores(parties[0]), atol=1e-7)


def test_commitments_that_were_never_made_are_opened(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"phases": ["auditing"]}) as server:
        found = scores_by_openings(server, "party1")
    np.testing.assert_allclose(found, own_scores(parties[0]), atol=1e-12)


def test_totals_tell_categories(tmp_path: Path) -> None:
    categories = np.random.default_rng(0).integers(4, size=N_ROWS)
    parties = made_parties()
    parties[0] = cn.Party("party1", np.eye(4)[categories])
    with hostile_server(tmp_path, parties, {"never": [*HIDDEN, "row ids"], "rows_a_day": 1}) as server:
        found = categories_by_totals(server, "party1")
        assert server.disclosed() == {Reveals.TOTALS}
    first = np.unique(categories, return_index=True)[1]
    np.testing.assert_array_equal(found, np.argsort(np.argsort(first))[categories])


def test_a_party_that_joins_forces_chooses_the_rows(tmp_path: Path) -> None:
    parties, drawer = made_parties(60), DrawingParty(tmp_path, "party3")
    policy = {"never": ["features", "labels", "scores", "predictions"]}
    with hostile_server(tmp_path, parties, policy, {"party3": drawer}) as server:
        found = rows_by_collusion(server, drawer, "party1")
    np.testing.assert_allclose(found, features_of(parties[0]), atol=1e-6)
