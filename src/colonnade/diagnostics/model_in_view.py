"""A model of columns in their own units, turned into one of columns as the parties see them.

A party is sent the part of the model that it was told when it was learned, and turns it itself: so it knows it again.
"""

from colonnade.contracts import JobView, Table
from colonnade.kernels.arrays import Floats
from colonnade.protocol.viewed_table import ViewedTable

Units = JobView | ViewedTable


def units_of(table: Table) -> Units:
    """Give the units in which a party sees its columns."""
    return table if isinstance(table, ViewedTable) else JobView()


def coef_in_view(coef: Floats, units: Units) -> Floats:
    """Turn coefficients, shape (d,)."""
    return coef if units.scale is None else coef * units.scale


def centers_in_view(centers: Floats, units: Units) -> Floats:
    """Turn centres, shape (k, d)."""
    return centers if units.shift is None or units.scale is None else (centers - units.shift) / units.scale
