"""Who is let in: the token, sessions that end, and tickets that are good once."""

from colonnade.board.door import MAX_SESSIONS, MAX_TICKETS, SESSION_SECONDS, TICKET_SECONDS, Door, new_token


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
    door.let_out(door.session(first) or b"")
    assert (door.session(first), door.session(second) is None) == (None, False)
    clock.now += SESSION_SECONDS
    assert door.session(second) is None


def test_sessions_are_few_and_the_oldest_goes() -> None:
    door = Door("right")
    secrets = [door.let_in() for _ in range(MAX_SESSIONS + 1)]
    assert [door.session(each) is None for each in secrets] == [True, *[False] * MAX_SESSIONS]


def test_a_ticket_is_good_once_for_its_session_and_not_after_its_time() -> None:
    clock = Clock()
    door = Door("right", clock)
    session = door.session(door.let_in())
    assert session is not None
    ticket, late = door.ticket(session), door.ticket(session)
    assert ticket not in repr(vars(door))
    assert (door.redeem(ticket), door.redeem(ticket), door.redeem("")) == (session, None, None)
    clock.now += TICKET_SECONDS
    assert door.redeem(late) is None
    last = door.ticket(session)
    door.let_out(session)
    assert door.redeem(last) is None


def test_tickets_are_few_and_the_oldest_goes() -> None:
    door = Door("right")
    session = door.session(door.let_in())
    assert session is not None
    tickets = [door.ticket(session) for _ in range(MAX_TICKETS + 1)]
    assert [door.redeem(each) is None for each in tickets] == [True, *[False] * MAX_TICKETS]
