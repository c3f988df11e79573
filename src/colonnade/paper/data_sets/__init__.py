"""The data sets of the paper, one loader a file; here is which file holds which, and what a quick run makes of it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from colonnade.paper.data_sets import kc_house, year_prediction, year_twin
from colonnade.paper.data_sets.data_set import DataSet, find_file
from colonnade.paper.design import HOUSES, YEAR, Part
from colonnade.tasks import KMeans

# Clustering all rows from ten starts takes minutes; regression as run depends on the number of rows, and is fast.
QUICK_STEP = 5


def loader(given: Path | None) -> Callable[[Part, bool], DataSet]:
    """Make a function of a part and ``quick`` that finds and reads data sets, each once, as `find_file` does."""
    years, houses = cache(lambda: _years(given)), cache(lambda: _houses(given))

    def load(part: Part, quick: bool) -> DataSet:
        data = {YEAR: years, HOUSES: houses}[part.data]()
        thin = quick and part.data == YEAR and isinstance(part.learn, KMeans)
        return data.thinned(QUICK_STEP) if thin else data

    return load


def _years(given: Path | None) -> DataSet:
    path = find_file(given, (*year_prediction.FILES, *year_twin.FILES), year_prediction.NAME)
    return (year_twin.year_twin if path.suffix == ".parquet" else year_prediction.year_prediction)(path)


def _houses(given: Path | None) -> DataSet:
    return kc_house.kc_house(find_file(given, kc_house.FILES, kc_house.NAME))
