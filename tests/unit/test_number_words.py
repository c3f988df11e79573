import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.number_words import LARGEST, SMALLEST, count, duration, in_bytes, per_cent, value

BYTES = {"byte": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (99_940, "99.9 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_900, "1.0 MB"),
        (1_234_567, "1.2 MB"),
        (5e18, "5,000 PB"),
        (math.inf, "infinite"),
    ],
)
def test_bytes_for_people(number: float, text: str) -> None:
    assert in_bytes(number) == text


@given(st.integers(0, 10**18))
def test_bytes_lose_no_more_than_their_last_digit(number: int) -> None:
    digits, unit = in_bytes(number).split(" ")
    assert float(digits.replace(",", "")) * BYTES[unit] == pytest.approx(number, rel=0.051)
    assert unit == "PB" or float(digits.replace(",", "")) < 1000


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.04, "4.0 %"),
        (0.9999, "100.0 %"),
        (0.00999, "1.0 %"),
        (0.0042, "0.42 %"),
        (-0.04, "-4.0 %"),
        (1e-9, "under 0.001 %"),
        (-1e-9, "above -0.001 %"),
        (12.5, "1,250 %"),
        (math.inf, "infinite %"),
    ],
)
def test_shares_for_people(share: float, text: str) -> None:
    assert per_cent(share) == text


@given(st.floats(SMALLEST, LARGEST, exclude_max=True), st.sampled_from([-1, 1]))
def test_usual_values_have_no_exponent_and_four_digits_that_are_right(number: float, sign: int) -> None:
    text = value(sign * number)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(sign * number, rel=5.1e-4)


def test_what_rounding_leaves_of_zero_is_zero_and_nothing_has_an_exponent() -> None:
    shown = [value(number) for number in (1e-17, -3e-13, 2.5e-9, -1.5e13, 1e300, -1e300)]
    assert shown == ["0", "0", "0.0000000025", "-15 trillion", "above 1,000,000 trillion", "below -1,000,000 trillion"]


@given(st.floats())
def test_every_number_has_a_text(number: float) -> None:
    assert all(0 < len(text) < 30 for text in (value(number), in_bytes(number), per_cent(number), duration(number)))


def test_counts_are_whole_with_commas() -> None:
    assert [count(21613), count(2.6), count(1e15)] == ["21,613", "3", "1,000 trillion"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0423, "42 ms"),
        (0.9999, "1.0 s"),
        (9.99, "10 s"),
        (59.7, "1 min"),
        (75, "1 min 15 s"),
        (3599.9, "1 h"),
        (7260, "2 h 1 min"),
    ],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
