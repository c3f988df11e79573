"""Files of others: loads are bounded before memory is touched, and whatever lies in a folder is one clear error."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import colonnade as cn
from colonnade import storage
from colonnade.node.identity_files import read_pins
from harness import bent

KINDS = {"row": "int64", "weight": "double"}
# A pool outlives what it gave.
POOLS: list[Any] = []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    federation = cn.Federation(cn.split_columns(rng.normal(size=(50, 6)), rng.normal(size=50), [2, 2, 2]))
    sampler = cn.ImportanceSampling(size=20, draws="committed")
    folder = tmp_path_factory.mktemp("saved")
    federation.plan(cn.Regression(l2=0.1), budget_bytes=10_000_000).save(folder / "plan.json")
    return federation.fit(cn.Regression(l2=0.1), sampler=sampler, seed=3).save(folder / "run")


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """Tell how many bytes Arrow held at most."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    yield lambda: pool.max_memory() or 0
    pa.set_memory_pool(before)


def as_bytes(batches: list[Any], compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def zeros(count: int) -> Any:
    return pa.record_batch([pa.array(np.zeros(count, np.int64)), pa.array(np.zeros(count))], list(KINDS))


def nested(count: int) -> Any:
    """Make a column that says how long it is, and holds nothing."""
    return pa.record_batch([pa.Array.from_buffers(pa.null(), count, [None])] * 2, list(KINDS))


def repeated(count: int) -> Any:
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array(["x" * 1000]))
    return pa.record_batch([one, one], list(KINDS))


def run_end(count: int) -> Any:
    return pa.record_batch([pa.RunEndEncodedArray.from_arrays([count], [0.0])] * 2, list(KINDS))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: as_bytes([zeros(1_000_000)] * 20, "zstd"), "compressed"),
        (lambda: as_bytes([zeros(1_000_000)] * 20, "lz4"), "compressed"),
        (lambda: as_bytes([nested(1 << 30)]), "null"),
        (lambda: as_bytes([repeated(1000)]), "dictionary"),
        (lambda: as_bytes([run_end(1 << 30)]), "run_end_encoded"),
    ],
    ids=["zstd", "lz4", "nulls", "dictionary", "run ends"],
)
def test_an_arrow_bomb_is_refused_before_it_unfolds(
    tmp_path: Path, allocated: Callable[[], int], content: Callable[[], bytes], message: str
) -> None:
    (tmp_path / "coreset.arrow").write_bytes(content())
    before = allocated()
    with pytest.raises(ValueError, match=rf"^coreset\.arrow: .*{message}"):
        storage.read_arrow(tmp_path / "coreset.arrow", KINDS)
    assert allocated() <= max(before, 1 << 20)


def test_one_batch_that_the_footer_lists_a_thousand_times_is_read_once(tmp_path: Path) -> None:
    """The footer is not believed: batches are read as they lie in the file."""
    whole = as_bytes([zeros(7)])
    (tmp_path / "coreset.arrow").write_bytes(whole[:-40] + bytes(30) + whole[-10:])
    assert len(storage.read_arrow(tmp_path / "coreset.arrow", KINDS)["row"]) == 7


def test_a_file_above_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_ARROW_BYTES", 5000)
    monkeypatch.setattr(storage, "MAX_JSON_BYTES", 100)
    (tmp_path / "coreset.arrow").write_bytes(as_bytes([zeros(1000)]))
    with pytest.raises(ValueError, match=r"^coreset\.arrow: it has 16,\d{3} bytes; 5,000 are the most"):
        storage.read_arrow(tmp_path / "coreset.arrow", KINDS)
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(1 << 40)  # it takes no room on the disk
    with pytest.raises(cn.InputError, match=r"run\.json: it has 1,099,511,627,776 bytes; 100 are the most"):
        cn.Run.load(tmp_path)


def put_fifo(file: Path) -> None:
    os.mkfifo(file)


def put_link(file: Path) -> None:
    file.symlink_to("/etc/passwd")


def put_dangling(file: Path) -> None:
    file.symlink_to("nowhere")


def put_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "name", ["run.json", "ledger.json", "coreset.arrow", "evidence.json", "model.json", "model.arrow"]
)
@pytest.mark.parametrize("put", [put_fifo, put_link, put_dangling, put_device, Path.mkdir])
def test_only_plain_files_are_read(tmp_path: Path, saved: Path, name: str, put: Callable[[Path], None]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    (folder / name).unlink()
    put(folder / name)
    load = cn.LinearModel.load if name.startswith("model") else cn.Run.load
    for each in (cn.Run.load, load):
        with pytest.raises(cn.InputError, match=rf"{name}.*is no plain file.* Pass a folder that"):
            each(folder)


@pytest.mark.parametrize("put", [put_fifo, put_device, Path.mkdir])
def test_plans_and_pins_are_plain_files(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "file")
    with pytest.raises(cn.InputError, match="is no plain file"):
        cn.Plan.load(tmp_path / "file")
    with pytest.raises(cn.InputError, match="is no plain file"):
        read_pins(tmp_path / "file")


def test_a_link_to_a_plan_that_its_reader_names_is_followed(tmp_path: Path, saved: Path) -> None:
    (tmp_path / "plan.json").symlink_to(saved.parent / "plan.json")
    assert cn.Plan.load(tmp_path / "plan.json") == cn.Plan.load(saved.parent / "plan.json")


def test_no_byte_of_a_saved_run_brings_a_surprise(tmp_path: Path, saved: Path) -> None:
    """Flip, cut and swell each file: it loads, or it is an InputError."""
    rng = np.random.default_rng(1)
    names = [file.name for file in saved.iterdir()]
    loaded = 0
    for trial in range(300):
        folder = tmp_path / str(trial)
        shutil.copytree(saved, folder)
        file = folder / names[trial % len(names)]
        file.write_bytes(bent(file.read_bytes(), trial // len(names), rng))
        try:
            cn.Run.load(folder)
            loaded += 1
        except cn.InputError:
            pass
    assert loaded < 150
