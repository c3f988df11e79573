"""Predictions that a party was given: a file by key, never over another one."""

import datetime
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from colonnade.errors import InputError
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.per_row import numbers_in
from colonnade.kernels.selections import CountedRows
from colonnade.node import predictions_file
from colonnade.node.predictions_file import predictions_csv, save_predictions, write_predictions
from colonnade.node.state_folder import whole_file
from colonnade.protocol.session import Delivery

KEYS = pa.table({"carrier": ["AA", "ÜA"], "hour": [datetime.datetime(2013, 1, 1, 5), datetime.datetime(2013, 1, 2, 6)]})


def delivery(values: list[float] | list[int] = [0.1, -2.5e300], keys: pa.Table | None = KEYS) -> Delivery:  # noqa: B006
    return Delivery(np.array([3, 7]), np.array(values), keys=keys)


def test_csv_by_key(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_predictions(path, delivery())
    lines = ["carrier,hour,prediction", "AA,2013-01-01 05:00:00,0.1", "ÜA,2013-01-02 06:00:00,-2.5e+300", ""]
    assert path.read_text().split("\n") == lines


def test_parquet_by_key(tmp_path: Path) -> None:
    path = tmp_path / "out.PARQUET"
    write_predictions(path, delivery())
    table = pq.read_table(path)
    assert table.column_names == ["carrier", "hour", "prediction"]
    assert table.select(["carrier", "hour"]).equals(KEYS)
    assert table["prediction"].to_pylist() == [0.1, -2.5e300]


def test_clusters_and_rows_without_a_key(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_predictions(path, delivery([1, 0], None))
    assert path.read_text() == "row,prediction\n3,1\n7,0\n"


@pytest.mark.parametrize("keys", [KEYS, None])
def test_classes_have_a_column_of_chances_each(tmp_path: Path, keys: pa.Table | None) -> None:
    found = ClassPredictions(np.array([[0.25, 0.75], [0.5, 0.5]]), ("no, never", "yes"))
    write_predictions(tmp_path / "out.csv", Delivery(np.array([3, 7]), found, keys=keys))
    write_predictions(tmp_path / "out.parquet", Delivery(np.array([3, 7]), found, keys=keys))
    table = pa.csv.read_csv(tmp_path / "out.csv")
    named = ["class", "probability_no, never", "probability_yes"]
    assert table.column_names == [*(["row"] if keys is None else keys.column_names), *named]
    assert table["class"].to_pylist() == ["yes", "no, never"]
    assert table["probability_yes"].to_pylist() == [0.75, 0.5]
    assert pq.read_table(tmp_path / "out.parquet").select(named).to_pydict() == table.select(named).to_pydict()


def test_a_key_that_is_called_prediction_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_predictions(path, delivery(keys=pa.table({"prediction": ["a", "b"], "prediction_": [1, 2]})))
    assert path.read_text().splitlines()[0] == "prediction,prediction_,prediction__"


def test_texts_that_are_csv_themselves(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    names = ['a,"b"', "c\nd"]
    write_predictions(path, delivery([1.0, 2.0], pa.table({"name": names})))
    assert (
        pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(newlines_in_values=True))["name"].to_pylist() == names
    )


def test_bytes_are_written_as_hexadecimal_digits(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_predictions(path, delivery([1.0, 2.0], pa.table({"id": [b"\x00\xff", b"ab"]})))
    assert path.read_text() == "id,prediction\n00ff,1.0\n6162,2.0\n"


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_no_file_is_written_over_but_by_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_predictions(path, delivery())
    before = path.read_bytes()
    write_predictions(path, delivery())
    with pytest.raises(InputError, match=r"exists, and is not written over. Move it, or name another") as refused:
        write_predictions(path, delivery([9.0, 9.0]))
    assert str(tmp_path) not in str(refused.value), "the server reads this"
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_another_ending_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in .csv or .parquet"):
        write_predictions(tmp_path / "out.txt", delivery())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("n_rows", [0, 4, 7])
def test_all_rows_are_written_in_pieces_and_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, n_rows: int
) -> None:
    values = np.arange(n_rows) / 3
    whole, pieces = tmp_path / f"whole.{ending}", tmp_path / f"pieces.{ending}"
    write_predictions(whole, Delivery(np.arange(n_rows), values))
    monkeypatch.setattr(predictions_file, "PIECE_ROWS", 4)
    write_predictions(pieces, Delivery(CountedRows(n_rows), values))
    write_predictions(pieces, Delivery(CountedRows(n_rows), values))
    if ending == "csv":
        assert pieces.read_text() == whole.read_text() == "".join(predictions_csv(None, values))
    else:
        assert pq.read_table(pieces).equals(pq.read_table(whole))


def test_rows_that_do_not_count_are_no_lines(tmp_path: Path) -> None:
    weights = np.ones(20_000)
    weights[[1, 16_385]] = 0.0
    delivered = Delivery(CountedRows(20_000, numbers_in(weights)), np.arange(19_998.0))
    write_predictions(tmp_path / "out.parquet", delivered)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["row"].to_pylist() == np.flatnonzero(weights).tolist() == delivered.rows.tolist()
    assert found["prediction"].to_pylist() == list(range(19_998))


def test_a_file_for_people_is_replaced_whole_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    save_predictions(path, [5, 3], np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="length"):
        save_predictions(path, [5, 3], ClassPredictions(np.empty((2, 1)), ("no", "yes")))
    assert path.read_text() == "row,prediction\n5,1.0\n3,2.0\n"
    save_predictions(path, None, np.array([1.0]))
    assert path.read_text() == "row,prediction\n0,1.0\n"
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    save_predictions(link, None, np.array([2.0]))
    assert path.read_text() == "row,prediction\n0,2.0\n"
    save_predictions(Path("/dev/null"), None, np.array([1.0]))
    assert Path("/dev/null").is_char_device()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.csv", "out.csv"]


def test_a_file_that_is_replaced_can_be_read_by_no_more_people(tmp_path: Path) -> None:
    path, left = tmp_path / "out.csv", tmp_path / ".out.csv.fresh"
    path.touch()
    path.chmod(0o600)
    left.touch()
    left.chmod(0o666)
    save_predictions(path, None, np.array([1.0]), 0o666)
    assert path.read_text() == "row,prediction\n0,1.0\n"
    assert path.stat().st_mode & 0o777 == 0o600
    left.symlink_to(tmp_path / "other")
    save_predictions(path, None, np.array([2.0]), 0o666)
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"], "no link of a stranger's is written to"


def test_of_two_that_write_one_file_the_last_to_begin_does(tmp_path: Path) -> None:
    """The first to end once put at its place what the other had written of it by then."""
    path = tmp_path / "out.csv"
    first = ExitStack()
    first.enter_context(whole_file(path)).write(b"first")
    with whole_file(path) as last:
        last.write(b"la")
        last.flush()
        with pytest.raises(OSError, match="another process is writing it"):
            first.close()
        assert not path.exists()
        last.write(b"st")
    assert path.read_bytes() == b"last"
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


CHILD = """
import sys
from pathlib import Path
import numpy as np
from colonnade.kernels.selections import CountedRows
from colonnade.node.predictions_file import write_predictions
from colonnade.protocol.session import Delivery
n_rows = int(sys.argv[2])
write_predictions(Path(sys.argv[1]), Delivery(CountedRows(n_rows), np.arange(n_rows, dtype=float)))
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_is_that_of_a_piece(tmp_path: Path, ending: str) -> None:
    """Two million rows more are 16 MB of numbers; as lists and one text they were 200."""

    def peak(n_rows: int) -> int:
        command = [sys.executable, "-c", CHILD, str(tmp_path / f"{n_rows}.{ending}"), str(n_rows)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert peak(2_200_000) - peak(200_000) < 45
