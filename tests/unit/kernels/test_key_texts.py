"""Keys as Arrow has them: the same bytes are hashed and compared as of a list of Python's."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.kernels import key_texts
from colonnade.kernels.key_texts import KeyTexts

lists = st.lists(st.binary(max_size=20) | st.sampled_from([b"a" * 8, b"a" * 9, b"a" * 7 + b"b", b"\0", b"\0\0"]))


def held(keys: list[bytes], chunk: int = 3) -> KeyTexts:
    """Hold keys in chunks, of which some begin within a buffer."""
    whole = pa.array([b"before", *keys], pa.large_binary()).slice(1)
    pieces = [whole.slice(start, chunk) for start in range(0, len(keys), chunk)]
    return KeyTexts(pa.chunked_array(pieces, pa.large_binary()))


def digest(keys: list[bytes]) -> bytes:
    return hashlib.sha256(b"".join(len(key).to_bytes(8, "little") + key for key in keys)).digest()


@given(lists)
@example([])
@example([b"", b""])
@example([b"abc", b"def", b"ghi", b"jk"])
def test_a_digest_is_of_lengths_and_keys(keys: list[bytes]) -> None:
    assert held(keys).digest() == digest(keys)


def test_a_digest_stays_what_it_was() -> None:
    """Parties of different versions compare it."""
    assert held([b"7", b"12", b"ann"]).digest().hex() == (
        "3f32da8becaf67d9ac1a7ab0c7717b85e9751e7922635c2189a92b3bb6308205"
    )


def earlier(keys: list[bytes]) -> list[bool]:
    return [key in keys[:place] for place, key in enumerate(keys)]


@given(lists)
@example([b"", b"a", b""])
def test_repeats_are_those_of_an_earlier_key(keys: list[bytes]) -> None:
    assert held(keys).repeats().tolist() == earlier(keys)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@example([1, 2, 3])
@example([3, 1, 3])
def test_numbers_tell_repeats_as_texts_do(numbers: list[int]) -> None:
    keys = [str(number).encode() for number in numbers]
    assert held(keys).repeats(np.array(numbers, dtype=np.int64)).tolist() == earlier(keys)


def test_other_keys_of_the_same_hash_are_no_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(texts: Any) -> Any:
        return np.zeros(len(texts), np.uint64)

    monkeypatch.setattr(key_texts, "hashes_of", alike)
    keys = [b"a", b"b", b"a", b"c"]
    assert held(keys).repeats().tolist() == [False, False, True, False]


def test_many_keys_have_hashes_of_their_own() -> None:
    """2^20 running numbers and as many texts of two words: a good hash of 64 bits has two alike by 1e-7."""
    keys = [f"{stem}{number}".encode() for stem in ("", "customer-") for number in range(1 << 20)]
    hashes = np.concatenate([key_texts.hashes_of(chunk) for chunk in held(keys, 1 << 16).chunks.chunks])
    assert len(np.unique(hashes)) == len(keys)


@given(lists, st.randoms())
def test_it_is_a_sequence(keys: list[bytes], random: Any) -> None:
    texts, places = held(keys), random.sample(range(len(keys)), len(keys))
    assert list(texts) == keys
    assert [texts[place] for place in range(-len(keys), len(keys))] == keys + keys
    assert list(texts[1::2]) == keys[1::2]
    assert list(texts.take(np.array(places, dtype=np.int64))) == [keys[place] for place in places]
