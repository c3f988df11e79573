"""Tokens: keyed hashes, and the comparison of lists of them."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.tokens import HASH_BYTES, has_repeats, in_all, keyed_hashes, order_of, private_order

WIDTHS = [16, 32]


def tokens(numbers: list[int], width: int) -> bytes:
    """Write numbers so that neighbours differ in their first or in their last bytes."""
    return b"".join((number % 5).to_bytes(8, "little") + number.to_bytes(width - 8, "big") for number in numbers)


def split(listed: bytes, width: int) -> list[bytes]:
    return [listed[start : start + width] for start in range(0, len(listed), width)]


@given(st.lists(st.binary(max_size=300)), st.binary(min_size=1, max_size=64))
def test_hashes_are_those_of_hashlib(keys: list[bytes], secret: bytes) -> None:
    found = split(keyed_hashes(keys, secret), HASH_BYTES)
    assert found == [hashlib.blake2b(key, digest_size=HASH_BYTES, key=secret).digest() for key in keys]


def test_another_secret_gives_other_hashes() -> None:
    first, second = (set(split(keyed_hashes([b"a", b"b"], secret), HASH_BYTES)) for secret in (bytes(32), b"1" * 32))
    assert len(first | second) == 4


@pytest.mark.parametrize("width", WIDTHS)
@given(sets=st.lists(st.sets(st.integers(0, 30)), min_size=1, max_size=5), data=st.data())
def test_what_all_lists_have(width: int, sets: list[set[int]], data: st.DataObject) -> None:
    lists = [data.draw(st.permutations(sorted(each))) for each in sets]
    common = set.intersection(*sets)
    for own, marks in zip(lists, in_all([tokens(each, width) for each in lists], width), strict=True):
        assert marks.tolist() == [number in common for number in own]


@pytest.mark.parametrize("width", WIDTHS)
@given(numbers=st.lists(st.integers(0, 300), max_size=40))
def test_repeats_are_found(width: int, numbers: list[int]) -> None:
    assert has_repeats(tokens(numbers, width), width) == (len(set(numbers)) < len(numbers))


@pytest.mark.parametrize("width", WIDTHS)
@given(numbers=st.lists(st.integers(0, 300), unique=True, max_size=40))
def test_the_order_is_the_same_however_they_came(width: int, numbers: list[int]) -> None:
    listed = split(tokens(numbers, width), width)
    ordered = [listed[place] for place in order_of(b"".join(listed), width)]
    backwards = listed[::-1]
    assert ordered == [backwards[place] for place in order_of(b"".join(backwards), width)]


def test_a_private_order_has_every_place_once() -> None:
    words = np.random.default_rng(0).integers(0, 2**63, size=1000, dtype=np.uint64)
    assert sorted(private_order(words).tolist()) == list(range(1000))
    assert private_order(np.zeros(3, np.uint64)).tolist() == [0, 1, 2], "equal words leave no doubt"
