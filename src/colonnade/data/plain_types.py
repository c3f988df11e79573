"""Types that databases and frames have besides numbers and text, put into those: the same table from everywhere."""

from typing import Any

from colonnade.errors import InputError
from colonnade.preparation.reading import without_view

INTEGER_DIGITS = 18
# Extension types that are read as what they are stored as.
STORED = ("arrow.bool8", "arrow.json", "arrow.opaque")


def plain_types(where: str, reader: Any) -> Any:
    """Read decimals as numbers, PostgreSQL's numeric among them, and uuid and json as text; views as what they show.

    A decimal without a fraction, of 18 digits at most, is a 64-bit integer; any other the nearest 64-bit float.
    """
    import pyarrow as pa

    kinds = [_plain_type(where, field) for field in reader.schema]
    if kinds == reader.schema.types:
        return reader
    schema = pa.schema(zip(reader.schema.names, kinds, strict=True))

    def plain(batch: Any) -> Any:
        columns = [_plain_column(where, *each) for each in zip(schema, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(plain, reader))


def _plain_type(where: str, field: Any) -> Any:
    import pyarrow as pa

    metadata = field.metadata or {}
    name = metadata.get(b"POSTGRESQL:type") or metadata.get(b"ADBC:postgresql:typname")
    if name == b"money":
        raise InputError(
            f"{where}: the column {field.name!r} is of PostgreSQL's type money, whose unit depends on the server. "
            f"Select {field.name}::numeric in its place."
        )
    if name == b"numeric":
        modifier = int(metadata.get(b"POSTGRESQL:typmod", b"-1"))  # -1 where it has no precision
        return _number(*divmod(modifier - 4, 1 << 16)) if modifier >= 4 else pa.float64()
    if pa.types.is_decimal(field.type):
        return _number(field.type.precision, field.type.scale)
    extension = getattr(field.type, "extension_name", "")
    if extension == "arrow.uuid":
        return pa.string()
    return field.type.storage_type if extension in STORED else without_view(field.type)


def _number(precision: int, scale: int) -> Any:
    import pyarrow as pa

    return pa.int64() if scale == 0 and precision <= INTEGER_DIGITS else pa.float64()


def _plain_column(where: str, field: Any, column: Any) -> Any:
    import pyarrow as pa

    if column.type == field.type:
        return column
    if getattr(column.type, "extension_name", "") == "arrow.uuid":
        return pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.string())
    try:
        stored = getattr(column, "storage", column)
        # By its text: pyarrow's own way from decimal to float misses the nearest by a bit.
        return (stored.cast(pa.string()) if pa.types.is_decimal(stored.type) else stored).cast(field.type)
    except pa.ArrowException:
        raise InputError(
            f"{where}: the column {field.name!r} has a decimal number that is no {field.type}. Convert it to a float."
        ) from None
