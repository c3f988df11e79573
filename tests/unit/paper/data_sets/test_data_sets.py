from pathlib import Path

import numpy as np
import pytest

from colonnade.errors import InputError
from colonnade.paper.data_sets import year_prediction
from colonnade.paper.data_sets.data_set import DataSet, find_file
from colonnade.paper.data_sets.kc_house import kc_house
from colonnade.paper.data_sets.year_twin import NOISE, smoothed_bootstrap, year_twin

FIRST = ",".join(["2001", "49.94357", "21.47114", "73.07750", *["1.5"] * 87])


@pytest.fixture
def small_original(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write a file like the original with eight rows, six of them for training."""
    monkeypatch.setattr(year_prediction, "N_TRAIN", 6)
    monkeypatch.setattr(year_prediction, "N_TEST", 2)
    rows = [FIRST, *(f"{year},{'0.5,' * 89}2" for year in (1922, 2011, 1999, 2000, 2001, 2002, 2003))]
    path = tmp_path / "YearPredictionMSD.txt"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_original_is_read_with_its_split(small_original: Path) -> None:
    data = year_prediction.year_prediction(small_original)
    assert data.name == "YearPredictionMSD, original"
    assert data.features.shape == (8, 90)
    assert data.train[1].tolist() == [2001, 1922, 2011, 1999, 2000, 2001]
    assert data.test[1].tolist() == [2002, 2003]
    assert data.features[0, :3].tolist() == [49.94357, 21.47114, 73.0775]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("2011,", "2012,", "the range of years is (1922, 2012), and the original's is (1922, 2011)"),
        ("49.94357", "49.9", "the first row's beginning"),
        ("1999,", "", "cannot be read"),
        ("\n1999,", f"\n1998,{'0.5,' * 89}2\n1999,", "the number of rows is 9, and the original's is 8"),
        (",2\n", "\n", "cannot be read"),
        (",1.5\n", ",\n", "missing"),
    ],
)
def test_another_file_is_refused(small_original: Path, old: str, new: str, problem: str) -> None:
    text = small_original.read_text()
    assert old in text
    small_original.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        year_prediction.year_prediction(small_original)
    assert problem in str(caught.value)


def test_every_row_of_a_thinned_data_set_is_the_original_s() -> None:
    data = DataSet("numbers", np.arange(22.0).reshape(11, 2), np.arange(11.0), 7)
    thin = data.thinned(3)
    assert thin.name == "numbers, one row in 3"
    assert thin.train[1].tolist() == [0, 3, 6]
    assert thin.test[1].tolist() == [9]


def test_standardised_columns_have_mean_zero_and_spread_one() -> None:
    values = np.random.default_rng(0).normal(5.0, 3.0, size=(50, 3))
    values[:, 1] = 7.0
    scaled = DataSet("numbers", values, values[:, 0], 50).standardised()
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1.0, 0.0, 1.0])


def test_a_smoothed_bootstrap_keeps_mean_and_covariance() -> None:
    """With 200,000 rows the standard error of each is about 0.003 of its size; seeds are fixed."""
    rng = np.random.default_rng(0)
    sample = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) + [10.0, -5.0, 0.0]
    twin = smoothed_bootstrap(sample, 200_000, rng)
    np.testing.assert_allclose(twin.mean(axis=0), sample.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(twin.T, bias=True), np.cov(sample.T, bias=True), rtol=0.03, atol=0.03)
    assert len(np.unique(twin[:, 0])) == len(twin), "no row is a copy"
    shrunk = (twin[0] - sample.mean(axis=0)) * np.sqrt(1 + NOISE**2) + sample.mean(axis=0)
    nearest = np.abs(sample - shrunk).sum(axis=1).min()
    assert nearest < 5 * NOISE * np.sqrt(np.trace(np.cov(sample.T)))


@pytest.mark.slow
def test_the_twin_is_full_size_and_says_what_it_is(data_folder: Path) -> None:
    twin = year_twin(data_folder / "year_msd_sample7000.parquet")
    assert twin.name == "twin of YearPredictionMSD"
    assert twin.features.shape == (515_345, 90)
    assert len(twin.train[0]) == 463_715
    again = year_twin(data_folder / "year_msd_sample7000.parquet")
    assert np.array_equal(twin.features, again.features)


def test_kc_house_is_the_same_from_csv_and_parquet(data_folder: Path, tmp_path: Path) -> None:
    from pyarrow import csv, parquet

    original = data_folder / "kc_house.parquet"
    csv.write_csv(parquet.read_table(original), tmp_path / "kc_house_data.csv")
    ours, theirs = kc_house(tmp_path / "kc_house_data.csv"), kc_house(original)
    assert ours.features.shape == (21_613, 18)
    assert np.array_equal(ours.features, theirs.features)
    assert np.array_equal(ours.labels, theirs.labels)


def test_a_cut_kc_house_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kc_house.csv").write_text("id,date,price,bedrooms\n1,x,2,3\n")
    with pytest.raises(InputError, match="the number of rows is 1, and the original's is 21613"):
        kc_house(tmp_path / "kc_house.csv")


def test_a_file_is_found_by_path_by_folder_and_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "b.csv"
    file.write_text("")
    assert find_file(file, ("a.csv",), "A") == file
    assert find_file(tmp_path, ("a.csv", "b.csv"), "A") == file
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    assert find_file(None, ("b.csv",), "A") == file
    with pytest.raises(InputError, match=r"looked for a.csv. Pass --data FILE, or set COLONNADE_DATA"):
        find_file(None, ("a.csv",), "A")
