"""Seeds of a draw: the first that a sampler takes of its generator, and all that a sheet has of the parties' own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.draws import draw_evenly
from colonnade.sampling.seeds import Seeds, count_even, even_rng
from colonnade.signing import seed_digest

seeds = st.integers(0, 2**63 - 1)


@given(seeds, st.integers(1, 8), st.integers(1, 8))
def test_the_seed_decides_and_the_shared_one_comes_first(seed: int, n_parties: int, others: int) -> None:
    first, again, more = (Seeds.of(np.random.default_rng(seed), count) for count in (n_parties, n_parties, others))
    assert first == again
    assert first.shared == more.shared, "how many parties there are decides nothing about it"
    assert first.own[: min(n_parties, others)] == more.own[: min(n_parties, others)]
    assert len(set(first.own)) == len(first.own) == n_parties


@given(seeds)
def test_digests_are_of_a_party_and_its_seed(seed: int) -> None:
    them = Seeds.of(np.random.default_rng(seed), 2)
    assert them.digests(("a", "b")) == (seed_digest("a", them.own[0]), seed_digest("b", them.own[1]))
    assert them.digests(("a", "b")) != them.digests(("b", "a"))


@given(seeds, st.integers(0, 200), st.floats(0, 1))
def test_all_sides_draw_as_many_rows_evenly_and_the_same(shared: int, size: int, share: float) -> None:
    count = count_even(shared, size, share)
    assert count == count_even(shared, size, share)
    assert 0 <= count <= size
    ours, theirs = (draw_evenly(50, count, even_rng(shared)) for _ in range(2))
    np.testing.assert_array_equal(ours, theirs)


def test_how_many_and_which_are_drawn_by_different_streams() -> None:
    assert count_even(3, 100, 0.0) == 0
    assert count_even(3, 100, 1.0) == 100
    counts = [count_even(shared, 1000, 0.3) for shared in range(400)]
    assert abs(np.mean(counts) - 300) < 4.5 * np.sqrt(1000 * 0.3 * 0.7 / 400), "a false alarm in 1 of 150,000 runs"
    assert even_rng(3).integers(2**63) != np.random.default_rng([3, 0]).integers(2**63)
