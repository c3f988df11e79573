"""A party's own file of an alignment: found again by keys, however the table is sorted."""

import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_trial import an_alignment
from colonnade.contracts import Alignment, Keys
from colonnade.data.keys import read_keys
from colonnade.data.tables import read_table
from colonnade.errors import AlignmentError, InputError
from colonnade.node.alignment_file import ALIGNMENT, AlignedRows, keep_alignment, recall_alignment


def keys_of(names: list[str], duplicates: str = "error") -> Keys:
    return read_keys("bank", ["id"], pa.table({"id": names}), duplicates)  # type: ignore[arg-type]


def kept(folder: Path, names: list[str], positions: list[int]) -> Path:
    path = folder / ALIGNMENT
    keep_alignment(path, an_alignment(positions, b"f" * 16), keys_of(names))
    return path


def test_it_is_found_by_keys(tmp_path: Path) -> None:
    path = kept(tmp_path, ["ann", "bob", "eve"], [1, -1, 0])
    found = recall_alignment(path, keys_of(["eve", "ann", "bob"]))
    assert found is not None
    assert found.fingerprint == b"f" * 16
    assert found.positions.tolist() == [0, 1, -1]
    assert found.numbers is not None
    assert found.numbers.tolist() == [2, 0, 1], "where they were in the first table"


def test_there_is_none(tmp_path: Path) -> None:
    assert recall_alignment(tmp_path / ALIGNMENT, keys_of(["ann"])) is None


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(kept(tmp_path, ["ann"], [0]).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["ann", "bob", "eve", "joe", "zoe"], "2 are new, and 0 are gone"),
        (["ann"], "0 are new, and 2 are gone"),
        (["ann", "joe", "eve"], "1 are new, and 1 are gone"),
    ],
)
def test_other_keys_are_counted_and_not_shown(tmp_path: Path, names: list[str], words: str) -> None:
    path = kept(tmp_path, ["ann", "bob", "eve"], [1, -1, 0])
    with pytest.raises(AlignmentError, match=words) as refused:
        recall_alignment(path, keys_of(names))
    assert "--again" in str(refused.value)
    assert not any(name in str(refused.value) for name in ("ann", "bob", "eve", "joe", "zoe"))


def test_a_key_that_came_back_is_no_old_acquaintance(tmp_path: Path) -> None:
    """Bob was left out of the table of the second alignment: with him it is another table."""
    path = kept(tmp_path, ["ann", "bob", "eve"], [1, -1, 0])
    kept(tmp_path, ["ann", "eve"], [0, 1])
    with pytest.raises(AlignmentError, match="1 are new, and 0 are gone"):
        recall_alignment(path, keys_of(["ann", "bob", "eve"]))


NAMES = [f"k{number}" for number in range(12)]
TABLES = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, unique=True), min_size=1, max_size=5)


@given(tables=TABLES)
def test_a_number_is_one_keys_for_all_time(tmp_path_factory: pytest.TempPathFactory, tables: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("state") / ALIGNMENT
    numbers: dict[str, int] = {}
    for names in tables:
        alignment = keep_alignment(path, an_alignment(list(range(len(names)))), keys_of(names))
        assert alignment.numbers is not None
        for name, number in zip(names, alignment.numbers.tolist(), strict=True):
            assert numbers.setdefault(name, number) == number
    assert len(set(numbers.values())) == len(numbers)


def test_new_numbers_are_none_that_a_row_had_before(tmp_path: Path) -> None:
    """Rows that repeat a key have numbers, too: sums told before the first alignment go by rows."""
    path = tmp_path / ALIGNMENT
    first = keep_alignment(path, an_alignment([0, 1]), keys_of(["ann", "bob", "ann"], "first"))
    second = keep_alignment(path, an_alignment([0, 1, 2, 3]), keys_of(["zoe", "bob", "ann", "bob", "joe"], "first"))
    assert first.numbers is not None
    assert second.numbers is not None
    assert first.numbers.tolist() == [0, 1]
    assert second.numbers.tolist()[1:3] == [1, 0]
    assert min(second.numbers[0], second.numbers[3]) >= 3


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"nonsense" * 100])
def test_a_broken_file_is_named_and_a_new_alignment_sets_it_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ALIGNMENT
    path.write_bytes(content)
    with pytest.raises(AlignmentError, match=r"alignment.arrow, cannot be read. Align again: .*--again"):
        recall_alignment(path, keys_of(["ann"]))
    keep_alignment(path, an_alignment([0]), keys_of(["ann"]))
    found = recall_alignment(path, keys_of(["ann"]))
    assert found is not None
    assert found.positions.tolist() == [0]
    assert (tmp_path / f"{ALIGNMENT}.broken").read_bytes() == content


def test_a_file_cut_short_is_broken(tmp_path: Path) -> None:
    path = kept(tmp_path, ["ann", "bob"], [0, 1])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AlignmentError, match="cannot be read"):
        recall_alignment(path, keys_of(["ann", "bob"]))


def test_what_the_system_does_not_let_us_read_is_left_alone(tmp_path: Path) -> None:
    """It may be whole: to begin anew would forget which rows sums were over."""
    path = tmp_path / ALIGNMENT
    path.mkdir()
    for what in (lambda: recall_alignment(path, keys_of(["ann"])), lambda: kept(tmp_path, ["ann"], [0])):
        with pytest.raises(InputError, match=r"alignment.arrow, its alignment, cannot be read: Is a directory. Mend"):
            what()
    assert [each.name for each in tmp_path.iterdir()] == [ALIGNMENT]


def test_a_file_of_other_columns_is_broken(tmp_path: Path) -> None:
    path = tmp_path / ALIGNMENT
    table = pa.table({"key": pa.array([b"ann"]), "position": np.array([0])})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(AlignmentError, match="cannot be read"):
        recall_alignment(path, keys_of(["ann"]))


def test_a_hundred_thousand_keys_are_kept_again_in_seconds(tmp_path: Path) -> None:
    """Each was looked for among all others, anew for each: hours."""
    path, names = tmp_path / ALIGNMENT, [str(number) for number in range(100_000)]
    for half in (names[:60_000], names[40_000:]):
        keep_alignment(path, an_alignment(list(range(60_000))), keys_of(half))
    found = recall_alignment(path, keys_of(names[40_000:]))
    assert found is not None
    assert found.numbers is not None
    assert len(set(found.numbers.tolist())) == 60_000


def rows_of(path: Path, names: list[str], parties: tuple[str, ...], said: list[str]) -> AlignedRows:
    table = read_table("bank", pa.table({"id": names, "x": [float(row) for row in range(len(names))]}), key="id")
    return AlignedRows(path, table, parties, said.append)


def test_rows_go_by_what_is_kept_and_only_among_the_same_parties(tmp_path: Path) -> None:
    said: list[str] = []
    path, both = tmp_path / ALIGNMENT, ("bank", "shop")
    rows = rows_of(path, ["ann", "bob", "eve"], both, said)
    assert (rows.table.n_rows, rows.table.alignment) == (3, None)
    positions = np.array([1, -1, 0])
    rows.keep(Alignment(b"f" * 16, positions, mode="curve", parties=both))
    assert rows.table.take(np.arange(2)).ravel().tolist() == [2.0, 0.0]
    assert said == [f"2 of its 3 rows are common to all parties: {ALIGNMENT}."]
    again = rows_of(path, ["bob", "eve", "ann"], both, said)
    assert again.table.take(np.arange(2)).ravel().tolist() == [1.0, 2.0]
    assert again.table.alignment is not None
    assert (again.table.alignment.mode, again.problem) == ("curve", "")
    others = rows_of(path, ["ann", "bob", "eve"], ("bank", "clinic"), said)
    assert others.problem.startswith("its rows were aligned with others: bank, shop. Align again")
    assert (others.table.n_rows, others.table.alignment) == (3, None)


@pytest.mark.parametrize("column", [pa.array([b"ann", None], pa.large_binary()), pa.array(["ann", "bob"])])
def test_a_file_of_other_types_or_with_gaps_is_no_alignment(tmp_path: Path, column: pa.Array) -> None:
    path = kept(tmp_path, ["ann", "bob"], [1, 0])
    table = pa.ipc.open_file(path).read_all()
    other = table.set_column(0, "key", column).replace_schema_metadata(table.schema.metadata)
    with pa.ipc.new_file(path, other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(AlignmentError, match="cannot be read"):
        recall_alignment(path, keys_of(["ann", "bob"]))
