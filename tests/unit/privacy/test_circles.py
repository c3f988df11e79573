"""Who shares secrets with whom, and how many must join forces with the server before that is too few."""

from collections.abc import Collection
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path

import pytest

from colonnade.privacy.circles import ALL, NEAR, NEIGHBOURS, Circle

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "privacy.md"


@pytest.mark.parametrize("circle", [NEIGHBOURS, Circle(near=0, hubs=(0,)), Circle(hubs=(0, 7)), ALL])
@pytest.mark.parametrize("count", [1, 2, 8, NEAR, NEAR + 1, NEAR + 2, 100])
def test_who_is_in_a_circle_has_the_other_in_its_own(circle: Circle, count: int) -> None:
    around = [circle.around(place, count) for place in range(count)]
    for place, places in enumerate(around):
        assert list(places) == sorted(set(places) & set(range(count)))
        assert place in places
        assert all(place in around[other] for other in places)


@pytest.mark.parametrize("count", [3, 16, NEAR + 1])
def test_few_parties_share_secrets_all_with_all(count: int) -> None:
    assert all(NEIGHBOURS.around(place, count) == tuple(range(count)) for place in range(count))


def test_of_many_each_has_as_many_neighbours_half_on_either_side() -> None:
    assert NEIGHBOURS.around(50, 100) == tuple(range(34, 67))
    assert NEIGHBOURS.around(0, 100) == (*range(17), *range(84, 100))
    assert Circle(near=0, hubs=(0,)).around(5, 100) == (0, 5)
    assert Circle(near=0, hubs=(0,)).around(0, 100) == tuple(range(100))


def is_cut(circle: Circle, count: int, joined: Collection[int]) -> bool:
    """Tell whether some honest parties share no secret with the rest of them: their sum has no mask then."""
    honest = set(range(count)) - set(joined)
    found = {min(honest)}
    while more := {other for place in found for other in circle.around(place, count)} & honest - found:
        found |= more
    return found != honest


def share_of_cuts(near: int, count: int, joined: int) -> Fraction:
    """Count in which part of all places where so many may stand they cut the circle.

    They do if there are two gaps between honest neighbours that are half of `near` wide, or wider. By inclusion and
    exclusion over the gaps, of which there are as many as honest parties, and which add up to those that joined.
    """
    half, honest = near // 2, count - joined

    def some_wide(wide: int) -> int:
        return comb(honest, wide) * comb(joined - wide * half + honest - 1, honest - 1)

    widest = range(joined // half + 1)
    exactly = [sum((-1) ** (j - k) * comb(j, k) * some_wide(j) for j in widest if j >= k) for k in widest]
    return Fraction(sum(exactly[2:]), comb(count - 1, honest - 1))


@pytest.mark.parametrize(("near", "count"), [(2, 9), (4, 11), (6, 12)])
def test_it_takes_as_many_as_are_near_to_cut_the_circle_wherever_they_stand(near: int, count: int) -> None:
    """All places, of small circles."""
    circle = Circle(near=near)
    for joined in range(count - 1):
        cut = [is_cut(circle, count, places) for places in combinations(range(count), joined)]
        assert share_of_cuts(near, count, joined) == Fraction(sum(cut), len(cut))
        assert any(cut) == (joined >= near)


def test_of_a_hundred_parties_it_takes_as_many_as_are_near() -> None:
    """At the worst places: all neighbours of one, or of some side by side."""
    half = NEAR // 2
    for width in (1, 2, 30):
        ends = [*range(10, 10 + half), *range(10 + half + width, 10 + NEAR + width)]
        assert is_cut(NEIGHBOURS, 100, ends)
        assert not any(is_cut(NEIGHBOURS, 100, set(ends) - {each}) for each in ends)
    assert all(share_of_cuts(NEAR, count, NEAR - 1) == 0 for count in (34, 100, 1000))


def test_the_page_says_how_often_more_at_any_places_cut_the_circle() -> None:
    lines = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| of 1")]
    assert len(lines) == 2
    for line in lines:
        count = int(line[0].replace(",", "").split()[1])
        for cell, joined in zip(line[1:], (NEAR, count // 3, count // 2, 2 * count // 3), strict=True):
            assert f"{float(share_of_cuts(NEAR, count, joined)):.0e}" == cell.strip()
