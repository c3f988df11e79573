"""An evaluation by one party: it says what a plain one does, and the server learns nothing but sums over all rows."""

from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.evaluation.masked import AskMaskedPredictions, MaskedPredictions
from colonnade.evaluation.masked_delivery import DeliverMasked
from colonnade.evaluation.masked_losses import AskLosses, SummedLosses
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.transports.loopback import Loopback
from secure_trial import Recording, Restarting, Wire, flip_message, float_forms, made_parties


def federation(transport: Any = Loopback, **options: Any) -> cn.Federation:
    return cn.Federation(made_parties(**options), transport=transport)


LINEAR = federation().fit(cn.Regression(l2=0.1), sampler=cn.AllRows()).model
CENTRES = federation().fit(cn.KMeans(n_clusters=3, standardize=True), sampler=cn.AllRows()).model
MODELS = pytest.mark.parametrize("model", [LINEAR, CENTRES], ids=["linear", "centres"])


def assert_same(ours: Any, plain: Any) -> None:
    expected = msgspec.to_builtins(plain)
    assert msgspec.to_builtins(ours) == {
        name: pytest.approx(value, rel=1e-9) if value is not None else None for name, value in expected.items()
    }


@MODELS
@pytest.mark.parametrize("by", ["party1", "party2", "party3"])
@pytest.mark.parametrize(
    "options",
    [{}, {"rows": 90, "seed": 3}, {"split": cn.HoldOut(0.4, seed=1)}, {"rows": 1}],
    ids=["all", "drawn", "held out", "one row"],
)
def test_the_report_is_that_of_a_plain_evaluation(model: Any, by: str, options: dict[str, Any]) -> None:
    parties = federation()
    assert_same(parties.evaluate(model, by=by, **options), parties.evaluate(model, **options))
    assert all(session.state.secret is None for session in parties._stage._sessions.values())


@MODELS
def test_rows_count_by_their_weights(model: Any) -> None:
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(300, 6)) + 7.0, rng.integers(0, 4, size=300).astype(float)
    parties = cn.Federation(cn.split_columns(X, X.sum(axis=1), [2, 3, 1], weight=weights))
    assert_same(parties.evaluate(model, by="party3"), parties.evaluate(model))


@MODELS
def test_the_server_learns_sums_only(model: Any) -> None:
    wire = Recording()
    parties = federation(wire)
    parties.evaluate(model, by="party2")
    plain = Recording()
    federation(plain).evaluate(model)
    told = [reply.values for reply in plain.replies() if hasattr(reply, "values")]
    parts = np.array([np.asarray(values) for values in told])
    forms = float_forms(np.concatenate([parts.reshape(-1), parts.sum(axis=0).reshape(-1)]))
    assert not [form for form in forms if any(form in data for data in wire.received)]
    learned = {what for entry in parties.ledger if entry.receiver == SERVER for what in entry.reveals}
    assert learned <= {"schema", "totals", "labels"}, "labels: how much they vary"
    assert {entry.receiver for entry in parties.ledger if "predictions" in entry.reveals} == {"party2"}
    assert parties.received("party2") is None


@MODELS
@pytest.mark.parametrize("number", range(6, 6 + 2 * 16))
def test_a_flipped_bit_is_an_error_and_never_another_report(model: Any, number: int) -> None:
    """A bit of every message after the hello, drawn from a fixed seed.

    Some leave the bound of numbers good enough; and of the evaluating party's two signatures the second counts.
    """
    bit = int(np.random.default_rng(number).integers(2**20))
    try:
        report = federation(Wire(flip_message(number, bit))).evaluate(model, by="party2")
    except cn.ColonnadeError:
        return
    assert 12 <= number < 18 or number == 27
    assert_same(report, federation().evaluate(model))


def test_there_are_as_many_messages_as_bits_are_flipped_in() -> None:
    wire = Recording()
    federation(wire).evaluate(LINEAR, by="party2")
    assert len(wire.received) == len(wire.sent) == 3 + 16


@pytest.mark.parametrize("party", ["party2", "party3"])
@pytest.mark.parametrize("kind", ["AskMagnitude", "AskMaskedPredictions", "AskLosses", "AskPairAgreement"])
def test_a_party_that_restarts_changes_nothing(kind: str, party: str) -> None:
    restarting = Restarting(kind, party)
    report = federation(restarting).evaluate(LINEAR, by="party2")
    assert restarting.restarts == (party == "party2" or kind != "AskLosses")
    assert_same(report, federation().evaluate(LINEAR))


def meddled(kind: type[Message], **changes: Any) -> Wire:
    def meddle(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        return codec().encode(msgspec.structs.replace(message, **changes)) if isinstance(message, kind) else data

    return Wire(meddle)


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        (SummedLosses, {"sums": sendable_floats([300.0, -1.0, 0.0, 0.0])}, "SummedLosses"),
        (SummedLosses, {"sums": sendable_floats([300.0])}, "SummedLosses"),
        (SummedLosses, {"sums": sendable_floats([300.0, 1.0, 1.0, 1.0])}, "something else than this party saw"),
        (SummedLosses, {"sizes": sendable_rows([300])}, "SummedLosses"),
        (MaskedPredictions, {"label_spread": 2.5}, "spread where none was due"),
        (AskLosses, {"magnitude": 4000}, "not asked"),
        (AskLosses, {"n_centers": 2}, "not asked"),
        (AskMaskedPredictions, {"less_label": False}, "of another request"),
    ],
)
def test_what_does_not_fit_is_an_error(kind: type[Message], changes: dict[str, Any], why: str) -> None:
    with pytest.raises(cn.ColonnadeError, match=why):
        federation(meddled(kind, **changes)).evaluate(LINEAR, by="party2")


@pytest.mark.parametrize("sizes", [[100, 100, 99], [-1, 300, 1], [300]])
def test_clusters_must_hold_all_rows(sizes: list[int]) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="SummedLosses"):
        federation(meddled(SummedLosses, sizes=sendable_rows(sizes))).evaluate(CENTRES, by="party2")


def test_residuals_are_not_delivered_as_predictions_nor_the_other_way_round() -> None:
    def swap(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if not isinstance(message, DeliverMasked | AskLosses):
            return data
        other = AskLosses if isinstance(message, DeliverMasked) else DeliverMasked
        return codec().encode(other(message.total, message.intercept, message.magnitude, message.n_centers))

    with pytest.raises(cn.ColonnadeError, match="predictions where labels went off"):
        federation(Wire(swap)).evaluate(LINEAR, by="party2")
    with pytest.raises(cn.ColonnadeError, match="not asked for less labels"):
        federation(Wire(swap)).deliver(LINEAR, "party2")


def test_an_owner_who_keeps_predictions_takes_no_part() -> None:
    owners = made_parties()
    owners[0].policy = cn.Policy(never=["predictions"])
    parties = cn.Federation(owners)
    with pytest.raises(cn.PolicyRefusedError, match="never reveals predictions"):
        parties.evaluate(LINEAR, by="party2")
    assert parties.evaluate(LINEAR, by="party1").n_evaluated == 300


def test_wrong_options() -> None:
    parties = federation()
    with pytest.raises(cn.InputError, match="There is no party 'party9'"):
        parties.evaluate(LINEAR, by="party9")
    with pytest.raises(cn.InputError, match="not rounded"):
        parties.evaluate(LINEAR, by="party1", bits=8)
    with pytest.raises(cn.InputError, match="needs a label"):
        federation(label=False).evaluate(LINEAR, by="party1")
