"""Scripts and handlers of an audit, fed by hand with what no honest side sends."""

from typing import Any

import numpy as np
import pytest

from colonnade.contracts import JobView, PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.diagnostics import HANDLERS
from colonnade.diagnostics.audited_distances import AskAuditedDistances, AuditedDistances, audited_distances
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, AuditedPredictions, audited_predictions
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.sixteen_bits import round_logarithms
from colonnade.messages import Reveals, sendable_floats, sendable_rows
from colonnade.protocol.hello import HANDLERS as HELLO
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import HANDLERS as SHARED
from colonnade.sampling.selecting import UseRows

ROSTER = Roster((PartyCard("a", 9, ("x", "z"), None), PartyCard("b", 9, ("v",), "y")))
ONE, NONE_HIDDEN = sendable_floats([1.0]), sendable_floats(np.empty((0, 2)))
MOMENTS: dict[str, Any] = {"size": 4, "low": ONE, "step": ONE, "mean": 0.5, "variance": 2.0}
GOOD: dict[str, Any] = MOMENTS | {"codes": None, "less_label": bytes(8)}
FAR: dict[str, Any] = {"size": 4, "n_centers": 2, "largest": 3.0, "codes": bytes(16)}
# The same in the columns of "a", and 2 apart in that of "b", half-way between which are the rows of `HALF_WAY`.
CENTERS = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 2.0]])
HALF_WAY = FAR | {"largest": 1.0}


def predictions(**change: Any) -> Any:
    script = audited_predictions(ROSTER, np.arange(4), np.full(4, 1 / 9), np.ones(3), np.empty((0, 3)), 0)
    next(script)
    try:
        script.send(
            {
                "a": AuditedPredictions(**MOMENTS, codes=bytes(8), less_label=None),
                "b": AuditedPredictions(**(GOOD | change)),
            }
        )
    except StopIteration as end:
        return end.value
    raise AssertionError("one round only")


def distances(**change: Any) -> Any:
    script = audited_distances(ROSTER, 4, CENTERS, None, JobView())
    next(script)
    try:
        script.send({"a": AuditedDistances(**FAR), "b": AuditedDistances(**(HALF_WAY | change))})
    except StopIteration as end:
        return end.value
    raise AssertionError("one round only")


def test_parts_come_with_their_moments_and_their_noise() -> None:
    parts, along = predictions()
    assert list(parts) == ["a", "b"]
    assert parts["a"].noise == 1 / 12
    assert (parts["b"].mean, parts["b"].variance) == (0.5, 2.0)
    assert (np.abs(parts["a"].values - 1.0) <= 0.5).all()
    assert along.shape == (0, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 5}, "5 rows"),
        ({"low": sendable_floats([1.0, 2.0])}, "shape"),
        ({"low": sendable_floats([np.nan])}, "NaN"),
        ({"step": sendable_floats([])}, "shape"),
        ({"step": sendable_floats([0.0])}, "not positive"),
        ({"step": sendable_floats([-1.0])}, "not positive"),
        ({"step": sendable_floats([np.inf])}, "infinity"),
        ({"less_label": bytes(7)}, "7 bytes"),
        ({"less_label": bytes(10)}, "10 bytes"),
        ({"less_label": b"\xff" * 8, "step": sendable_floats([1e99])}, "magnitude"),
        ({"less_label": None, "codes": bytes(8)}, "0 bytes"),
        ({"mean": np.inf}, "infinity"),
        ({"variance": -1.0}, "negative"),
        ({"variance": np.nan}, "NaN"),
        ({"mean": 3.0, "variance": 0.0}, "a variance of 0, belied by its own values"),
        ({"mean": 9.0}, "a mean of 9 and a variance of 2, belied by its own values"),
    ],
)
def test_predictions_that_no_honest_party_sends(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'b' sent a AuditedPredictions with .*{message}"):
        predictions(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 3}, "3 rows to 2"),
        ({"n_centers": 3}, "4 rows to 3"),
        ({"largest": 0.0}, "not positive"),
        ({"largest": np.nan}, "not positive"),
        ({"codes": bytes(15)}, "15 bytes"),
        ({"codes": bytes(8) + b"\xff" * 8}, "distances of its row 2 to 2 centres that no point has"),
    ],
)
def test_distances_that_no_honest_party_sends(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'b' sent a AuditedDistances with .*{message}"):
        distances(**change)


def test_distances_add_up_and_the_least_counts() -> None:
    far, codes = round_logarithms(np.array([[1.0, 1.0], [4.0, 0.0], [0.0, 4.0], [9.0, 1.0]]))
    np.testing.assert_allclose(distances(largest=far, codes=codes), [4.0, 3.0, 3.0, 4.0], rtol=4e-4)


def test_distances_of_a_party_whose_rows_are_far_away_are_used() -> None:
    """Beside 1e99, rounding to 16 bits hides how far apart the centres are: rows can be there."""
    assert (distances(largest=1e99) == 1e99).all()


def session() -> PartySession:
    values = np.arange(27.0).reshape(9, 3)
    table = read_table("b", values[:, :2], label=values[:, 2])
    opened = PartySession(table, (*HELLO, *SHARED, *HANDLERS), Policy(level="open"))
    opened.answer(Hello(WIRE_VERSION))
    opened.answer(UseRows(sendable_rows([0, 4, 4])))
    return opened


def test_a_party_tells_its_part_less_the_label_and_its_moments_of_all_rows() -> None:
    reply = session().answer(AskAuditedPredictions(sendable_floats([1.0, 2.0]), sendable_floats([[0.0, 1.0]]), seed=3))
    assert isinstance(reply, AuditedPredictions)
    exact = np.arange(27.0).reshape(9, 3) @ [1.0, 2.0, -1.0]
    assert (reply.mean, reply.variance) == pytest.approx((exact.mean(), exact.var()))
    np.testing.assert_allclose(reply.low, [exact[0], 1.0])
    assert reply.codes is None
    assert len(reply.less_label or b"") == 2 * 2 * 3
    assert Reveals.LABELS in reply.reveals(), "of a party that holds little else they are its labels"
    assert reply.units() == 2 * 3 + 2


@pytest.mark.parametrize(
    "request_",
    [
        AskAuditedPredictions(sendable_floats([1.0]), NONE_HIDDEN, seed=3),
        AskAuditedPredictions(sendable_floats([1.0, 1.0]), sendable_floats([[1.0]]), seed=3),
        AskAuditedPredictions(sendable_floats([np.nan, 1.0]), NONE_HIDDEN, seed=3),
        AskAuditedPredictions(sendable_floats([1.0, 1.0]), sendable_floats([[np.inf, 1.0]]), seed=3),
        AskAuditedPredictions(sendable_floats([1.0, 1.0]), NONE_HIDDEN, seed=-3),
        AskAuditedDistances(sendable_floats([[1.0]]), None),
        AskAuditedDistances(sendable_floats(np.empty((0, 2))), None),
        AskAuditedDistances(sendable_floats([[np.inf, 1.0]]), None),
        AskAuditedDistances(sendable_floats([[1.0, 1.0]]), sendable_floats([0.0, 1.0])),
    ],
)
def test_a_party_refuses_what_no_honest_server_asks(request_: Any) -> None:
    assert isinstance(session().answer(request_), Refused)
