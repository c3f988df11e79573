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


def keyed_hashes(keys: Iterable[bytes], secret: bytes, size: int = HASH_BYTES) -> bytes:
    """Hash each key under a secret (BLAKE2b): without it no hash can be guessed, nor told from chance."""
    # To copy a hash that has taken its key is faster than to make one.
    keyed = hashlib.blake2b(digest_size=size, key=secret).copy
    hashes = bytearray()
    for key in keys:
        hashed = keyed()
        hashed.update(key)
        hashes += hashed.digest()
    return bytes(hashes)


def chosen(tokens: bytes, places: Rows) -> bytes:
    """Give the hashes that are at these places, in their order."""
    return np.frombuffer(tokens, f"V{HASH_BYTES}")[places].tobytes()


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
    # Tokens that begin alike are the same, but by a chance of 1 to 2^64 or by somebody's will: then all words count.
    first = np.ascontiguousarray(words[:, 0])
    order = np.argsort(first)
    first = first[order]
    alike = np.flatnonzero(first[1:] == first[:-1])
    if (words[order[alike + 1]] != words[order[alike]]).any():
        return np.lexsort(words.T[::-1])
    return order


def private_order(words: npt.NDArray[np.uint64]) -> Rows:
    """Shuffle n places by n uniform words."""
    return np.argsort(words, kind="stable")
