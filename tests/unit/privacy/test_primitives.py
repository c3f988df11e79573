import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from colonnade.privacy.primitives import KEY_BYTES, ManyWords, derive, mask_words


@pytest.mark.parametrize("counts", [[], [1, 1, 1, 5], [2, 3], [0, 1, 7], [3, 100_000, 3]])
def test_the_line_is_the_same_piece_by_piece(counts: list[int]) -> None:
    """Whatever the pieces: those that end before the third pair of words, and those of more than a megabyte."""
    words = ManyWords(b"s" * 32, b"context")
    found = [piece.copy() for piece in words.pieces(counts)]
    assert [len(piece) for piece in found] == [2 * count for count in counts]
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.uint64), *found]), words.line(0, sum(counts)))


@pytest.mark.parametrize("count", [0, 1, 7, 200_000])
def test_a_mask_is_what_aes_counts_under_a_derived_key(count: int) -> None:
    """As Galois/counter mode has it, the first block goes to the tag, which is no part of a mask."""
    key = AES256(derive(b"agreed", b"context", KEY_BYTES))
    counted = Cipher(key, CTR((2).to_bytes(16, "big"))).encryptor().update(bytes(8 * count))
    assert mask_words(b"agreed", b"context", count).astype("<u8").tobytes() == counted
