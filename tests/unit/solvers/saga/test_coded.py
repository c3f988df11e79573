"""Saga with few bits a number: the same model, fewer bytes, errors fed back, and safe from a hostile peer."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.kernels.fixed_codes import decode_fixed, encode_fixed
from colonnade.messages import Message, sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.sampling.selecting import UseAllRows
from colonnade.solvers.saga.coded import AskCodedProgress, CodedProducts, CodedStep
from colonnade.solvers.saga.messages import AskCoefficients, Coefficients, OpenSaga, SquaredNorms
from colonnade.solvers.saga.party import SagaLearning
from colonnade.transports.loopback import Loopback
from random_parties import make_parties

FEDERATION = cn.Federation(make_parties())
CORESET = FEDERATION.coreset(cn.Regression(), cn.ImportanceSampling(60)).coreset


@cache
def solved(task: cn.Regression, **options: Any) -> Any:
    return FEDERATION.fit(task, coreset=CORESET, solver=cn.Saga(tolerance=1e-6, **options))


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("task", [cn.Regression(), cn.Regression(l2=0.1, l1=0.2)], ids=str)
def test_few_bits_find_what_64_find(task: cn.Regression, bits: int) -> None:
    exact, coded = solved(task), solved(task, bits=bits)
    np.testing.assert_allclose(coded.model.coef_, exact.model.coef_, atol=1e-4)
    assert coded.model.intercept_ == pytest.approx(exact.model.intercept_, abs=1e-4)
    assert coded.facts["epochs"] <= 1.3 * exact.facts["epochs"]


@pytest.mark.parametrize(("bits", "part"), [(16, 0.45), (4, 0.32)])
def test_bytes_and_units(bits: int, part: float) -> None:
    exact, coded = (solved(cn.Regression(), batch=20, bits=each).ledger.by_phase()["solving"] for each in (None, bits))
    per_epoch = [(found.bytes / found.units) for found in (exact, coded)]
    assert per_epoch[1] < part * per_epoch[0]


def test_an_epoch_has_the_units_of_exact_numbers() -> None:
    with pytest.warns(cn.ConvergenceWarning):
        exact, coded = (
            FEDERATION.fit(cn.Regression(), coreset=CORESET, solver=cn.Saga(max_epochs=1, bits=bits))
            for bits in (None, 16)
        )
    assert coded.ledger.units == exact.ledger.units
    reveals: dict[str, set[str]] = {entry.kind: set() for entry in coded.ledger}
    for entry in coded.ledger:
        reveals[entry.kind] |= set(entry.reveals)
    assert reveals["CodedProducts"] == {"predictions", "labels"}
    assert reveals["CodedStep"] == {"labels", "row ids", "totals"}
    assert reveals["AskCodedProgress"] == {"labels"}


def test_nothing_is_coded_unasked() -> None:
    assert not {entry.kind for entry in solved(cn.Regression()).ledger} & {"CodedStep", "CodedProducts"}


def test_transports_agree_bit_for_bit() -> None:
    far = cn.Federation(make_parties(), transport=Loopback)
    run = far.fit(cn.Regression(), coreset=CORESET, solver=cn.Saga(tolerance=1e-6, bits=6))
    np.testing.assert_array_equal(run.model.coef_, solved(cn.Regression(), bits=6).model.coef_)


@pytest.mark.parametrize("bits", [3, 33, True, "16", 8.5])
def test_bits_out_of_range(bits: Any) -> None:
    with pytest.raises(cn.InputError, match="bits must be a whole number from 4 to 32"):
        cn.Saga(bits=bits)


# The party's side, fed by hand

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
ZERO = encode_fixed(np.empty(0), 8)
ONES = encode_fixed(np.ones(4), 8)
STEP = CodedStep(0, ZERO, 8, 1, 0.1)
OPENING = OpenSaga(3, 0, 0.0, 0.0, fit_intercept=True, scale=True)


def session(*requests: Message) -> PartySession:
    opened = party_session(read_table("airline", X, label=Y), Policy(level="open"))
    for request in (Hello(WIRE_VERSION), UseAllRows(), OPENING, *requests):
        assert not isinstance(opened.answer(request), Refused)
    return opened


def test_an_honest_server() -> None:
    party = session(STEP, CodedStep(4, ONES, 8, 0, None), AskCodedProgress(4, ONES, 8))
    assert isinstance(party.answer(AskCoefficients()), Coefficients)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.sampled_from([4, 6, 12]))
def test_what_the_server_has_is_off_by_one_rounding_however_many_steps(blocks: list[int], bits: int) -> None:
    """Products a server adds up from the codes it was sent, against those of the party's present coefficients."""
    party, held, size, step = session(), np.zeros(12), 0, 0.01
    changes = encode_fixed(np.empty(0), bits)
    for i, block in enumerate(blocks):
        reply = party.answer(CodedStep(size, changes, bits, block, step if i == 0 else None))
        assert isinstance(reply, CodedProducts)
        assert reply.less_label is not None
        learning = party.state.learning
        assert isinstance(learning, SagaLearning)
        places, rows = learning.places(block), learning.block_rows(block)
        difference, rounding = decode_fixed(reply.less_label, 4, bits)
        held[places] += difference
        np.testing.assert_array_equal(held, learning.sent)
        exact = learning.columns(rows) @ learning.coef - rows[:, -1]
        assert (np.abs(held[places] - exact) <= rounding / 2 * (1 + 1e-9)).all()
        size, changes = 4, encode_fixed(RNG.normal(size=4), bits)


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        ((), CodedStep(0, ZERO, 3, 0, 0.1)),
        ((), CodedStep(0, ZERO, 33, 0, 0.1)),
        ((), CodedStep(0, ZERO, 8, 3, 0.1)),
        ((), CodedStep(0, ZERO, 8, 0, None)),
        ((), CodedStep(0, ZERO, 8, 0, np.nan)),
        ((), CodedStep(4, ONES, 8, 0, 0.1)),
        ((STEP,), CodedStep(4, ONES, 8, 0, 0.1)),
        ((STEP,), CodedStep(3, ONES, 8, 0, None)),
        ((STEP,), CodedStep(4, ONES, 16, 0, None)),
        ((STEP,), CodedStep(4, ONES[:-1], 8, 0, None)),
        ((STEP,), CodedStep(4, ONES + b"\x00", 8, 0, None)),
        ((STEP,), CodedStep(4, b"", 8, 0, None)),
        ((STEP,), CodedStep(4, b"\xff\x7f" + ONES[2:], 8, 0, None)),
        ((STEP,), AskCodedProgress(3, ONES, 8)),
        ((STEP,), AskCodedProgress(4, ONES, 0)),
        ((CodedStep(0, ZERO, 8, 0, 1e100),), AskCodedProgress(4, encode_fixed(np.full(4, 9e99), 8), 8)),
    ],
)
def test_hostile_steps(before: tuple[Message, ...], request_: Message) -> None:
    party = session(*before)
    state, reply = party.state, party.answer(request_)
    assert isinstance(reply, Refused)
    assert reply.cause == "request"
    assert party.state is state, "a refused request leaves the state as it was"


# The server's side, fed by hand

ROSTER = Roster((PartyCard("airline", 4, ("x",), "y"), PartyCard("weather", 4, ("t",), None)))
ALL = cn.Coreset(np.arange(4), np.ones(4), n_rows=4, total_weight=4.0)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (CodedProducts(2, encode_fixed(np.ones(2), 8), None), "products less the label where none were due"),
        (CodedProducts(2, encode_fixed(np.ones(2), 8), encode_fixed(np.ones(2), 8)), "products less the label"),
        (CodedProducts(3, None, encode_fixed(np.ones(3), 8)), "products of 3 rows where 2 were asked for"),
        (CodedProducts(2, None, encode_fixed(np.ones(3), 8)), "bytes do not hold"),
        (CodedProducts(2, None, encode_fixed(np.ones(2), 8)[:-1]), "bytes do not hold"),
        (CodedProducts(2, None, b""), "a number that does not end"),
        (CodedProducts(2, None, b"\xff\x7f\x00\x00"), "a step of two to the"),
        (CodedProducts(2, None, encode_fixed(np.full(2, 3e100), 8)), "NaN, infinity or a magnitude above"),
    ],
)
def test_hostile_products(reply: Message, message: str) -> None:
    script = cn.Saga(batch=2, bits=8).solve(cn.Regression(), ROSTER, ALL, np.random.default_rng(0))
    next(script)
    norms = SquaredNorms(sendable_floats(np.ones(4)))
    script.send({"airline": norms, "weather": norms})
    with pytest.raises(cn.RemoteProtocolError, match=f"'airline' sent a CodedProducts with .*{message}"):
        script.send({"airline": reply, "weather": CodedProducts(2, encode_fixed(np.ones(2), 8), None)})
