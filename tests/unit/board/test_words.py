"""Numbers and times as people say them."""

from datetime import UTC, datetime

import pytest

from colonnade.board.words import counted, listed, seconds_since, span_in_words, time_left, title_of


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, "0 s"), (42, "42 s"), (180, "3 min"), (9000, "2.5 h"), (4 * 86400, "4 days")]
)
def test_spans(seconds: float, words: str) -> None:
    assert span_in_words(seconds) == words


def test_how_long_ago() -> None:
    now = datetime(2026, 11, 18, 8, 0, 30, tzinfo=UTC)
    assert seconds_since("2026-11-18T08:00:00+00:00", now) == 30
    assert seconds_since("2026-11-18T08:00:00", now) == 30
    assert seconds_since("yesterday", now) is None


def test_names_and_counts() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert [counted(1, "job"), counted(1200, "job"), counted(2, "party", "parties")] == [
        "1 job",
        "1,200 jobs",
        "2 parties",
    ]
    assert title_of("fit", "kmeans") == "Learn a model: k-means clustering"
    assert title_of("unheard of") == "unheard of"


def test_time_left_is_told_only_where_rounds_are_counted_and_some_are_done() -> None:
    assert time_left(11, 21, 20.0) == "about 22 s left"
    assert [time_left(11, 0, 20.0), time_left(2, 20, 20.0), time_left(30, 20, 20.0)] == [None, None, None]
