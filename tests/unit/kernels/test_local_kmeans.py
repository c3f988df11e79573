"""A party's own clustering costs no more than 2 % above a scikit-learn fit of all rows with one start."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import RowBlocks
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.local_kmeans import drawn_size, first_size, local_kmeans
from colonnade.kernels.rough_draws import Drawn, drawn_roughly
from colonnade.kernels.row_blocks import ArrayBlocks, taken


def cluster(X: Floats, k: int, seed: int, weights: Floats | None = None) -> Floats:
    return local_kmeans(ArrayBlocks(X, weights), k, np.random.default_rng(seed))


def test_fetches_one_small_sample_and_reads_all_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    asked: list[Rows] = []
    drawn: list[Drawn] = []

    def watched(blocks: RowBlocks, rows: Rows) -> tuple[Floats, Floats | None]:
        asked.append(rows)
        return taken(blocks, rows)

    def watched_draw(*given: Any) -> Drawn:
        drawn.append(drawn_roughly(*given))
        return drawn[-1]

    monkeypatch.setattr("colonnade.kernels.local_kmeans.taken", watched)
    monkeypatch.setattr("colonnade.kernels.local_kmeans.drawn_roughly", watched_draw)
    assert cluster(X, 3, seed=0).shape == (3, 2)
    assert [len(rows) for rows in asked] == [first_size(3)]
    assert (np.diff(asked[0]) > 0).all()
    assert len(drawn) == 1
    assert 0.8 * drawn_size(3) < len(drawn[0]) <= drawn_size(3)


@pytest.mark.parametrize("copies", [40, 40_000])
def test_few_distinct_rows_are_their_own_centres(copies: int) -> None:
    X = np.repeat([[0.1, 0.7], [0.3, 0.1], [1e6, 2.0]], copies, axis=0)
    for k in (3, 4, 10):
        np.testing.assert_array_equal(cluster(X, k, seed=0), np.unique(X, axis=0))


def test_a_party_without_columns_has_one_centre() -> None:
    assert cluster(np.zeros((9, 0)), 3, seed=0).shape == (1, 0)


def test_weights_move_the_centres_and_weight_zero_plays_no_part() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.0], [500.0]])
    centers = cluster(X, 2, seed=0, weights=np.array([3.0, 1.0, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(np.sort(centers, axis=0), [[0.25], [10.5]])


def test_weight_k_equals_k_copies_in_cost() -> None:
    """Medians over five seeds within 1 %; both are within 2 % of the best by the bar below."""
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(30_000, 3)), rng.integers(0, 4, size=30_000).astype(np.float64)
    copies = np.repeat(X, weights.astype(int), axis=0)

    def cost(centers: Floats) -> float:
        return float(nearest_centers(copies, centers)[1].sum())

    weighted = np.median([cost(cluster(X, 6, seed, weights)) for seed in range(5)])
    copied = np.median([cost(cluster(copies, 6, seed)) for seed in range(5)])
    assert weighted == pytest.approx(copied, rel=0.01)


# The 2 % bar, medians over fixed seeds (ten; for Covertype 21, and five of all rows): no false alarm under one
# scikit-learn. The constants of the kernel were chosen on Covertype, blobs, the mixture, lognormal and Student columns
# and songs, and judged on KC House and credit default.
# With fresh seeds the largest rate we know of is 0.02, for features 10-18 of KC House, where single fits of all rows
# end in one of several optima 4 % and more apart. For the third party of Covertype, 0.9 % above, it is 3e-4.


def full_cost(X: Floats, k: int, seed: int) -> float:
    from sklearn.cluster import KMeans

    solver = KMeans(k, n_init=1, random_state=seed).fit(np.ascontiguousarray(X))
    return float(nearest_centers(X, solver.cluster_centers_)[1].sum())


def relative_excess(X: Floats, k: int, n_seeds: int = 10, n_fits: int = 10) -> float:
    """Excess of the median local cost over the median cost of a single fit of all rows."""
    X = np.asfortranarray(X)
    local = np.median([nearest_centers(X, cluster(X, k, seed))[1].sum() for seed in range(n_seeds)])
    return float(local / np.median([full_cost(X, k, seed) for seed in range(n_fits)]) - 1)


def standardized(X: Floats) -> Floats:
    scaled: Floats = (X - X.mean(axis=0)) / X.std(axis=0)
    return scaled


def imbalanced_mixture() -> Floats:
    """Make 200,000 rows in ten blobs of 50 to 120,000 rows and different widths."""
    rng = np.random.default_rng(5)
    sizes = [120_000, 50_000, 20_000, 6_000, 2_000, 1_000, 500, 300, 150, 50]
    return np.concatenate([rng.uniform(0.5, 2) * rng.normal(size=(n, 8)) + 6 * rng.normal(size=8) for n in sizes])


def skewed(kind: str) -> Floats:
    """Make 60,000 rows whose cost lies in a few of them."""
    rng = np.random.default_rng(6)
    if kind == "lognormal":
        return rng.lognormal(sigma=2.0, size=(60_000, 4))
    if kind == "student":
        return rng.standard_t(1.5, size=(60_000, 4))
    if kind == "pareto":
        return rng.pareto(1.2, size=(60_000, 6))
    X = rng.normal(size=(60_000, 4))
    X[-6:] += 3000.0
    return X


@pytest.mark.parametrize("half", [slice(0, 9), slice(9, 18)], ids=["features 1-9", "features 10-18"])
def test_on_kc_house(kc_house: tuple[Floats, Floats], half: slice) -> None:
    assert relative_excess(standardized(kc_house[0][:, half]), 5) <= 0.02


@pytest.mark.parametrize("kind", ["lognormal", "student", "pareto", "six far rows"])
def test_on_skewed_columns(kind: str) -> None:
    assert relative_excess(skewed(kind), 8) <= 0.02


@pytest.mark.parametrize("half", [slice(1, 13), slice(13, 24)], ids=["features 1-12", "features 13-23"])
def test_on_credit_default(data_folder: Path, half: slice) -> None:
    import pyarrow.parquet as pq

    columns = pq.read_table(data_folder / "credit_default.parquet").columns[half]
    assert relative_excess(standardized(np.column_stack([np.asarray(c, np.float64) for c in columns])), 10) <= 0.02


@pytest.mark.slow(sampled=False)
def test_on_an_imbalanced_mixture() -> None:
    assert relative_excess(imbalanced_mixture(), 10) <= 0.02


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("party", range(3))
def test_on_covertype(data_folder: Path, party: int) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "covtype.parquet")
    X = np.column_stack([table.column(j).to_numpy().astype(np.float64) for j in range(party, 54, 3)])
    numeric = len(range(party, 10, 3))
    X[:, :numeric] = standardized(X[:, :numeric])
    assert relative_excess(X, 15, n_seeds=21, n_fits=5) <= 0.02
