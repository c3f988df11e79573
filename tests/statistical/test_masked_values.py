"""What the server receives of a secure sum looks uniform, whatever the scores."""

import numpy as np
from scipy import stats

from colonnade.kernels.masks import Ring, narrowest_ring
from colonnade.kernels.shares import to_limbs
from colonnade.privacy.pairwise import Secret, share_words

FALSE_ALARM = 1e-6
M = 20_000


def masked_by_three(numbers: np.ndarray, seed: int) -> tuple[list[np.ndarray], Ring]:
    rng = np.random.default_rng(seed)  # in place of the operating system: a statistical test fixes its seed
    ring = narrowest_ring(1e-6, 2.0, 3)
    assert ring is not None
    secrets = [Secret(rng.bytes(32)) for _ in range(3)]
    keys = [secret.key for secret in secrets]
    return [secret.masked(numbers, ring, keys, range(3), b"transcript") for secret in secrets], ring


def test_masked_scores_are_uniform_bits() -> None:
    """Constant scores, the easiest to see through. A chi-squared test of each byte; false alarms: 18 x 1e-6."""
    sent, ring = masked_by_three(np.full(M, 0.25), seed=1)
    for words in sent:
        for byte in range(ring.width):
            counts = np.bincount((words >> np.uint64(8 * byte)) & np.uint64(255), minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM
        assert (words < np.uint64(1 << 8 * ring.width)).all()


def test_shares_of_rows_are_uniform_bits() -> None:
    """What the server holds of constant rows in Gram mode: each byte of each limb; false alarms: 16 x 1e-6."""
    share = to_limbs(np.full((M, 1), 0.01)) - share_words(b"s" * 32, b"transcript").line(0, M).reshape(1, 2, M)
    for limb in share[0]:
        for byte in range(8):
            counts = np.bincount((limb >> np.uint64(8 * byte)) & np.uint64(255), minlength=256)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_masks_of_products_are_uniform_bits_and_differ_from_place_to_place() -> None:
    """A part of the grid: each byte; false alarms: 8 x 1e-6. Of 64-bit words, no two are equal."""
    words = share_words(b"s" * 32, b"transcript")
    grid = words.grid(2, range(3, 53), range(100, 200))
    for byte in range(8):
        counts = np.bincount(((grid >> np.uint64(8 * byte)) & np.uint64(255)).ravel(), minlength=256)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert len(np.unique(grid)) == grid.size
    np.testing.assert_array_equal(words.grid(2, range(5, 6), range(150, 152)), grid[:, :, 2:3, 50:52])
    np.testing.assert_array_equal(words.line(7, 3), words.line(0, 10)[14:])
    assert not np.isin(words.line(0, M), grid).any()


def test_masked_scores_do_not_follow_the_scores_nor_each_other() -> None:
    """Correlations of 20,000 numbers beyond 5 / sqrt(20,000) happen once in 1.7 million; six are looked at."""
    scores = np.random.default_rng(0).exponential(0.1, size=M)
    sent, _ = masked_by_three(scores, seed=2)
    columns = np.array([scores, *sent], dtype=np.float64)
    correlations = np.asarray(np.corrcoef(columns))[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(M)
