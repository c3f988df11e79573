"""Rows in a file of one process: the bits that were written, in the order asked for, and nothing left of them."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import colonnade as cn
from colonnade import disk
from colonnade.data import spool
from colonnade.data.engines import Readable
from colonnade.data.spool import OrderedSpool, Spool, SpooledRows
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS

N_ROWS = 3 * BLOCK_ROWS + 777
RNG = np.random.default_rng(0)
VALUES = np.asfortranarray(RNG.standard_t(4, size=(N_ROWS, 3)))
NAMES = ("a", "b", "c")


def spooled(*lengths: int, kinds: Any = None, values: Floats = VALUES) -> SpooledRows:
    """Write rows, so many at a time, in turn."""
    written, start, turn = Spool("Party 'bank': its table", NAMES, kinds), 0, 0
    while start < len(values):
        end = start + lengths[turn % len(lengths)]
        written.append(list(values[start:end].T))
        start, turn = end, turn + 1
    return written.close()


def read(rows: Readable) -> Floats:
    return np.concatenate([block.values for block in rows.blocks()])


@pytest.mark.parametrize("lengths", [(BLOCK_ROWS,), (1000,), (1, 40_000), (N_ROWS,), (BLOCK_ROWS + 1,)])
def test_blocks_are_what_was_written_however_it_came(lengths: tuple[int, ...]) -> None:
    rows = spooled(*lengths)
    assert rows.n_rows == N_ROWS
    assert [len(block.values) for block in rows.blocks()] == [BLOCK_ROWS] * 3 + [777]
    assert all(block.values.flags.f_contiguous for block in rows.blocks())
    assert_array_equal(read(rows), VALUES)
    (third,) = rows.blocks([3])
    assert (third.number, third.rows.start) == (3, 3 * BLOCK_ROWS)
    assert_array_equal(third.values, VALUES[-777:])
    assert [number for piece in rows.pieces([0, 2]) for number in piece] == [0, 2]
    assert_array_equal(np.concatenate(list(rows.column("b"))), VALUES[:, 1])


def test_columns_of_float32_take_half_the_room_and_have_the_same_bits() -> None:
    narrow = VALUES.copy()
    narrow[:, 1] = VALUES[:, 1].astype(np.float32)
    rows = spooled(1000, kinds=[np.dtype(kind) for kind in (np.float64, np.float32, np.float64)], values=narrow)
    assert_array_equal(read(rows), narrow)
    assert_array_equal(np.concatenate(list(rows.column("b"))), narrow[:, 1])
    assert rows._file.size == N_ROWS * 20


@pytest.mark.parametrize("held", [1 << 12, 1 << 20, 1 << 30])
@pytest.mark.parametrize("kinds", [None, [np.dtype(np.float32)] * 3])
def test_rows_are_put_in_order_however_few_are_held(monkeypatch: pytest.MonkeyPatch, held: int, kinds: Any) -> None:
    monkeypatch.setattr(spool, "HELD_BYTES", held)
    values = VALUES if kinds is None else VALUES.astype(np.float32).astype(np.float64)
    order = np.random.default_rng(1).permutation(N_ROWS)
    ordered = OrderedSpool("its table", NAMES, N_ROWS, kinds)
    for start in range(0, N_ROWS, 5_000):
        places = order[start : start + 5_000]
        ordered.write(places, list(values[places].T))
    assert_array_equal(read(ordered.close()), values)


def test_each_place_is_written_once() -> None:
    for places in ([0, 1, 1], [0, 2]):
        ordered = OrderedSpool("its table", NAMES, 3)
        ordered.write(np.array(places), list(VALUES[places].T))
        with pytest.raises(cn.ColonnadeError, match="must each be written once"):
            ordered.close()


def test_no_rows_are_rows() -> None:
    assert Spool("its table", NAMES).close().n_rows == 0
    assert list(OrderedSpool("its table", NAMES, 0).close().blocks()) == []


# Who can read it, and what is left.


def test_no_other_user_can_open_the_file_and_it_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = spooled(1000)
    status = os.fstat(rows._file._file)
    assert (status.st_mode & 0o777, status.st_nlink) == (0o600, 0)
    assert status.st_size == VALUES.nbytes
    assert list(tmp_path.iterdir()) == []


CHILD = """
import os, signal, sys
import numpy as np
from colonnade.data.spool import OrderedSpool, Spool
spool, ordered = Spool("its table", ["a"]), OrderedSpool("its table", ["a"], 100_000)
spool.append([np.ones(100_000)])
ordered.write(np.arange(100_000), [np.ones(100_000)])
ordered._log_held()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_after_a_kill(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", CHILD], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert run.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_the_file_goes_with_its_rows() -> None:
    rows = spooled(1000)
    file = rows._file._file
    del rows
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


def test_a_full_disk_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written = Spool("Party 'bank': its table", NAMES)
    written.append(list(VALUES[:BLOCK_ROWS].T))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "write", full)
    words = r"Party 'bank': its table .* cannot be written to the folder '.*' \(No space left on device\).*TMPDIR"
    with pytest.raises(cn.InputError, match=words):
        written.append(list(VALUES.T))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(cn.InputError, match=r"cannot be written to the folder '.*none' \(No such file or directory\)"):
        Spool("Party 'bank': its table", NAMES)


def test_it_cannot_be_sent_to_another_machine() -> None:
    with pytest.raises(cn.EngineError, match=r"Party 'bank': its table is in a file of one process on the machine"):
        pickle.dumps(spooled(1000))


def test_a_folder_that_is_not_there_is_an_error_and_no_other_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names one wants rows nowhere else."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(cn.InputError, match=r"cannot be written to the folder .*none"):
        Spool("the table", ["a"]).append([np.ones(3)])
