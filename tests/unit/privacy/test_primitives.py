import numpy as np
import pytest

from colonnade.privacy.primitives import ManyWords


@pytest.mark.parametrize("counts", [[], [1, 1, 1, 5], [2, 3], [0, 1, 7], [3, 100_000, 3]])
def test_the_line_is_the_same_piece_by_piece(counts: list[int]) -> None:
    """Whatever the pieces: those that end before the third pair of words, and those of more than a megabyte."""
    words = ManyWords(b"s" * 32, b"context")
    found = [piece.copy() for piece in words.pieces(counts)]
    assert [len(piece) for piece in found] == [2 * count for count in counts]
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.uint64), *found]), words.line(0, sum(counts)))
