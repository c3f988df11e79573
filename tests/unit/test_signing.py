"""What is signed: no two things that are said differently have one text."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.messages import sendable_flags, sendable_floats, sendable_rows
from colonnade.sampling.committed.joint_seed import joint_draw_statement
from colonnade.sampling.committed.messages import AskCommitment, commitment_statement
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.signing import (
    PROTOCOL,
    SignedRows,
    digest,
    draw_statement,
    draw_statements,
    marks_statement,
    rows_digest,
    seed_digest,
    sheet_statement,
    weights_statement,
)

ASKED = AskCommitment(IntegerScores(LeverageScores(fit_intercept=False), 57), b"")
parts = st.lists(st.binary(max_size=6), max_size=5)
names = st.text(max_size=4)
sheets = st.binary(max_size=4)
rows = st.lists(st.integers(0, 9), max_size=4)


@given(parts, parts)
def test_no_two_lists_of_parts_have_one_digest(first: list[bytes], second: list[bytes]) -> None:
    assert (digest(*first) == digest(*second)) == (first == second)


@given(parts, st.integers(0, 5), st.integers(0, 6))
def test_where_parts_begin_and_end_counts(them: list[bytes], where: int, cut: int) -> None:
    assume(where < len(them))
    split = [*them[:where], them[where][:cut], them[where][cut:], *them[where + 1 :]]
    assert digest(*split) != digest(*them)
    assert len(digest(*them)) == 32


said = st.tuples(names, sheets, st.binary(max_size=3), rows)


@given(said, said)
def test_a_drawn_row_is_signed_by_a_party_in_a_job_and_a_view(first: tuple, second: tuple) -> None:  # type: ignore[type-arg]
    texts = [draw_statement(party, sheet, view, sendable_rows(drawn)) for party, sheet, view, drawn in (first, second)]
    assert (texts[0] == texts[1]) == (first == second)


@given(said, said)
def test_a_committed_draw_is_signed_by_a_party_in_a_job(first: tuple, second: tuple) -> None:  # type: ignore[type-arg]
    nobodys = sendable_rows([])
    texts = [
        joint_draw_statement(party, sheet, key, sendable_rows(drawn), nobodys)
        for party, sheet, key, drawn in (first, second)
    ]
    assert (texts[0] == texts[1]) == (first == second)
    texts = [commitment_statement(party, sheet, ASKED, root, b"") for party, sheet, root, _ in (first, second)]
    assert (texts[0] == texts[1]) == (first[:3] == second[:3])


marked = st.tuples(names, sheets, st.lists(st.booleans(), max_size=18))


@given(marked, marked)
def test_marks_are_signed_with_their_number(first: tuple, second: tuple) -> None:  # type: ignore[type-arg]
    texts = [marks_statement(party, sheet, sendable_flags(marks)) for party, sheet, marks in (first, second)]
    assert (texts[0] == texts[1]) == (first == second)


def test_marks_that_are_packed_alike_are_not_signed_alike() -> None:
    seven, eight = (marks_statement("airline", b"", sendable_flags([False] * count)) for count in (7, 8))
    assert seven != eight


@given(names, sheets, hnp.arrays("float64", st.integers(0, 4)), hnp.arrays("float64", st.integers(0, 4)))
def test_weights_are_signed_bit_by_bit(party: str, sheet: bytes, first: np.ndarray, second: np.ndarray) -> None:
    texts = [weights_statement(party, sheet, sendable_floats(each)) for each in (first, second)]
    assert (texts[0] == texts[1]) == (first.tobytes() == second.tobytes())


@given(st.integers(-(2**63), 2**64 - 1), st.integers(-(2**63), 2**64 - 1), names, names)
def test_any_number_that_travels_as_a_seed_has_a_digest_of_its_own(
    first: int, second: int, party: str, other: str
) -> None:
    """A hostile server may send any: comparing it must not fail."""
    assert (seed_digest(party, first) == seed_digest(other, second)) == ((first, party) == (second, other))


def test_a_text_for_one_purpose_is_none_for_another() -> None:
    nothing = sendable_rows([])
    texts = [
        sheet_statement(b""),
        marks_statement("", b"", sendable_flags([])),
        weights_statement("", b"", sendable_floats([])),
        draw_statement("", b"", b"", nothing),
        seed_digest("", 0),
        rows_digest(nothing),
        digest(),
    ]
    assert len(set(texts)) == len(texts)


def test_a_large_part_is_hashed_where_it_is() -> None:
    part = bytes(1 << 24)
    tracemalloc.start()
    digest(b"share", part)
    assert tracemalloc.get_traced_memory()[1] < len(part) / 8
    tracemalloc.stop()


@pytest.mark.parametrize("kind", [np.int32, np.int64, ">i8"])
def test_rows_have_one_digest_however_they_are_held(kind: str) -> None:
    values = np.array([0, 3, 3, 7], dtype=kind)
    assert rows_digest(values) == rows_digest(sendable_rows([0, 3, 3, 7]))
    assert rows_digest(np.repeat(values, 2)[::2]) == rows_digest(values)


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.tuples(st.text(max_size=5), st.integers(0, 5))))
def test_texts_of_many_draws_are_those_of_each_alone(sheet: bytes, view: bytes, drawn: list[tuple[str, int]]) -> None:
    """What they begin with is hashed once; the bytes that are hashed are those of `digest`."""
    rows = [np.arange(count) for _, count in drawn]
    signed = [SignedRows(party, each, b"") for (party, _), each in zip(drawn, rows, strict=True)]
    parts = [(party.encode(), view, each.astype("<i8").tobytes()) for (party, _), each in zip(drawn, rows, strict=True)]
    assert draw_statements(sheet, view, signed) == [digest(PROTOCOL, b"draw", sheet, *each) for each in parts]
