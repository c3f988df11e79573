"""The server's side of Central, fed by hand."""

from typing import Any

import numpy as np
import pytest

from colonnade.contracts import PartyCard, Roster
from colonnade.coreset import Coreset
from colonnade.errors import RemoteProtocolError
from colonnade.messages import Message, sendable_floats
from colonnade.solvers.central import Central, Columns
from colonnade.tasks import KMeans, LinearModel, Regression

ROSTER = Roster((PartyCard("airline", 9, ("x", "z"), "y"), PartyCard("weather", 9, ("t",), None)))
CORESET = Coreset(np.arange(4), np.ones(4), n_rows=9, total_weight=9.0)
FEATURES = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 1.0]])
LABELS = np.arange(4.0)


def solve(task: Any, airline: Message, weather: Message) -> Any:
    script = Central().solve(task, ROSTER, CORESET, np.random.default_rng(0))
    next(script)
    with pytest.raises(StopIteration) as end:
        script.send({"airline": airline, "weather": weather})
    return end.value.value.model


def columns(features: Any, labels: Any = None) -> Columns:
    return Columns(sendable_floats(features), None if labels is None else sendable_floats(labels))


HONEST = columns(FEATURES, LABELS)
WEATHER = columns(np.ones((4, 1)))


def test_columns_are_put_in_the_rosters_order() -> None:
    model = solve(Regression(), HONEST, WEATHER)
    assert isinstance(model, LinearModel)
    assert model.feature_names_in_ == ("x", "z", "t")
    np.testing.assert_allclose(model.coef_, [1.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (columns(FEATURES[:3], LABELS[:3]), "shape"),
        (columns(FEATURES[:, :1], LABELS), "shape"),
        (columns(FEATURES, LABELS[:3]), "shape"),
        (columns(FEATURES, LABELS[:, None]), "shape"),
        (columns(FEATURES), "labels where none were due, or none where they were"),
        (columns(np.full((4, 2), np.nan), LABELS), "NaN, infinity"),
        (columns(FEATURES, np.full(4, np.inf)), "NaN, infinity"),
        (columns(np.full((4, 2), 1e200), LABELS), "magnitude above"),
    ],
)
def test_hostile_columns(reply: Columns, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"'airline' sent a Columns with .*{message}") as caught:
        solve(Regression(), reply, WEATHER)
    assert (caught.value.party, caught.value.kind) == ("airline", "Columns")


def test_labels_nobody_asked_for() -> None:
    with pytest.raises(RemoteProtocolError, match="labels where none were due"):
        solve(KMeans(2), HONEST, WEATHER)
    with pytest.raises(RemoteProtocolError, match="'weather' sent a Columns with labels where none were due"):
        solve(Regression(), HONEST, columns(np.ones((4, 1)), LABELS))
