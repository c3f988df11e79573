"""Whatever a name or a value is, TOML reads back what was meant."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.node.toml_text import toml_key, toml_line

VALUES = st.recursive(
    st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, min_size=1, max_size=3),
    max_leaves=5,
)


@given(st.text(), VALUES)
def test_a_line_reads_back(name: str, value: Any) -> None:
    line = toml_line(name, value)
    assert line.isprintable(), "nothing in it ends the line, or hides"
    assert tomllib.loads(line) == {name: value}


@pytest.mark.parametrize(
    "name", ["a.b", "[policy]", 'x" = 1\nlevel = "open', "\x7f", "\x00", "\u202e", "\u2028", "#", "", " ", "é", "😀"]
)
def test_names_that_could_be_more_than_names(name: str) -> None:
    assert toml_key(name).startswith('"')
    assert tomllib.loads(toml_line(name, 1)) == {name: 1}


def test_plain_names_stay_plain() -> None:
    assert toml_line("income_2", {"kind": "number", "at_most": 1_000_000}) == (
        'income_2 = { kind = "number", at_most = 1_000_000 }'
    )
