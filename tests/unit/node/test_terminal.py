import io
import sys

import pytest

from colonnade.node.terminal import printable, say


def test_what_others_wrote_cannot_command_a_terminal() -> None:
    assert printable("a\x1b[2Jb\nc\x07") == "a\ufffd[2Jb\nc\ufffd"


def test_who_cannot_say_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    say("It is late.")
