"""Chances of classes: what a caller, or a party, is given."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade.evaluation.classes.messages import DeliverClasses
from colonnade.kernels.selections import CountedRows
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.protocol import windows
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseRows
from colonnade.transports.loopback import Loopback
from harness import sessions_of
from secure_trial import Recording, Restarting, float_forms

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6))
SIGNAL = X @ [1.0, -2.0, 0.5, 0.0, 1.0, 0.7] + RNG.logistic(size=N)
LABELS = {"text": np.where(SIGNAL > 0, "yes", "no"), "numbers": np.digitize(SIGNAL, [-1.0, 1.0]) - 0.5}


def federation(label: Any, transport: Any = Loopback) -> cn.Federation:
    return cn.Federation(cn.split_columns(X, label, [2, 3, 1]), transport=transport)


MODELS = {
    name: federation(label).fit(cn.Classification(l2=1e-3), sampler=cn.AllRows()).model
    for name, label in LABELS.items()
}
BOTH = pytest.mark.parametrize("name", LABELS)


@BOTH
def test_chances_and_classes_are_those_of_rows_in_one_place(name: str) -> None:
    model, parties, wanted = MODELS[name], federation(LABELS[name]), [40, 3, 3, 17]
    found = parties.predict(model, rows=wanted, to="party2")
    np.testing.assert_allclose(found.probabilities, model.predict_proba(X[wanted]), rtol=1e-12)
    np.testing.assert_array_equal(found.classes, model.predict(X[wanted]))
    np.testing.assert_array_equal(np.asarray(found), found.classes)
    assert (len(found), found.names) == (4, model.classes_)
    delivery = parties.received("party2")
    assert delivery is not None
    np.testing.assert_array_equal(delivery.rows, [3, 3, 17, 40])
    np.testing.assert_array_equal(delivery.predictions.probabilities, found[[1, 2, 3, 0]].probabilities)
    assert delivery.predictions.names == model.classes_
    assert len(parties.predict(model)) == N


@BOTH
def test_a_delivery_of_all_rows_lists_none(name: str) -> None:
    for deliver in (cn.Federation.deliver, cn.Federation.predict):
        parties = federation(LABELS[name])
        deliver(parties, MODELS[name], to="party2")
        delivery = parties.received("party2")
        assert delivery is not None
        assert isinstance(delivery.chosen, CountedRows)
        np.testing.assert_array_equal(delivery.predictions.classes, MODELS[name].predict(X))


@BOTH
def test_rounded_parts_give_nearly_the_same_chances(name: str) -> None:
    parties = federation(LABELS[name])
    exact, rounded = parties.predict(MODELS[name]), parties.predict(MODELS[name], bits=12)
    np.testing.assert_allclose(rounded.probabilities, exact.probabilities, atol=0.01)
    assert not np.array_equal(rounded.probabilities, exact.probabilities)


@BOTH
@pytest.mark.parametrize("to", ["party1", "party3"])
def test_under_masks_one_party_learns_them_and_the_server_does_not(name: str, to: str) -> None:
    wire = Recording()
    parties, model = federation(LABELS[name], wire), MODELS[name]
    parties.deliver(model, to, rows=[40, 3, 17])
    delivery = parties.received(to)
    assert delivery is not None
    found = delivery.predictions
    np.testing.assert_allclose(found.probabilities, model.predict_proba(X[[3, 17, 40]]), rtol=1e-9)
    assert (found.names, delivery.rows.tolist()) == (model.classes_, [3, 17, 40])
    forms = float_forms(np.concatenate([found.probabilities.reshape(-1), model.logits(X[[3, 17, 40]]).reshape(-1)]))
    assert not [form for form in forms if any(form in data for data in wire.received)]


@pytest.mark.parametrize("kind", ["AskMaskedPredictions", "DeliverMaskedClasses", "AskPairAgreement"])
def test_a_party_that_restarts_is_given_them_all_the_same(kind: str) -> None:
    restarting = Restarting(kind, "party2")
    parties, model = federation(LABELS["text"], restarting), MODELS["text"]
    parties.deliver(model, "party2", rows=[1, 5])
    assert restarting.restarts == 1
    delivery = restarting.sessions["party2"].state.received
    if kind == "AskPairAgreement":  # delivered before the restart, and written down by then
        return
    assert delivery is not None
    np.testing.assert_allclose(delivery.predictions.probabilities, model.predict_proba(X[[1, 5]]), rtol=1e-9)


def test_a_model_of_more_classes_counts_as_many_models() -> None:
    """Who learns logits of three classes has three equations about every row."""
    parties = cn.split_columns(X, LABELS["numbers"], [2, 3, 1])
    for party in parties:
        party.policy = cn.Policy(level="open", models_in_all=2)
    with pytest.raises(cn.PolicyRefusedError, match="with this it would be 3"):
        cn.Federation(parties).deliver(MODELS["numbers"], "party1")
    for party in parties:
        party.policy = cn.Policy(level="open", models_in_all=3)
    cn.Federation(parties).deliver(MODELS["numbers"], "party1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"probabilities": sendable_floats([[0.5, 0.5]])}, "shape"),
        ({"probabilities": sendable_floats([[0.5, 0.5], [np.nan, 0.5]])}, "NaN"),
        ({"values": sendable_floats([0.0])}, "classes that are not 2 to 100"),
        ({"names": ("no",)}, "not those of their names"),
        ({"names": ("no", "no")}, "there twice"),
    ],
)
def test_what_is_no_chances_is_refused(changes: dict[str, Any], why: str) -> None:
    session = sessions_of(federation(LABELS["text"]))["party1"]
    session.answer(UseRows(sendable_rows([1, 5])))
    fair: dict[str, Any] = {"probabilities": sendable_floats(np.full((2, 2), 0.5)), "first": 0, "stop": 2}
    fair |= {"values": sendable_floats([0.0, 1.0])}
    reply = session.answer(DeliverClasses(**({"names": ("no", "yes")} | fair | changes)))
    assert isinstance(reply, Refused)
    assert why in reply.reason


def test_chances_of_more_numbers_than_a_message_could_bring_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come window by window, and how many classes there are the server says."""
    monkeypatch.setattr(windows, "MAX_NUMBERS", 3)
    session = sessions_of(federation(LABELS["text"]))["party1"]
    session.answer(UseRows(sendable_rows([1, 5])))
    chances, values = sendable_floats(np.full((2, 2), 0.5)), sendable_floats([0.0, 1.0])
    reply = session.answer(DeliverClasses(probabilities=chances, values=values, names=("no", "yes"), first=0, stop=2))
    assert isinstance(reply, Refused)
    assert "2 numbers of 2 rows would be kept" in reply.reason


@BOTH
def test_scikit_learn_gives_the_same_chances(name: str) -> None:
    model = MODELS[name]
    theirs = model.to_sklearn()
    np.testing.assert_allclose(theirs.predict_proba(X), model.predict_proba(X), rtol=1e-12, atol=1e-15)
    assert theirs.predict(X).tolist() == model.predict(X).tolist()
    assert theirs.classes_.tolist() == list(model.classes_)


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS.keys())
def test_columns_that_parties_prepared_come_as_they_were(label: Any) -> None:
    rng = np.random.default_rng(1)
    bank = pd.DataFrame({"job": rng.choice(["clerk", "nurse", "smith"], N), "age": X[:, 0]})
    shop = pd.DataFrame({"basket": X[:, 1], "late": label})
    parties = cn.Federation(
        [cn.Party("bank", bank, prepare=cn.Prepare({"job": cn.Category()})), cn.Party("shop", shop, label="late")]
    )
    model = parties.fit(cn.Classification(l2=1e-3), sampler=cn.AllRows()).model
    found, frame = parties.predict(model), pd.concat([bank, shop[["basket"]]], axis=1)
    pipeline = model.to_sklearn()
    np.testing.assert_allclose(pipeline.predict_proba(frame), found.probabilities, rtol=1e-12, atol=1e-15)
    assert pipeline.predict(frame).tolist() == found.classes.tolist()
    assert parties.evaluate(model).n_evaluated == N
