"""Folds: every copy of a row in one, of nearly equal count, the same for all who know rows and seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import InputError
from colonnade.kernels.folds import FOLDS, deal_folds, fold_seed

rows_and_weights = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([0.0, 1e-9, 1.0, 7.5])), min_size=1, max_size=60
)


@given(rows_and_weights, st.integers(0, 2**63 - 1))
def test_a_partition_in_which_copies_stay_together(pairs: list[tuple[int, float]], seed: int) -> None:
    rows, weights = np.array([row for row, _ in pairs]), np.array([weight for _, weight in pairs])
    distinct = np.unique(rows[weights > 0])
    if len(distinct) < FOLDS:
        with pytest.raises(InputError, match=f"at least {FOLDS} distinct rows, one a fold, and there are"):
            deal_folds(rows, weights, seed)
        return
    folds = deal_folds(rows, weights, seed)
    np.testing.assert_array_equal(folds, deal_folds(rows, weights, seed))
    np.testing.assert_array_equal(folds == -1, weights == 0)
    of_row = {row: {int(fold) for fold in folds[(rows == row) & (weights > 0)]} for row in distinct.tolist()}
    assert all(len(found) == 1 for found in of_row.values()), "a row in two folds could be told from their difference"
    counts = np.bincount([min(found) for found in of_row.values()], minlength=FOLDS)
    assert len(counts) == FOLDS
    assert counts.max() - counts.min() <= 1


@given(st.integers(0, 2**63 - 1), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_their_weights_decide(seed: int, random: object) -> None:
    rows = np.repeat(np.arange(12), 2)
    order = np.random.default_rng(random.getrandbits(32)).permutation(len(rows))  # type: ignore[attr-defined]
    plain = deal_folds(rows, np.ones(len(rows)), seed)
    np.testing.assert_array_equal(deal_folds(rows[order], np.arange(1.0, len(rows) + 1), seed), plain[order])


def test_the_seed_decides() -> None:
    rows, weights = np.arange(50), np.ones(50)
    assert not np.array_equal(deal_folds(rows, weights, 1), deal_folds(rows, weights, 2))
    assert fold_seed(np.random.default_rng(0)) == fold_seed(np.random.default_rng(0)) < 2**63
