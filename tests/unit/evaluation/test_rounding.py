"""Predictions and evaluations whose parts travel rounded: within the stated bound, right on average, fewer bytes."""

from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.contracts import PartyCard, Roster, Rounding
from colonnade.data.tables import read_table
from colonnade.evaluation.clustering import AskRoundedDistances, nearest_center_distances
from colonnade.evaluation.linear import AskRoundedPredictions, linear_residuals
from colonnade.evaluation.rounding import RoundedParts, SummedParts
from colonnade.kernels.fixed_codes import encode_fixed
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Message, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseAllRows
from colonnade.transports.loopback import Loopback
from random_parties import make_parties

FEDERATION = cn.Federation(make_parties(n_rows=2000))
REGRESSION = FEDERATION.fit(cn.Regression(), sampler=cn.AllRows()).model
KMEANS = FEDERATION.fit(cn.KMeans(n_clusters=4), sampler=cn.AllRows()).model


# The features of `make_parties`, of widths 2, 3 and 1.
X = np.random.default_rng(0).standard_t(3, size=(2000, 6))


def ranges(model: Any) -> float:
    """Add up the ranges of the parties' parts of predictions."""
    parts = zip(np.split(X, [2, 5], axis=1), np.split(model.coef_, [2, 5]), strict=True)
    return float(sum(np.ptp(x @ c) for x, c in parts))


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
def test_predictions_are_within_the_bound(bits: int) -> None:
    exact = FEDERATION.predict(REGRESSION)
    rounded = FEDERATION.predict(REGRESSION, bits=bits)
    assert 0 < np.abs(rounded - exact).max() <= ranges(REGRESSION) / (2**bits - 4) * (1 + 1e-6)


@pytest.mark.parametrize("bits", [8, 16])
def test_bytes_are_as_many_bits_and_units_the_same(bits: int) -> None:
    position = len(FEDERATION.ledger)
    FEDERATION.predict(REGRESSION)
    plain = FEDERATION.ledger.since(position)
    position = len(FEDERATION.ledger)
    FEDERATION.predict(REGRESSION, bits=bits)
    rounded = FEDERATION.ledger.since(position)
    assert rounded.units == plain.units
    sheet = rounded.by_phase()["opening"].bytes
    assert rounded.bytes - sheet < (plain.bytes - sheet) * bits / 64 + 400
    assert [entry.reveals for entry in rounded if entry.kind == "RoundedParts"] == [("features",)] * 3


def test_nothing_is_rounded_unasked() -> None:
    position = len(FEDERATION.ledger)
    FEDERATION.predict(REGRESSION)
    assert FEDERATION.evaluate(REGRESSION).rounded_by is None
    assert not {entry.kind for entry in FEDERATION.ledger.since(position)} & {"RoundedParts", "AskRoundedPredictions"}


def test_costs_of_rounded_residuals_are_right_on_average() -> None:
    """200 dithers of 6 bits. A z-test at 4.5 sigma; without its correction the cost would be 10 sigma too high."""
    exact = FEDERATION.evaluate(REGRESSION)
    found = [FEDERATION.evaluate(REGRESSION, bits=6, seed=seed) for seed in range(200)]
    costs = np.array([report.cost for report in found]) - exact.cost
    assert abs(costs.mean()) < 4.5 * costs.std() / np.sqrt(len(costs))
    steps = found[0].rounded_by
    assert steps is not None
    assert 2000 * steps**2 / 9 > 10 * costs.std() / np.sqrt(len(costs))
    assert isinstance(exact, cn.RegressionReport)
    assert isinstance(found[0], cn.RegressionReport)
    assert found[0].r2 == pytest.approx(exact.r2, abs=0.02)


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_costs_a_row_of_clusters_are_within_the_bound(bits: int) -> None:
    exact, rounded = FEDERATION.evaluate(KMEANS), FEDERATION.evaluate(KMEANS, bits=bits)
    assert isinstance(rounded, cn.ClusteringReport)
    assert rounded.rounded_by is not None
    assert abs(rounded.cost_per_row - exact.cost_per_row) <= rounded.rounded_by
    distances = np.square(X[:, np.newaxis] - KMEANS.cluster_centers_).sum(axis=2)
    chosen = distances[np.arange(len(X)), FEDERATION.predict(KMEANS, bits=bits)]
    # Both distances may be off.
    assert (chosen - distances.min(axis=1)).max() <= 2 * rounded.rounded_by


def test_a_perfect_fit_costs_nothing_and_no_less() -> None:
    columns = np.arange(12.0).reshape(6, 2) ** 2
    federation = cn.Federation(cn.split_columns(columns, columns @ [1.0, 2.0] + 3.0, [1, 1]))
    model = federation.fit(cn.Regression(), sampler=cn.AllRows()).model
    assert 0 <= federation.evaluate(model, bits=8).cost < 12


def test_samples_splits_and_deliveries_too() -> None:
    report = FEDERATION.evaluate(REGRESSION, rows=500, split=cn.HoldOut(0.3), bits=16, seed=2)
    exact = FEDERATION.evaluate(REGRESSION, rows=500, split=cn.HoldOut(0.3), seed=2)
    assert report.cost_interval == pytest.approx(exact.cost_interval, rel=1e-3)
    values = FEDERATION.predict(REGRESSION, rows=[7, 2, 7], to="party2", bits=16)
    delivered = FEDERATION.received("party2")
    assert delivered is not None
    np.testing.assert_array_equal(delivered.predictions, values[[1, 0, 2]])


def test_transports_agree_bit_for_bit() -> None:
    far = cn.Federation(make_parties(n_rows=2000), transport=Loopback)
    np.testing.assert_array_equal(far.predict(REGRESSION, bits=9), FEDERATION.predict(REGRESSION, bits=9))
    assert far.evaluate(KMEANS, bits=9, seed=3) == FEDERATION.evaluate(KMEANS, bits=9, seed=3)


def test_one_row_and_parties_without_columns() -> None:
    columns = np.arange(12.0).reshape(6, 2)
    parties = [cn.Party("a", np.empty((6, 0)), label=columns.sum(axis=1)), cn.Party("b", columns)]
    federation = cn.Federation(parties)
    model = federation.fit(cn.Regression(l2=0.1), sampler=cn.AllRows()).model
    np.testing.assert_allclose(federation.predict(model, rows=[3], bits=4), federation.predict(model, rows=[3]))


@pytest.mark.parametrize("bits", [0, 3, 33, True, "8", 8.5])
def test_bits_out_of_range(bits: Any) -> None:
    for ask in (FEDERATION.predict, FEDERATION.evaluate):
        position = len(FEDERATION.ledger)
        with pytest.raises(cn.InputError, match="bits must be a whole number from 4 to 32"):
            ask(REGRESSION, bits=bits)
        assert len(FEDERATION.ledger) == position, "nothing was sent"


# Hostile replies

ROSTER = Roster((PartyCard("airline", 9, ("x",), "y"), PartyCard("weather", 9, ("t",), None)))
ROUNDING = Rounding(8, {"airline": 1, "weather": 1})
CODES = encode_fixed(np.array([1.0, -2.0, 0.5]), 8, np.random.default_rng(1))
SIX = encode_fixed(np.arange(6.0), 8, np.random.default_rng(1))


def parts(size: int = 3, middles: Any = (0.0,), codes: bytes = CODES, spread: float | None = None) -> RoundedParts:
    return RoundedParts(size, sendable_floats(list(middles)), codes, spread)


KEPT: list[SummedParts] = []


def keep(*found: Any) -> None:
    KEPT.append(found[-1])


def test_honest_parts() -> None:
    script = linear_residuals(ROSTER, CountedRows(3), np.ones(2), keep, by_weight=True, rounding=ROUNDING)
    next(script)
    with pytest.raises(StopIteration) as end:
        script.send({"airline": parts(spread=1.0), "weather": parts(middles=[5.0])})
    np.testing.assert_allclose(KEPT.pop().values, [7.0, 1.0, 6.0], atol=end.value.value.bound)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (parts(size=4, spread=1.0), "parts of 4 rows where 3 were asked for"),
        (parts(size=2, spread=1.0), "parts of 2 rows where 3 were asked for"),
        (parts(middles=[], spread=1.0), "shape"),
        (parts(middles=[np.nan], spread=1.0), "NaN, infinity"),
        (parts(middles=[np.inf], spread=1.0), "NaN, infinity"),
        (parts(codes=CODES[:-1], spread=1.0), "bytes do not hold"),
        (parts(codes=CODES + b"\x01", spread=1.0), "bytes do not hold"),
        (parts(codes=b"", spread=1.0), "a number that does not end"),
        (parts(codes=b"\x00\x00", spread=1.0), "bytes for numbers that are all zero"),
        (parts(codes=b"\xff\x7f" + CODES[2:], spread=1.0), "a step of two to the"),
        (parts(), "a label's spread where none was due, or none"),
        (parts(spread=-1.0), "negative"),
        (parts(spread=np.nan), "NaN, infinity"),
    ],
)
def test_hostile_parts_of_predictions(reply: RoundedParts, message: str) -> None:
    script = linear_residuals(ROSTER, CountedRows(3), np.ones(2), keep, by_weight=True, rounding=ROUNDING)
    next(script)
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a RoundedParts with .*{message}"):
        script.send({"airline": reply, "weather": parts()})


@pytest.mark.parametrize(
    "reply", [parts(), parts(middles=[0.0, 0.0]), parts(middles=[0.0, 0.0, 0.0], codes=SIX), parts(2, [0.0, 0.0], SIX)]
)
def test_hostile_parts_of_distances(reply: RoundedParts) -> None:
    script = nearest_center_distances(ROSTER, CountedRows(3), np.ones((2, 2)), None, keep, ROUNDING)
    next(script)
    with pytest.raises(cn.RemoteProtocolError, match="'weather' sent a RoundedParts with"):
        script.send({"airline": parts(middles=[0.0, 0.0], codes=SIX), "weather": reply})


# A hostile server


@pytest.mark.parametrize("bits", [-1, 0, 3, 33, 2**40])
@pytest.mark.parametrize("seed", [5, -5])
def test_hostile_requests(bits: int, seed: int) -> None:
    table = read_table("a", np.arange(8.0).reshape(4, 2), label=np.ones(4))
    session = party_session(table, Policy(level="open"))
    for greeting in (Hello(WIRE_VERSION), UseAllRows()):
        assert not isinstance(session.answer(greeting), Refused)
    bad: list[Message] = [
        AskRoundedPredictions(sendable_floats([1.0, 1.0]), True, False, bits, seed, 0, 4),
        AskRoundedPredictions(sendable_floats([1.0]), True, False, 8, 5, 0, 4),
        AskRoundedDistances(sendable_floats([[1.0, 1.0]]), None, bits, seed, 0, 4),
        AskRoundedDistances(sendable_floats([[1.0, np.nan]]), None, 8, 5, 0, 4),
    ]
    for request in bad:
        reply = session.answer(codec().decode(codec().encode(request)))
        assert isinstance(reply, Refused), request
