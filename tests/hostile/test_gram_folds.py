"""Attack 2: Gram matrices of the same rows under many weights, which differ by single rows."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace

import colonnade as cn
from colonnade.contracts import Outbox
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.tasks.jobs import learn
from hostile_trial import N_ROWS, HostileServer, columns_of, hostile_server, made_parties

TARGET = "party3"  # with the label
# All that SecureGram on a given coreset needs.
FOR_GRAM = {
    "never": ["totals", "row ids", "scores", "sums of scores", "features", "labels", "predictions", "row weights"],
    "solvers": ["gram"],
    "rows_a_day": 1,
}


def gram_of(server: HostileServer, rows: Rows, weights: Floats, folds: Rows | None = None) -> GramShares:
    """Play an honest job up to its question, which is then about these weights and folds; give the target's reply."""
    coreset = Coreset(rows, np.ones(len(rows)), N_ROWS, float(N_ROWS), "given")
    script = learn(cn.Regression(), coreset, cn.SecureGram(), None, server.roster, 0)
    asked = server.play_until(script, AskGramShares)
    return server.told_by_each(_about(asked, weights, folds), GramShares)[TARGET]


def _about(outbox: Outbox, weights: Floats, folds: Rows | None) -> dict[str, Message]:
    changed: dict[str, Message] = {}
    for party, request in outbox.items():
        assert isinstance(request, AskGramShares)
        changed[party] = replace(
            request, weights=sendable_floats(weights), folds=None if folds is None else sendable_rows(folds)
        )
    return changed


def rows_by_folds(server: HostileServer) -> Floats:
    """100 folds that all hold the same 100 rows; in each another row weighs double.

    Every fold has 99 effective rows. 100 of 100 rows with their labels to 1e-10 in one run of 5 requests, 0.3 s.
    """
    rows, folds = np.repeat(np.arange(N_ROWS), N_ROWS), np.tile(np.arange(N_ROWS), N_ROWS)
    reply = gram_of(server, rows, np.where(rows == folds, 1.0, 0.5), folds)
    total = reply.means.sum(axis=0)  # (N + 1) times a fold's mean is the sum of all rows and, once more, its own
    return np.asarray((N_ROWS + 1) * reply.means - total)


def rows_by_other_weights(server: HostileServer) -> Floats:
    """One fold, and the same 100 rows in eleven runs, in ten of which one row weighs double: ten rows to 1e-10."""
    rows = np.arange(N_ROWS)
    total = N_ROWS * gram_of(server, rows, np.ones(N_ROWS)).means[0]
    found = []
    for row in range(10):
        server.new_run()
        found.append((N_ROWS + 1) * gram_of(server, rows, np.where(rows == row, 1.0, 0.5)).means[0] - total)
    return np.stack(found)


def rows_by_other_rows(server: HostileServer) -> Floats:
    """Runs on all rows, and on all but one: ten rows to 1e-10."""
    rows = np.arange(N_ROWS)
    total = N_ROWS * gram_of(server, rows, np.ones(N_ROWS)).means[0]
    found = []
    for row in range(10):
        server.new_run()
        others = np.delete(rows, row)
        found.append(total - (N_ROWS - 1) * gram_of(server, others, np.ones(N_ROWS - 1)).means[0])
    return np.stack(found)


def rows_by_honest_draws(server: HostileServer) -> Floats:
    """Nothing but honest jobs: 70 fits on even draws of 50 of 60 rows, each by another seed, by SecureGram.

    Each mean is of some 34 distinct rows, known from the seed; 70 of them are more equations than rows: 60 of 60 rows
    with labels to 1e-8. Any two differ by dozens of rows.
    """
    n_rows, means, shares = server.roster.n_rows, [], []
    for seed in range(n_rows + 10):
        server.new_run(sampler="uniform", solver="gram")
        script = learn(cn.Regression(), cn.UniformSampling(50), cn.SecureGram(), None, server.roster, seed)
        asked = server.play_until(script, AskGramShares)
        means.append(server.told_by_each(asked, GramShares)[TARGET].means[0])
        shared = int(np.random.default_rng([seed, 0]).integers(2**63))  # what the honest server tells all
        drawn = np.random.default_rng(shared).integers(n_rows, size=50)
        shares.append(np.bincount(drawn, minlength=n_rows) / 50)
    return np.asarray(np.linalg.lstsq(np.stack(shares), np.stack(means), rcond=None)[0])


def test_folds_of_the_same_rows_tell_all_rows(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, FOR_GRAM) as server:
        found = rows_by_folds(server)
        assert server.disclosed() == {Reveals.MOMENTS}
        assert server.rows_disclosed() == 0
    np.testing.assert_allclose(found, columns_of(parties[2]), atol=1e-8)


def test_two_runs_on_the_same_rows_under_other_weights_tell_a_row(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, FOR_GRAM) as server:
        found = rows_by_other_weights(server)
    np.testing.assert_allclose(found, columns_of(parties[2])[:10], atol=1e-8)


def test_two_runs_whose_rows_differ_by_one_tell_it(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, FOR_GRAM) as server:
        found = rows_by_other_rows(server)
    np.testing.assert_allclose(found, columns_of(parties[2])[:10], atol=1e-8)


def test_many_honest_fits_on_even_draws_tell_all_rows(tmp_path: Path) -> None:
    parties = made_parties(60)
    with hostile_server(tmp_path, parties, FOR_GRAM) as server:
        found = rows_by_honest_draws(server)
    np.testing.assert_allclose(found, columns_of(parties[2]), atol=1e-6)
