import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colonnade.kernels.draws import draw_by_scores, draw_evenly

SCORES = st.lists(st.just(0.0) | st.floats(1e-300, 1e6), min_size=1, max_size=50).filter(lambda scores: sum(scores) > 0)


@given(SCORES, st.integers(0, 200), st.integers(0, 2**32))
def test_rows_ascend_and_rows_of_score_zero_are_never_drawn(scores: list[float], count: int, seed: int) -> None:
    rows = draw_by_scores(np.array(scores), count, np.random.default_rng(seed))
    assert rows.dtype == np.int64
    assert rows.shape == (count,)
    assert (np.diff(rows) >= 0).all()
    assert (np.array(scores)[rows] > 0).all()


class AlmostOne(np.random.Generator):
    """Draws the largest number below one."""

    def random(self, *_: object, **__: object) -> np.ndarray:  # type: ignore[override]
        return np.array([np.nextafter(1.0, 0.0)])


@given(SCORES)
def test_the_largest_draw_falls_to_the_last_positive_score(scores: list[float]) -> None:
    rows = draw_by_scores(np.array([*scores, 0.0]), 1, AlmostOne(np.random.PCG64(0)))
    total = np.cumsum(scores)
    assert rows[0] <= np.flatnonzero(total == total[-1])[0], "no later than where the sum is complete"


@given(st.integers(1, 1000), st.integers(0, 100), st.integers(0, 2**32))
def test_even_draws_stay_in_range(n_rows: int, count: int, seed: int) -> None:
    rows = draw_evenly(n_rows, count, np.random.default_rng(seed))
    assert rows.shape == (count,)
    assert (np.diff(rows) >= 0).all()
    assert count == 0 or (rows[0] >= 0 and rows[-1] < n_rows)
