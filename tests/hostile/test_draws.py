"""Attack 6: scores read off draws, off sums of which the server knows the other terms, and off totals.

Before there were job sheets, draws of a million rows by a seed of the server's choice told every party's score of every
row to 0.1 %, and no amount counted them.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.kernels import draws
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import AskPairKey, PairKey, relayed_keys
from colonnade.privacy.pairwise import Secret
from colonnade.privacy.statements import CircleKeys, digest_of_view, key_statement
from colonnade.protocol.identity import Identity
from colonnade.protocol.sheet import OpenJob
from colonnade.protocol.viewing import Moments, RowWeights, UseFrame, agree_on_view
from colonnade.sampling.committed.messages import AskOpenings, Openings
from colonnade.sampling.plain.messages import AskScores, AskTotal, DrawnRows, DrawRows, Draws, OpenDraw, Scores, Total
from colonnade.sampling.rules.clustering import ClusteringScores
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import integer_rule
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure.messages import AskMaskedScores, AskPublicKey, MaskedScores, PublicKey
from colonnade.sampling.seeds import Seeds
from colonnade.signing import SignedRows, SignedWeights, digest, draw_statement, rows_digest, weights_statement
from colonnade.solvers.lloyd.messages import (
    AskLloydCenters,
    LloydCenters,
    LloydOpened,
    MaskedDistances,
    MoveCenters,
    OpenLloyd,
    TryCenters,
)
from colonnade.tasks.jobs import draw
from hostile_trial import (
    N_ROWS,
    HostileServer,
    features_of,
    hostile_server,
    identity_of,
    made_parties,
    turned_away,
)

TASK, RULE = cn.Regression(), LeverageScores(fit_intercept=True)
HIDDEN = ["scores", "features", "labels", "predictions", "moments", "model"]
NO_SCORES = {"never": HIDDEN, "rows_a_day": 1}
SECURE = cn.ImportanceSampling(40, scores="secure")
MANY = 1 << 20  # up to 2^24 can be drawn
TARGET = "party1"


def opened(server: HostileServer, size: int, seed: int = 0) -> int:
    """Open a draw of so many rows by scores; give the seed of the target's own draw."""
    sampler = cn.ImportanceSampling(size, scores="secure")
    server.new_run("coreset", task=TASK, sampler=sampler, seed=seed)
    return Seeds.of(np.random.default_rng([seed, 0]), len(server.roster.names)).own[0]


def drawn(server: HostileServer, size: int, seed: int = 0) -> Floats:
    """Let the target draw all of them: how often a row was drawn is its score, to one over the size."""
    own = opened(server, size, seed)
    total = server.told(TARGET, AskTotal(RULE), Total).total
    rows = server.told(TARGET, DrawRows(size, own, Draws.STRATIFIED), DrawnRows).rows
    return np.asarray(total * np.bincount(rows, minlength=N_ROWS) / size)


def by_many_draws(server: HostileServer) -> None:
    """A million rows in one run."""
    drawn(server, MANY)


def by_many_runs(server: HostileServer) -> None:
    """30,000 rows a run, which are told, from as many seeds as runs."""
    for seed in range(10):
        drawn(server, 30, seed)


def by_a_larger_count(server: HostileServer) -> None:
    """More rows than the sheet says, of one party."""
    own = opened(server, 40)
    server.told(TARGET, AskTotal(RULE), Total)
    server.told(TARGET, DrawRows(41, own, Draws.STRATIFIED), DrawnRows)


def by_another_seed(server: HostileServer) -> None:
    """A seed whose digest is not on the sheet."""
    opened(server, 40)
    server.told(TARGET, AskTotal(RULE), Total)
    server.told(TARGET, DrawRows(40, 1, Draws.STRATIFIED), DrawnRows)


def by_a_second_draw(server: HostileServer) -> None:
    """The same draw twice in one run."""
    own = opened(server, 40)
    server.told(TARGET, AskTotal(RULE), Total)
    for _ in range(2):
        server.told(TARGET, DrawRows(40, own, Draws.STRATIFIED), DrawnRows)


def by_filled_scores(server: HostileServer) -> None:
    """A draw without a total, where the sheet has one with it."""
    own = opened(server, 40)
    server.told(TARGET, OpenDraw(FilledScores(RULE), 40, own, Draws.STRATIFIED), DrawnRows)


def by_another_rule(server: HostileServer) -> None:
    """Score by as many clusters as there are rows: 2 each, as the other parties are to do in a sum."""
    opened(server, 40)
    server.told(TARGET, AskTotal(ClusteringScores(N_ROWS)), Total)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_many_draws, "limits replies to 100 row ids a day; 0 were sent today, and this reply has 1,048,576"),
        (by_many_runs, "limits replies to 100 row ids a day; 90 were sent today"),
        (by_a_larger_count, "the job sheet says 0 to 40 where this DrawRows has count = 41"),
        (by_another_seed, "the job sheet says what has the digest .* where this DrawRows has seed = 1"),
        (by_a_second_draw, "AskPublicKey would be next in this job, not DrawRows"),
        (by_filled_scores, "AskTotal would be next in this job, not OpenDraw"),
        (by_another_rule, "the job sheet says LeverageScores.* where this AskTotal has rule = ClusteringScores"),
    ],
)
def test_draws_are_as_many_as_the_sheet_and_the_day_allow(
    tmp_path: Path, attack: Callable[[HostileServer], None], why: str
) -> None:
    with hostile_server(tmp_path, made_parties(), NO_SCORES) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.TOTALS, Reveals.ROW_IDS}


def test_draws_of_a_day_do_not_tell_scores_of_a_small_table(tmp_path: Path) -> None:
    """A day's draws are no more than rows: 100,000 of 100 rows told scores to 0.04 %."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, NO_SCORES) as server:
        turned_away(lambda: drawn(server, 100_000), "limits replies to 100 row ids a day")
        found = drawn(server, 100)
    scores = np.asarray(RULE.scores(parties[0].table))
    assert np.median(np.abs(found - scores) / scores) > 0.3


def test_a_secure_sum_is_of_one_job(tmp_path: Path) -> None:
    """One sheet for the target, and one by which the others score 2 each: what is left of the sum is its score."""
    with hostile_server(tmp_path, made_parties(), {"never": ["scores", "features", "labels", "moments"]}) as server:
        roster, sampler = server.roster, cn.ImportanceSampling(30, scores="secure")
        known = cn.KMeans(n_clusters=N_ROWS)
        tasks = {party: TASK if party == TARGET else known for party in roster.names}
        what = {"sampler": sampler, "seed": 0}
        server.open_each(
            {party: sheet_of("coreset", {"task": task, **what}, roster, None) for party, task in tasks.items()}
        )
        seeds = Seeds.of(np.random.default_rng([0, 0]), 3)
        orders = {
            party: DrawRows(10, seed, Draws.STRATIFIED) for party, seed in zip(roster.names, seeds.own, strict=True)
        }
        server.told_by_each({party: AskTotal(task.score_rule()) for party, task in tasks.items()}, Total)
        rows = server.told_by_each(orders, DrawnRows)
        keys = server.told_by_all(AskPublicKey(), PublicKey)
        signed = CircleKeys(*relayed_keys((key.key, key.exchanged, key.signature) for _, key in sorted(keys.items())))
        others = tuple(SignedRows(party, rows[party].rows, rows[party].signature) for party in ("party2", "party3"))
        request = AskMaskedScores(30, others, 0.0, seeds.shared, 8, 40, signed)
        turned_away(lambda: server.told(TARGET, request, MaskedScores), "a key for 'party2' that 'party2' did not sign")
        assert Reveals.SCORE_SUMS not in server.disclosed()


def openings(server: HostileServer, contribution: bytes) -> Openings:
    """Ask for openings of all rows."""
    rows, rule = np.arange(N_ROWS), integer_rule(RULE, server.roster)
    sampler = cn.ImportanceSampling(40, draws="committed")
    server.new_run("audit", task=TASK, sampler=sampler, rows=rows)
    return server.told(TARGET, AskOpenings(rule, contribution, sendable_rows(rows)), Openings)


def test_commitments_that_were_never_made_are_not_opened(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), {"phases": ["auditing"]}) as server:
        turned_away(lambda: openings(server, bytes(32)), "opens only scores that it committed to")
        assert server.disclosed() == set()


def test_openings_are_scores(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), NO_SCORES) as server:
        turned_away(lambda: openings(server, bytes(32)), "never reveals scores, which a Openings would")


def total_of_two_rows(server: HostileServer) -> None:
    """Weights of two rows that no party signed: the total is whether they are of one category."""
    server.new_run("coreset", task=TASK, sampler=SECURE)
    weights = SignedWeights("party2", sendable_floats(np.arange(N_ROWS) < 2), bytes(64))
    server.told(TARGET, UseFrame("train", "own", None, None, weights), Moments)


def total_of_few_rows(server: HostileServer) -> None:
    """A split that leaves two rows."""
    split = cn.HoldOut(0.98, 0)
    server.new_run("coreset", task=TASK, sampler=SECURE, split=split)
    server.play(agree_on_view(server.roster, split, "train", "own"))


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (total_of_two_rows, "AskTotal would be next in this job, not UseFrame"),
        (total_of_few_rows, "a split holds out, and leaves, 10 rows at least"),
    ],
)
def test_totals_are_of_enough_rows(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": HIDDEN}) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() == set()


class WeighingParty:
    """Holds the rows' weights, says that all of it is on two rows, and signs that."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._sheet = folder, b""

    def __call__(self, request: Message, reply: Message) -> Message:
        if isinstance(request, OpenJob):
            self._sheet = digest(request.sheet)
        if request.kind == "AskRowWeights":
            weights = sendable_floats(np.where(np.arange(N_ROWS) < 2, 1.0, 1e-18))
            signature = identity_of(self._folder, "party2").sign(weights_statement("party2", self._sheet, weights))
            return RowWeights(weights, signature)
        return reply


def test_totals_by_weights_of_a_party_that_joins_forces_are_of_enough_rows(tmp_path: Path) -> None:
    """Of two rows, the total would say whether they are of one category."""
    parties = made_parties()
    parties[1] = cn.Party("party2", features_of(parties[1]), weight=np.ones(N_ROWS))
    with hostile_server(tmp_path, parties, {"never": HIDDEN}, {"party2": WeighingParty(tmp_path)}) as server:
        script = draw(TASK, SECURE, None, server.roster, 0)
        attack = lambda: server.honestly(script, "coreset", task=TASK, sampler=SECURE)  # noqa: E731
        turned_away(attack, "by these weights there are 2")
        assert Reveals.TOTALS not in server.disclosed(TARGET)


def test_totals_by_honest_splits_do_not_tell_a_rare_category(tmp_path: Path) -> None:
    """Three of 100 rows are of one category. What all splits that lower the total hold out were just these.

    Now 100 rows are scored for three splits, and even where the server knows which to ask for they leave 12 suspects.
    """
    categories = np.where(np.isin(np.arange(N_ROWS), [5, 50, 77]), 3, np.arange(N_ROWS) % 3)
    parties, suspects = made_parties(), np.ones(N_ROWS, bool)
    parties[0] = cn.Party(TARGET, np.eye(4)[categories])
    held_out = {seed: np.asarray(draws.held_out(N_ROWS, 0.5, seed), bool) for seed in range(150)}

    def attack(server: HostileServer) -> None:
        for seed in (seed for seed, rows in held_out.items() if rows[[5, 50, 77]].all()):
            split = cn.HoldOut(0.5, seed)
            what = {"task": TASK, "sampler": SECURE, "split": split}
            server.open_each({TARGET: sheet_of("coreset", what, server.roster, None)})
            server.told(TARGET, UseFrame("train", "own", split, None, None), Moments)
            assert round(server.told(TARGET, AskTotal(RULE), Total).total) < 5
            suspects[~held_out[seed]] = False

    with hostile_server(tmp_path, parties, NO_SCORES) as server:
        turned_away(lambda: attack(server), "scores 100 rows for 3 different splits, for all time")
        assert server.disclosed() == {Reveals.TOTALS}
    assert suspects.sum() > 10


def centers_by_collusion(server: HostileServer, drawer: Identity, wanted: Rows) -> Floats:
    """Play a job of SecureLloyd in which one party says, and signs, that it drew the rows that the server wants.

    The server has that party's secret, and speaks for it. Gives the target's part of the centre.
    """
    task, sampler = cn.KMeans(n_clusters=1, n_starts=1), cn.ImportanceSampling(40, scores="plain")
    what = {"task": task, "sampler": sampler, "solver": cn.SecureLloyd(), "seed": 0}
    job = sheet_of("fit", what, server.roster, None)
    server.open(job)
    sheet = digest(msgspec.msgpack.encode(job))
    view, honest = digest(digest_of_view(None, "own"), sheet), ("party1", "party2")
    seeds = Seeds.of(np.random.default_rng([0, 0]), 3)
    server.told_by_each(dict.fromkeys(honest, AskTotal(task.score_rule())), Total)
    orders = {party: DrawRows(5, seed, Draws.STRATIFIED) for party, seed in zip(honest, seeds.own, strict=False)}
    draws = {
        party: SignedRows(party, reply.rows, reply.signature)
        for party, reply in server.told_by_each(orders, DrawnRows).items()
    }
    claimed = sendable_rows(np.sort(wanted))
    draws["party3"] = SignedRows("party3", claimed, drawer.sign(draw_statement("party3", sheet, view, claimed)))
    others = {party: tuple(draw for name, draw in sorted(draws.items()) if name != party) for party in honest}
    asks = {party: AskScores(40, others[party], 0.0, seeds.shared) for party in honest}
    server.told_by_each(asks, Scores)
    rows = np.sort(np.concatenate([draw.rows for draw in draws.values()]))
    keys = server.told_by_each(dict.fromkeys(honest, AskPairKey()), PairKey).values()
    key, agreed = Secret(bytes(32)).key, rows_digest(rows)
    ours = (key, agreed, drawer.sign(key_statement("party3", key, agreed, view)))
    signed = CircleKeys(*relayed_keys([*((each.key, each.rows, each.signature) for each in keys), ours]))
    magnitude = server.told(TARGET, OpenLloyd(None, 1, 1, 10, signed), LloydOpened).magnitude
    start = sendable_rows([0])
    server.told(TARGET, TryCenters(start, magnitude or 0), MaskedDistances)
    server.told(TARGET, MoveCenters(sendable_rows(np.zeros(40)), start), MaskedDistances)
    centers = server.told(TARGET, AskLloydCenters(), LloydCenters).centers
    assert centers is not None
    return centers


@pytest.mark.parametrize(
    ("step", "n_told", "why"),
    [(1, 1, "[1-9] rows apart from a sum that it has told before"), (11, 30, "rows apart|for each of its values")],
)
def test_a_party_that_joins_forces_chooses_rows_but_not_all(tmp_path: Path, step: int, n_told: int, why: str) -> None:
    """Its own rows, which others cannot check: sums that differ by a row are refused, and others are counted."""
    parties, found = made_parties(60), list[Floats]()
    with hostile_server(tmp_path, parties) as server:
        drawer = identity_of(tmp_path, "party3")
        rolled = (np.roll(np.arange(60), step * run)[:30] for run in range(60))

        def attack() -> None:
            found.extend(centers_by_collusion(server, drawer, rows) for rows in rolled)

        turned_away(attack, why)
    assert 1 <= len(found) <= n_told, "each is 3 numbers, and all are half of 60 x 3 at most"
