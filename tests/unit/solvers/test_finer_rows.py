"""A finer look at rows: what they are to the finer step, and nothing else than they were."""

from typing import Any

import numpy as np
import pytest

from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.quantise import encode_codes, restore_dithered, round_with_dither
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.kernels.whitening import whiten
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.policy import Policy, rows_revealed
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import UseAllRows
from colonnade.solvers.finer_rows import AskFinerRows, FinerRows, read_finer
from colonnade.solvers.whitened_columns import AskWhitenedColumns, WhitenedColumns, WhitenedRows, read_whitened

STEP, FINER = 0.25, 1 / 256
RNG = np.random.default_rng(0)
VALUES = RNG.standard_t(2, size=(40, 3)) @ RNG.normal(size=(3, 3)) + 5.0
CARD = PartyCard("a", 40, ("x", "z"), "y")
PLACES = sendable_rows([0, 3, 17, 39])


def asked(places: Any = PLACES, **changed: Any) -> AskFinerRows:
    given = {"step": STEP, "seed": 5, "finer_step": FINER, "finer_seed": 6, **changed}
    return AskFinerRows(**given, places=places)


def answers(values: Any, *requests: Message) -> Message:
    """Let a party that holds a label answer requests after all rows were agreed on; give the last reply."""
    table = read_table("a", values[:, :-1], label=values[:, -1])
    party = party_session(table, Policy(level="open"))
    for request in (Hello(WIRE_VERSION), UseAllRows(), *requests):
        reply = party.answer(request)
    return reply


def known() -> WhitenedRows:
    request = AskWhitenedColumns(STEP, 5)
    reply = answers(VALUES, request)
    assert isinstance(reply, WhitenedColumns)
    return read_whitened(CARD, reply, Roster((CARD,)), np.arange(40), request)


def finer(places: Any = PLACES) -> FinerRows:
    reply = answers(VALUES, AskWhitenedColumns(STEP, 5), asked(places))
    assert isinstance(reply, FinerRows)
    return reply


@pytest.mark.parametrize("places", [PLACES, sendable_rows(np.arange(40)), sendable_rows([])], ids=len)
def test_values_are_exact_to_half_the_finer_step(places: Any) -> None:
    exact = whiten(ArrayBlocks(VALUES)).of(VALUES)
    coarse, found = known(), read_finer(CARD, finer(places), known(), asked(places))
    assert np.abs(coarse.values - exact).max() > 10 * FINER
    np.testing.assert_allclose(found.values, exact[places], rtol=0, atol=0.501 * FINER)
    np.testing.assert_array_equal(found.mixing, coarse.mixing)
    assert found.label == coarse.label


def test_it_costs_few_bits_a_value_and_counts_as_rows() -> None:
    """Log2 of 0.25 * 256 is 6 bits, and one or two more of the code."""
    reply = finer(sendable_rows(np.arange(40)))
    assert len(reply.codes) < 40 * 3 * 8.5 / 8 + 10
    assert reply.units() == 120
    assert rows_revealed(reply) == 40
    assert reply.numbers_told(120) == {Reveals.FEATURES: 80, Reveals.LABELS: 40}


def test_a_party_of_constants_has_nothing_to_tell() -> None:
    reply = answers(np.full((40, 2), 7.0), asked())
    assert isinstance(reply, FinerRows)
    assert (reply.n_columns, reply.codes, reply.units()) == (0, b"", 0)


def test_the_rounding_of_large_values_is_no_lie() -> None:
    """Single precision rounds values of many steps by slightly more than half a step: searched for the worst ones."""
    rng = np.random.default_rng(0)
    zero = np.zeros((2000, 1), np.int16).T
    dither, fine = (-restore_dithered(zero, 1.0, np.random.default_rng(seed))[:, 0] for seed in (5, 6))
    # Just above the middle between two steps, by less than single precision tells; and where the finer one errs most.
    values = STEP * (1600 + 0.5 - dither + rng.uniform(0, 6e-5, 2000))[:, np.newaxis]
    coarse = restore_dithered(round_with_dither(values, STEP, np.random.default_rng(5)), STEP, np.random.default_rng(5))
    beyond = values - coarse
    codes = round_with_dither(beyond, FINER, np.random.default_rng(6))
    assert (np.abs(beyond) > STEP / 2).any(), "that is what single precision does"
    assert fine.max() > 0.49
    rows = WhitenedRows(coarse, np.zeros(1), np.ones((1, 1)), None, STEP, np.empty(0, np.int64), np.empty((2000, 0)))
    places = sendable_rows(np.arange(2000))
    card = PartyCard("a", 2000, ("x",), None)
    found = read_finer(card, FinerRows(2000, 1, None, encode_codes(codes)), rows, asked(places))
    np.testing.assert_allclose(found.values, values, rtol=0, atol=0.501 * FINER)
    assert found.step == FINER


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": 3}, "3 rows of 3 columns, where 4 of 3 are due"),
        ({"size": -1}, "-1 rows of 3 columns, where 4 of 3 are due"),
        ({"n_columns": 2}, "4 rows of 2 columns, where 4 of 3 are due"),
        ({"label": None}, "a label where none was due, or none where it was"),
        ({"codes": b""}, "bytes do not hold"),
        ({"codes": b"\xff" * 40}, "."),
        ({"codes": bytes(200)}, "."),
        ({"codes": encode_codes(np.full((3, 4), 34))}, "other rows than it sent before"),
        ({"codes": encode_codes(np.full((3, 4), -(1 << 40)))}, "other rows than it sent before"),
    ],
)
def test_hostile_replies(changed: dict[str, Any], message: str) -> None:
    honest = finer()
    given = {"size": 4, "n_columns": 3, "label": 2, "codes": honest.codes, **changed}
    with pytest.raises(RemoteProtocolError, match=f"'a' sent a FinerRows with .*{message}") as caught:
        read_finer(CARD, FinerRows(**given), known(), asked())
    assert (caught.value.party, caught.value.kind) == ("a", "FinerRows")


def test_garbage_is_never_read_as_something_else() -> None:
    """Bytes changed at random: a refusal, or values within the coarse step, whatever they are."""
    rng, honest, coarse = np.random.default_rng(0), finer(), known()
    outcomes = set()
    for _ in range(300):
        codes = bytearray(honest.codes)
        codes[rng.integers(len(codes))] = rng.integers(256)
        try:
            found = read_finer(CARD, FinerRows(4, 3, 2, bytes(codes)), coarse, asked())
            assert np.abs(found.values - coarse.values[PLACES]).max() <= 0.502 * (STEP + FINER)
            outcomes.add("read")
        except RemoteProtocolError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize(
    "request_",
    [
        asked([40]),
        asked([-1]),
        asked([3, 0]),
        asked([3, 3, 3]),
        asked(step=0.0),
        asked(step=np.nan),
        asked(finer_step=1e-9),
        asked(finer_step=np.inf),
        asked(seed=-1),
        asked(finer_seed=-1),
    ],
    ids=str,
)
def test_hostile_requests(request_: AskFinerRows) -> None:
    """The same row many times, with as many dithers, would be known to a small part of the finer step."""
    request = AskFinerRows(
        request_.step, request_.seed, request_.finer_step, request_.finer_seed, sendable_rows(request_.places)
    )
    reply = answers(VALUES, AskWhitenedColumns(STEP, 5), request)
    assert isinstance(reply, Refused)
    assert reply.cause == "request"


def test_no_rows_are_agreed_on_yet() -> None:
    party = party_session(read_table("a", VALUES), Policy(level="open"))
    party.answer(Hello(WIRE_VERSION))
    assert isinstance(party.answer(asked()), Refused)
