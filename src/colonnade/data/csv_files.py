"""CSV files as they come: separator, decimal mark and encoding are found out; what is wrong is named by its line."""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from colonnade.errors import InputError
from colonnade.preparation.reading import BY_NUMBER

GZIP = b"\x1f\x8b"
# What is looked at to find out how a file is written; it holds the header.
SNIFFED_BYTES = 1 << 20
SNIFFED_RECORDS = 1000
BUFFER_BYTES = 1 << 16
# A gzip file may unfold a thousandfold: to this it may, and beyond by so much of its own size.
FREE_BYTES = 1 << 30
MOST_FOLDS = 100
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
POINT_NUMBER = re.compile(r"[-+]?(\d*\.\d+|\d{1,3}(,\d{3}){2,})([eE][-+]?\d+)?")
COMMA_NUMBER = re.compile(r"[-+]?(\d*,\d+|\d{1,3}(\.\d{3})+,\d+)([eE][-+]?\d+)?")
WHOLE_NUMBER = re.compile(r"[-+]?\d+")


@dataclass(frozen=True)
class CsvFile:
    """How a CSV file is written.

    Attributes
    ----------
    encoding : str
        What Python calls it; `said` is what a person does.
    is_sure : bool
        Whether the beginning has letters that prove the encoding.
    header : tuple of str
        The names of its columns.
    header_bytes : int
        How long is, in UTF-8, what stands before the first row.
    types : mapping
        The types of columns that were read to be others than they begin with.
    most_bytes : int
        How long a line may be, where one was longer than most files have them; else 0.
    """

    path: Path
    encoding: str
    said: str
    is_sure: bool
    separator: str
    decimal: str
    header: tuple[str, ...]
    header_bytes: int
    types: Mapping[str, Any] = field(default_factory=dict)
    most_bytes: int = 0

    def note(self) -> str:
        """Say what is unusual about it, for whoever hands it in; nothing of commas, decimal points and UTF-8."""
        unusual = [f"separated by {SEPARATORS[self.separator]}"] if self.separator != "," else []
        unusual += ["decimal comma"] if self.decimal == "," else []
        unusual += [self.said] if self.encoding != "utf-8" else []
        return f"{self.path.name}: {', '.join(unusual)}" if unusual else ""

    def place(self, row: int) -> str:
        """Say where a row stands, by its line if that can be told: by then the file may be gone, or be another."""
        try:
            line = next(line for line, _ in islice(_numbered(self), row + 1, None))
        except (StopIteration, OSError, EOFError, zlib.error, csv.Error, InputError):
            return BY_NUMBER(row)
        return f"row {row} (line {line} of {self.path.name})"


def sniff(where: str, path: Path) -> CsvFile:
    """Find out from its beginning how a file is written."""
    with guarded(where):
        beginning = _beginning(path)
    if not beginning.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise InputError(f"{where} is empty. Write a line with the names of its columns, and one for each row.")
    is_whole = len(beginning) < SNIFFED_BYTES
    encoding, said, is_sure = _encoding(beginning, is_whole)
    text = beginning.decode(encoding, errors="ignore").removeprefix("\ufeff")
    if "\0" in text:
        raise InputError(
            f"{where} has NUL bytes: it is no text, or UTF-16 without its mark. Write it again as CSV in UTF-8."
        )
    lines = list(io.StringIO(text, newline=""))
    lines = lines if is_whole else lines[:-1]
    found = {separator: _records(lines, separator) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda each: _fitness(found[each]))
    if not found[separator]:
        raise InputError(
            f"{where}: its first line is longer than {SNIFFED_BYTES:,} bytes, or has a quotation mark that is never "
            "closed. Write a line with the names of its columns, and one for each row."
        )
    header, *rows = found[separator]
    decimal = "." if separator == "," else _decimal(rows)
    before = len("".join(lines[: _header_lines(lines, separator)]).encode())
    return CsvFile(path, encoding, said, is_sure, separator, decimal, tuple(header), before)


def first_fault(file: CsvFile) -> str:
    """Find the first line that does not fit the header; nothing where all do."""
    width, last, rows = len(file.header), 0, 0
    try:
        for rows, (line, record) in enumerate(_numbered(file, strict=True)):  # noqa: B007  # counts all but the header
            if len(record) != width:
                return (
                    f", line {line}: it has {len(record)} value(s), where the header names {width} column(s), "
                    f"separated by {SEPARATORS[file.separator]}. Correct that line; a value with a separator in it "
                    "belongs in quotation marks."
                )
            last = line
    except csv.Error as error:
        if "field limit" in str(error):
            return (
                f", after line {last}: a value is longer than {csv.field_size_limit():,} characters, and the file has "
                "a fault there or below. Close the quotation mark that begins the value, or shorten it."
            )
        return f", after line {last}: a quotation mark is never closed, or stands within a value. Correct that line."
    if not rows:
        return " has a header, and no rows. Write one line for each row."
    return ""


def _numbered(file: CsvFile, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Give the lines that are not empty, header first, each with its number; quoted values may go over several."""
    with _text(file) as text:
        reader = csv.reader(text, delimiter=file.separator, strict=strict)
        first = 1
        for record in reader:
            if record:
                yield first, record
            first = reader.line_num + 1


def undecodable_line(file: CsvFile) -> int:
    """Find the first line that is not in the file's encoding."""
    with _bytes(file.path) as content:
        return next((line for line, each in enumerate(content, start=1) if not _is_text(each, file.encoding)), 0)


def _is_text(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def guarded(where: str) -> Iterator[None]:
    """Name what is wrong with a file's bytes."""
    try:
        yield
        return
    except (EOFError, zlib.error, gzip.BadGzipFile):
        problem = "its gzip stream is cut off or damaged. Copy or write it again."
    except OverflowError as error:
        problem = f"{error}, {MOST_FOLDS} times its own size and more. If that is right, unpack it first."
    except MemoryError:
        problem = "it does not fit into memory. Hand in fewer columns or rows."
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or type(error).__name__}). Check the file and its rights."
    raise InputError(f"{where}: {problem}")


def _beginning(path: Path) -> bytes:
    with _bytes(path) as content:
        return content.read(SNIFFED_BYTES)


def _bytes(path: Path) -> io.BufferedReader:
    return io.BufferedReader(Content(path), BUFFER_BYTES)


class Content(io.RawIOBase):
    """What is in a file, unfolded where it is gzip, though not without end."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            is_folded = file.read(len(GZIP)) == GZIP
        self._inner: Any = gzip.open(path) if is_folded else path.open("rb", buffering=0)  # noqa: SIM115  # see close
        self._most = FREE_BYTES + MOST_FOLDS * path.stat().st_size
        self._given = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer as much as there is room for, or less."""
        length: int = self._inner.readinto(buffer)
        self._given += length
        if self._given > self._most:
            raise OverflowError(f"it unfolds to more than {self._most:,} bytes")
        return length

    def close(self) -> None:
        """Close the file."""
        self._inner.close()
        super().close()


def _text(file: CsvFile) -> io.TextIOWrapper:
    encoding = "utf-8-sig" if file.encoding == "utf-8" else file.encoding
    return io.TextIOWrapper(_bytes(file.path), encoding, errors="replace", newline="")


def _encoding(beginning: bytes, is_whole: bool) -> tuple[str, str, bool]:
    """Give what Python and a person call it, and whether it is beyond doubt."""
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", "UTF-16", True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning, final=is_whole)
        return "utf-8", "UTF-8", not beginning.isascii()
    except UnicodeDecodeError:
        is_windows = re.search(rb"[\x80-\x9f]", beginning) is not None
        return "cp1252", "Windows-1252" if is_windows else "Latin-1", True


def _records(lines: Sequence[str], separator: str) -> list[list[str]]:
    reader = csv.reader(lines, delimiter=separator)
    records: list[list[str]] = []
    with suppress(csv.Error):  # a field without end: a mark that is never closed
        records.extend(islice((record for record in reader if record), SNIFFED_RECORDS))
    return records


def _header_lines(lines: Sequence[str], separator: str) -> int:
    """Count the lines up to the end of the first that is not empty, whose values may go over several."""
    reader = csv.reader(lines, delimiter=separator)
    next(record for record in reader if record)
    return reader.line_num


def _fitness(records: Sequence[Sequence[str]]) -> tuple[float, float, int]:
    """Tell how well a separator fits: lines have as many fields as the first, most are numbers, and they are many."""
    if not records or len(records[0]) == 1:
        return 0.0, 0.0, 0
    width, rows = len(records[0]), records[1:]
    alike = sum(len(row) == width for row in rows) / max(len(rows), 1) if rows else 1.0
    fields = [field.strip() for row in rows for field in row]
    numbers = sum(any(kind.fullmatch(field) for kind in (WHOLE_NUMBER, POINT_NUMBER, COMMA_NUMBER)) for field in fields)
    return alike, numbers / max(len(fields), 1), width


def _decimal(rows: Sequence[Sequence[str]]) -> str:
    fields = [field.strip() for row in rows for field in row]
    points, commas = (
        sum(kind.fullmatch(field) is not None for field in fields) for kind in (POINT_NUMBER, COMMA_NUMBER)
    )
    return "," if commas > points else "."
