from typing import Any

import numpy as np
import pytest

import colonnade as cn


def make(
    rows: Any = (0, 1, 1), weights: Any = (1.0, 2.0, 3.0), n_rows: int = 3, total_weight: float = 3.0
) -> cn.Coreset:
    return cn.Coreset(np.array(rows), np.array(weights), n_rows, total_weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [0, 1]}, "as many rows as weights"),
        ({"rows": np.array([], dtype=int), "weights": []}, "at least one"),
        ({"rows": [0.0, 1.0, 1.5]}, "whole numbers, got float64"),
        ({"rows": [[0, 1, 1]], "weights": [[1.0, 1.0, 1.0]]}, "1-D arrays"),
        ({"rows": [0, 1, 3]}, r"within 0\.\.2"),
        ({"rows": [-1, 1, 1]}, r"within 0\.\.2"),
        ({"rows": [1, 0, 1]}, "Sort the rows"),
        ({"rows": [0, 2**63 - 1, -(2**63), -1, 2], "weights": [1.0] * 5}, "Sort the rows"),
        ({"weights": [1.0, -2.0, 3.0]}, "non-negative"),
        ({"weights": [1.0, np.nan, 3.0]}, "finite"),
        ({"weights": [0.0, 0.0, 0.0]}, "not all zero"),
        ({"total_weight": 0.0}, "total_weight must be positive"),
    ],
)
def test_invariants(change: dict[str, Any], message: str) -> None:
    with pytest.raises(cn.InputError, match=message):
        make(**change)


def test_it_is_immutable_and_owns_its_arrays() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    coreset = make(weights=weights)
    with pytest.raises(ValueError, match="read-only"):
        coreset.weights[0] = 5.0


def test_equal_weights_are_worth_their_number() -> None:
    assert make(weights=[2.0, 2.0, 2.0]).effective_size == 3.0


def test_rows_of_no_weight_are_shown_with_the_others() -> None:
    coreset = make(rows=(0, 1), weights=(0.0, 2.0))
    assert coreset.least_weight == 0
    assert "0 to 2" in coreset._repr_html_()
