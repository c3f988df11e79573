"""Attack 3: centres of clusters of the server's choice, and distances to single rows, in SecureLloyd.

Before there were job sheets, each row in two clusters under two weights told 100 of 100 rows of all parties, exact, in
one run of 0.5 s; so did two honest clusterings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_evenly_distinct
from colonnade.kernels.masks import Words, ring_of_magnitude, to_numbers, unpack
from colonnade.messages import Reveals, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import exchange_keys
from colonnade.sampling import AnySampler
from colonnade.sampling.selecting import use_rows
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.solvers.lloyd.messages import (
    WIDTH,
    AskLloydCenters,
    LloydCenters,
    LloydOpened,
    MaskedDistances,
    MoveCenters,
    OpenLloyd,
    TryCenters,
)
from colonnade.tasks.jobs import draw, learn
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, turned_away

# All that SecureLloyd on all rows, or on a given coreset, needs.
FOR_LLOYD = {
    "never": ["scores", "sums of scores", "features", "labels", "moments", "row weights", "row ids"],
    "solvers": ["lloyd"],
}
FOR_BOTH = {"never": ["features", "labels", "scores"]}
ALL = np.arange(N_ROWS)
EVEN = cn.UniformSampling(200, draws="independent")  # some rows twice


def coreset_of(server: HostileServer, sampler: AnySampler) -> Coreset:
    """Agree on a coreset, which all parties then know again."""
    task = cn.KMeans(n_clusters=2)
    return server.honestly(draw(task, sampler, None, server.roster, 0), "coreset", task=task, sampler=sampler).coreset


@dataclass
class Seen:
    """What a server sees in SecureLloyd: which rows were tried, all rows' distances to them, labels and centres."""

    tried: Rows
    distances: Floats
    labels: Rows
    centers: Floats


def centers_of(
    server: HostileServer,
    source: AnySampler | Coreset,
    weights: Floats | None,
    labels: Rows,
    *,
    k: int = 4,
    n_tries: int = 1,
    of: str | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Seen:
    """Ask for the means of rows by labels and weights of the server's choice; of all parties, or of one alone.

    What is done meanwhile comes before the last question.
    """
    task, roster = cn.KMeans(n_clusters=k, n_starts=n_tries), server.roster
    what = {"coreset": source} if isinstance(source, Coreset) else {"sampler": source}
    server.new_run(task=task, solver=cn.SecureLloyd(), **what)
    if isinstance(source, Coreset):
        rows = server.play(use_rows(roster, source.rows))
    else:
        rows = server.play(source.sample(roster, task.score_rule(), np.random.default_rng([0, 0]))).rows
    keys, asked = server.play(exchange_keys(roster, rows)), roster.names if of is None else (of,)
    told = None if weights is None else sendable_floats(weights)
    opening = OpenLloyd(told, n_tries, k, len(roster.feature_names), keys.to("party1"))
    opened = server.told_by_each(dict.fromkeys(asked, opening), LloydOpened)
    magnitude = max(reply.magnitude or 0 for reply in opened.values())
    ring = ring_of_magnitude(magnitude, len(roster.names), WIDTH)
    tries, distances = np.stack([np.flatnonzero(labels == label)[:n_tries] for label in range(k)]), []
    for places in tries:
        request = TryCenters(sendable_rows(places), magnitude)
        masked = server.told_by_each(dict.fromkeys(asked, request), MaskedDistances).values()
        total: Words = np.sum([unpack(reply.masked or b"", WIDTH) for reply in masked], axis=0, dtype=np.uint64)
        distances += list(to_numbers(total, ring).reshape(-1, n_tries).T)
    moved = MoveCenters(sendable_rows(labels), sendable_rows(tries[:, 0]))
    server.told_by_each(dict.fromkeys(asked, moved), MaskedDistances)
    meanwhile()
    replies = server.told_by_each(dict.fromkeys(asked, AskLloydCenters()), LloydCenters)
    centers = np.hstack([reply.centers for reply in replies.values() if reply.centers is not None])
    return Seen(tries.reshape(-1), np.stack(distances), labels, centers)


def by_copies(server: HostileServer) -> None:
    """Rows that were drawn twice, once in each of two clusters."""
    rows = coreset_of(server, EVEN).rows
    centers_of(server, EVEN, None, np.arange(len(rows)) % 4)


def by_many_copies(server: HostileServer) -> None:
    """25 copies of each row, for 25 clusters of all rows: a coreset that nobody drew."""
    rows = np.repeat(ALL, 25)
    centers_of(server, Coreset(rows, np.ones(2500), N_ROWS, 100.0, "given"), None, np.tile(np.arange(4), 625))


def by_many_clusters(server: HostileServer) -> None:
    """Two clusters a pair of rows: more clusters than columns."""
    centers_of(server, cn.AllRows(), None, ALL // 2, k=N_ROWS // 2)


def by_small_clusters(server: HostileServer) -> None:
    """Four clusters, in one of which are two rows."""
    centers_of(server, cn.AllRows(), None, np.minimum(ALL // 2, 3))


def by_two_runs(server: HostileServer) -> None:
    """A partition into four clusters of 25 rows, and one more run in which one row is in another cluster."""
    centers_of(server, cn.AllRows(), None, ALL % 4)
    centers_of(server, cn.AllRows(), None, np.where(ALL == 0, 1, ALL % 4))


def by_other_weights(server: HostileServer) -> None:
    """All rows, of which one weighs double where all count 1."""
    centers_of(server, cn.AllRows(), np.where(ALL == 7, 1.0, 0.5), ALL % 4)


def by_two_weights(server: HostileServer) -> None:
    """The same clusters of a coreset that is used again, in the second run of which one row weighs double."""
    known = coreset_of(server, cn.AllRows())
    centers_of(server, known, None, ALL % 4)
    centers_of(server, known, np.where(ALL == 7, 1.0, 0.5), ALL % 4)


def by_heavy_rows(server: HostileServer) -> None:
    """A coreset that is used again, with a row in each cluster that weighs nearly all of it, at a party of one column.

    Effectively these are more rows than columns: two. It told four rows to a tenth of the column's spread.
    """
    known = coreset_of(server, cn.AllRows())
    centers_of(server, known, np.where(ALL < 4, 1.0, 0.02), ALL % 4, of="party1")


def by_a_second_question(server: HostileServer) -> None:
    """A key is lost, says the server, and asks again in the same run with other rows to try."""
    centers_of(server, cn.AllRows(), None, ALL % 4)
    keys = server.play(exchange_keys(server.roster, ALL))
    server.told_by_all(OpenLloyd(None, 1, 4, 10, keys.to("party1")), LloydOpened)
    server.told_by_all(TryCenters(sendable_rows([99]), 100), MaskedDistances)


def by_two_solvers(server: HostileServer) -> None:
    """The mean of all rows by SecureGram, and by SecureLloyd, where one of them weighs double."""
    known = coreset_of(server, cn.AllRows())
    regression, gram = cn.Regression(), cn.SecureGram()
    server.new_run(task=regression, coreset=known, solver=gram)
    asked = server.play_until(learn(regression, known, gram, None, server.roster, 0), AskGramShares)
    server.told_by_each(asked, GramShares)
    centers_of(server, known, np.where(ALL == 7, 1.0, 0.5), np.zeros(N_ROWS, np.int64), k=1)


def rows_by_distances(server: HostileServer) -> tuple[Floats, Floats, Floats]:
    """Cluster all rows into one cluster fewer than columns, by labels of the server's choice.

    For each centre some rows are tried, and the server sees all rows' distances to those: that fixes all rows up to
    a rotation. The centres are means of rows it knows by label. Gives the rows as they are but for that rotation, and
    the centres in both frames.
    """
    n_columns = len(server.roster.feature_names)
    k = n_columns - 1
    seen = centers_of(server, cn.AllRows(), None, ALL % k, k=k, n_tries=4)
    turned = _placed(seen.distances, seen.tried, n_columns)
    return turned, _means(turned, seen.labels, k), seen.centers


def turned_by_known(turned: Floats, ours: Floats, theirs: Floats, known: Floats) -> Floats:
    """Turn rows so that centres fall together and, in the plane that these leave, so do a few values that are known.

    `known` is of the first rows and the last columns.
    """
    n_rows, n_known = known.shape
    rows, at, to = turned - ours.mean(axis=0), ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)
    spanned = rows @ np.linalg.pinv(at) @ to + theirs.mean(axis=0)
    left, right = _across(at), _across(to)
    angle = np.linalg.pinv(rows[:n_rows] @ left) @ (known - spanned[:n_rows, -n_known:]) @ right[-n_known:]
    U, _, Vt = np.linalg.svd(angle)
    return np.asarray(spanned + rows @ left @ U @ Vt @ right.T)


def _across(points: Floats) -> Floats:
    """Give a basis, shape (d, 2), of the plane that points span nothing of."""
    return np.asarray(np.linalg.svd(points)[2][-2:].T)


def _placed(squares: Floats, places: Rows, n_columns: int) -> Floats:
    """Place rows by squared distances, shape (p, n), to p of them: as they are, up to a rotation and a shift."""
    among = squares[:, places]
    centred = np.eye(len(places)) - 1 / len(places)
    values, vectors = np.linalg.eigh(-0.5 * centred @ among @ centred)
    anchors = vectors[:, -n_columns:] * np.sqrt(values[-n_columns:])
    # |x - a|² - the mean of it over all anchors is linear in x, since anchors are about 0.
    norms = np.square(anchors).sum(axis=1)
    right = (norms - norms.mean())[:, None] - (squares - squares.mean(axis=0))
    return np.asarray(np.linalg.lstsq(2 * anchors, right, rcond=None)[0].T)


def _means(values: Floats, labels: Rows, k: int) -> Floats:
    return np.stack([values[labels == label].mean(axis=0) for label in range(k)])


def everything(parties: list[cn.Party]) -> Floats:
    return np.hstack([features_of(party) for party in parties])


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_copies, "copies of one row into two clusters"),
        (by_many_copies, "uses only coresets again that it agreed on"),
        (by_many_clusters, "50 clusters of 10 columns"),
        (by_small_clusters, "asks for sums over 10 rows at least; cluster 0 is over 2"),
        (by_other_weights, "weights that rows drawn as agreed"),
        (by_heavy_rows, "weights that rows drawn as agreed, by this party's scores, cannot have"),
    ],
)
def test_clusters_are_partitions_into_enough_rows(
    tmp_path: Path, attack: Callable[[HostileServer], None], why: str
) -> None:
    parties = made_parties(widths=(1, 5, 4), label=False)
    with hostile_server(tmp_path, parties, FOR_LLOYD) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.TOTALS, Reveals.PREDICTIONS}, "no centre"


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_two_runs, "1 rows apart from a sum that it has told before"),
        (by_two_weights, "weights that rows drawn as agreed, by this party's scores, cannot have"),
        (by_a_second_question, "TryCenters that differs from what it asked before in this run"),
    ],
)
def test_centres_are_told_once(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties(label=False), FOR_LLOYD) as server:
        turned_away(lambda: attack(server), why)
        told = [reply for _, reply in server.received if isinstance(reply, LloydCenters)]
        assert len(told) == 3, "those of one run"


def test_two_solvers_do_not_sum_the_same_rows_with_other_weights(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": ["scores"]}) as server:
        turned_away(lambda: by_two_solvers(server), "cannot have")
        assert not any(isinstance(reply, LloydCenters) for _, reply in server.received)


def test_a_sheet_of_one_solver_opens_no_other(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), FOR_BOTH) as server:
        server.new_run(task=cn.Regression(), sampler=cn.AllRows(), solver=cn.SecureGram())
        rows = server.play(cn.AllRows().sample(server.roster, None, np.random.default_rng(0))).rows  # type: ignore[arg-type]
        keys = server.play(exchange_keys(server.roster, rows))
        request = OpenLloyd(None, 1, 4, 10, keys.to("party1"))
        turned_away(
            lambda: server.told_by_all(request, LloydOpened),
            "AskSealedSeeds, .* would be next in this job, not OpenLloyd",
        )
        assert server.disclosed() == set()


def five_centers(server: HostileServer, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Cluster into half as many clusters as there are columns."""
    centers_of(server, cn.AllRows(), None, ALL % 5, k=5, meanwhile=meanwhile)


def five_others(server: HostileServer) -> None:
    """Cluster once more, otherwise."""
    centers_of(server, cn.AllRows(), None, ALL // 20, k=5)


def test_two_clusterings_are_one_too_many(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(label=False), FOR_LLOYD) as server:
        five_centers(server)
        turned_away(lambda: five_others(server), "from these and 10 numbers a column in sums, .* could be worked out")
        assert server.disclosed() == {Reveals.TOTALS, Reveals.PREDICTIONS, Reveals.MODEL}


def test_two_clusterings_at_once_are_one_too_many(tmp_path: Path) -> None:
    """Both were opened before either had told its centres."""
    with hostile_server(tmp_path, made_parties(label=False), FOR_LLOYD) as server:

        def other() -> None:
            with server.besides():
                five_others(server)

        turned_away(lambda: five_centers(server, other), "from these and 10 numbers a column in sums")
        assert len([1 for _, reply in server.received if isinstance(reply, LloydCenters)]) == 3, "those of one run"


def rows_by_means(server: HostileServer) -> Floats:
    """Read rows by distances, up to a rotation and a shift, and then means of eleven even draws by Gram matrices.

    Each mean is a point in the parties' columns of which the server knows where it lies among the rows.
    """
    task, gram, roster = cn.Regression(), cn.SecureGram(), server.roster
    n_columns = len(roster.feature_names)
    seen = centers_of(server, cn.AllRows(), None, ALL % 2, k=2, n_tries=6)
    turned = _placed(seen.distances, seen.tried, n_columns)
    ours, theirs = [*_means(turned, seen.labels, 2)], [*seen.centers]
    for seed in range(n_columns - 1):
        sampler = cn.UniformSampling(60)
        server.new_run("fit", task=task, sampler=sampler, solver=gram, seed=seed)
        script = learn(task, sampler, gram, None, roster, seed)
        replies = server.told_by_each(server.play_until(script, AskGramShares), GramShares)
        drawing = np.random.default_rng(int(np.random.default_rng([seed, 0]).integers(2**63)))
        _, drawn = draw_evenly_distinct(N_ROWS, 60, drawing)
        ours.append(turned[drawn].mean(axis=0))
        theirs.append(np.concatenate([replies[card.name].means[0][: card.n_features] for card in roster.cards]))
    onto = np.linalg.lstsq(np.column_stack([ours, np.ones(len(ours))]), np.stack(theirs), rcond=None)[0]
    return np.asarray(np.column_stack([turned, np.ones(N_ROWS)]) @ onto)


def test_distances_and_gram_matrices_do_not_go_together(tmp_path: Path) -> None:
    """All of it honest jobs: two clusters, and nine regressions. They told all rows of all parties, to 1e-4."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        np.testing.assert_allclose(rows_by_means(server), everything(parties), atol=1e-4)
    (tmp_path / "held").mkdir()
    with hostile_server(tmp_path / "held", parties, FOR_BOTH) as server:
        turned_away(lambda: rows_by_means(server), "distances of rows to each other")
        assert not any(isinstance(reply, GramShares) for _, reply in server.received)


def test_how_far_two_rows_are_apart_is_not_told(tmp_path: Path) -> None:
    """The bound of distances is that of all rows, whichever are selected."""
    with hostile_server(tmp_path, made_parties(label=False), FOR_LLOYD) as server:
        bounds = set()
        for seed in range(20):
            task, sampler = cn.KMeans(n_clusters=1, n_starts=1), cn.UniformSampling(2)
            server.new_run(task=task, sampler=sampler, solver=cn.SecureLloyd(), seed=seed)
            rng = np.random.default_rng([seed, 0])
            rows = server.play(sampler.sample(server.roster, task.score_rule(), rng)).rows
            keys = server.play(exchange_keys(server.roster, rows))
            bounds.add(server.told("party1", OpenLloyd(None, 1, 1, 10, keys.to("party1")), LloydOpened).magnitude)
        assert len(bounds) == 1


def test_one_clustering_and_two_known_rows_do_not_tell_all_rows(tmp_path: Path) -> None:
    """Nine centres of ten columns leave one angle open, for all rows of all parties together.

    A party that joins forces, or two of its rows that the server has from elsewhere, fix that.
    """
    parties = made_parties(label=False)
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        turned, ours, theirs = rows_by_distances(server)
    truth = everything(parties)
    found = turned_by_known(turned, ours, theirs, truth[:2, -3:])
    assert np.median(np.abs(found - truth) / truth.std(axis=0)) < 1e-3
    (tmp_path / "held").mkdir()
    with hostile_server(tmp_path / "held", parties, FOR_LLOYD) as server:
        turned_away(lambda: rows_by_distances(server), "9 centres .* of 10 columns .* half as many is the most")
        assert server.disclosed() == set()
