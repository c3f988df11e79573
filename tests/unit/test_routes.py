"""Routes: what may come, how often, with which values; laws that hold whatever they are made of."""

from typing import Annotated, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.routes import END, Ask, AtMost, Hashing, Route, cut_short, either, some, then
from colonnade.signing import rows_digest


class Red(Message, frozen=True):
    phase: ClassVar[str] = "test"

    number: Annotated[int, Reveals.NOTHING]


class Green(Message, frozen=True):
    phase: ClassVar[str] = "test"


class Blue(Message, frozen=True):
    phase: ClassVar[str] = "test"

    rows: Annotated[Rows, Reveals.ROW_IDS]


RED, GREEN, BLUE = Red(1), Green(), Blue(sendable_rows([1, 2]))
MESSAGES = [RED, Red(2), Red(7), GREEN, BLUE, Blue(sendable_rows([3]))]
ASKS = [Ask(Red), Ask(Red, number=1), Ask(Red, number=AtMost(5)), Ask(Green), Ask(Blue, rows=BLUE.rows)]
words = st.lists(st.sampled_from(MESSAGES), max_size=12)


def take(route: Route | None, *requests: Message) -> Route | None:
    for request in requests:
        if route is None:
            return None
        route = route.after(request)
    return route


def left_of(route: Route, *requests: Message) -> Route:
    left = take(route, *requests)
    assert left is not None
    return left


def grown(parts: st.SearchStrategy[tuple[Route, int]]) -> st.SearchStrategy[tuple[Route, int]]:
    lists = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        lists.map(lambda them: (then(*(route for route, _ in them)), sum(most for _, most in them))),
        lists.map(lambda them: (either(*(route for route, _ in them)), max(most for _, most in them))),
        lists.map(lambda them: (cut_short(*(route for route, _ in them)), sum(most for _, most in them))),
        st.builds(
            lambda part, least, more: (some(part[0], least=least, most=least + more), part[1] * (least + more)),
            parts,
            st.integers(0, 2),
            st.integers(0, 2),
        ),
    )


# A route, and how many requests it lets through at most.
grammars = st.recursive(st.sampled_from([(ask, 1) for ask in ASKS] + [(END, 0)]), grown, max_leaves=6)
routes = grammars.map(lambda grammar: grammar[0])


# Laws


@given(routes, words)
def test_a_request_is_taken_just_if_it_is_among_what_is_next(route: Route, asked: list[Message]) -> None:
    left: Route | None = route
    for request in asked:
        assert left is not None
        fits = any(ask.after(request) is not None for ask in left.next_asks())
        following = left.after(request)
        assert (following is not None) == fits
        if following is None:
            assert left.objection(request), "a refusal has words"
            return
        left = following


@given(grammars, st.data())
def test_no_walk_is_longer_than_the_caps_and_none_goes_beyond_what_was_listed(
    grammar: tuple[Route, int], data: st.DataObject
) -> None:
    """The worst that a server can do is to take the longest way there is."""
    route, most = grammar
    listed, steps = {id(ask) for ask in route.asks()}, 0
    while True:
        assert {id(ask) for ask in route.next_asks()} <= {id(ask) for ask in route.asks()} <= listed
        possible = [message for message in MESSAGES if route.after(message) is not None]
        if not possible:
            break
        route = left_of(route, data.draw(st.sampled_from(possible)))
        steps += 1
        assert steps <= most


@given(routes, words)
def test_routes_are_values(route: Route, asked: list[Message]) -> None:
    """What was taken of one changes nothing for whoever takes it again, as after a restart."""
    first, again = take(route, *asked), take(route, *asked)
    assert (first is None) == (again is None)
    if first is not None and again is not None:
        assert first.can_end == again.can_end
        assert [id(ask) for ask in first.next_asks()] == [id(ask) for ask in again.next_asks()]


@given(routes, routes, routes, words)
def test_it_does_not_matter_how_parts_one_after_another_are_grouped(
    a: Route, b: Route, c: Route, asked: list[Message]
) -> None:
    left, right = take(then(then(a, b), c), *asked), take(then(a, then(b, c)), *asked)
    assert (left is None) == (right is None)
    if left is not None and right is not None:
        assert left.can_end == right.can_end


@given(routes, words)
def test_nothing_before_or_after_a_part_is_that_part(route: Route, asked: list[Message]) -> None:
    assert then(END, route, END) is route
    once = take(some(route, least=1, most=1), *asked)
    plain = take(route, *asked)
    assert (once is None) == (plain is None)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 12))
def test_a_part_comes_so_many_times(least: int, more: int, times: int) -> None:
    left = take(some(Ask(Green), least=least, most=least + more), *times * [GREEN])
    assert (left is not None) == (times <= least + more)
    if left is not None:
        assert left.can_end == (times >= least)


# Each by itself


def test_the_end_lets_nothing_through() -> None:
    assert END.can_end
    assert [*END.next_asks(), *END.asks()] == []
    assert all(END.after(message) is None for message in MESSAGES)
    assert END.objection(GREEN) == "nothing more would be next in this job, not Green"
    assert then() is END
    assert some(Ask(Green), most=0) is END


def test_one_after_another() -> None:
    route = then(Ask(Red), Ask(Green))
    assert not route.can_end
    assert route.objection(GREEN) == "Red would be next in this job, not Green"
    assert route.after(GREEN) is None
    left = left_of(route, RED)
    assert not left.can_end
    assert left.after(RED) is None, "once"
    assert left_of(left, GREEN).can_end


def test_a_way_that_was_taken_is_kept() -> None:
    route = either(then(Ask(Red), Ask(Green)), then(Ask(Blue), Ask(Red)))
    assert route.objection(GREEN) == "Red, Blue would be next in this job, not Green"
    assert take(route, RED, RED) is None
    assert left_of(route, BLUE, RED).can_end


def test_what_may_be_left_out_may_be_passed_over() -> None:
    route = then(some(Ask(Red), most=2), Ask(Green))
    for asked in ([GREEN], [RED, GREEN], [RED, RED, GREEN]):
        assert left_of(route, *asked).can_end
    assert take(route, RED, RED, RED) is None
    assert route.objection(BLUE) == "Red, Green would be next in this job, not Blue"


def test_parts_that_may_be_cut_short_keep_their_order() -> None:
    route = cut_short(Ask(Red), Ask(Green), Ask(Blue))
    assert not route.can_end
    for asked in ([RED], [RED, GREEN], [RED, GREEN, BLUE]):
        assert left_of(route, *asked).can_end
    for asked in ([GREEN], [RED, BLUE], [RED, GREEN, GREEN], [RED, GREEN, BLUE, RED]):
        assert take(route, *asked) is None


def test_an_attempt_that_broke_off_may_be_made_again_so_often() -> None:
    """As secure phases do where a key was lost."""
    route = then(some(cut_short(Ask(Red), Ask(Green)), least=1, most=2), Ask(Blue))
    for asked in ([RED, BLUE], [RED, GREEN, BLUE], [RED, RED, GREEN, BLUE], [RED, GREEN, RED, BLUE]):
        assert left_of(route, *asked).can_end
    for asked in ([BLUE], [RED, RED, RED], [RED, GREEN, RED, GREEN, RED], [GREEN]):
        assert take(route, *asked) is None


# Values


@pytest.mark.parametrize(
    ("agreed", "fits", "differs"),
    [
        (3, 3, 4),
        (AtMost(5), 5, 6),
        (AtMost(5), 0, -1),
        (AtMost(5, least=2), 2, 1),
        (AtMost(5), 5, 5.0),
    ],
)
def test_a_field_has_the_value_agreed_on(agreed: object, fits: int, differs: int) -> None:
    ask = Ask(Red, number=agreed)
    assert ask.after(Red(fits)) is END
    assert ask.after(Red(differs)) is None
    assert ask.objection(Red(differs)) == f"the job sheet says {agreed} where this Red has number = {differs}"


@pytest.mark.parametrize(("agreed", "value"), [(1, True), (1, 1.0), (0, False), (0, None), ("1", 1), (None, 0)])
def test_values_of_another_type_are_others(agreed: object, value: object) -> None:
    assert Ask(Red, number=agreed).after(Red(value)) is None  # type: ignore[arg-type]


def test_arrays_are_compared_by_their_values_and_not_told() -> None:
    ask = Ask(Blue, rows=np.array([1, 2]))
    assert ask.after(BLUE) is END
    for rows in ([1], [1, 3], [2, 1], []):
        assert ask.after(Blue(sendable_rows(rows))) is None
    assert "has rows = ndarray" in (ask.objection(Blue(sendable_rows([77]))) or "")
    assert Ask(Blue, rows=None).after(BLUE) is None
    assert Ask(Blue, rows=1).after(BLUE) is None


@given(st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4))
def test_a_value_whose_digest_is_known(agreed: list[int], told: list[int]) -> None:
    ask = Ask(Blue, rows=Hashing(rows_digest(sendable_rows(agreed)), rows_digest))
    assert (ask.after(Blue(sendable_rows(told))) is END) == (agreed == told)
    if agreed != told:
        assert "the job sheet says what has the digest " in (ask.objection(Blue(sendable_rows(told))) or "")


def test_of_several_ways_each_says_what_differs_once() -> None:
    route = either(Ask(Red, number=1), Ask(Red, number=2), then(Ask(Red, number=1), Ask(Green)), Ask(Green))
    assert route.objection(Red(3)) == (
        "the job sheet says 1 where this Red has number = 3; the job sheet says 2 where this Red has number = 3"
    )
