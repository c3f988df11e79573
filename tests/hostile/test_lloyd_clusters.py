"""Attack 3: centres of clusters of the server's choice, and distances to single rows, in SecureLloyd."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import colonnade as cn
from colonnade.contracts import Script
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import Words, ring_of_magnitude, to_numbers, unpack
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import exchange_keys
from colonnade.sampling.selecting import Ready, UseRows
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
from colonnade.tasks.jobs import learn
from hostile_trial import N_ROWS, HostileServer, columns_of, features_of, hostile_server, made_parties

# All that SecureLloyd on a given coreset needs.
FOR_LLOYD = {
    "never": ["scores", "sums of scores", "features", "labels", "moments", "row weights", "row ids"],
    "solvers": ["lloyd"],
}


def centers_of(server: HostileServer, rows: Rows, weights: Floats, labels: Rows) -> Floats:
    """Ask for the means of rows by labels and weights of the server's choice; all parties' columns, side by side."""
    k = int(labels.max()) + 1
    server.told_by_all(UseRows(sendable_rows(rows)), Ready)
    keys = server.play(exchange_keys(server.roster, rows))
    opened = server.told_by_all(OpenLloyd(sendable_floats(weights), 1, k, keys.signed), LloydOpened)
    magnitude = max(reply.magnitude or 0 for reply in opened.values())
    starts = np.array([np.flatnonzero(labels == label)[0] for label in range(k)])
    for start in starts:
        server.told_by_all(TryCenters(sendable_rows([start]), magnitude), MaskedDistances)
    server.told_by_all(MoveCenters(sendable_rows(labels), sendable_rows(starts)), MaskedDistances)
    replies = server.told_by_all(AskLloydCenters(), LloydCenters)
    centers = [reply.centers for reply in replies.values() if reply.centers is not None]
    return np.hstack(centers)


def rows_by_pairs(server: HostileServer) -> Floats:
    """Each row in two clusters, with another row: once it weighs double, once the other does.

    Effectively 1.8 rows a cluster, where 1.5 are enough. 100 of 100 rows of all parties exact, one run, 0.5 s.
    """
    rows = np.repeat(np.arange(N_ROWS), 2)
    labels = np.tile([0, 1], N_ROWS) + rows // 2 * 2
    weights = np.where(rows % 2 == labels % 2, 1.0, 0.5)
    centers = centers_of(server, rows, weights, labels)
    first, second = centers[0::2], centers[1::2]  # (2 a + b) / 3 and (a + 2 b) / 3
    return np.stack([2 * first - second, 2 * second - first], axis=1).reshape(N_ROWS, -1)


def rows_by_large_clusters(server: HostileServer) -> Floats:
    """Every cluster holds all 100 rows, and in each another row weighs double: 25 rows to 1e-10.

    Any number of copies a row does it; here each is there 25 times.
    """
    k = 25
    rows, labels = np.repeat(np.arange(N_ROWS), k), np.tile(np.arange(k), N_ROWS)
    centers = centers_of(server, rows, np.where(rows == labels, 1.0, 0.5), labels)
    server.new_run()
    total = N_ROWS * centers_of(server, np.arange(N_ROWS), np.ones(N_ROWS), np.zeros(N_ROWS, np.int64))
    return np.asarray((N_ROWS + 1) * centers - total)


def rows_by_two_runs(server: HostileServer) -> Floats:
    """A partition into four clusters of 25 rows, and ten more runs in which one row is in another cluster: ten rows."""
    rows, labels = np.arange(N_ROWS), np.arange(N_ROWS) % 4
    before = centers_of(server, rows, np.ones(N_ROWS), labels)
    found = []
    for row in range(10):
        server.new_run()
        moved = labels.copy()
        moved[row] = (labels[row] + 1) % 4
        after = centers_of(server, rows, np.ones(N_ROWS), moved)
        found.append(25 * before[labels[row]] - 24 * after[labels[row]])
    return np.stack(found)


def rows_by_two_solvers(server: HostileServer) -> Floats:
    """The mean of the same rows by SecureGram, and by SecureLloyd, where one of them weighs double: ten rows."""
    rows = np.arange(N_ROWS)
    coreset = Coreset(rows, np.ones(N_ROWS), N_ROWS, float(N_ROWS), "given")
    asked = server.play_until(learn(cn.Regression(), coreset, cn.SecureGram(), None, server.roster, 0), AskGramShares)
    means = server.told_by_each(asked, GramShares)
    total = N_ROWS * np.hstack([means[card.name].means[0, : card.n_features] for card in server.roster.cards])
    found = []
    for row in range(10):
        server.new_run()
        heavier = centers_of(server, rows, np.where(rows == row, 1.0, 0.5), np.zeros(N_ROWS, np.int64))
        found.append((N_ROWS + 1) * heavier[0] - total)
    return np.stack(found)


@dataclass
class Watched:
    """What an honest server sees in SecureLloyd: rows that were tried, all rows' distances to them, and centres."""

    tried: list[int] = field(default_factory=list)
    distances: list[Floats] = field(default_factory=list)
    labels: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    centers: Floats = field(default_factory=lambda: np.empty((0, 0)))


def watch(server: HostileServer, script: Script[Any]) -> Watched:
    """Play an honest script, and keep what a curious server would."""
    seen, outbox = Watched(), next(script)
    while True:
        replies = server.told_by_each(outbox, Message)
        request = next(iter(outbox.values()))
        masked = [reply.masked for reply in replies.values() if isinstance(reply, MaskedDistances)]
        if isinstance(request, TryCenters):
            ring = ring_of_magnitude(request.magnitude, len(replies), WIDTH)
            total: Words = np.sum([unpack(part or b"", WIDTH) for part in masked], axis=0, dtype=np.uint64)
            seen.tried += request.places.tolist()
            seen.distances += list(to_numbers(total, ring).reshape(-1, len(request.places)).T)
        if isinstance(request, MoveCenters):
            seen.labels = request.labels
        try:
            outbox = script.send(replies)
        except StopIteration as end:
            seen.centers = end.value.model.cluster_centers_
            return seen


def rows_by_honest_runs(server: HostileServer) -> Floats:
    """Two fits on all rows, with fewer clusters than columns, by other seeds: every word of the server is honest.

    For each centre some rows are tried, and the server sees all rows' distances to those: that fixes all rows up to
    a rotation. The centres are means of rows it knows by label: nine of ten columns leave a rotation in a plane, and
    those of another run fix it. 100 of 100 rows of all parties to 1e-6; nothing but predictions and the model told.
    """
    n_columns = len(server.roster.feature_names)
    task = cn.KMeans(n_clusters=n_columns - 1, n_starts=8)
    runs = []
    for seed in (0, 1):
        server.new_run(task="kmeans", sampler="all", solver="lloyd")
        runs.append(watch(server, learn(task, cn.AllRows(), cn.SecureLloyd(), None, server.roster, seed)))
    places, first = np.unique([place for run in runs for place in run.tried], return_index=True)
    squares = np.stack([each for run in runs for each in run.distances])[first]
    turned = _placed(squares, places, n_columns)
    ours = np.vstack([_means(turned, run.labels, len(run.centers)) for run in runs])
    theirs = np.vstack([run.centers for run in runs])
    U, _, Vt = np.linalg.svd((ours - ours.mean(axis=0)).T @ (theirs - theirs.mean(axis=0)))
    return np.asarray((turned - ours.mean(axis=0)) @ (U @ Vt) + theirs.mean(axis=0))


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


def test_two_clusters_for_each_pair_tell_all_rows(tmp_path: Path) -> None:
    parties = made_parties(label=False)
    with hostile_server(tmp_path, parties, FOR_LLOYD) as server:
        found = rows_by_pairs(server)
        assert server.disclosed() == {Reveals.TOTALS, Reveals.PREDICTIONS, Reveals.MODEL}
    np.testing.assert_allclose(found, everything(parties), atol=1e-8)


def test_large_clusters_with_copies_of_rows_tell_rows(tmp_path: Path) -> None:
    parties = made_parties(label=False)
    with hostile_server(tmp_path, parties, FOR_LLOYD) as server:
        found = rows_by_large_clusters(server)
    np.testing.assert_allclose(found, everything(parties)[:25], atol=1e-8)


def test_two_partitions_that_differ_by_a_row_tell_it(tmp_path: Path) -> None:
    parties = made_parties(label=False)
    with hostile_server(tmp_path, parties, FOR_LLOYD) as server:
        found = rows_by_two_runs(server)
    np.testing.assert_allclose(found, everything(parties)[:10], atol=1e-8)


def test_two_solvers_on_the_same_rows_tell_a_row(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"never": ["features", "labels", "scores"]}) as server:
        found = rows_by_two_solvers(server)
    np.testing.assert_allclose(found, everything(parties)[:10], atol=1e-8)


def test_two_honest_clusterings_tell_all_rows(tmp_path: Path) -> None:
    parties = made_parties(label=False)
    with hostile_server(
        tmp_path, parties, FOR_LLOYD | {"never": ["features", "labels", "scores", "moments"]}
    ) as server:
        found = rows_by_honest_runs(server)
    np.testing.assert_allclose(found, np.hstack([columns_of(party) for party in parties]), atol=1e-5)
