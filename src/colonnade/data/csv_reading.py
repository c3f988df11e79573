"""Rows of CSV files, read some at a time, on all cores; a column has the type that all of its values have."""

import codecs
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from colonnade.data import csv_files
from colonnade.data.csv_files import Content, CsvFile, first_fault, guarded, undecodable_line
from colonnade.data.engines import in_threads
from colonnade.data.filling import let_go
from colonnade.errors import InputError

# Read at once by each thread; and the longest that a line may be.
PIECE_BYTES = 2 << 20
LINE_BYTES = 8 << 20
# Read at once where there are quotation marks, if lines are no longer: pyarrow has up to 32 of them in memory.
QUOTED_BYTES = 1 << 20
QUOTE = b'"'
BYTE_ORDER = codecs.BOM_UTF8
# What pyarrow says of bytes that are not UTF-8; where it quotes a row, its words begin otherwise.
UNDECODABLE = re.compile(r"In CSV column #\d+: .*invalid UTF8 data")
# And of a value that is not of its column's type.
TOO_LONG = "straddling object"
OF_ANOTHER_TYPE = re.compile(r"In CSV column #(\d+): (Row #\d+: )?CSV conversion error")


class RereadError(Exception):
    """A file is written otherwise than it begins; `file` says how."""

    def __init__(self, file: CsvFile) -> None:
        super().__init__(f"{file.path.name} must be read again")
        self.file = file


class _UndecodableError(Exception):
    """There are bytes that are not in the file's encoding."""


def open_csv(
    where: str, file: CsvFile, columns: Sequence[str], keys: Sequence[str], as_text: Sequence[str], most: float
) -> tuple[Any, CsvFile]:
    """Open these columns as a `pyarrow.RecordBatchReader`, and say how the file is written after all.

    A key is read as text: "007" would otherwise be taken for a number. So are others that are named. `most` bytes are
    read at once; that what follows them is written otherwise is a `RereadError`, of whoever reads on.
    """
    import pyarrow as pa

    texts = {name: pa.string() for name in columns if name in {*keys, *as_text}}
    while True:
        try:
            types = {**_types(where, file, columns), **texts}
            coming, held, n_bytes = _batches(where, file, columns, types, keys), [], 0
            for batch in coming:
                held.append(batch)
                n_bytes += batch.nbytes
                if n_bytes > most:
                    break
        except RereadError as found:
            file = found.file
        else:
            schema = pa.schema([(name, types[name]) for name in columns])
            return pa.RecordBatchReader.from_batches(schema, chain(let_go(held), coming)), file


def _types(where: str, file: CsvFile, columns: Sequence[str]) -> dict[str, Any]:
    """Tell the types that columns begin with, or are known to have; pyarrow's null where that cannot be told."""
    import pyarrow as pa

    found = dict.fromkeys(columns, pa.null())
    with guarded(where), _Rows(file) as rows:
        content = rows.read(csv_files.SNIFFED_BYTES)
        is_whole = not rows.read(1)
    lines = content if is_whole else content[: _end_of_line(content, len(content))]
    with suppress(pa.ArrowException, _UndecodableError):  # whatever it is, all of the file shows
        found |= _kinds(_read(file, columns, {}, lines))
    return {**found, **{name: kind for name, kind in file.types.items() if name in found}}


def _batches(
    where: str, file: CsvFile, columns: Sequence[str], types: Mapping[str, Any], keys: Sequence[str]
) -> Iterator[Any]:
    """Read record batches; what is wrong is said without pyarrow's words, which quote rows, keys among them."""
    import pyarrow as pa

    n_rows, n_quotes, fault = 0, 0, ""
    undecodable, wider = False, None
    try:
        with guarded(where), _Rows(file) as rows:
            for batch in _parsed(rows, file, columns, types):
                n_rows += batch.num_rows
                yield _without_gaps_in_words(batch, keys)
            n_quotes = rows.n_quotes
    except (UnicodeDecodeError, _UndecodableError):
        undecodable = True
    except pa.ArrowException as error:
        fault = str(error)
        undecodable = UNDECODABLE.fullmatch(fault) is not None
        wider = None if undecodable else _wider(file, types, fault, {})
    if undecodable:
        raise _otherwise_encoded(where, file)
    if wider:
        raise RereadError(replace(file, types={**file.types, **wider}))
    if fault.startswith(TOO_LONG) and not file.most_bytes:
        raise RereadError(replace(file, most_bytes=LINE_BYTES))
    # A mark that is never closed takes all that follows for one value, which is no error to pyarrow.
    if fault or not n_rows or n_quotes % 2:
        with guarded(where):
            said = first_fault(file)
        if said or fault:
            raise InputError(f"{where}{said or ' cannot be read as CSV. Check that it is whole, or write it again.'}")


def _otherwise_encoded(where: str, file: CsvFile) -> Exception:
    if file.is_sure or file.encoding != "utf-8":
        return InputError(
            f"{where}, line {undecodable_line(file)}: it is not {file.said}, which the rest of the file is. Write it "
            "again in UTF-8."
        )
    return RereadError(replace(file, encoding="cp1252", said="Latin-1"))


def _parsed(rows: "_Rows", file: CsvFile, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
    """Read pieces side by side, until a quotation mark comes: behind one, a line need not end where it seems to.

    Where one has values of another type, all that follow are looked at, too: so the file is read once more, not once
    more for each column.
    """
    wider: dict[str, Any] = {}
    for found in in_threads(partial(_piece, file, columns, types), _pieces(rows)):
        if isinstance(found, dict):
            wider |= {name: max(kind, wider.get(name, kind), key=_rank) for name, kind in found.items()}
        elif not wider:
            yield from found.to_batches()
    if wider:
        raise RereadError(replace(file, types={**file.types, **wider}))
    if rows.has_more:
        from pyarrow import csv as arrow_csv

        options = _options(file, columns, types, file.most_bytes or QUOTED_BYTES, may_quote=True)
        with arrow_csv.open_csv(rows, *options) as reader:
            for batch in reader:
                yield batch.select(list(columns))


def _pieces(rows: "_Rows") -> Iterator[bytes]:
    """Cut at the ends of lines; the first line with a quotation mark, and all that follows, is left."""
    import pyarrow as pa

    begun = b""
    while read := rows.read(PIECE_BYTES):
        content = begun + read
        quote = content.find(QUOTE)
        end = _end_of_line(content, len(content) if quote < 0 else quote)
        begun = content[end:]
        if end:
            yield content[:end]
        if quote >= 0:
            rows.give_back(begun)
            return
        if len(begun) > LINE_BYTES:
            raise pa.ArrowInvalid("a line is too long")
    if begun:
        yield begun


def _end_of_line(content: bytes, end: int) -> int:
    last = content.rfind(b"\n", 0, end)
    return (last if last >= 0 else content.rfind(b"\r", 0, end)) + 1


def _piece(file: CsvFile, columns: Sequence[str], types: Mapping[str, Any], content: bytes) -> Any:
    """Read a piece as a table, or find the types that it has where these are others."""
    import pyarrow as pa

    try:
        return _read(file, columns, types, content)
    except pa.ArrowException as error:
        said = str(error)
    wider = None
    if OF_ANOTHER_TYPE.match(said):
        wider = _wider(file, types, said, _kinds(_read(file, columns, {}, content)))
    elif UNDECODABLE.fullmatch(said):
        raise _UndecodableError
    if wider is None:
        raise pa.ArrowInvalid("what pyarrow says quotes rows")
    return wider


def _read(file: CsvFile, columns: Sequence[str], types: Mapping[str, Any], content: bytes) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    options = _options(file, columns, types, len(content) + 1, may_quote=QUOTE in content)
    table = arrow_csv.read_csv(pa.py_buffer(content), *options).select(list(columns))
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise _UndecodableError
    return table


def _kinds(table: Any) -> dict[str, Any]:
    return {field.name: field.type for field in table.schema}


def _options(
    file: CsvFile, columns: Sequence[str], types: Mapping[str, Any], block_bytes: int, *, may_quote: bool
) -> tuple[Any, ...]:
    from pyarrow import csv as arrow_csv

    return (
        arrow_csv.ReadOptions(column_names=list(file.header), block_size=block_bytes, use_threads=False),
        arrow_csv.ParseOptions(delimiter=file.separator, newlines_in_values=may_quote),
        arrow_csv.ConvertOptions(column_types=types, include_columns=list(columns), decimal_point=file.decimal),
    )


def _wider(file: CsvFile, types: Mapping[str, Any], said: str, there: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give types that also fit where pyarrow says that some do not, and others are there; None if it says otherwise."""
    wrong = OF_ANOTHER_TYPE.match(said)
    if wrong is None:
        return None
    name = file.header[int(wrong[1])]
    found = {each: max(types[each], kind, key=_rank) for each, kind in there.items()}
    if _rank(found.get(name, types[name])) <= _rank(types[name]):
        found[name] = _order()[min(_rank(types[name]) + 1, len(_order()) - 1)]
    # Nothing is read again for what it is already.
    return None if found[name] == types[name] else found


def _order() -> list[Any]:
    """List the types that pyarrow tries, one after the other, until one fits all values."""
    import pyarrow as pa

    times = [pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns")]
    return [pa.null(), pa.int64(), pa.float64(), pa.bool_(), *times, pa.string()]


def _rank(kind: Any) -> int:
    order = _order()
    return order.index(kind) if kind in order else len(order) - 2


def _without_gaps_in_words(batch: Any, keys: Sequence[str]) -> Any:
    """Take for missing in a column of words what is so in one of numbers: nothing, NA, null and the like."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    gaps, nothing = pa.array(arrow_csv.ConvertOptions().null_values), pa.scalar(None, pa.string())
    for place, field in enumerate(batch.schema):
        if pa.types.is_string(field.type) and field.name not in keys:
            words = batch.column(place)
            batch = batch.set_column(place, field, pc.if_else(pc.is_in(words, gaps), nothing, words))
    return batch


class _Rows(io.RawIOBase):
    """What follows the header of a file, in UTF-8; counts its quotation marks."""

    def __init__(self, file: CsvFile) -> None:
        self._content = Content(file.path)
        self._decoder = None if file.encoding == "utf-8" else codecs.getincrementaldecoder(file.encoding)()
        self._waiting = b""
        self.n_quotes = 0
        beginning = b""
        while len(beginning) < file.header_bytes + len(BYTE_ORDER) and (more := self._more(csv_files.SNIFFED_BYTES)):
            beginning += more
        self.give_back(beginning.removeprefix(BYTE_ORDER)[file.header_bytes :])

    @property
    def has_more(self) -> bool:
        """Whether something was given back."""
        return bool(self._waiting)

    def give_back(self, content: bytes) -> None:
        """Read this again, before all else."""
        self._waiting, self.n_quotes = content + self._waiting, 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes; fewer are the last, as which pyarrow takes them."""
        parts, missing = [self._waiting[:size]], size - len(self._waiting)
        self._waiting = self._waiting[size:]
        while missing > 0 and (more := self._more(missing)):
            parts.append(more[:missing])
            self._waiting = more[missing:]  # text may be longer in UTF-8
            missing -= len(parts[-1])
        content = b"".join(parts)
        if QUOTE in content:  # which is found out ten times faster than they are counted
            self.n_quotes += content.count(QUOTE)
        return content

    def _more(self, size: int) -> bytes:
        while content := self._content.read(size) or b"":
            if self._decoder is None:
                return content
            if text := self._decoder.decode(content):
                return text.encode()
        return b"" if self._decoder is None else self._decoder.decode(b"", final=True).encode()

    def close(self) -> None:
        """Close the file."""
        self._content.close()
        super().close()
