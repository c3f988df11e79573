"""Sums that a party tells: of enough rows, of few numbers, not nearly those of an earlier one, and not too many."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.data.tables import read_table
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.per_row import numbers_in
from colonnade.kernels.selections import CountedRows
from colonnade.protocol import sums
from colonnade.protocol.memory import SumNote, counted_note, sum_note, weights_by_row
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.splits import HoldOut, counted
from colonnade.protocol.sums import check_hidden, check_sums, check_view, effective_rows, listed, told_of_a_row

N = 100
LEAST = 10
TABLE = read_table("airline", np.random.default_rng(0).normal(size=(N, 3)))


def data(least_rows: int = LEAST) -> PartyData:
    return PartyData(TABLE, policy=Policy(level="open", least_rows=least_rows, sums_in_all=0.5))


def group(rows: Any, weights: Any = None) -> Any:
    ids = np.asarray(rows)
    return ids, np.ones(len(ids)) if weights is None else np.asarray(weights, dtype=float)


def tell(party: PartyData, *groups: Any, numbers: int = 6) -> None:
    """Tell sums, and remember them as a session does."""
    state = check_sums(PartyState(), party, "moments", groups, 3, numbers, least=1)
    party.memory.keep(state.notes)


def test_enough_rows_pass() -> None:
    check_hidden(data(), "fold", [group(range(10)), group(range(10, 20))], 3, 12, least=1)


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        (range(3), None),
        ([5] * 50, None),
        ([], []),
        (range(50), np.eye(50)[7]),
        (range(50), np.where(np.arange(50) == 7, 1e6, 1.0)),
        (range(50), np.zeros(50)),
    ],
    ids=["as few as columns", "copies of one", "none", "one-hot", "one outweighs all", "no weight"],
)
def test_sums_of_effectively_few_rows_are_refused(rows: Any, weights: Any) -> None:
    with pytest.raises(InputError, match=r"its 3 columns of .* rows \(effectively, in fold 1\) would nearly show"):
        check_hidden(data(1), "fold", [group(range(50)), group(rows, weights)], 3, 6, least=1)


def test_the_owners_least_is_of_distinct_rows() -> None:
    copies = group(np.repeat(np.arange(LEAST - 1), 9))
    with pytest.raises(PolicyRefusedError, match=rf"sums over {LEAST} rows at least.*; fold 0 is over {LEAST - 1}"):
        check_hidden(data(), "fold", [copies], 3, 6, least=1)
    check_hidden(data(LEAST - 1), "fold", [copies], 3, 6, least=1)
    unweighted = group(range(20), [1.0] * (LEAST - 1) + [0.0] * 11)
    with pytest.raises(PolicyRefusedError):
        check_hidden(data(), "fold", [unweighted], 3, 6, least=1)


@pytest.mark.parametrize(("numbers", "passes"), [(30, True), (31, False)])
def test_half_as_many_numbers_as_values_are_told(numbers: int, passes: bool) -> None:
    """Ten folds of the same 20 rows are 20 rows: what they are made of is counted once."""
    groups = [group(range(20))] * 10
    if passes:
        check_hidden(data(), "fold", groups, 3, numbers, least=1)
    else:
        with pytest.raises(InputError, match="would tell 31 numbers made of 60 values, and half as many is the most"):
            check_hidden(data(), "fold", groups, 3, numbers, least=1)


@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0.01, 100.0)), min_size=1, max_size=30))
def test_effective_rows_are_between_one_and_the_distinct_ones(pairs: list[tuple[int, float]]) -> None:
    rows, weights = np.array([row for row, _ in pairs]), np.array([weight for _, weight in pairs])
    distinct = len(np.unique(rows))
    assert 1 - 1e-9 <= effective_rows((rows, weights)) <= distinct + 1e-9
    assert effective_rows((np.arange(distinct), np.ones(distinct))) == pytest.approx(distinct)
    assert effective_rows((rows, 7 * weights)) == pytest.approx(effective_rows((rows, weights)))


@given(st.integers(1, 30))
def test_two_sums_of_nearly_the_same_rows_are_not_both_told(apart: int) -> None:
    party = data()
    tell(party, group(range(60)))
    if apart >= LEAST:
        tell(party, group(range(apart, 60)))
    else:
        with pytest.raises(PolicyRefusedError, match=f"moments would be {apart} rows apart from a sum that it has"):
            tell(party, group(range(apart, 60)))


def test_the_same_again_tells_nothing_and_other_weights_tell_a_row() -> None:
    party = data()
    tell(party, group(range(60)))
    tell(party, group(range(60), np.full(60, 3.0)))
    with pytest.raises(PolicyRefusedError, match="over the same rows, with other weights, as a sum that it has told"):
        tell(party, group(range(60), np.where(np.arange(60) == 7, 1.5, 1.0)))


def test_a_refused_sum_is_not_remembered() -> None:
    party, state = data(), PartyState()
    with pytest.raises(InputError):
        check_sums(state, party, "moments", [group(range(3))], 3, 6, least=1)
    assert party.memory.notes() == frozenset(state.notes) == frozenset()


def test_all_sums_there_ever_were_are_counted() -> None:
    """Each over rows of its own choice: as many as half of all values, and not one more."""
    party, rng, most, numbers = data(), np.random.default_rng(1), N * 3 // 2, 6
    chosen = [group(np.sort(rng.choice(N, size=50, replace=False))) for _ in range(most // numbers + 1)]
    for each in chosen[:-1]:
        tell(party, each, numbers=numbers)
    tell(party, chosen[0], numbers=numbers)  # again, which counts once
    with pytest.raises(PolicyRefusedError, match=f"ends at {most}, 0.5 for each of its values"):
        tell(party, chosen[-1], numbers=numbers)


def test_functions_of_the_same_rows_are_counted() -> None:
    """Three numbers of 30 rows, of one value each: five times are half a number a value, whatever other rows tell."""

    def losses(name: int, first: int) -> None:
        rows = group(range(first, first + 30))
        state = check_sums(PartyState(), party, f"losses {name}", [rows], 1, 3, least=1, of_each=3)
        party.memory.keep(state.notes)

    party = data()
    for number in range(5):
        losses(number, 0)
    losses(0, 0)  # again, which counts once
    losses(5, 30)
    for first in (0, 15):
        with pytest.raises(PolicyRefusedError, match=r"would have told 0.6 numbers for a value of a single row"):
            losses(6, first)


def test_a_row_with_much_of_the_weight_is_told_by_one_sum() -> None:
    rows = np.arange(N)
    weights = np.where(rows == 7, 9.0, 1.0)
    tell(data(), group(rows, weights))
    with pytest.raises(PolicyRefusedError, match=r"would tell 0.503 of a single row"):
        tell(data(), group(rows, np.where(rows == 7, 10.0, 1.0)))


@given(st.integers(2, 4), st.floats(-12, 0), st.integers(0, 2**32))
def test_no_combination_of_sums_is_one_row(n_sums: int, size: float, seed: int) -> None:
    """Of sums by random weights, one more is a combination, with more of a row besides, however little."""
    rng, rows, row = np.random.default_rng(seed), np.arange(N), 7
    notes = [sum_note("sums", rows, rng.uniform(0.5, 1.0, size=N), N, 1, 1) for _ in range(n_sums)]
    assert told_of_a_row(notes, N)[1] < 0.3
    together = sum(next(weights_by_row(note, N, 104)) * rng.uniform(0.1, 1) for note in notes)
    notes.append(sum_note("sums", rows, np.asarray(together), N, 1, 1))
    assert told_of_a_row(notes, N)[1] < 0.3, "a combination tells nothing"
    notes[-1] = sum_note("sums", rows, together + np.where(rows == row, 10.0**size, 0.0), N, 1, 1)
    assert told_of_a_row(notes, N)[1] > 0.99


def test_rows_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, rows = np.random.default_rng(0), np.arange(N)
    notes = [sum_note("sums", rows[:k], rng.uniform(0.1, 1.0, size=k), N, k, 3) for k in (30, 60, 100)]
    whole = told_of_a_row(notes, N)
    monkeypatch.setattr(sums, "BLOCK_WEIGHTS", 48)
    assert told_of_a_row(notes, N) == pytest.approx(whole)


def test_without_a_least_nothing_is_kept() -> None:
    party = data(1)
    for _ in range(N):
        tell(party, group(range(50)))
    assert party.memory.notes() == frozenset()
    assert replace(PartyState()).notes == ()


# Sums over all rows that count, which are not listed


def counted_rows(weights: Any) -> CountedRows:
    return CountedRows(N, None if weights is None else numbers_in(np.asarray(weights, dtype=float)))


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.5]), min_size=N, max_size=N).filter(any) | st.none())
def test_rows_that_are_not_listed_are_noted_as_if_they_were(weights: list[float] | None) -> None:
    rows = counted_rows(weights)
    assert counted_note("moments", rows, 6, 1) == sum_note("moments", *listed(rows), N, 6, 1)
    assert effective_rows(rows) == pytest.approx(effective_rows(listed(rows)))


def test_an_even_weight_of_any_size_is_noted_as_none() -> None:
    assert counted_note("moments", counted_rows(np.full(N, 7.0)), 6, 1) == counted_note(
        "moments", counted_rows(None), 6, 1
    )


def verdict(party: PartyData, *groups: Any) -> str:
    try:
        tell(party, *groups)
    except (InputError, PolicyRefusedError) as error:
        return str(error)
    return "told"


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_held_out_the_same_looks_are_refused(seed: int) -> None:
    """A server that looks at all rows, then at all but a few of its choice, many times: lists or no lists."""
    rng, unlisted, by_list = np.random.default_rng(seed), data(), data()
    looks: list[Any] = [None]
    for _ in range(60):
        kept = (rng.random(N) > rng.choice([0.01, 0.05, 0.2, 0.5])).astype(float)
        looks.append(kept if rng.random() < 0.8 else kept * rng.integers(1, 3, size=N))
    looks += looks[:5]
    verdicts = [verdict(unlisted, counted_rows(look)) for look in looks]
    assert verdicts == [verdict(by_list, listed(counted_rows(look))) for look in looks]
    assert verdicts[0] == verdicts[61] == "told", "the same once more"
    assert any("rows apart" in each for each in verdicts)
    assert unlisted.memory.notes() == by_list.memory.notes()


def test_aligned_rows_are_noted_by_their_numbers() -> None:
    numbers = np.random.default_rng(0).permutation(2 * N)[:N]
    aligned: Any = SimpleNamespace(
        n_rows=N, row_weights=None, row_numbers=numbers, feature_names=("a",), label_name=None
    )
    (note,) = check_sums(PartyState(), replace(data(), table=aligned), "moments", [CountedRows(N)], 1, 2, least=1).notes
    assert isinstance(note, SumNote)
    assert set(np.flatnonzero(np.unpackbits(np.frombuffer(note.rows, np.uint8)))) == set(numbers)


def test_sums_over_all_rows_of_a_large_table_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit a row is kept of each sum; lists of rows and weights would take 73 bytes a row, 365 MB here."""
    monkeypatch.setattr("colonnade.kernels.per_row.KEPT_ROWS", 0)
    n_rows, party = 5_000_000, data()
    large: Any = SimpleNamespace(n_rows=n_rows, row_numbers=None, feature_names=("a", "b"), label_name="y")
    tracemalloc.start()
    for weights in (None, counted(n_rows, "train", HoldOut(0.2), None, None)):
        large.row_weights = weights
        state = check_view(PartyState(), replace(party, table=large), "moments", 3, 6)
        party.memory.keep(state.notes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(party.memory.notes()) == 2
    assert peak < 60e6
