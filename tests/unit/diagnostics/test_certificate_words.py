"""How a certificate's numbers are written."""

import pytest

from colonnade.diagnostics.certificate import in_bytes


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "1 byte"), (64, "64 bytes"), (19_028, "19 kB"), (99_600, "100 kB"), (99_400_000_000, "99 GB")],
)
def test_bytes_are_no_power_of_ten(count: int, words: str) -> None:
    assert in_bytes(count) == words
    assert "e+" not in in_bytes(10 * count)
