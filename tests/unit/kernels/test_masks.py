import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.kernels.masks import TOLERANCE, Ring, masked, narrowest_ring, pack, to_numbers, to_words, unpack

widths = st.integers(1, 8)
words = hnp.arrays("uint64", st.integers(0, 30))


@given(words, widths)
def test_packing_keeps_the_low_bytes_and_sends_no_more(values: np.ndarray, width: int) -> None:
    packed = pack(values, width)
    assert len(packed) == len(values) * width
    np.testing.assert_array_equal(unpack(packed, width), values & np.uint64((1 << 8 * width) - 1))


@given(st.integers(1, 6), widths, st.integers(0, 20), st.integers(0, 2**32))
def test_masks_cancel_in_every_ring(n_parties: int, width: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    secrets = rng.integers(2**64, size=(n_parties, m), dtype=np.uint64)
    masks = rng.integers(2**64, size=(n_parties, n_parties, m), dtype=np.uint64)
    sent = [
        masked(secrets[j], masks[j, j + 1 :], masks[:j, j], width)  # r_jl added by j, subtracted by l
        for j in range(n_parties)
    ]
    below = np.uint64((1 << 8 * width) - 1)
    assert all((each <= below).all() for each in sent)
    np.testing.assert_array_equal(np.sum(sent, axis=0, dtype=np.uint64) & below, secrets.sum(axis=0) & below)


@given(st.integers(2, 60), st.floats(1e-9, 1.0), st.sampled_from([2.0, 4.0]), st.integers(0, 2**32))
def test_sums_are_within_a_millionth_of_the_smallest_number(
    n_parties: int, smallest: float, largest: float, seed: int
) -> None:
    ring = narrowest_ring(smallest, largest, n_parties)
    assert ring is not None
    numbers = np.random.default_rng(seed).uniform(smallest, largest, size=(n_parties, 40))
    numbers[:, 0], numbers[:, 1] = smallest, largest
    total = to_numbers(np.sum([to_words(each, ring) for each in numbers], axis=0, dtype=np.uint64), ring)
    # float64's own rounding of a sum is 1e-16 of the largest, not of the smallest.
    np.testing.assert_allclose(total, numbers.sum(axis=0), rtol=0, atol=TOLERANCE * smallest + 1e-15 * total.max())


@given(st.integers(2, 60), st.floats(1e-9, 1.0), st.sampled_from([2.0, 4.0]))
def test_no_ring_of_a_byte_less_would_do(n_parties: int, smallest: float, largest: float) -> None:
    ring = narrowest_ring(smallest, largest, n_parties)
    assert ring is not None
    assert ring.largest >= n_parties * largest
    step = 2.0**-ring.exponent
    assert n_parties * step / 2 <= TOLERANCE * smallest < n_parties * step, "twice the step would be too coarse"
    assert Ring(ring.width - 1, ring.exponent).largest < n_parties * (largest * (1 + 2 * TOLERANCE) + step)


def test_a_million_rows_take_six_bytes() -> None:
    for n_parties in (3, 10):
        ring = narrowest_ring(1e-6, 2.0, n_parties)
        assert ring is not None
        assert ring.width == 6


def test_what_does_not_fit_in_eight_bytes_has_no_ring() -> None:
    assert narrowest_ring(1e-18, 2.0, 3) is None


@pytest.mark.parametrize("width", range(1, 9))
def test_a_full_ring_wraps_to_zero(width: int) -> None:
    ring = Ring(width, 0)
    top = np.array([2 ** (8 * width) - 1], dtype=np.uint64)
    assert to_numbers(top + np.uint64(1), ring).tolist() == [0.0]
