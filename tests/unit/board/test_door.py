"""Who is let in: the token, sessions that end, and how many wrong tokens are looked at."""

import pytest

from colonnade.board.door import MAX_SESSIONS, SESSION_SECONDS, Door, is_word, new_token


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_only_the_token_is_known_and_neither_it_nor_a_session_is_kept() -> None:
    token = new_token()
    door = Door(token)
    assert (door.knows(token), door.knows(token + "x"), door.knows("")) == (True, False, False)
    secret = door.let_in()
    assert door.session(secret) is not None
    assert door.session(token) is None
    kept = repr(vars(door))
    assert token not in kept
    assert secret not in kept


def test_tokens_have_256_bits_and_differ() -> None:
    assert {len(new_token()) for _ in range(20)} == {43}
    assert len({new_token() for _ in range(20)}) == 20


def test_a_session_ends_in_time_and_when_it_is_left() -> None:
    clock = Clock()
    door = Door("right", clock)
    first, second = door.let_in(), door.let_in()
    door.let_out(first)
    assert (door.session(first), door.session(second) is None) == (None, False)
    clock.now += SESSION_SECONDS
    assert door.session(second) is None


def test_sessions_are_few_and_the_oldest_goes() -> None:
    door = Door("right")
    secrets = [door.let_in() for _ in range(MAX_SESSIONS + 1)]
    assert [door.session(each) is None for each in secrets] == [True, *[False] * MAX_SESSIONS]


@pytest.mark.parametrize("word", ["", "x", "é"])
def test_each_session_has_a_word_of_its_own(word: str) -> None:
    door = Door("right")
    first, second = (door.session(door.let_in()) for _ in range(2))
    assert first is not None
    assert second is not None
    assert is_word(first, first.word)
    assert not is_word(first, second.word)
    assert not is_word(first, word)
