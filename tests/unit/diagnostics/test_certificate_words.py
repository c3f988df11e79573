"""How a certificate's numbers are written."""

import pytest

from colonnade.diagnostics.certificate import _rounded_up


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (0.0701, "0.071"),
        (0.070000000000001, "0.071"),
        (0.0996, "0.100"),
        (0.07, "0.070"),
        (1.1, "1.1"),
        (1.11, "1.2"),
        (9.96, "10.0"),
        (12.3, "13"),
        (1234.5, "1,235"),
        (1e-308, "0.0000010"),
    ],
)
def test_a_bound_is_never_written_below_itself(bound: float, words: str) -> None:
    assert _rounded_up(bound) == words
    assert float(words.replace(",", "")) >= bound


def test_a_bound_that_says_nothing_is_written_as_it_is() -> None:
    assert (_rounded_up(float("inf")), _rounded_up(0.0)) == ("inf", "0")
