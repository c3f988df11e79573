from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.integer_draws import Steps, steps_in
from colonnade.privacy.sum_tree import Opening, SumTree, depth, pack_openings, start_of, unpack_openings


def tree_of(numbers: list[int], secret: bytes = b"secret") -> SumTree:
    return SumTree(steps_in(np.array(numbers, dtype=np.uint64)), secret)


def opened(tree: SumTree, place: int) -> Opening:
    return tree.open(np.array([place]))[0]


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=40))
def test_every_number_opens_to_its_place_on_the_line(numbers: list[int]) -> None:
    tree = tree_of(numbers)
    assert tree.total == sum(numbers)
    for place, number in enumerate(numbers):
        opening = opened(tree, place)
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
    opening = opened(tree, place)
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
    assert len({opened(tree, place).salt for place in range(50)}) == 50


def test_openings_travel() -> None:
    tree = tree_of(NUMBERS)
    openings = tree.open(np.array([1, 4]))
    salts, hashes = pack_openings(openings)
    numbers, sums = [each.number for each in openings], [below for each in openings for below in each.sums]
    assert unpack_openings(numbers, salts, hashes, sums, 3) == openings
    for wrong in ((salts[:-1], hashes, sums), (salts, hashes + b"!", sums), (salts, hashes, sums[:-1])):
        assert unpack_openings(numbers, *wrong, 3) is None


@pytest.mark.parametrize("count", [BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 3, 5 * BLOCK_ROWS])
def test_trees_of_several_blocks_open_everywhere(count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, 2**30, size=count).astype(np.uint64)
    tree = SumTree(steps_in(numbers), b"secret")
    before = np.cumsum(numbers) - numbers
    places = np.unique(np.array([0, 1, BLOCK_ROWS - 2, BLOCK_ROWS - 1, BLOCK_ROWS, count // 2, count - 2, count - 1]))
    places = places[places < count]
    for place, opening in zip(places.tolist(), tree.open(places), strict=True):
        assert opening.number == numbers[place]
        assert start_of(opening, place, count, tree.root, tree.total) == before[place]
        assert start_of(opening, place ^ 1, count, tree.root, tree.total) is None
    assert tree.total == numbers.sum()


def test_a_tree_keeps_what_is_above_blocks_and_opens_by_those_it_opens_in() -> None:
    numbers, asked = np.arange(40 * BLOCK_ROWS, dtype=np.uint64), []

    def of_blocks(some: Any) -> Any:
        asked.append(some)
        return steps_in(numbers).map(some)

    tree = SumTree(Steps(len(numbers), of_blocks), b"secret")
    assert sum(level.nbytes for level in tree._levels) < 100 * 40
    tree.open(np.array([3, 5, 17 * BLOCK_ROWS]))
    assert asked == [None, [0, 17]]
