from colonnade.node.terminal import printable


def test_what_others_wrote_cannot_command_a_terminal() -> None:
    assert printable("a\x1b[2Jb\nc\x07") == "a\ufffd[2Jb\nc\ufffd"
