"""Tables to judge plans on: real ones and generated ones, with what real tables have; each split into parties.

Rare levels, whole groups of dummies (collinear with the intercept, and kept), columns that nearly repeat those of
another party, ratios with denominators near zero, sizes in the wrong unit. Constants of the planner are chosen on one
half of the tables, and judged on the other.

    table = load("houses", folder)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

import colonnade as cn
from colonnade.demo.flights import load_flights
from colonnade.kernels.arrays import Floats
from colonnade.paper.data_sets.year_twin import year_twin

Half = Literal["chosen", "judged"]
LEAST_SQUARES, RIDGE = cn.Regression(), cn.Regression(l2=0.1)
Content = tuple[Floats, Floats | None, tuple[int, ...]]  # features, labels (None: rows are clustered), widths


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, how their columns are split into parties, and what is to be learned; the last party has the label."""

    name: str
    features: Floats
    labels: Floats | None
    widths: tuple[int, ...]
    task: Any
    half: Half
    whole: bool = True  # all rows of its source

    @property
    def everything(self) -> int:
        """Bytes of all rows, 8 a value."""
        return 8 * (self.features.size + (0 if self.labels is None else self.labels.size))

    def federation(self) -> cn.Federation:
        """Give each party its columns."""
        return cn.Federation(cn.split_columns(self.features, self.labels, self.widths))


@dataclass(frozen=True)
class Source:
    """Where a table comes from, which half it is of, and what is tried on it.

    Of more than `most_rows` an even draw is taken, for time. `paper_bytes` is what the paper's wire sends of the whole
    table, and `paper_only` that no other budget is tried. An extra table is used only where it is asked for by name.
    """

    half: Half
    read: Callable[[Path], Content]
    task: Any = LEAST_SQUARES
    most_rows: int | None = None
    paper_bytes: int | None = None
    paper_only: bool = False
    extra: bool = False


def load(name: str, folder: Path, most_rows: int | None = None) -> Table:
    """Load a table; of one with more rows than the most, an even draw that is the same each time."""
    source = TABLES[name]
    features, labels, widths = source.read(folder)
    most = min(limit for limit in (len(features), most_rows, source.most_rows) if limit is not None)
    if whole := most == len(features):
        return Table(name, features, labels, widths, source.task, source.half, whole)
    rows = np.sort(np.random.default_rng(0).permutation(len(features))[:most])
    drawn = None if labels is None else labels[rows]
    return Table(name, features[rows], drawn, widths, source.task, source.half, whole)


def houses(folder: Path) -> Content:
    """KC House: 18 features, the price."""
    values = _parquet(folder / "kc_house.parquet")[:, 2:21]
    return values[:, 1:], values[:, 0], (9, 9)


def wrong_units(folder: Path) -> Content:
    """KC House where ten living areas and ten lots are a thousand times too large."""
    features, labels, widths = houses(folder)
    for column, rows in zip(
        (2, 3), np.random.default_rng(1).choice(len(features), (2, 10), replace=False), strict=True
    ):
        features[rows, column] *= 1000
    return features, labels, widths


def years(folder: Path) -> Content:
    """Make the twin of YearPredictionMSD."""
    return *year_twin(folder / "year_msd_sample7000.parquet").train, (30, 30, 30)


def elevation(folder: Path) -> Content:
    """Covertype: elevation from soil (40 levels, the rarest of 3 rows), wilderness area (4) and the other measures."""
    values = _parquet(folder / "covtype.parquet")
    return values[:, [*range(14, 54), *range(10, 14), *range(1, 10)]], values[:, 0], (40, 4, 9)


def roads(folder: Path) -> Content:
    """Covertype: the distance to the next road from all other columns, dealt in turn to three parties."""
    return _dealt(_parquet(folder / "covtype.parquet")[:, :54], label=5, n_parties=3)


def limit(folder: Path) -> Content:
    """Credit default: the limit from who, bills, and how payments went."""
    values = _parquet(folder / "credit_default.parquet")
    return values[:, [*range(2, 6), *range(12, 18), *range(6, 12), *range(18, 25)]], values[:, 1], (4, 6, 13)


def bill(folder: Path) -> Content:
    """Credit default: the last bill from all else, the earlier bills among them; dealt in turn to three parties."""
    return _dealt(_parquet(folder / "credit_default.parquet")[:, 1:25], label=11, n_parties=3)


def payment_ratios(folder: Path) -> Content:
    """Credit default: the limit from who, and which share of each bill was paid; many bills are next to nothing."""
    values = _parquet(folder / "credit_default.parquet")
    shares = values[:, 18:24] / (values[:, 12:18] + 0.5)
    return np.column_stack([values[:, 2:6], values[:, 6:12], shares]), values[:, 1], (4, 12)


def flights(label: str, folder: Path) -> Content:  # noqa: ARG001  # of a package, not of the folder
    """Flights: a label of the airline's from the weather, the aircraft and its own columns, levels as dummies."""
    import pandas as pd

    tables = load_flights()
    rows = tables["airline"].index.intersection(tables["weather"].index).sort_values()
    airline, weather, registry = (tables[name].loc[rows] for name in ("airline", "weather", "registry"))
    measured = weather[["temp", "dewp", "humid", "wind_dir", "wind_speed", "pressure", "precip", "visib"]]
    plane = pd.get_dummies(registry[["manufacturer", "type", "engine"]].fillna("unknown"))
    schedule = airline[["dep_delay", "distance", "hour", "month"]]
    parts = [
        measured.fillna(measured.median()),
        registry[["year", "seats"]].fillna(registry[["year", "seats"]].median()).join(plane),
        schedule.join(pd.get_dummies(airline[["origin", "carrier", "dest"]])),
    ]
    features = np.column_stack([part.to_numpy(np.float64) for part in parts])
    return features, airline[label].to_numpy(np.float64), tuple(part.shape[1] for part in parts)


def collinear(kind: str, eta: float, n_rows: int, width: int, folder: Path) -> Content:  # noqa: ARG001  # generated
    """Make three parties with nearly the same columns, whose differences matter; "sparse": in one row of 500."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((n_rows, width))
    own = [rng.standard_normal((n_rows, width)) for _ in range(3)]
    if kind == "sparse":
        large = np.where(rng.random(n_rows) < 0.002, 22.0, 0.1)[:, None]
        own = [part * large for part in own]
    told = sum((part @ rng.standard_normal(width) for part in own), np.zeros(n_rows))
    labels = common @ rng.standard_normal(width) + 0.5 * told + 2 * rng.standard_normal(n_rows)
    return np.hstack([common + eta * part for part in own]), labels, (width,) * 3


def heavy_tails(folder: Path) -> Content:  # noqa: ARG001  # generated
    """Make columns of Student's t with two degrees of freedom, which have no variance."""
    rng = np.random.default_rng(2)
    features = rng.standard_t(2, (60_000, 24))
    return features, features @ rng.standard_normal(24) + 5 * rng.standard_t(3, 60_000), (8, 8, 8)


def ratios(folder: Path) -> Content:  # noqa: ARG001  # generated
    """Make ratios with denominators near zero; the label follows them only where they are small."""
    rng = np.random.default_rng(17)  # the largest leverage is 0.8
    parts = rng.standard_normal((40_000, 12))
    shares = parts[:, :4] / parts[:, 4:8]
    labels = parts @ rng.standard_normal(12) + 2 * np.tanh(shares).sum(axis=1) + 2 * rng.standard_normal(40_000)
    return np.column_stack([parts[:, :6], shares[:, :2], parts[:, 6:], shares[:, 2:]]), labels, (8, 8)


def rare_levels(folder: Path) -> Content:  # noqa: ARG001  # generated
    """Make two columns of levels as dummies, the rarest level with 3 of 30,000 rows, and ten numbers."""
    rng, n_rows = np.random.default_rng(4), 30_000
    counts = np.array([3, 5, 9, 17, 40, 100, 300, 1000, 4000])
    levels = np.repeat(np.arange(len(counts) + 1), [*counts, n_rows - counts.sum()])
    dummies = [np.eye(len(counts) + 1)[rng.permutation(levels)] for _ in range(2)]
    numbers = rng.standard_normal((n_rows, 10))
    told = sum((part @ (5 * rng.standard_normal(part.shape[1])) for part in dummies), np.zeros(n_rows))
    labels = numbers @ rng.standard_normal(10) + told + 2 * rng.standard_normal(n_rows)
    return np.column_stack([dummies[0], numbers, dummies[1]]), labels, (10, 5, 15)


def house_clusters(folder: Path) -> Content:
    """KC House, scaled, for k-means."""
    features, _, widths = houses(folder)
    return _scaled(features), None, widths


def covertype_clusters(folder: Path) -> Content:
    """Covertype for k-means: numeric columns scaled, all dealt in turn to three parties, one row in ten."""
    values = _parquet(folder / "covtype.parquet")[::10, :54]
    values[:, :10] = _scaled(values[:, :10])
    return values[:, np.concatenate([np.arange(first, 54, 3) for first in range(3)])], None, (18, 18, 18)


def dealt(file: str, first: int, end: int, label: int, n_parties: int, folder: Path) -> Content:
    """Take one column of a file as the label, and deal all others of some in turn."""
    return _dealt(_parquet(folder / file)[:, first:end], label, n_parties)


def credit_clusters(folder: Path) -> Content:
    """Credit default for k-means, scaled, in two parties."""
    return _scaled(_parquet(folder / "credit_default.parquet")[:, 1:24]), None, (11, 12)


def _parquet(path: Path) -> Floats:
    """Read all columns; one that is no number is left empty."""
    columns = pq.read_table(path).columns
    values = np.full((len(columns[0]), len(columns)), np.nan, order="F")
    for i, column in enumerate(column.to_numpy() for column in columns):
        if column.dtype.kind in "biuf":
            values[:, i] = column
    return values


def _dealt(values: Floats, label: int, n_parties: int) -> Content:
    features = np.delete(values, label, axis=1)
    hands = [np.arange(first, features.shape[1], n_parties) for first in range(n_parties)]
    return features[:, np.concatenate(hands)], values[:, label], tuple(len(hand) for hand in hands)


def _scaled(values: Floats) -> Floats:
    scaled: Floats = (values - values.mean(axis=0)) / values.std(axis=0)
    return scaled


TABLES: dict[str, Source] = {
    # The paper's bytes: m = 100 and m = 1,000, at 8 bytes a unit.
    "houses": Source("chosen", houses, paper_bytes=20_016),
    "years": Source("judged", years, RIDGE, most_rows=60_000),
    "years-whole": Source("judged", years, RIDGE, paper_bytes=792_024, paper_only=True),
    "roads": Source("chosen", roads, most_rows=100_000),
    "elevation": Source("judged", elevation, most_rows=100_000),
    "limit": Source("chosen", limit),
    "bill": Source("judged", bill),
    "air-time": Source("chosen", partial(flights, "air_time"), most_rows=30_000),
    "delay": Source("judged", partial(flights, "arr_delay"), most_rows=30_000),
    "wrong-units": Source("chosen", wrong_units),
    "payment-ratios": Source("judged", payment_ratios),
    "ratios": Source("chosen", ratios),
    "heavy-tails": Source("judged", heavy_tails),
    "rare-levels": Source("judged", rare_levels),
    "house-clusters": Source("chosen", house_clusters, cn.KMeans(n_clusters=5)),
    "covertype-clusters": Source("judged", covertype_clusters, cn.KMeans(n_clusters=15)),
}
for _i, _eta in enumerate((0.5, 0.1, 0.03, 0.01)):
    for _j, _kind in enumerate(("even", "sparse")):
        _half: Half = "judged" if (_i + _j) % 2 else "chosen"
        TABLES[f"{_kind}-{_eta}"] = Source(_half, partial(collinear, _kind, _eta, 60_000, 8))
        TABLES[f"{_kind}-{_eta}-full"] = Source(_half, partial(collinear, _kind, _eta, 200_000, 20), extra=True)

# Nothing was set by these, which were tried when all was done: run them by name.
_HOUSE, _CREDIT, _COVER = ("kc_house.parquet", 2, 21), ("credit_default.parquet", 1, 25), ("covtype.parquet", 0, 54)
_LAST: dict[str, tuple[str, int, int, int, int]] = {
    "lots": (*_HOUSE, 4, 2),
    "grades": (*_HOUSE, 9, 3),
    "living-area": (*_HOUSE, 3, 2),
    "payments": (*_CREDIT, 17, 3),
    "defaults": (*_CREDIT, 23, 2),
    "ages": (*_CREDIT, 4, 4),
    "fires": (*_COVER, 9, 3),
    "slopes": (*_COVER, 2, 2),
    "shade": (*_COVER, 7, 3),
}
for _name, _which in _LAST.items():
    TABLES[_name] = Source("judged", partial(dealt, *_which), most_rows=30_000, extra=True)
TABLES["credit-clusters"] = Source("judged", credit_clusters, cn.KMeans(n_clusters=8), extra=True)
TABLES["distance"] = Source("judged", partial(flights, "distance"), most_rows=30_000, extra=True)
