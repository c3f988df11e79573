"""YearPredictionMSD (UCI): 515,345 songs, 90 timbre features, the year; the first 463,715 are for training.

The original is one text file without header, the year first. It cannot be passed on with this project.
"""

from pathlib import Path

from colonnade.paper.data_sets.data_set import DataSet, matrix, read_columns, require

NAME = "YearPredictionMSD"
FILES = ("YearPredictionMSD.txt", "YearPredictionMSD.csv")
# The publisher's split: no artist is on both sides.
N_TRAIN, N_TEST = 463_715, 51_630
N_FEATURES = 90
YEARS = (1922, 2011)
FIRST_ROW = (2001.0, 49.94357, 21.47114, 73.0775)


def year_prediction(path: Path) -> DataSet:
    """Read and check the original text file."""
    table = read_columns(path, NAME, header=False)
    require(NAME, of="the number of rows", found=table.num_rows, wanted=N_TRAIN + N_TEST)
    require(NAME, of="the number of columns", found=table.num_columns, wanted=1 + N_FEATURES)
    values = matrix(table, table.column_names, NAME)
    years = values[:, 0]
    require(NAME, of="the range of years", found=(int(years.min()), int(years.max())), wanted=YEARS)
    require(NAME, of="the first row's beginning", found=tuple(values[0, :4].tolist()), wanted=FIRST_ROW)
    return DataSet(f"{NAME}, original", values[:, 1:], years, N_TRAIN)
