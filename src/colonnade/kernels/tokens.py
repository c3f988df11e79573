"""Tokens of keys: short keyed hashes, or points, that are compared in place of the keys; all of one width.

A list of n tokens is n * width bytes. Lists are large, so all work on them is one pass of NumPy or of hashlib.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Flags, Rows

HASH_BYTES = 16
WORD = 8


def keyed_hashes(keys: Iterable[bytes], secret: bytes) -> bytes:
    """Hash each key under a secret (BLAKE2b, 16 bytes): without it no hash can be guessed, nor told from chance."""
    # To copy a hash that has taken its key is faster than to make one.
    keyed = hashlib.blake2b(digest_size=HASH_BYTES, key=secret)
    return b"".join(_hashed(keyed, key) for key in keys)


def _hashed(keyed: "hashlib.blake2b", key: bytes) -> bytes:
    copy = keyed.copy()
    copy.update(key)
    return copy.digest()


def order_of(tokens: bytes, width: int) -> Rows:
    """Sort tokens: give their places in ascending order, shape (n,)."""
    return _sorted(_words(tokens, width))


def has_repeats(tokens: bytes, width: int) -> bool:
    """Tell whether a token is in a list twice."""
    words = _words(tokens, width)
    words = words[_sorted(words)]
    return bool((words[1:] == words[:-1]).all(axis=1).any())


def in_all(lists: Sequence[bytes], width: int) -> list[Flags]:
    """Mark, in each list, the tokens that every list has; none has a token twice."""
    words = [_words(tokens, width) for tokens in lists]
    whole = np.concatenate(words)
    order = _sorted(whole)
    whole = whole[order]
    is_first = np.ones(len(whole), dtype=np.bool_)
    is_first[1:] = (whole[1:] != whole[:-1]).any(axis=1)
    group = np.cumsum(is_first) - 1
    marks = np.empty(len(whole), dtype=np.bool_)
    marks[order] = (np.bincount(group, minlength=1) == len(lists))[group]
    return np.split(marks, np.cumsum([len(each) for each in words])[:-1])


def _words(tokens: bytes, width: int) -> npt.NDArray[np.uint64]:
    return np.frombuffer(tokens, np.uint64).reshape(-1, width // WORD)


def _sorted(words: npt.NDArray[np.uint64]) -> Rows:
    return np.lexsort(words.T[::-1])


def private_order(words: npt.NDArray[np.uint64]) -> Rows:
    """Shuffle n places by n uniform words."""
    return np.argsort(words, kind="stable")
