"""Tables as a party opens them, read whole."""

from typing import Any

from colonnade.contracts import Table
from colonnade.data.files import open_table
from colonnade.data.tables import ArrayTable
from colonnade.kernels.arrays import Floats


def read_whole(data: object, *choose: Any, **given: Any) -> Any:
    """Open a table as `open_table` does, and read it as a `pyarrow.Table`."""
    return open_table("bank", data, *choose, **given).batches.read_all()


def held(table: Table) -> Floats:
    """Give the values of a table that is held in memory."""
    assert isinstance(table, ArrayTable)
    return table.values[:]
