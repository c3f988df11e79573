import numpy as np
import pytest

import colonnade as cn


def test_widths_are_a_list() -> None:
    with pytest.raises(cn.InputError, match="widths must be a list"):
        cn.split_columns(np.ones((5, 4)), None, 4)  # type: ignore[arg-type]
    assert len(cn.split_columns(np.ones((5, 4)), None, np.array([2, 2]))) == 2


@pytest.mark.parametrize("widths", [[2, 1], [4, 0], [], [5, -1], [2, 2, 1]])
def test_widths_must_fit(widths: list[int]) -> None:
    with pytest.raises(cn.InputError, match=r"add up to the columns of X|a width must be a whole number of 1 or more"):
        cn.split_columns(np.ones((5, 4)), None, widths)
