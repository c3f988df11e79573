"""A party's own file of an alignment: each of its keys, and where that record is among all parties' common ones.

It is found again by keys, so a table that was sorted again keeps its alignment. Each key also has a number that stays,
by which the party remembers which rows its sums were over, however often it is aligned.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.contracts import Alignment, Keys, Table
from colonnade.errors import AlignmentError, InputError
from colonnade.kernels.arrays import Rows
from colonnade.node.state_folder import write_private

ALIGNMENT = "alignment.arrow"
# The position of keys that were in an earlier table; -1 is that of keys that not all parties have.
GONE = -2
FINGERPRINT, HOW = b"fingerprint", b"how"
AGAIN = "Align again: `colonnade align FEDERATION.toml --again`."


class AlignedRows:
    """A party's rows as the alignment has them that is kept in a file; as they are, where there is none.

    Where the table has other keys than that alignment, or it is with other parties, `problem` says so.
    """

    def __init__(self, path: Path, table: Table, parties: Sequence[str], say: Callable[[str], None]) -> None:
        self._path, self._whole, self._say = path, table, say
        self.table, self.problem = table, ""
        if table.keys is None:
            return
        try:
            alignment = recall_alignment(path, table.keys)
            if alignment is not None and alignment.parties != tuple(parties):
                raise AlignmentError(f"its rows were aligned with others: {', '.join(alignment.parties)}. {AGAIN}")
        except AlignmentError as error:
            say(f"Warning: {error}")
            self.problem = str(error)
        else:
            self.table = table if alignment is None else table.aligned(alignment)

    def keep(self, alignment: Alignment) -> Alignment:
        """Write an alignment down, and go by it."""
        keys = self._whole.keys
        if keys is None:
            raise InputError("its table has no key. Name the column that identifies rows: key = in its [data].")
        alignment = keep_alignment(self._path, alignment, keys)
        self.table = self._whole.aligned(alignment)
        self._say(f"{self.table.n_rows:,} of its {keys.count:,} rows are common to all parties: {self._path.name}.")
        return alignment


def keep_alignment(path: Path, alignment: Alignment, keys: Keys) -> Alignment:
    """Write an alignment down, and give it with the numbers that the keys have."""
    import pyarrow as pa

    earlier, texts = _earlier(path), keys.values.chunks
    numbers = _numbered(keys, texts, earlier)
    gone = earlier.filter(pa.array(_places(earlier["key"], texts) < 0))
    table = pa.table(
        {
            "key": pa.chunked_array([*texts.chunks, *gone["key"].chunks], pa.large_binary()),
            "position": np.concatenate([alignment.positions, np.full(len(gone), GONE)]),
            "number": np.concatenate([numbers, np.asarray(gone["number"])]),
        }
    ).replace_schema_metadata({FINGERPRINT: alignment.fingerprint, HOW: _how(alignment)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_private(path, sink.getvalue().to_pybytes())
    return replace(alignment, numbers=numbers)


def recall_alignment(path: Path, keys: Keys) -> Alignment | None:
    """Find the alignment of a table with these keys, if one is kept; other keys than it was made of are an error."""
    if not path.exists():
        return None
    table = _read(path)
    positions, numbers = (np.asarray(table[name]) for name in ("position", "number"))
    places = _places(keys.values.chunks, table["key"])
    is_new = (places < 0) | (positions[places] == GONE)
    n_new, n_gone = int(is_new.sum()), int((positions != GONE).sum() - (~is_new).sum())
    if n_new or n_gone:
        raise AlignmentError(
            f"its table has other keys than it was aligned by: {n_new:,} are new, and {n_gone:,} are gone. {AGAIN}"
        )
    mode, *parties = table.schema.metadata[HOW].decode().split("\n")
    return Alignment(table.schema.metadata[FINGERPRINT], positions[places], numbers[places], mode, tuple(parties))


def _how(alignment: Alignment) -> str:
    return "\n".join([alignment.mode, *alignment.parties])


def _places(keys: Any, known: Any) -> Rows:
    """Find each key's place among those that are known, or -1; both are Arrow's: no Python object a key."""
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.index_in(keys, value_set=known), -1)).astype(np.int64)


def _earlier(path: Path) -> Any:
    """Give the keys and their numbers; none where the file is broken, which is then set aside for the owner."""
    import pyarrow as pa

    nothing = pa.table({"key": pa.array([], pa.large_binary()), "number": pa.array([], pa.int64())})
    if not path.exists():
        return nothing
    try:
        return _read(path).select(["key", "number"])
    except AlignmentError:
        path.replace(path.with_name(f"{path.name}.broken"))
        return nothing


def _numbered(keys: Keys, texts: Any, earlier: Any) -> Rows:
    """Give each key the number it had, and others new ones; in the first alignment, that of its row."""
    if not len(earlier):
        return keys.rows
    known = np.asarray(earlier["number"])
    following = max(int(known.max()) + 1, keys.n_rows)
    places = _places(texts, earlier["key"])
    numbers = known[places]
    is_new = places < 0
    numbers[is_new] = following + np.arange(int(is_new.sum()))
    return numbers


def _read(path: Path) -> Any:
    import pyarrow as pa

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name}, its alignment, cannot be read: {error.strerror}. Mend that first.") from error
    try:
        table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
        expected = pa.schema([("key", pa.large_binary()), ("position", pa.int64()), ("number", pa.int64())])
        has_gaps = any(column.null_count for column in table.columns)
        if has_gaps or table.schema != expected or not {FINGERPRINT, HOW} <= set(table.schema.metadata or {}):
            raise pa.ArrowInvalid("other columns")
    except (OSError, pa.ArrowException) as error:
        raise AlignmentError(f"the file of its alignment, {path.name}, cannot be read. {AGAIN}") from error
    return table
