"""K-means on summed distances: what comes out, what the server saw, and what meddling and restarts do."""

from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.data.tables import ArrayTable
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import squared_distances
from colonnade.kernels.masks import ring_of_magnitude, to_numbers, to_words, unpack
from colonnade.ledger import SERVER
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.privacy.identities import identities_here
from colonnade.privacy.pair_keys import AskPairKey, relayed_keys
from colonnade.privacy.statements import CircleKeys
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseRows
from colonnade.solvers.gram.shares.messages import AskSealedSeeds, SealedSeeds
from colonnade.solvers.lloyd.messages import (
    MAX_ROUNDS,
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
from colonnade.transports.loopback import Loopback
from harness import play, sessions_of
from secure_trial import Entropy, Recording, Restarting, Wire, flip_message, float_forms, made_parties

LLOYD = cn.SecureLloyd()
TASK = cn.KMeans(n_clusters=3, n_starts=2)
NAMES = ("party1", "party2", "party3")


def federation(transport: Any = Loopback, **options: Any) -> cn.Federation:
    return cn.Federation(made_parties(label=False, **options), transport=transport)


CORESET = federation().coreset(TASK, cn.ImportanceSampling(30), seed=4).coreset


def fit(transport: Any = Loopback, task: Any = TASK, coreset: cn.Coreset = CORESET, **options: Any) -> cn.Run[Any]:
    return federation(transport, **options).fit(task, coreset=coreset, solver=LLOYD, seed=1)


def test_it_ends_where_lloyds_rounds_end() -> None:
    """Each centre is the weighted mean of the rows nearest to it, and the cost is what the rows say."""
    run = fit()
    X = np.hstack([party.table.take(CORESET.rows) for party in made_parties(label=False)])
    distances = squared_distances(X, run.model.cluster_centers_)
    labels = distances.argmin(axis=1)
    for label in range(3):
        own = labels == label
        mean = np.average(X[own], axis=0, weights=CORESET.weights[own])
        np.testing.assert_allclose(run.model.cluster_centers_[label], mean, rtol=1e-9)
    assert run.facts["cost"] == pytest.approx(float(CORESET.weights @ distances.min(axis=1)), rel=1e-9)


def test_rows_are_read_once_however_many_rounds_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, take = list[int](), ArrayTable.take

    def counted(table: ArrayTable, rows: Rows) -> Floats:
        taken.append(len(rows))
        return take(table, rows)

    monkeypatch.setattr(ArrayTable, "take", counted)
    fit()
    assert taken == [len(CORESET)] * 3


def test_costs_are_as_low_as_centrals() -> None:
    """Ten blobs that overlap, ten seeds: the best is that of ten full starts, the mean at most 8 % above it."""
    rng = np.random.default_rng(0)
    X = (2 * rng.normal(size=(10, 12)))[rng.integers(10, size=3_000)] + rng.normal(size=(3_000, 12))
    parties, task = cn.Federation(cn.split_columns(X, None, [4, 4, 4])), cn.KMeans(n_clusters=10)
    coreset = parties.coreset(task, cn.ImportanceSampling(500), seed=1).coreset
    ours, central = (
        [parties.fit(task, coreset=coreset, solver=solver, seed=seed).facts["cost"] for seed in range(10)]
        for solver in (LLOYD, cn.Central())
    )
    assert min(ours) == pytest.approx(min(central), rel=1e-3)
    assert np.mean(ours) <= 1.08 * np.mean(central)


def test_no_partys_own_distances_or_columns_reach_the_server() -> None:
    """Neither as float64 nor as numbers of the ring, whatever round they belong to; centres of several rows do."""
    wire = Recording()
    parties = federation(wire)
    run = parties.fit(TASK, coreset=CORESET, solver=LLOYD, seed=1)
    assert {entry.kind for entry in run.ledger if entry.sender != SERVER} == {
        "JobAccepted", "Ready", "PairKey", "LloydOpened", "MaskedDistances", "LloydCenters", "PairAgreement",
        "ModelKept",
    }  # fmt: skip
    requests = [codec().decode(data) for data in wire.sent]
    magnitude = next(request.magnitude for request in requests if isinstance(request, TryCenters))
    ring = ring_of_magnitude(magnitude, 3, WIDTH)
    centers = run.model.cluster_centers_
    for name, part in parties.roster.parts.items():
        features = wire.sessions[name]._data.table.take(CORESET.rows)
        tried = [features[request.places] for request in requests if isinstance(request, TryCenters)]
        forms = float_forms(features)
        for points in (*tried, centers[:, part]):
            distances = squared_distances(features, points)
            forms |= float_forms(distances)
            words = to_words(distances.reshape(-1), ring)
            forms |= {int(word).to_bytes(8, "little")[:WIDTH] for word in words if word}
        assert not [form for form in forms if any(form in data for data in wire.received)]


def test_distances_differ_from_run_to_run_and_the_centres_do_not() -> None:
    masked, models = [], []
    for seed in (1, 2):
        wire = Recording()
        models.append(fit(wire, identities=identities_here(NAMES, Entropy(seed))).model.cluster_centers_.tobytes())
        masked += [reply.masked for reply in wire.replies() if isinstance(reply, MaskedDistances)]
    assert models[0] == models[1] == fit().model.cluster_centers_.tobytes()
    words = [each[i : i + WIDTH] for each in masked if each for i in range(0, len(each), WIDTH)]
    assert len(set(words)) == len(words), "false alarms: below 5,000^2 / 2 pairs of 48-bit words, 5e-8"


def test_centres_that_are_rows_are_told_as_features() -> None:
    X = np.vstack([np.zeros((20, 3)) + np.arange(20)[:, None] / 100, [[50.0, 60.0, 70.0]]])
    run = cn.Federation(cn.split_columns(X, None, [1, 1, 1])).fit(
        cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=LLOYD
    )
    assert run.disclosure.headline.startswith("Features or labels of single rows were shown: to server features of")
    assert [50.0, 60.0, 70.0] in run.model.cluster_centers_.tolist()
    assert "features" not in {line.what for line in fit().disclosure.lines}
    guarded = cn.split_columns(np.hstack([X, X]), None, [2, 2, 2])
    guarded[1].policy = cn.Policy(level="open", never=["features"])
    with pytest.raises(cn.PolicyRefusedError, match="never reveals features, which a LloydCenters would"):
        cn.Federation(guarded).fit(cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=LLOYD)


def test_weights_that_make_a_mean_a_row_do_not_hide_that_it_is_one() -> None:
    """A server that weighs one row of each cluster and hardly the others would read rows as parts of a model."""
    owners = made_parties(label=False)
    owners[0].policy = cn.Policy(level="open", never=["features"])
    sessions = sessions_of(cn.Federation(owners))
    opened(sessions, weights=sendable_floats(np.where(np.arange(30) % 10 == 0, 1.0, 1e-12)))
    for request in (*TRIES, MoveCenters(LABELS, STARTS)):
        assert isinstance(sessions["party1"].answer(request), MaskedDistances)
    refused = sessions["party1"].answer(AskLloydCenters())
    assert isinstance(refused, Refused)
    assert refused.cause == "policy"
    assert "never reveals features, which a LloydCenters would" in refused.reason


# What a server asks that chooses for itself: three clusters of ten rows each.
STARTS, LABELS = sendable_rows([0, 10, 20]), sendable_rows(np.arange(30) // 10)
TRIES = [TryCenters(STARTS, 30)] * 3


def opened(sessions: Any, weights: Any = None) -> list[Any]:
    """Open a clustering of the first 30 rows at all parties, from the row ids on."""
    for message in (UseRows(sendable_rows(np.arange(30))), AskPairKey()):
        keys = {name: sessions[name].answer(message) for name in NAMES}
    return [sessions[name].answer(OpenLloyd(weights, 3, 3, 6, signed(keys))) for name in NAMES]


def test_a_party_counts_the_rounds_itself() -> None:
    """Whatever the server does: labels of its choice would show it distances to ever new means."""
    sessions = sessions_of(federation())
    opened(sessions)
    session, rng = sessions["party2"], np.random.default_rng(0)
    for request in (*TRIES, MoveCenters(LABELS, STARTS)):
        assert isinstance(session.answer(request), MaskedDistances)
    for _ in range(MAX_ROUNDS - 1):
        assert isinstance(session.answer(MoveCenters(sendable_rows(rng.integers(3, size=30)), None)), MaskedDistances)
    refused = session.answer(MoveCenters(LABELS, None))
    assert isinstance(refused, Refused)
    assert "a move of centres after 200, the most there can be" in refused.reason
    assert isinstance(session.answer(AskLloydCenters()), LloydCenters)


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        ([*TRIES, TRIES[0]], "rows to try for more than 3 centres"),
        ([TRIES[0], TryCenters(STARTS, 31)], "the magnitude 31"),
        ([*TRIES[:2], MoveCenters(LABELS, STARTS)], "a start after rows were tried for 2 centres only"),
        ([*TRIES, MoveCenters(LABELS, sendable_rows([0, 10, 21]))], "places to start from that were not tried"),
        ([*TRIES, MoveCenters(sendable_rows([0] * 30), STARTS)], "do not have their own centre's label"),
    ],
)
def test_a_party_takes_only_what_an_honest_start_is_made_of(requests: list[Any], why: str) -> None:
    sessions = sessions_of(federation())
    opened(sessions)
    *before, last = [sessions["party3"].answer(request) for request in requests]
    assert all(isinstance(reply, MaskedDistances) for reply in before)
    assert isinstance(last, Refused)
    assert why in last.reason


def test_a_run_that_begins_again_asks_the_same_again() -> None:
    """Else rounds would be counted from 0 as often as the server says that a key was lost."""
    sessions = sessions_of(federation())
    session = sessions["party1"]
    asked = [*TRIES, MoveCenters(LABELS, STARTS), AskLloydCenters()]
    for _ in range(2):
        assert all(isinstance(reply, LloydOpened) for reply in opened(sessions))
        assert not any(isinstance(session.answer(request), Refused) for request in asked)
    others = [TryCenters(sendable_rows([1, 10, 20]), 30), MoveCenters(LABELS[::-1].copy(), None)]
    for place, other in ((0, others[0]), (4, others[1])):
        opened(sessions)
        *before, last = [session.answer(request) for request in [*asked[:place], other]]
        assert not any(isinstance(reply, Refused) for reply in before)
        assert isinstance(last, Refused)
        assert "differs from what it asked before in this run" in last.reason
    assert isinstance(opened(sessions, sendable_floats(np.arange(30) + 1.0))[0], Refused)
    another_run = sessions_of(federation())
    assert isinstance(opened(another_run, sendable_floats(np.arange(30) + 1.0))[0], LloydOpened)


def test_as_many_clusters_as_columns_are_refused_before_anything_is_sent() -> None:
    wire = Recording()
    parties = federation(wire)
    n_greetings = len(wire.sent)
    for n_clusters in (6, 9):
        with pytest.raises(cn.InputError, match=rf"{n_clusters} clusters of 6 columns: .*DistDim\(\), or Central\(\)"):
            parties.fit(cn.KMeans(n_clusters=n_clusters), sampler=cn.UniformSampling(30), solver=LLOYD)
        with pytest.raises(cn.InputError, match="of 6 columns: "):
            next(LLOYD.solve(cn.KMeans(n_clusters=n_clusters), parties.roster, CORESET, np.random.default_rng(0)))
    assert len(wire.sent) == n_greetings
    assert parties.fit(cn.KMeans(n_clusters=5), coreset=CORESET, solver=LLOYD).model.cluster_centers_.shape == (5, 6)


def summed(wire: Recording, n_centers: int) -> list[Any]:
    """What the server knows: the sums of the parties' masked distances, round by round."""
    magnitude = next(m.magnitude for m in map(codec().decode, wire.sent) if isinstance(m, TryCenters))
    ring = ring_of_magnitude(magnitude, 3, WIDTH)
    told = [each for each in wire.replies() if isinstance(each, MaskedDistances) and each.n_centers == n_centers]
    rounds = [told[start : start + 3] for start in range(0, len(told), 3)]
    words = [np.sum([unpack(reply.masked, WIDTH) for reply in each if reply.masked], axis=0) for each in rounds]
    return [to_numbers(each, ring).reshape(30, n_centers) for each in words]


def all_columns() -> Any:
    return np.hstack([party.table.take(CORESET.rows) for party in made_parties(label=False)])


def test_a_server_that_breaks_this_rule_can_work_the_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it is one: distances to points that are told determine a row."""
    monkeypatch.setattr(cn.SecureLloyd, "check", lambda *_: None)
    wire = Recording()
    run = fit(wire, cn.KMeans(n_clusters=9, n_starts=2))
    centers, distances = run.model.cluster_centers_, summed(wire, 9)[-1]
    squares = np.square(centers).sum(axis=1)
    known = (squares[1:] - squares[0]) + distances[:, :1] - distances[:, 1:]
    rows = np.linalg.lstsq(2 * (centers[1:] - centers[0]), known.T, rcond=None)[0].T
    np.testing.assert_allclose(rows, all_columns(), atol=1e-6)


def test_with_fewer_clusters_the_server_knows_how_far_apart_all_drawn_rows_are() -> None:
    """What docs/explanation/privacy.md says remains: the rows' geometry, from distances to the rows that were tried."""
    wire = Recording()
    fit(wire, cn.KMeans(n_clusters=3, n_starts=7))
    tried = np.hstack([m.places for m in map(codec().decode, wire.sent[::3]) if isinstance(m, TryCenters)])
    distances = np.hstack(summed(wire, 7))
    # Of points around their mean, inner products follow from squared distances (classical scaling).
    centring = np.eye(len(tried)) - 1 / len(tried)
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances[tried] @ centring)
    found = vectors[:, -6:] * np.sqrt(values[-6:])
    rows = -0.5 * (distances - distances[tried].mean(axis=0)) @ centring @ np.linalg.pinv(found).T
    X = all_columns()
    np.testing.assert_allclose(squared_distances(rows, rows), squared_distances(X, X), atol=1e-6)


def test_what_an_earlier_clustering_left_behind_is_not_used() -> None:
    """Rows, weights and centres of another phase; a server that opened Gram mode in between could use them."""
    sessions = sessions_of(federation())
    for message in (UseRows(sendable_rows(np.arange(30))), AskPairKey()):
        keys = {name: sessions[name].answer(message) for name in NAMES}
    opened = OpenLloyd(None, 1, 2, 6, signed(keys))
    assert all(isinstance(sessions[name].answer(opened), LloydOpened) for name in NAMES)
    keys = {name: sessions[name].answer(AskPairKey()) for name in NAMES}
    assert isinstance(sessions["party1"].answer(AskSealedSeeds(signed(keys))), SealedSeeds)
    refused = sessions["party1"].answer(TryCenters(sendable_rows([20]), 10))
    assert isinstance(refused, Refused)
    assert "No clustering was opened" in refused.reason


def signed(keys: Any) -> CircleKeys:
    return CircleKeys(*relayed_keys((reply.key, reply.rows, reply.signature) for _, reply in sorted(keys.items())))


def test_sizes_that_multiply_are_refused_before_anything_is_made() -> None:
    many = meddled(OpenLloyd, lambda request: msgspec.structs.replace(request, n_clusters=2**26))
    parties = cn.Federation(made_parties(label=False), transport=many)
    of_one_row = cn.Coreset(np.array([3]), np.array([300.0]), 300, 300.0)
    with pytest.raises(cn.LocalProtocolError, match="the job sheet says 3 where"):
        parties.fit(TASK, coreset=of_one_row, solver=LLOYD)
    with pytest.raises(cn.InputError, match="do not fit one message"):
        play(parties, learn(TASK, of_one_row, LLOYD, None, parties.roster, 0))


def test_too_few_distinct_rows_are_the_callers_error() -> None:
    X = np.repeat([[1.0, 2.0, 3.0, 0.0], [4.0, 5.0, 6.0, 0.0]], 5, axis=0)
    parties = cn.Federation(cn.split_columns(X, None, [1, 1, 2]))
    with pytest.raises(cn.InputError, match="3 clusters need as many distinct rows, but only 2 distinct rows"):
        parties.fit(TASK, sampler=cn.AllRows(), solver=LLOYD)


@pytest.mark.parametrize("number", range(6, 60))
def test_a_flipped_bit_is_an_error_and_never_other_centres(number: int) -> None:
    """One bit of each of the first messages after the hello, drawn from a fixed seed; there are 60 or more."""
    bit = int(np.random.default_rng(number).integers(2**20))
    with pytest.raises(cn.ColonnadeError):
        fit(Wire(flip_message(number, bit)))


@pytest.mark.parametrize("kind", ["OpenLloyd", "TryCenters", "MoveCenters", "AskLloydCenters", "AskPairAgreement"])
def test_a_party_that_restarts_inside_the_phase_changes_nothing(kind: str) -> None:
    restarting = Restarting(kind)
    assert fit(restarting).model.cluster_centers_.tobytes() == fit().model.cluster_centers_.tobytes()
    assert restarting.restarts == 1


def meddled(kind: type[Any], change: Any) -> Any:
    def meddle(sender: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if "party2" in (sender, receiver) and isinstance(message, kind):
            return codec().encode(change(message))
        return data

    return Wire(meddle)


@pytest.mark.parametrize(
    ("kind", "changes", "what"),
    [
        (TryCenters, {"places": sendable_rows([0, 30])}, "places outside 0..29"),
        (TryCenters, {"places": sendable_rows([0])}, r"an array of shape \(1,\)"),
        (TryCenters, {"magnitude": -3}, "the magnitude -3"),
        (MoveCenters, {"labels": sendable_rows([3] * 30)}, "labels outside 0..2"),
        (MoveCenters, {"starts": None}, "no places to start from"),
        (MoveCenters, {"starts": sendable_rows([1, 2, 99])}, "places to start from that were not tried"),
    ],
)
def test_a_party_checks_what_it_is_asked(kind: Any, changes: Any, what: str) -> None:
    with pytest.raises(cn.LocalProtocolError, match=what):
        fit(meddled(kind, lambda request: msgspec.structs.replace(request, **changes)))


def test_the_server_checks_what_it_is_told() -> None:
    short = meddled(MaskedDistances, lambda reply: MaskedDistances(reply.masked[:-1], reply.n_centers))
    with pytest.raises(cn.RemoteProtocolError, match="359 bytes where 30 x 2 x 6 are due"):
        fit(short)
    fewer = meddled(LloydCenters, lambda reply: msgspec.structs.replace(reply, centers=reply.centers[:1]))
    with pytest.raises(cn.RemoteProtocolError, match="'party2' sent a LloydCenters with an array of shape"):
        fit(fewer)


def test_two_parties_are_refused_and_regressions_are_not_for_it() -> None:
    parties = cn.Federation(made_parties(widths=(3, 3)))
    with pytest.raises(cn.InputError, match=r"which SecureLloyd tells both.*allow_two_parties=True"):
        parties.fit(TASK, sampler=cn.ImportanceSampling(40), solver=LLOYD)
    allowed = cn.SecureLloyd(allow_two_parties=True)
    assert parties.fit(TASK, coreset=CORESET, solver=allowed).model.cluster_centers_.shape == (3, 6)
    with pytest.raises(cn.UnsupportedError, match=r"SecureLloyd clusters; it cannot do Regression\. Use SecureGram"):
        parties.fit(cn.Regression(), sampler=cn.AllRows(), solver=allowed)
