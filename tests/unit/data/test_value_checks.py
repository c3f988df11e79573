"""What is said of a bad value: its row, found piece by piece, as of a column in one piece."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from colonnade.data.value_checks import check_columns
from colonnade.errors import InputError

N = 10_000
PIECE = 1_000


def column(**bad: float) -> np.ndarray:
    values = np.linspace(1.0, 2.0, N)
    for row, value in bad.items():
        values[int(row.removeprefix("row"))] = value
    return values


def said(values: np.ndarray, *, in_pieces: bool, is_integer: bool = False) -> str:
    def read(_: int) -> Iterator[np.ndarray]:
        yield from np.split(values, N // PIECE) if in_pieces else [values]
        yield values[:0]

    most = np.array([np.maximum(-values.min(), values.max())])
    with pytest.raises(InputError) as caught:
        check_columns("bank", ["age"], most, read, [is_integer])
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "is_integer", "words"),
    [
        (
            column(row2500=np.nan, row9999=np.nan, row10=np.inf),
            False,
            "2 of 10000 values are missing (null or NaN), the",
        ),
        (column(row2500=-np.inf, row9999=np.inf), False, "the first in row 2500 (rows count from 0): -inf."),
        (column(row7001=-1e300, row9000=1e300), False, "its largest value in size is -1e+300 in row 7001 (rows"),
        (np.full(N, 1e-300), False, "its largest value in size is 1e-300 in row 0 (rows"),
        (column(row3=2.0**52, row8123=2.0**60), True, "the integer in row 8123 (rows count from 0) is 2^53 or more"),
    ],
)
def test_pieces_tell_what_the_whole_column_does(values: np.ndarray, is_integer: bool, words: str) -> None:
    told = said(values, in_pieces=True, is_integer=is_integer)
    assert words in told
    assert told == said(values, in_pieces=False, is_integer=is_integer)


def test_no_more_than_a_piece_is_held() -> None:
    def read(_: int) -> Iterator[np.ndarray]:
        for number in range(100):
            yield np.full(PIECE * 10, np.nan if number == 99 else 1.0)

    tracemalloc.start()
    with pytest.raises(InputError, match="10000 of 1000000 values are missing"):
        check_columns("bank", ["age"], np.array([np.nan]), read)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * PIECE * 10 * 8
