"""KC House: 21,613 sales of houses in King County, 18 features and the price (Kaggle's kc_house_data)."""

from pathlib import Path

from colonnade.paper.data_sets.data_set import DataSet, matrix, read_columns, require

NAME = "KC House"
FILES = ("kc_house_data.csv", "kc_house.csv", "kc_house.parquet")
N_ROWS, N_FEATURES = 21_613, 18
NOT_FEATURES = ("id", "date", "price")


def kc_house(path: Path) -> DataSet:
    """Read and check the original .csv file, or the same in Parquet; all rows train, as the paper's costs do."""
    table = read_columns(path, NAME)
    require(NAME, of="the number of rows", found=table.num_rows, wanted=N_ROWS)
    features = [name for name in table.column_names if name not in NOT_FEATURES]
    require(NAME, of="the number of features", found=len(features), wanted=N_FEATURES)
    return DataSet(NAME, matrix(table, features, NAME), matrix(table, ["price"], NAME)[:, 0], N_ROWS)
