"""Routes of applying a model: with the party's part, the flags, and the dither that were agreed on."""

from typing import Any

import numpy as np
import pytest

from colonnade.evaluation.applying import (
    class_losses_route,
    evaluated_route,
    masked_classes_route,
    masked_route,
    predicted_route,
)
from colonnade.evaluation.classes.messages import AskClassLosses, AskMaskedClassLosses, DeliverMaskedClasses
from colonnade.evaluation.clustering import AskPartialDistances, AskRoundedDistances
from colonnade.evaluation.delivery import Deliver
from colonnade.evaluation.linear import AskPartialPredictions, AskRoundedPredictions
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    DeliverMasked,
)
from colonnade.evaluation.telling import model_digest
from colonnade.messages import sendable_floats
from colonnade.privacy.pair_keys import MAX_ATTEMPTS, AskPairAgreement, AskPairKey
from colonnade.routes import Route

COEF, CENTERS = sendable_floats([1.0, 2.0]), sendable_floats([[1.0, 2.0], [3.0, 4.0]])
LINEAR, CLUSTERS = model_digest((COEF, None, None)), model_digest((None, CENTERS, None))
OTHER = sendable_floats([1.0, np.nextafter(2.0, 3.0)])


def kinds(route: Route) -> set[type]:
    return {ask.kind for ask in route.asks()}


def test_predictions_by_the_model_agreed_on_and_no_other() -> None:
    route = predicted_route(LINEAR, 9, None, 0, delivered=False)
    assert route.after(AskPartialPredictions(COEF, less_label=False, by_weight=False, first=0, stop=9)) is not None
    for request in (
        AskPartialPredictions(OTHER, less_label=False, by_weight=False, first=0, stop=9),
        AskPartialPredictions(COEF, less_label=True, by_weight=False, first=0, stop=9),
        AskPartialPredictions(COEF, less_label=False, by_weight=True, first=0, stop=9),
        AskPartialDistances(CENTERS, None, 0, 9),
        AskRoundedPredictions(COEF, less_label=False, by_weight=False, bits=8, seed=0, first=0, stop=9),
    ):
        assert route.after(request) is None


def test_distances_in_the_units_agreed_on() -> None:
    route = predicted_route(CLUSTERS, 9, None, 0, delivered=False)
    assert route.after(AskPartialDistances(CENTERS, None, 0, 9)) is not None
    assert route.after(AskPartialDistances(CENTERS, sendable_floats([1.0, 1.0]), 0, 9)) is None
    assert route.after(AskPartialDistances(sendable_floats(np.eye(2)), None, 0, 9)) is None


@pytest.mark.parametrize(("bits", "seed", "fits"), [(8, 5, True), (9, 5, False), (8, 6, False)])
def test_dithers_follow_from_the_sheet(bits: int, seed: int, fits: bool) -> None:
    """A server that chose them could take the dither off, and average over many."""
    linear, clusters = (evaluated_route(part, 9, 8, 5, by_weight=True) for part in (LINEAR, CLUSTERS))
    asked = AskRoundedPredictions(COEF, less_label=True, by_weight=True, bits=bits, seed=seed, first=0, stop=9)
    assert (linear.after(asked) is not None) == fits
    assert (
        clusters.after(AskRoundedDistances(CENTERS, None, bits=bits, seed=seed, first=0, stop=9)) is not None
    ) == fits


def test_what_comes_of_it_is_delivered_to_the_party_it_is_for() -> None:
    asked = AskPartialPredictions(COEF, less_label=False, by_weight=False, first=0, stop=9)
    for delivered in (True, False):
        left = predicted_route(LINEAR, 9, None, 0, delivered=delivered).after(asked)
        assert left is not None
        assert (left.after(Deliver(COEF, None, 0, 9)) is not None) == delivered
        assert left.after(asked) is None, "once"


@pytest.mark.parametrize("evaluating", [True, False])
@pytest.mark.parametrize("party", ["airline", "weather"])
def test_in_masked_sums_only_who_learns_them_is_told_all(party: str, evaluating: bool) -> None:
    route = masked_route(LINEAR, 9, "airline", party, evaluating=evaluating, by_weight=False)
    told: Any = {AskLosses} if evaluating else {DeliverMasked, DeliverMaskedClasses}
    learned = told if party == "airline" else set()
    assert kinds(route) == {AskMagnitude, AskPairKey, AskMaskedPredictions, AskPairAgreement, *learned}
    fields = [ask.fields for ask in route.asks() if ask.kind is AskMaskedPredictions]
    assert all(each["to"] == "airline" and each["evaluating"] is evaluating for each in fields)


@pytest.mark.parametrize("masked", [True, False])
def test_of_classes_only_the_label_party_is_asked_for_losses(masked: bool) -> None:
    if masked:
        routes = [masked_classes_route(LINEAR, 9, "airline", each, by_weight=True) for each in ("airline", "weather")]
        due: Any = {AskMagnitude, AskPairKey, AskMaskedPredictions, AskPairAgreement}
        told: Any = {AskMaskedClassLosses}
    else:
        routes = [class_losses_route(LINEAR, 9, 2, None, 0, has_label=each, by_weight=True) for each in (True, False)]
        due, told = set(), {AskClassLosses}
    assert kinds(routes[0]) == due | told
    assert kinds(routes[1]) == due | (set() if masked else {AskPartialPredictions})


def test_keys_are_asked_for_only_so_often() -> None:
    """Where a key is lost the phase begins again; the magnitude, which comes before it, does not."""
    magnitude = AskMagnitude(COEF, None, None, evaluating=False)
    left = masked_route(LINEAR, 9, "airline", "weather", evaluating=False, by_weight=False).after(magnitude)
    for _ in range(MAX_ATTEMPTS):
        assert left is not None
        assert left.after(magnitude) is None
        left = left.after(AskPairKey())
    assert left is not None
    assert left.after(AskPairKey()) is None
    assert left.after(AskPairAgreement(())) is not None
