import io
import sys

import pytest

from colonnade.text_tables import n_columns
from colonnade.transports.terminal import CLEAR, Passes, Screen, Waiting, duration, printable, say


class Typewriter(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def at_a_typewriter(monkeypatch: pytest.MonkeyPatch) -> Typewriter:
    """Make one of 40 columns stderr; for the test's own body, since pytest makes another one stderr before it."""
    typewriter = Typewriter()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stderr", typewriter)
    return typewriter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("colonnade.transports.terminal.time.monotonic", lambda: now[0])
    return now


def test_what_others_wrote_cannot_command_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    assert printable("a\x1b[2Jb\nc\x07") == "a\ufffd[2Jb\nc\ufffd"
    screen = Screen()
    screen.count("a\x1b[2Jb\nc")
    assert typewriter.getvalue() == "a\ufffd[2Jb c"


def test_who_cannot_say_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    say("It is late.")


def test_a_line_that_counts_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    screen = Screen()
    screen.count("one")
    screen.count("two")
    screen.say("A remark.")
    screen.say("Another.")
    assert typewriter.getvalue() == f"one{CLEAR}two{CLEAR}A remark.\nAnother.\n"


def test_a_line_that_counts_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    Screen().count("waiting for " + "病院, " * 30)
    assert typewriter.getvalue().endswith("...")
    assert n_columns(typewriter.getvalue()) < 40


def test_remarks_are_broken_between_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    words, file = "word " * 12 + "end", io.StringIO()
    Screen().say(words)
    monkeypatch.setattr(sys, "stderr", file)
    Screen().say(words)
    assert file.getvalue() == f"{words}\n"
    assert typewriter.getvalue().splitlines() == [("word " * 8).strip(), ("word " * 4) + "end"]


def test_who_waits_in_a_file_says_so_after_longer_and_longer(clock: list[float]) -> None:
    said: list[str] = []
    waiting = Waiting(said.append)
    for _ in range(40_000):
        waiting.tell("Waiting")
        clock[0] += 1.0
    assert said[:4] == ["Waiting", "Waiting (30 s)", "Waiting (90 s)", "Waiting (4 min)"]
    assert len(said) < 20
    assert waiting.over()
    assert not waiting.over()
    assert waiting.tell("Waiting")
    assert said[-1] == "Waiting", "anew"


def test_another_reason_is_told_at_once_but_not_too_often(clock: list[float]) -> None:
    said: list[str] = []
    waiting = Waiting(said.append)
    for number in range(100):
        waiting.tell(f"waiting for {number}")
        clock[0] += 0.1
    assert 5 <= len(said) <= 11


def test_who_waits_at_a_terminal_counts(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    said: list[str] = []
    waiting = Waiting(said.append, Screen())
    for _ in range(3):
        waiting.tell("Waiting")
        clock[0] += 2.0
    waiting.over()
    assert typewriter.getvalue() == f"Waiting (0 s){CLEAR}Waiting (2 s){CLEAR}Waiting (4 s){CLEAR}"
    assert said == []


def test_a_pass_that_takes_long_is_counted_and_cleared(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    passes = Passes(Screen().count)
    for seconds in (0.1, 0.6):
        for n_done in range(1, 5):
            passes.tell(n_done, 4)
            clock[0] += seconds
    assert typewriter.getvalue() == f"3 of 4 blocks of a pass over the table (75%){CLEAR}"


@pytest.mark.parametrize("why", ["dumb", "taken"])
def test_it_does_not_count_where_it_cannot(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    typewriter = at_a_typewriter(monkeypatch)
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setattr(typewriter, "rich_proxied_file", typewriter, raising=False)
    assert not Screen().is_live


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0.4, 119, 150, 7300)] == ["0 s", "119 s", "2 min", "2 h"]
