"""CompactCentral beside Central on real tables, of which calibration takes more than of made-up ones.

Least squares on 2,000 rows, scores cached, in one process on one core. The tables are those that plans are judged on
(benchmarks/tables.py); the flights are of a package, all others of the folder named by --data.
"""

from functools import partial
from pathlib import Path

from side_by_side import Line, Store, one_core, time_in_turns
from tables import load
from verbs import SAMPLER

import colonnade as cn

TABLES = {
    "houses": "kc_house.parquet",
    "bill": "credit_default.parquet",
    "elevation": "covtype.parquet",
    "years": "year_msd_sample7000.parquet",
    "delay": "",
}


def timed(name: str, folder: Path) -> Line:
    """Fit both ways, from parties that have their scores."""
    table = load(name, folder)
    federation = table.federation()
    federation.coreset(table.task, SAMPLER)
    with one_core():
        return time_in_turns(
            {
                "ours": lambda: federation.fit(table.task, sampler=SAMPLER, solver=cn.CompactCentral()),
                "Central": lambda: federation.fit(table.task, sampler=SAMPLER),
            }
        ) | {"features": table.features.shape[1]}


def measure(store: Store, *, large: bool, data: Path) -> None:  # noqa: ARG001  # all are small
    """Time every table whose file is there."""
    for name, file in TABLES.items():
        if (data / file).exists():
            store.fill({"bench": "compact", "work": "compact fit", "table": name}, partial(timed, name, data))
        else:
            print(f"{data / file} is not there: {name} is left out. Pass --data FOLDER.")
