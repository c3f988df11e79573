"""Tables as a party opens them, read whole."""

from typing import Any

from colonnade.data.files import open_table


def read_whole(data: object, *choose: Any, **given: Any) -> Any:
    """Open a table as `open_table` does, and read it as a `pyarrow.Table`."""
    return open_table("bank", data, *choose, **given).batches.read_all()
