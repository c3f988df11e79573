"""Tables that fit a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from colonnade.text_tables import MOST_LINES, WIDTH, aligned, n_columns, paragraphs

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Mn", "Me", "Cf"]), max_size=300)


def test_what_fits_is_laid_out_as_it_is() -> None:
    table = [("party", "rows"), ("bank", "1,200"), ("telephone", "9")]
    assert aligned(table, {1}) == "party       rows\nbank       1,200\ntelephone      9"


def test_words_and_parts_of_names_stay_whole() -> None:
    table = [("message", "reveals", "a"), ("AskAuditedPredictions", "features, labels, moments", "b")]
    assert aligned(table, (), 28).splitlines()[1:] == [
        "AskAudited   features,     b",
        "Predictions  labels,",
        "             moments",
    ]


def test_a_long_name_keeps_both_ends() -> None:
    text = aligned([("name", "rows"), (f"first{'-' * 180}last", "7")], {1}, 20)
    assert text.splitlines()[1].startswith("first")
    assert text.splitlines()[-1].endswith("last")
    assert len(text.splitlines()) == 1 + MOST_LINES


def test_gaps_become_smaller_before_a_cell_is_broken() -> None:
    assert aligned([("run", "phase"), ("fit-0a1b", "solving")], (), 16).splitlines()[1] == "fit-0a1b solving"


def test_of_too_many_numbers_some_follow_below() -> None:
    header = ["feature", *(f"centre {number}" for number in range(12))]
    text = aligned([header, ["income", *["123.456"] * 12]], range(1, 13))
    first, second = text.split("\n\n")
    assert (first.split()[0], second.split()[0]) == ("feature", "feature")
    assert text.count("income") == 2
    assert text.count("123.456") == 12
    assert "centre 11" in second


def test_wide_characters_take_two_columns() -> None:
    assert n_columns("病院") == 4
    assert n_columns("e\u0301") == 1
    lines = aligned([("name", "rows"), ("病院", "7"), ("bank", "7")], {1}).splitlines()
    assert {n_columns(line) for line in lines} == {10}


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 10**12).map("{:,}".format)), min_size=1, max_size=5))
def test_every_table_of_names_fits(lines: list[tuple[str, str, str]]) -> None:
    text = aligned([("name", "other name", "bytes"), *lines], {2})
    assert max(map(n_columns, text.splitlines())) <= WIDTH
    assert all(any(number in line for line in text.splitlines()) for _, _, number in lines)


@given(NAMES)
def test_every_paragraph_fits_and_loses_no_character(text: str) -> None:
    folded = paragraphs(f"It says: {text}")
    assert max(map(n_columns, folded.split("\n"))) <= WIDTH
    assert "".join(folded.split()) == "".join(f"It says: {text}".split())


def test_lines_of_a_paragraph_begin_where_it_does() -> None:
    assert paragraphs("  one two three", 9) == "  one two\n  three"
