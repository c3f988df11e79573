"""An evaluation by one party: it says what a plain one does, and the server learns nothing but sums over all rows."""

from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMaskedPredictions,
    DeliverMasked,
    MaskedPredictions,
    SummedLosses,
)
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import AskPairKey
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseRows
from colonnade.tasks.jobs import deliver_in_secret, evaluate_in_secret
from colonnade.transports.loopback import Loopback
from harness import play, watch
from secure_trial import Recording, Restarting, Wire, flip_message, float_forms, made_parties

M = TypeVar("M", bound=msgspec.Struct)


def federation(transport: Any = Loopback, **options: Any) -> cn.Federation:
    return cn.Federation(made_parties(**options), transport=transport)


def of_any_table(model: M) -> M:
    """Forget which table a model was learned from: it is evaluated on others here."""
    return msgspec.structs.replace(model, learned_from_=None)


LINEAR = of_any_table(federation().fit(cn.Regression(l2=0.1), sampler=cn.AllRows()).model)
CENTRES = of_any_table(federation().fit(cn.KMeans(n_clusters=3, standardize=True), sampler=cn.AllRows()).model)
MODELS = pytest.mark.parametrize("model", [LINEAR, CENTRES], ids=["linear", "centres"])


def assert_same(ours: Any, plain: Any) -> None:
    expected = msgspec.to_builtins(msgspec.structs.replace(plain, rounded_by=ours.rounded_by))
    assert 0 < ours.rounded_by < 1e-9
    assert msgspec.to_builtins(ours) == {
        name: pytest.approx(value, rel=1e-9) if value is not None else None for name, value in expected.items()
    }


@MODELS
@pytest.mark.parametrize("by", ["party1", "party2", "party3"])
@pytest.mark.parametrize(
    "options",
    [{}, {"rows": 90, "seed": 3}, {"split": cn.HoldOut(0.4, seed=1)}, {"rows": 12}],
    ids=["all", "drawn", "held out", "few"],
)
def test_the_report_is_that_of_a_plain_evaluation(model: Any, by: str, options: dict[str, Any]) -> None:
    parties = federation()
    sessions = watch(parties)
    plain = parties.evaluate(model, **options)
    assert_same(parties.evaluate(model, by=by, **options), plain)
    assert all(session.state.secret is None for session in sessions.values())


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
    assert learned <= {"schema", "totals", "labels", "moments"}, "labels: how much they vary"
    assert {entry.receiver for entry in parties.ledger if "predictions" in entry.reveals} == {"party2"}
    assert parties.received("party2") is None


@MODELS
@pytest.mark.parametrize("number", range(6, 6 + 2 * 19))
def test_a_flipped_bit_is_an_error_and_never_another_report(model: Any, number: int) -> None:
    """A bit of every message after the hello, drawn from a fixed seed; some leave the bound of numbers good enough."""
    bit = int(np.random.default_rng(number).integers(2**20))
    try:
        report = federation(Wire(flip_message(number, bit))).evaluate(model, by="party2")
    except cn.ColonnadeError:
        return
    assert 18 <= number < 24, "a question for a bound, or its answer"
    assert_same(report, federation().evaluate(model))


def test_there_are_as_many_messages_as_bits_are_flipped_in() -> None:
    wire = Recording()
    federation(wire).evaluate(LINEAR, by="party2")
    assert len(wire.received) == len(wire.sent) == 3 + 19


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
        (SummedLosses, {"sums": sendable_floats([-1.0, 0.0, 0.0])}, "SummedLosses"),
        (SummedLosses, {"sums": sendable_floats([300.0])}, "SummedLosses"),
        (SummedLosses, {"sums": sendable_floats([1.0, 1.0, 0.0])}, "something else than this party saw"),
        (SummedLosses, {"sizes": sendable_rows([300])}, "SummedLosses"),
        (MaskedPredictions, {"label_spread": 2.5}, "spread where none was due"),
        (AskLosses, {"intercept": 2.5}, "something else than this party saw"),
        (AskLosses, {"parts": ()}, "0 signatures for 2 parties"),
        (AskMaskedPredictions, {"evaluating": False}, "the job sheet says True where .* evaluating = False"),
        (AskMaskedPredictions, {"by_weight": False}, "the job sheet says True where .* by_weight = False"),
    ],
)
def test_what_does_not_fit_is_an_error(kind: type[Message], changes: dict[str, Any], why: str) -> None:
    with pytest.raises(cn.ColonnadeError, match=why):
        federation(meddled(kind, **changes)).evaluate(LINEAR, by="party2")


def evaluated(parties: cn.Federation, model: Any) -> Any:
    """Let party2 evaluate, in a run without a sheet: what else stops a server is tried."""
    return play(parties, evaluate_in_secret(model, None, None, "party2", parties.roster, 0))


@pytest.mark.parametrize("changes", [{"evaluating": False}, {"by_weight": False}])
def test_without_a_sheet_signatures_of_another_request_are_none(changes: dict[str, Any]) -> None:
    with pytest.raises(cn.ColonnadeError, match="of another request"):
        evaluated(federation(meddled(AskMaskedPredictions, **changes)), LINEAR)


@pytest.mark.parametrize("sizes", [[100, 100, 99], [-1, 300, 1], [300]])
def test_clusters_must_hold_all_rows(sizes: list[int]) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="SummedLosses"):
        federation(meddled(SummedLosses, sizes=sendable_rows(sizes))).evaluate(CENTRES, by="party2")


@MODELS
def test_a_server_that_moves_a_residual_by_a_little_is_told_nothing(model: Any) -> None:
    """What that did to the cost would tell it the residual."""

    def move(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if not isinstance(message, AskLosses):
            return data
        first, part = message.parts
        moved = msgspec.structs.replace(part, masked=bytes([part.masked[0] ^ 1]) + part.masked[1:])
        return codec().encode(AskLosses((first, moved), message.intercept, message.first, message.stop))

    with pytest.raises(cn.ColonnadeError, match="a signature of 'party3' on something else"):
        federation(Wire(move)).evaluate(model, by="party2")


@MODELS
def test_the_same_parts_are_summed_up_once(model: Any) -> None:
    answered: list[Message] = []

    def ask_before(_: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, AskLosses) and not answered:
            answered.extend(wire.sessions[receiver].answer(message) for _ in range(2))
        return data

    wire = Wire(ask_before)
    assert_same(evaluated(federation(wire), model), federation().evaluate(model))
    assert [len(reply.sums) for reply in answered if isinstance(reply, SummedLosses)] == [3, 0]


@MODELS
def test_an_evaluation_is_no_delivery_nor_the_other_way_round(model: Any) -> None:
    def swap(_: str, __: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if not isinstance(message, DeliverMasked | AskLosses):
            return data
        other = AskLosses if isinstance(message, DeliverMasked) else DeliverMasked
        return codec().encode(other(message.parts, message.intercept, message.first, message.stop))

    with pytest.raises(cn.ColonnadeError, match="would be next in this job, not DeliverMasked"):
        federation(Wire(swap)).evaluate(model, by="party2")
    with pytest.raises(cn.ColonnadeError, match="would be next in this job, not AskLosses"):
        federation(Wire(swap)).deliver(model, "party2")
    parties = federation(Wire(swap))
    with pytest.raises(cn.ColonnadeError, match="something else than parts were masked for"):
        evaluated(parties, model)
    with pytest.raises(cn.ColonnadeError, match="something else than parts were masked for"):
        play(parties, deliver_in_secret(model, None, "party2", parties.roster))


@MODELS
def test_sums_over_few_rows_are_not_told(model: Any) -> None:
    """A row drawn ten times is one row; and a weight that outweighs all others makes one row of them."""
    parties = federation()
    for rows in (1, 9):
        with pytest.raises(cn.ColonnadeError, match="tell single ones"):
            parties.evaluate(model, by="party2", rows=rows)
    X, heavy = np.random.default_rng(1).normal(size=(300, 6)), np.ones(300)
    heavy[7] = 1e9
    parties = cn.Federation(cn.split_columns(X, X.sum(axis=1), [2, 3, 1], weight=heavy))
    with pytest.raises(cn.ColonnadeError, match="rows that count as 1 tell single ones"):
        parties.evaluate(model, by="party2")


def test_within_a_run_a_party_applies_one_model_to_one_set_of_rows() -> None:
    """A server whose two models differ in a coefficient, or rows in one, would learn by the difference of the costs."""
    seen: list[AskMaskedPredictions] = []

    def keep(_: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if isinstance(message, AskMaskedPredictions) and receiver == "party1":
            seen.append(message)
        return data

    wire = Wire(keep)
    parties = federation(wire)
    evaluated(parties, LINEAR)
    session = wire.sessions["party1"]
    session.answer(AskPairKey())
    other = msgspec.structs.replace(seen[0], coef=sendable_floats([1.0, 0.0]))
    assert "differs from what it asked before in this run" in str(session.answer(other))
    session.answer(UseRows(sendable_rows(np.arange(299))))
    session.answer(AskPairKey())
    assert isinstance(session.answer(seen[0]), Refused)
    parties.evaluate(cn.LinearModel(np.ones(6), 0.0, LINEAR.feature_names_in_), by="party2")


def test_too_few_digits_are_an_error_and_no_other_report() -> None:
    """A timestamp, standardized; and a label that stands far out among the rows that are not evaluated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + np.array([0.0, 0.0, 1.7e9])
    parties = cn.Federation(cn.split_columns(X, None, [1, 1, 1]))
    centres = parties.fit(cn.KMeans(n_clusters=2, standardize=True), sampler=cn.AllRows()).model
    with pytest.raises(cn.ColonnadeError, match="large against its own spread"):
        parties.evaluate(centres, by="party1")
    X, y, split = X - X.mean(axis=0), rng.normal(size=300), np.arange(300) >= 150
    y[0] = 1e15
    parties = cn.Federation(
        [*cn.split_columns(X[:, :2], None, [1, 1]), cn.Party("party3", X[:, 2:], label=y, split=split)]
    )
    model = cn.LinearModel(np.ones(3), 0.0, parties.roster.feature_names)
    with pytest.raises(cn.ColonnadeError, match="large against its own spread"):
        parties.evaluate(model, by="party1", split=cn.SplitBy("party3"))


def test_an_owner_who_keeps_predictions_takes_no_part() -> None:
    owners = made_parties()
    owners[0].policy = cn.Policy(level="open", never=["predictions"])
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
