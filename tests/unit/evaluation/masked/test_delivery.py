"""Predictions that only one party learns: they are right, and nobody else can read them."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.evaluation.masked.messages import AskMagnitude, DeliverMasked, Magnitude, MaskedPredictions
from colonnade.evaluation.masked.ring import WIDTH, ring_of_parts
from colonnade.kernels.masks import to_words
from colonnade.messages import sendable_floats, sendable_rows
from colonnade.privacy.identities import identities_here
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseRows
from colonnade.transports.loopback import Loopback
from harness import sessions_of, watch
from secure_trial import Entropy, Recording, Restarting, Wire, flip_message, float_forms, made_parties

ROWS = [200, 4, 17, 4]


def federation(transport: Any = Loopback, **options: Any) -> cn.Federation:
    return cn.Federation(made_parties(**options), transport=transport)


def features() -> np.ndarray:
    return np.hstack(
        [party.table.take(np.arange(300))[:, : len(party.table.feature_names)] for party in made_parties()]
    )


LINEAR = federation().fit(cn.Regression(l2=0.1), sampler=cn.AllRows()).model
CENTRES = federation().fit(cn.KMeans(n_clusters=3, standardize=True), sampler=cn.AllRows()).model


@pytest.mark.parametrize("rows", [ROWS, None])
@pytest.mark.parametrize("to", ["party1", "party3"])
def test_the_receiver_has_the_predictions_and_nobody_else(to: str, rows: list[int] | None) -> None:
    parties = federation()
    sessions = watch(parties)
    parties.deliver(LINEAR, to, rows=rows)
    received = parties.received(to)
    assert received is not None
    np.testing.assert_array_equal(received.rows, np.arange(300) if rows is None else sorted(ROWS))
    np.testing.assert_allclose(received.predictions, LINEAR.predict(features()[received.rows]), rtol=1e-12)
    assert [parties.received(name) for name in parties.roster.names if name != to] == [None, None]
    assert all(session.state.secret is None for session in sessions.values())


def test_clusters_too() -> None:
    parties = federation()
    parties.deliver(CENTRES, "party2")
    received = parties.received("party2")
    assert received is not None
    np.testing.assert_array_equal(received.predictions, parties.predict(CENTRES))


def test_the_server_receives_no_part_and_no_prediction() -> None:
    wire = Recording()
    parties = federation(wire)
    parties.deliver(LINEAR, "party2", rows=ROWS)
    X = features()[sorted(ROWS)]
    partial = [X[:, part] @ LINEAR.coef_[part] for part in parties.roster.parts.values()]
    forms = float_forms(np.concatenate([LINEAR.predict(X), *partial]))
    for magnitude in range(-5, 12):
        for numbers in (*partial, sum(partial[::2])):
            words = to_words(np.maximum(numbers + np.ldexp(1.0, magnitude), 0), ring_of_parts(magnitude, 3))
            forms |= {int(word).to_bytes(8, "little")[:WIDTH] for word in words}
    assert not [form for form in forms if any(form in data for data in [*wire.received, *wire.sent])]
    reveals = {entry.reveals for entry in parties.ledger if entry.kind == "MaskedPredictions"}
    assert reveals == {()}
    assert {entry.receiver for entry in parties.ledger if "predictions" in entry.reveals} == {"party2"}


def test_masked_parts_differ_from_run_to_run() -> None:
    sent, got = [], []
    for seed in (1, 2):
        wire = Recording()
        parties = federation(wire, identities=identities_here(("party1", "party2", "party3"), Entropy(seed)))
        parties.deliver(LINEAR, "party2", rows=ROWS)
        sent.append({reply.masked for reply in wire.replies() if isinstance(reply, MaskedPredictions) and reply.masked})
        got.append(parties.received("party2").predictions.tobytes())  # type: ignore[union-attr]
    assert len(sent[0]) == len(sent[1]) == 2
    assert not sent[0] & sent[1]
    assert got[0] == got[1]


@pytest.mark.parametrize("number", range(6, 6 + 2 * 16))
def test_a_flipped_bit_is_an_error_and_never_another_prediction(number: int) -> None:
    """A bit of every message after the hello, drawn from a fixed seed; some leave the bound of numbers good enough.

    What was delivered before an error may stay.
    """
    bit = int(np.random.default_rng(number).integers(2**20))
    parties = federation(Wire(flip_message(number, bit)))
    try:
        parties.deliver(LINEAR, "party2", rows=ROWS)
    except cn.ColonnadeError:
        return
    assert 12 <= number < 18, "a question for a bound, or its answer"
    received = parties.received("party2")
    assert received is not None
    np.testing.assert_allclose(received.predictions, LINEAR.predict(features()[received.rows]), rtol=1e-12)


@pytest.mark.parametrize("party", ["party2", "party3"])
@pytest.mark.parametrize("kind", ["AskMagnitude", "AskMaskedPredictions", "DeliverMasked", "AskPairAgreement"])
def test_a_party_that_restarts_changes_nothing(kind: str, party: str) -> None:
    restarting = Restarting(kind, party)
    parties = federation(restarting)
    parties.deliver(LINEAR, "party2", rows=ROWS)
    assert restarting.restarts == (party == "party2" or kind != "DeliverMasked")
    expected = LINEAR.predict(features()[sorted(ROWS)])
    received = restarting.sessions["party2"].state.received
    if (kind, party) != ("AskPairAgreement", "party2"):  # delivered before the restart, and written down by then
        assert received is not None
        np.testing.assert_allclose(received.predictions, expected, rtol=1e-12)


def test_a_party_that_is_not_there_is_refused() -> None:
    with pytest.raises(cn.InputError, match="There is no party 'party9'"):
        federation().deliver(LINEAR, "party9")


def test_large_and_small_predictions_keep_their_digits() -> None:
    for factor in (1e-30, 1e30):
        model = cn.LinearModel(LINEAR.coef_ * factor, LINEAR.intercept_ * factor, LINEAR.feature_names_in_)
        parties = federation()
        parties.deliver(model, "party1", rows=ROWS)
        received = parties.received("party1")
        assert received is not None
        np.testing.assert_allclose(received.predictions, model.predict(features()[received.rows]), rtol=1e-12)


def test_magnitudes_tell_no_value_however_often_they_are_asked_for() -> None:
    """A server that tries coefficients on one row would find its value where the magnitude jumps."""
    session = sessions_of(federation())["party1"]
    table = session._data.table
    columns, jumps = table.take(np.arange(300))[:, : len(table.feature_names)], set()
    for row in range(20):
        assert not isinstance(session.answer(UseRows(sendable_rows([row]))), Refused)
        told = []
        for factor in np.linspace(1.0, 2.0, 200):
            coef = np.zeros(columns.shape[1])
            coef[0] = factor
            reply = session.answer(AskMagnitude(sendable_floats(coef), None, None, evaluating=False))
            assert isinstance(reply, Magnitude)
            assert abs(factor * columns[row, 0]) <= 2.0**reply.exponent
            told.append(reply.exponent)
        jumps.add(tuple(told))
    assert len(jumps) == 1


def test_a_delivery_must_be_what_was_signed() -> None:
    def meddled(change: Callable[[DeliverMasked], DeliverMasked]) -> cn.Federation:
        def meddle(_: str, __: str, data: bytes) -> bytes:
            message = codec().decode(data)
            return codec().encode(change(message)) if isinstance(message, DeliverMasked) else data

        return federation(Wire(meddle))

    def one_more(message: DeliverMasked) -> DeliverMasked:
        first = message.parts[0]
        word = int.from_bytes(first.masked[:WIDTH], "little") + 1
        masked = (word % 2 ** (8 * WIDTH)).to_bytes(WIDTH, "little") + first.masked[WIDTH:]
        return DeliverMasked(
            (msgspec.structs.replace(first, masked=masked), *message.parts[1:]),
            message.intercept,
            message.first,
            message.stop,
        )

    def shorter(message: DeliverMasked) -> DeliverMasked:
        parts = tuple(msgspec.structs.replace(part, masked=part.masked[:-WIDTH]) for part in message.parts)
        return DeliverMasked(parts, message.intercept, message.first, message.stop)

    for change, why in (
        (one_more, "a signature of 'party1' on something else"),
        (shorter, "parts of other lengths"),
        (
            lambda message: DeliverMasked(message.parts[::-1], message.intercept, message.first, message.stop),
            "a signature of 'party1'",
        ),
        (
            lambda message: DeliverMasked(message.parts[:1], message.intercept, message.first, message.stop),
            "1 signatures for 2 parties",
        ),
        (
            lambda message: DeliverMasked(message.parts, message.intercept + 1, message.first, message.stop),
            "a digest of something else",
        ),
    ):
        with pytest.raises(cn.ColonnadeError, match=why):
            meddled(change).deliver(LINEAR, "party2", rows=ROWS)


def test_too_few_digits_are_an_error_and_no_other_clusters() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3)) + np.array([0.0, 0.0, 1.7e9])
    parties = cn.Federation(cn.split_columns(X, None, [1, 1, 1]))
    model = parties.fit(cn.KMeans(n_clusters=2, standardize=True), sampler=cn.AllRows()).model
    with pytest.raises(cn.ColonnadeError, match="large against its own spread"):
        parties.deliver(model, "party1")


def test_numbers_that_leave_the_ring_are_refused() -> None:
    model = cn.LinearModel(LINEAR.coef_ * 1e99, 0.0, LINEAR.feature_names_in_)
    federation().deliver(model, "party1", rows=ROWS)
    far = cn.KMeansModel(CENTRES.cluster_centers_ + 1e90, CENTRES.feature_names_in_)
    with pytest.raises(cn.ColonnadeError, match=r"could exceed 2\^400"):
        federation().deliver(far, "party1", rows=ROWS)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (cn.Policy(level="open", never=["predictions"]), "never reveals predictions, which a MaskedPredictions would"),
        (cn.Policy(level="open", rows_a_request=3), "limits a reply to 3 rows; this MaskedPredictions has 4"),
    ],
)
def test_an_owner_who_keeps_predictions_passes_none_on(policy: cn.Policy, why: str) -> None:
    """The server chooses the coefficients: with one of 1 the receiver would read that column."""
    owners = made_parties()
    owners[2].policy = policy
    parties = cn.Federation(owners)
    with pytest.raises(cn.PolicyRefusedError, match=why):
        parties.deliver(LINEAR, "party2", rows=ROWS)
    assert parties.received("party2") is None
    parties.deliver(LINEAR, "party3", rows=ROWS)
    assert parties.received("party3") is not None
