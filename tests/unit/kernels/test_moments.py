import numpy as np

from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.row_blocks import ArrayBlocks
from cut_blocks import in_blocks

RNG = np.random.default_rng(0)


def test_centre_and_spread_in_blocks() -> None:
    X = RNG.normal(3.0, 2.0, size=(100, 4))
    X[:, 1] = 0.1  # constant: NumPy's mean is off by rounding
    blocks = in_blocks(X, 15)
    centre, spread = centre_and_spread(blocks, 3, centred=True)
    np.testing.assert_allclose(centre, X[:, :3].mean(axis=0))
    assert centre[1] == 0.1
    np.testing.assert_allclose(spread, [X[:, 0].std(), 1.0, X[:, 2].std()])
    centre, spread = centre_and_spread(blocks, 3, centred=False)
    assert centre.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(spread, np.sqrt(np.square(X[:, :3]).mean(axis=0)))


def test_weights_count_copies() -> None:
    X = RNG.normal(3.0, 2.0, size=(100, 3))
    weights = RNG.integers(0, 4, size=100).astype(float)
    copies = np.repeat(X, weights.astype(int), axis=0)
    centre, spread = centre_and_spread(in_blocks(X, 15, weights), 3, centred=True)
    np.testing.assert_allclose(centre, copies.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(spread, copies.std(axis=0), rtol=1e-12)


def test_a_column_constant_where_rows_count_has_no_spread() -> None:
    X = np.array([[0.3, 1.0], [0.3, 2.0], [1e9, 3.0]])
    _, spread = centre_and_spread(ArrayBlocks(X, np.array([1.0, 1.0, 0.0])), 2, centred=True)
    assert spread.tolist() == [1.0, 0.5]
