"""What a party remembers: sums are told apart by their rows and by how much these count, not by the last bits."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colonnade.protocol.memory import (
    AppliedNote,
    CoresetNote,
    KeptHere,
    ModelNote,
    Note,
    SumNote,
    is_same_sum,
    rows_apart,
    sum_note,
    weights_by_row,
)

N = 24
subsets = st.lists(st.integers(0, N - 1), min_size=1, max_size=N)


def note(rows: list[int] | np.ndarray, weights: np.ndarray | None = None) -> SumNote:
    ids = np.asarray(rows)
    return sum_note("sums", ids, np.ones(len(ids)) if weights is None else weights, N, 1, 1)


@given(subsets, subsets)
def test_sums_are_apart_by_the_rows_that_one_of_them_has(first: list[int], second: list[int]) -> None:
    assert rows_apart(note(first), note(second)) == len(set(first) ^ set(second))


@given(subsets, st.floats(1e-9, 1e9), st.integers(0, 2**32))
def test_order_scale_and_last_bits_do_not_matter(rows: list[int], scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids, weights = np.array(rows), rng.uniform(0.5, 2.0, size=len(rows))
    order = rng.permutation(len(rows))
    assert is_same_sum(note(ids[order], weights[order]), note(ids, weights))
    doubled = note(np.concatenate([ids, ids]), np.concatenate([weights, weights]))
    assert is_same_sum(doubled, note(ids, weights)), "twice the same is the same sum"
    assert is_same_sum(note(ids, scale * weights), note(ids, weights))


@given(st.integers(0, N - 1), st.floats(1.001, 100.0))
def test_a_row_that_counts_more_makes_another_sum_of_the_same_rows(row: int, factor: float) -> None:
    weights = np.ones(N)
    weights[row] = factor
    plain, heavier = note(np.arange(N)), note(np.arange(N), weights)
    assert rows_apart(plain, heavier) == 0
    assert not is_same_sum(plain, heavier)


@given(subsets, st.integers(0, 2**32), st.booleans())
def test_weights_are_given_back_by_row_in_blocks(rows: list[int], seed: int, is_even: bool) -> None:
    ids = np.unique(rows)
    weights = np.ones(len(ids)) if is_even else np.random.default_rng(seed).uniform(0.5, 2.0, size=len(ids))
    due = np.zeros(N)
    due[ids] = weights / weights.sum()
    told = note(ids, weights)
    for size in (8, 16, N):
        np.testing.assert_allclose(np.concatenate([*weights_by_row(told, N, size)]), due, atol=1e-15)


def test_rows_that_weigh_nothing_are_not_in_a_sum() -> None:
    assert note([0, 1, 2], np.array([1.0, 0.0, 1.0])) == note([0, 2])


def test_notes_are_kept_once_and_survive_being_written() -> None:
    memory, notes = KeptHere(), (CoresetNote(b"c", b"", b""), ModelNote(b"c"), AppliedNote(b"c", 1), note([1, 2]))
    memory.keep(notes)
    memory.keep(notes[:2])
    assert memory.notes() == frozenset(notes)
    assert len(memory.notes()) == len(notes), "a coreset is no model, though their digests were the same"
    for each in notes:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(each), type=Note) == each
