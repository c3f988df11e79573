from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.privacy.sum_tree import Opening, SumTree, depth, pack_openings, start_of, unpack_openings


def tree_of(numbers: list[int], secret: bytes = b"secret") -> SumTree:
    return SumTree(np.array(numbers, dtype=np.uint64), secret)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=40))
def test_every_number_opens_to_its_place_on_the_line(numbers: list[int]) -> None:
    tree = tree_of(numbers)
    assert tree.total == sum(numbers)
    for place, number in enumerate(numbers):
        opening = tree.open(place)
        assert opening.number == number
        assert len(opening.hashes) == depth(len(numbers))
        assert start_of(opening, place, len(numbers), tree.root, tree.total) == sum(numbers[:place])


NUMBERS = [5, 0, 7, 1, 9, 2, 4]


def forged(opening: Opening) -> list[Opening]:
    """Change an opening in every part."""
    other = b"?" * 32
    return [
        replace(opening, number=opening.number + 1),
        replace(opening, number=-1),
        replace(opening, salt=bytes(16)),
        replace(opening, salt=opening.salt[:-1]),
        replace(opening, hashes=(other, *opening.hashes[1:])),
        replace(opening, hashes=(*opening.hashes[:-1], other)),
        replace(opening, hashes=opening.hashes[:-1], sums=opening.sums[:-1]),
        replace(opening, hashes=(opening.hashes[0][:-1], *opening.hashes[1:])),
        replace(opening, sums=(opening.sums[0] + 1, *opening.sums[1:])),
        replace(opening, sums=(*opening.sums[:-1], opening.sums[-1] - 1)),
        replace(opening, sums=(2**64 + opening.sums[0], *opening.sums[1:])),
        replace(opening, number=opening.number + 1, sums=(opening.sums[0] - 1, *opening.sums[1:])),
    ]


@pytest.mark.parametrize("place", range(7))
def test_a_forged_opening_belongs_to_no_commitment(place: int) -> None:
    tree = tree_of(NUMBERS)
    opening = tree.open(place)
    for forgery in forged(opening):
        assert start_of(forgery, place, 7, tree.root, tree.total) is None
    for elsewhere in set(range(-1, 9)) - {place}:
        assert start_of(opening, elsewhere, 7, tree.root, tree.total) is None
    assert start_of(opening, place, 7, tree.root, tree.total + 1) is None
    assert start_of(opening, place, 7, bytes(32), tree.total) is None


def test_the_root_hides_and_binds() -> None:
    roots = {
        tree_of(NUMBERS).root,
        tree_of(NUMBERS, b"another").root,
        tree_of([5, 0, 7, 1, 9, 4, 2]).root,
        tree_of([*NUMBERS, 0]).root,
    }
    assert len(roots) == 4
    assert tree_of(NUMBERS).root == tree_of(NUMBERS).root


def test_salts_differ_from_leaf_to_leaf() -> None:
    tree = tree_of([3] * 50)
    assert len({tree.open(place).salt for place in range(50)}) == 50


def test_openings_travel() -> None:
    tree = tree_of(NUMBERS)
    openings = [tree.open(place) for place in (1, 4)]
    salts, hashes = pack_openings(openings)
    numbers, sums = [each.number for each in openings], [below for each in openings for below in each.sums]
    assert unpack_openings(numbers, salts, hashes, sums, 3) == openings
    for wrong in ((salts[:-1], hashes, sums), (salts, hashes + b"!", sums), (salts, hashes, sums[:-1])):
        assert unpack_openings(numbers, *wrong, 3) is None
