"""DistDim: both sides by hand, the laws of a solver, and what it costs on real data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.kernels.arrays import Floats
from colonnade.kernels.kmeans import nearest_centers
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import UseAllRows, UseRows
from colonnade.solvers.distdim import AskLocalClusters, DistDim, LocalClusters

DISTDIM = DistDim()


def blobs(n_rows: int, n_features: int, n_blobs: int, spread: float, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    middles = 20.0 * rng.normal(size=(n_blobs, n_features))
    return middles[rng.integers(n_blobs, size=n_rows)] + spread * rng.normal(size=(n_rows, n_features))


def cost(X: Floats, model: Any) -> float:
    return float(nearest_centers(X, model.cluster_centers_)[1].sum())


def fit(X: Floats, widths: list[int], k: int, *, solver: Any = DISTDIM, seed: int = 0, **source: Any) -> Any:
    source = source or {"sampler": cn.AllRows()}
    return cn.Federation(cn.split_columns(X, None, widths)).fit(cn.KMeans(k), solver=solver, seed=seed, **source)


def weighted(X: Floats, weights: Floats) -> cn.Coreset:
    return cn.Coreset(np.arange(len(X)), weights, len(X), float(weights.sum()))


# What it finds


@pytest.mark.parametrize("sampler", [cn.AllRows(), cn.ImportanceSampling(size=300), cn.UniformSampling(size=300)])
def test_equals_central_on_separated_clusters(sampler: Any) -> None:
    """Every party sees all five clusters apart, so the cells are the clusters and Lloyd's means their means."""
    X = blobs(1_000, 9, 5, spread=0.5)
    source = {"sampler": sampler}
    by_cells, by_rows = (fit(X, [3, 4, 2], 5, solver=solver, **source) for solver in (DistDim(), cn.Central()))
    assert np.array_equal(by_cells.coreset.rows, by_rows.coreset.rows)
    assert cost(X, by_cells.model) == pytest.approx(cost(X, by_rows.model), rel=1e-9)
    assert by_cells.model.feature_names_in_ == by_rows.model.feature_names_in_


@pytest.mark.parametrize("n_parties", [5, 8])
def test_many_parties_and_clusters(n_parties: int) -> None:
    """10^5 and 10^8 cells, 3,000 rows; no party's columns are separated, so that very many cells occur."""
    X = np.random.default_rng(0).normal(size=(3_000, 2 * n_parties))
    by_cells, by_rows = (fit(X, [2] * n_parties, 10, solver=solver) for solver in (DistDim(), cn.Central()))
    assert by_cells.model.cluster_centers_.shape == (10, 2 * n_parties)
    assert cost(X, by_cells.model) < 1.05 * cost(X, by_rows.model)


def test_a_party_with_only_the_label_is_not_asked() -> None:
    X = blobs(300, 4, 3, spread=0.5)
    owner = cn.Party("owner", np.empty((300, 0)), label=np.arange(300.0))
    federation = cn.Federation([cn.Party("a", X[:, :2]), owner, cn.Party("b", X[:, 2:])])
    run = federation.fit(cn.KMeans(3), sampler=cn.AllRows(), solver=DistDim())
    assert cost(X, run.model) == pytest.approx(cost(X, fit(X, [2, 2], 3).model), rel=1e-9)
    assert "owner" not in {entry.party for entry in run.ledger if entry.phase == "solving"}


def test_another_task_is_refused_before_anything_is_sent() -> None:
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    before = len(federation.ledger)
    with pytest.raises(cn.UnsupportedError, match=r"DistDim clusters; it cannot do Regression\. Use Central\(\)\."):
        federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=DistDim())
    assert len(federation.ledger) == before


# Laws


def test_weight_k_equals_k_copies_and_weight_zero_drops_rows() -> None:
    """Overlapping clusters: mean cost over 20 seeds within 1 %. The seeds are fixed, so it cannot alarm by chance."""
    X, copies = blobs(400, 4, 6, spread=8.0), np.random.default_rng(1).integers(0, 4, size=400)
    repeated = cn.Coreset(np.repeat(np.arange(400), copies), np.ones(copies.sum()), 400, float(copies.sum()))
    sources = (weighted(X, copies.astype(np.float64)), repeated)
    means = [
        np.mean([cost(np.repeat(X, copies, axis=0), fit(X, [2, 2], 6, seed=s, coreset=c).model) for s in range(20)])
        for c in sources
    ]
    assert means[0] == pytest.approx(means[1], rel=0.01)


def test_rows_of_weight_zero_change_no_bit() -> None:
    X = blobs(200, 4, 6, spread=8.0)
    kept = np.arange(200) % 4 > 0
    dropped = cn.Coreset(np.flatnonzero(kept), np.ones(kept.sum()), 200, float(kept.sum()))
    models = [fit(X, [2, 2], 4, coreset=c).model for c in (weighted(X, kept.astype(np.float64)), dropped)]
    assert np.array_equal(models[0].cluster_centers_, models[1].cluster_centers_)


@pytest.mark.parametrize("scale", [2.0**-400, 3.0, 2.0**400])
def test_scale_of_the_weights_and_order_of_rows_and_parties(scale: float) -> None:
    X, weights = blobs(300, 6, 4, spread=0.5), np.random.default_rng(2).uniform(0.5, 2.0, size=300)
    order = np.random.default_rng(3).permutation(300)
    models = [
        fit(X, [4, 2], 4, coreset=weighted(X, weights)).model,
        fit(X, [4, 2], 4, coreset=weighted(X, scale * weights)).model,
        fit(X[order], [4, 2], 4, coreset=weighted(X, weights[order])).model,
    ]
    turned = fit(X[:, [4, 5, 0, 1, 2, 3]], [2, 4], 4, coreset=weighted(X, weights)).model.cluster_centers_
    found = [np.sort(each.cluster_centers_, axis=0) for each in models]
    for other in (*found[1:], np.sort(turned[:, [2, 3, 4, 5, 0, 1]], axis=0)):
        np.testing.assert_allclose(other, found[0], rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 14))
def test_as_few_distinct_rows_as_central_takes(seed: int, k: int, n_rows: int) -> None:
    """There are always as many cells as distinct rows, or k: what Central can do, DistDim can, and no more."""
    X = np.random.default_rng(seed).integers(0, 2, size=(max(n_rows, k), 4)).astype(np.float64)
    if len(np.unique(X, axis=0)) >= k:
        assert fit(X, [3, 1], k).model.cluster_centers_.shape == (k, 4)
        return
    for solver in (DistDim(), cn.Central()):
        with pytest.raises(cn.InputError, match=r"only \d+ distinct rows have a positive weight"):
            fit(X, [3, 1], k, solver=solver)


# What it sends


def test_units_are_those_of_the_paper_and_the_weights() -> None:
    X = np.random.default_rng(0).normal(size=(400, 9))
    for source, expected in (
        ({"sampler": cn.AllRows()}, 400 * 3 + 7 * 9),
        ({"sampler": cn.UniformSampling(size=90)}, 90 * 3 + 7 * 9),
        ({"sampler": cn.ImportanceSampling(size=90)}, 90 * 3 + 7 * 9 + 90 * 3),
    ):
        assert fit(X, [2, 3, 4], 7, **source).ledger.by_phase()["solving"].units == expected


def test_what_is_shown() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    run = fit(X, [2, 2], 3, sampler=cn.ImportanceSampling(size=30))
    solving = [entry for entry in run.ledger if entry.phase == "solving"]
    assert [entry.reveals for entry in solving] == [("scores",)] * 2 + [("features", "predictions")] * 2


@pytest.mark.parametrize("never", ["features", "predictions"])
def test_an_owner_can_refuse(never: str) -> None:
    parties = cn.split_columns(np.eye(6), None, [3, 3])
    parties[1].policy = cn.Policy(level="open", never=[never])
    refused = f"'party2' did not answer OpenJob: .* reveals {never}, which a LocalClusters"
    with pytest.raises(cn.PolicyRefusedError, match=refused):
        cn.Federation(parties).fit(cn.KMeans(2), sampler=cn.AllRows(), solver=DistDim())


# Hostile replies

ROSTER = Roster((PartyCard("airline", 9, ("x", "z"), "y"), PartyCard("weather", 9, ("t",), None)))
CORESET = cn.Coreset(np.arange(4), np.arange(1.0, 5.0), n_rows=9, total_weight=9.0)
CENTERS = np.array([[0.0, 1.0], [5.0, 5.0]])
WEATHER = LocalClusters(sendable_floats([[2.0]]), sendable_rows([0, 0, 0, 0]))


def solve(airline: Message) -> Any:
    script = DistDim().solve(cn.KMeans(2), ROSTER, CORESET, np.random.default_rng(0))
    outbox = next(script)
    assert [request.weights.tolist() for request in outbox.values()] == [[0.25, 0.5, 0.75, 1.0]] * 2  # type: ignore[attr-defined]
    with pytest.raises(StopIteration) as end:
        script.send({"airline": airline, "weather": WEATHER})
    return end.value.value.model


def clusters(centers: Any, nearest: Any) -> LocalClusters:
    return LocalClusters(sendable_floats(centers), sendable_rows(nearest))


def test_columns_are_put_in_the_rosters_order() -> None:
    model = solve(clusters(CENTERS, [0, 1, 1, 0]))
    assert model.feature_names_in_ == ("x", "z", "t")
    assert sorted(model.cluster_centers_.tolist()) == [[0.0, 1.0, 2.0], [5.0, 5.0, 2.0]]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (clusters(CENTERS[:, :1], [0, 1, 1, 0]), "shape"),
        (clusters(CENTERS[0], [0, 1, 1, 0]), "shape"),
        (clusters(CENTERS, [0, 1, 1]), "shape"),
        (clusters(CENTERS, [[0, 1], [1, 0]]), "shape"),
        (clusters(CENTERS * np.nan, [0, 1, 1, 0]), "NaN, infinity"),
        (clusters(CENTERS * 1e200, [0, 1, 1, 0]), "magnitude above"),
        (clusters(CENTERS, [0, 1, 2, 0]), "not among its 2"),
        (clusters(CENTERS, [0, 1, -1, 0]), "not among its 2"),
        (clusters(np.vstack([CENTERS, CENTERS]), [0, 1, 1, 0]), "4 centres where 1 to 2 were asked for"),
        (clusters(np.empty((0, 2)), [0, 0, 0, 0]), "0 centres where 1 to 2"),
    ],
)
def test_hostile_clusters(reply: LocalClusters, message: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a LocalClusters with .*{message}") as caught:
        solve(reply)
    assert (caught.value.party, caught.value.kind) == ("airline", "LocalClusters")


# Hostile requests


def open_session(rows: Message) -> PartySession:
    session = party_session(read_table("airline", np.arange(12.0).reshape(6, 2)), Policy(level="open"))
    for request in (Hello(WIRE_VERSION), rows):
        session.answer(request)
    return session


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (AskLocalClusters(0, 0, None), "0 clusters of 6 rows"),
        (AskLocalClusters(-5, 0, None), "-5 clusters of 6 rows"),
        (AskLocalClusters(2, -1, None), "negative seed"),
        (AskLocalClusters(2, 0, sendable_floats(np.ones(5))), "shape"),
        (AskLocalClusters(2, 0, sendable_floats(np.ones((6, 1)))), "shape"),
        (AskLocalClusters(2, 0, sendable_floats(-np.ones(6))), "negative value"),
        (AskLocalClusters(2, 0, sendable_floats(np.full(6, np.nan))), "NaN"),
        (AskLocalClusters(2, 0, sendable_floats(np.zeros(6))), "all zero"),
    ],
)
def test_hostile_requests(request_: AskLocalClusters, reason: str) -> None:
    reply = open_session(UseAllRows()).answer(request_)
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    assert reason in reply.reason


def test_no_rows_and_wrong_order() -> None:
    reply = open_session(UseRows(sendable_rows([]))).answer(AskLocalClusters(2, 0, None))
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    reply = open_session(Hello(WIRE_VERSION)).answer(AskLocalClusters(2, 0, None))
    assert isinstance(reply, Refused)
    assert reply.cause == "order"


@pytest.mark.parametrize("k", [6, 2**60])
def test_as_many_clusters_as_rows_are_the_rows(k: int) -> None:
    """Why centres count as features."""
    reply = open_session(UseAllRows()).answer(AskLocalClusters(k, 0, None))
    assert isinstance(reply, LocalClusters)
    assert np.array_equal(reply.centers[reply.nearest], np.arange(12.0).reshape(6, 2))


# Quality on real data. All seeds are fixed, so nothing can alarm by chance.


def standardised(X: Floats) -> Floats:
    scaled: Floats = (X - X.mean(axis=0)) / X.std(axis=0)
    return scaled


def costs_a_row(parts: list[Floats], k: int, samplers: dict[int, Any]) -> list[float]:
    federation = cn.Federation([cn.Party(f"party{i}", part) for i, part in enumerate(parts)])
    X = np.asfortranarray(np.hstack(parts))
    runs = (federation.fit(cn.KMeans(k), sampler=s, solver=DistDim(), seed=seed) for seed, s in samplers.items())
    return [cost(X, run.model) / len(X) for run in runs]


def test_kc_house(kc_house: tuple[Floats, Floats]) -> None:
    """Within 10 % of 11.44 a row, the best of five all-rows fits; seeds 0 to 9 are 1 to 8 % above."""
    X = standardised(kc_house[0])
    samplers = {0: cn.AllRows(), 1: cn.AllRows(), 2: cn.ImportanceSampling(size=6_000)}
    assert max(costs_a_row([X[:, :9], X[:, 9:]], 5, samplers)) < 1.1 * 11.44


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize(("sampler", "seeds"), [(cn.ImportanceSampling(size=6_000), (2, 3, 4)), (cn.AllRows(), (0, 1))])
def test_covertype(data_folder: Path, sampler: Any, seeds: tuple[int, ...]) -> None:
    """Within 10 % of 5.132 a row, the best of five all-rows fits, which take 37 s; seeds 0 to 9 are 5 to 8 % above."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "covtype.parquet")
    X = np.column_stack([table.column(i).to_numpy().astype(np.float64) for i in range(54)])
    X[:, :10] = standardised(X[:, :10])
    samplers = dict.fromkeys(seeds, sampler)
    assert max(costs_a_row([X[:, party::3] for party in range(3)], 15, samplers)) < 1.1 * 5.132
