"""The same bits from two processes of a Dask cluster, one of them killed; named errors where there cannot be."""

import ast
import inspect
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as cn
import dask_trial
from colonnade.data import arithmetic as arithmetics
from colonnade.data import dask_engine, streams
from colonnade.data.dask_engine import DaskEngine
from colonnade.data.engines import Threads
from colonnade.data.held_columns import HeldColumns
from colonnade.data.streamed_tables import StreamedTable
from colonnade.data.streams import open_rows
from colonnade.data.tables import ArrayTable
from colonnade.data.value_checks import ValueCheck
from colonnade.kernels.blocks import BLOCK_ROWS, values_of
from colonnade.kernels.clustering_scores import clustering_scores
from colonnade.kernels.draws import draw_by_scores, draw_distinct, held_out
from colonnade.kernels.leverage import regression_scores
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.per_row import HeldNumbers, PerRow, numbers_in
from colonnade.kernels.whitening import whiten
from colonnade.protocol.splits import counted
from colonnade.protocol.viewed_table import ViewedTable, _viewed

pytest.importorskip("distributed", reason="the extra dask is not installed")

N_ROWS = 6 * BLOCK_ROWS + 4_321
NAMES = ("a", "b", "c", "y")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with dask_trial.dask_cluster(tmp_path_factory.mktemp("certificates")) as started:
        yield started


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut this small table into a task for each group of rows."""
    monkeypatch.setattr(streams, "PIECE_ROWS", 1)


@pytest.fixture(scope="module")
def values() -> Any:
    rng = np.random.default_rng(8)
    found = rng.standard_t(4, size=(N_ROWS, 4)) + 10 * rng.integers(3, size=(N_ROWS, 1))
    return np.asfortranarray(found)


@pytest.fixture
def path(tmp_path: Path, values: Any) -> Path:
    file = tmp_path / "bank.parquet"
    pq.write_table(pa.table(dict(zip(NAMES, values.T, strict=True))), file, row_group_size=BLOCK_ROWS // 2 + 1_000)
    return file


@pytest.fixture
def table(path: Path, cluster: Any) -> StreamedTable:
    return StreamedTable(
        open_rows("the table", [path], NAMES), NAMES[:3], "y", engine=DaskEngine(cluster.scheduler_address)
    )


def regression(table: Any) -> list[Any]:
    return [np.asarray(regression_scores(table, constant=True))]


def draws(table: Any) -> list[Any]:
    scores = regression_scores(table)
    stratified = draw_by_scores(scores, 500, np.random.default_rng(1), stratified=True)
    return [stratified, *draw_distinct(scores, 500, np.random.default_rng(2)), scores[stratified[::-1]]]


def clusters(table: Any) -> list[Any]:
    centers = local_kmeans(table, 3, np.random.default_rng(4))
    return [centers, np.asarray(clustering_scores(table, centers))]


def whitening(table: Any) -> list[Any]:
    found = whiten(table)
    return [found.mean, found.basis, found.mixing]


def moments(table: Any) -> list[Any]:
    return [*centre_and_spread(table, 3, centred=True)]


def viewed(table: Any) -> list[Any]:
    """With weights that are made of a seed, and others that are sent along; and in other units."""
    sent = numbers_in(np.random.default_rng(6).uniform(size=N_ROWS))
    views = [ViewedTable(table, each, np.ones(3), np.arange(1.0, 4.0)) for each in (held_out(N_ROWS, 0.3, 7), sent)]
    return [each for view in views for each in (*regression(view), *whitening(view))]


def taken(table: Any) -> list[Any]:
    return [table.take(np.array([N_ROWS - 1, 3, 3, 40_000]))]


@pytest.mark.parametrize("work", [regression, draws, clusters, whitening, moments, viewed, taken])
def test_two_processes_give_the_bits_of_threads_and_of_a_table_in_memory(
    table: StreamedTable, values: Any, work: Callable[[Any], list[Any]]
) -> None:
    in_memory = ArrayTable(HeldColumns((values,)), NAMES[:3], "y")
    by_threads = StreamedTable(table.rows, NAMES[:3], "y")
    wanted, threads, found = (
        [np.asarray(each).tobytes() for each in work(own)] for own in (in_memory, by_threads, table)
    )
    assert wanted == threads == found


def test_a_pass_that_begins_while_the_only_process_starts_again_leaves_no_block_out(
    table: StreamedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the wait for a process and the count of threads it can be lost; it once was a pass over no blocks."""
    wanted = list(table.map(dask_trial.its_number))
    (line,) = dask_engine._Cluster._lines.values()
    monkeypatch.setattr(line, "nthreads", dict)
    assert list(table.map(dask_trial.its_number)) == wanted == [*range(7)]
    gone = "tls://127.0.0.1:9"
    monkeypatch.setattr(line, "nthreads", lambda: {gone: 1})
    assert list(table.map(dask_trial.its_number)) == wanted


def test_rows_are_prepared_where_they_are_worked_on(tmp_path: Path, values: Any, cluster: Any) -> None:
    """By what the party learned: the same bits from processes, threads and memory."""
    columns = {"a": np.where(values[:, 0] > 3, np.nan, values[:, 0]), "y": values[:, 3]}
    columns["job"] = np.array(["clerk", "cook", ""])[values[:, 1].astype(int) % 3]
    pq.write_table(pa.table(columns), tmp_path / "raw.parquet", row_group_size=BLOCK_ROWS // 2 + 1_000)
    rules = cn.Prepare({"a": cn.Number(missing="median", scale=True), "job": cn.Category(missing="level")})
    engines = (None, Threads(), DaskEngine(cluster.scheduler_address))
    tables = [
        cn.Party("bank", tmp_path / "raw.parquet", label="y", prepare=rules, engine=engine).table for engine in engines
    ]
    assert [isinstance(table, StreamedTable) for table in tables] == [False, True, True]
    found = []
    for table in tables:
        assert table.preparing is not None
        prepared = table.prepared(table.preparing.fitted(None))
        found.append([np.asarray(each).tobytes() for work in (regression, whitening, taken) for each in work(prepared)])
    assert found[0] == found[1] == found[2]


def test_a_wrong_value_is_found_by_the_processes_of_the_cluster(
    table: StreamedTable, values: Any, tmp_path: Path
) -> None:
    """What they find of each block comes back with the result; rows that are wanted here are not sent round."""
    checked = replace(table, check=ValueCheck("bank", [False] * 4))
    assert np.array_equal(regression(checked)[0], regression(table)[0])
    assert checked.check is not None
    assert checked.check.is_done
    wrong = np.array(values)
    wrong[-5, 2] = np.nan
    file = tmp_path / "wrong.parquet"
    pq.write_table(pa.table(dict(zip(NAMES, wrong.T, strict=True))), file, row_group_size=BLOCK_ROWS // 2 + 1_000)
    message = f"Party 'bank', column 'c': 1 of {len(values)} values are missing .* in row {len(values) - 5} "
    for use in (regression, lambda table: table.take(np.array([1])), lambda table: list(table.map(values_of))):
        bad = replace(table, rows=open_rows("the table", [file], NAMES), check=ValueCheck("bank", [False] * 4))
        with pytest.raises(cn.InputError, match=message):
            use(bad)


def test_both_processes_work(table: StreamedTable) -> None:
    list(table.map(partial(dask_trial.slow_sums, 0.02)))  # one that is still starting comes in time for the next pass
    processes = set(table.map(dask_trial.its_process))
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_a_federation_one_of_whose_parties_has_a_cluster(path: Path, cluster: Any) -> None:
    other = cn.Party("shop", np.random.default_rng(0).normal(size=(N_ROWS, 2)))
    here = cn.Federation([cn.Party("bank", path, label="y"), other])
    engine = cn.DaskEngine(cluster.scheduler_address)
    there = cn.Federation([cn.Party("bank", path, label="y", engine=engine), other])
    for task in (cn.Regression(l2=0.1, standardize=True), cn.KMeans(3)):
        job: dict[str, Any] = {"sampler": cn.ImportanceSampling(300), "split": cn.HoldOut(0.2), "seed": 2}
        runs: list[cn.Run[Any]] = [federation.fit(task, **job) for federation in (here, there)]
        assert runs[0].coreset.rows.tobytes() == runs[1].coreset.rows.tobytes()
        assert runs[0].coreset.weights.tobytes() == runs[1].coreset.weights.tobytes()
        reports = [federation.evaluate(run.model) for federation, run in zip((here, there), runs, strict=True)]
        assert repr(reports[0]) == repr(reports[1])
        assert runs[0].ledger.bytes == runs[1].ledger.bytes, "nothing changes on the wire"


def test_the_work_of_a_killed_process_is_done_by_another(table: StreamedTable, values: Any) -> None:
    wanted = [values[start : start + BLOCK_ROWS].sum(axis=0) for start in range(0, N_ROWS, BLOCK_ROWS)]
    victim = next(table.map(dask_trial.its_process))
    found = table.map(partial(dask_trial.slow_sums, 0.3))
    sums = [next(found)]
    os.kill(victim, signal.SIGKILL)  # it is in the middle of a task, and may hold what all tasks have in common
    sums += found
    np.testing.assert_array_equal(sums, wanted)
    assert victim not in set(table.map(dask_trial.its_process))


def test_a_process_with_another_blas_is_named(table: StreamedTable, cluster: Any) -> None:
    line = dask_engine._Cluster(cluster.scheduler_address)._line
    line.run(dask_trial.pretend_another_blas)
    try:
        with pytest.raises(
            cn.EngineError, match=r"computes otherwise on .* \(process \d+\) than here: blas is "
        ) as caught:
            list(table.map(dask_trial.its_process))
        assert "'openblas 0.3.0 Haswell pthreads' there, and " in str(caught.value)
    finally:
        line.run(dask_trial.pretend_no_more)
    assert len(list(table.map(dask_trial.its_process))) == 7


def test_a_process_with_another_colonnade_is_named(table: StreamedTable, cluster: Any, tmp_path: Path) -> None:
    """It joined later, and can read nothing that this one sends: before a pass it is asked, and in one it says so."""
    (tmp_path / "colonnade").mkdir()
    (tmp_path / "colonnade" / "__init__.py").touch()
    message = r"computes otherwise on .* \(process {}\) than here: colonnade is "
    with dask_trial.process_with(tmp_path, cluster) as process:
        for _ in range(2):
            with pytest.raises(cn.EngineError, match=message.format(process)):
                list(table.map(dask_trial.its_process))
        dask_engine._Cluster._asked[cluster.scheduler_address].update(cluster.scheduler_info["workers"])
        passes = chain.from_iterable(table.map(partial(dask_trial.slow_sums, 0.1)) for _ in range(20))
        with pytest.raises(cn.EngineError, match=message.format(process)):
            list(passes)  # one of them comes to it
    assert len(list(table.map(dask_trial.its_process))) == 7


def test_a_python_with_nothing_installed_answers_what_it_computes_with() -> None:
    text = inspect.getsource(arithmetics)
    ask = f"print(eval({dask_engine.LOOK!r}, {{'text': {text!r}}}))"
    found = subprocess.run([sys.executable, "-I", "-S", "-c", ask], capture_output=True, text=True, check=True)
    machine, how = ast.literal_eval(found.stdout)
    assert "(process " in machine
    assert how.keys() == arithmetics.arithmetic().keys()
    assert {how[name] for name in ("colonnade", "numpy", "scipy", "pyarrow", "blas")} == {"not installed"}
    said = arithmetics.difference(arithmetics.arithmetic(), how)
    assert said is not None
    assert said.startswith("colonnade is 'not installed' there, and '")
    assert "python is" not in said


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the blocks of each task, and the numbers that went with them."""
    found: list[Any] = []
    submit = dask_engine._Cluster.submit

    def noted(self: Any, function: Any, *arguments: Any) -> Any:
        found.extend(arguments[1]["task"][1:] for _ in range(function is eval))
        return submit(self, function, *arguments)

    monkeypatch.setattr(dask_engine._Cluster, "submit", noted)
    return found


def in_windows(table: StreamedTable, work: Any, length: int = 2, first: int = 0) -> list[Any]:
    starts = range(first, 7, length)
    return [each for start in starts for each in table.map(work, range(start, min(start + length, 7)))]


def ahead_of(table: StreamedTable) -> list[Any]:
    assert isinstance(table.engine, DaskEngine)
    return table.engine._ahead


def test_windows_are_worked_on_ahead_and_each_group_of_rows_is_read_once(table: StreamedTable, sent: list[Any]) -> None:
    work = partial(dask_trial.slow_sums, 0.0)
    wanted = np.array(list(table.map(work))).tobytes()
    pieces = list(table.rows.pieces())
    sent.clear()
    assert np.array(in_windows(table, work)).tobytes() == wanted
    assert [numbers for numbers, _ in sent] == pieces
    assert not ahead_of(table)
    sent.clear()
    list(table.map(work, range(2)))
    assert len(sent) > 1
    assert np.array(in_windows(table, work, first=2)).tobytes() == wanted[-5 * 32 :]
    assert [numbers for numbers, _ in sent] == pieces


def test_windows_of_other_work_begin_anew(table: StreamedTable) -> None:
    for number in range(6):
        work = partial(dask_trial.slow_sums, number / 1e6)
        assert len(list(table.map(work, range(2)))) == 2
    assert len(ahead_of(table)) == dask_engine.MOST_AHEAD
    other = [*table.map(dask_trial.its_process, range(2, 4))]
    assert all(isinstance(each, int) for each in other)


def test_what_is_worked_on_ahead_is_let_go_when_nobody_asks_for_it(
    table: StreamedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "PATIENCE_SECONDS", 0.5)
    work = partial(dask_trial.slow_sums, 0.0)
    list(table.map(work, range(2)))
    end = time.monotonic() + 30
    while ahead_of(table):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(in_windows(table, work, first=2)) == 5


def test_a_process_is_killed_between_windows(table: StreamedTable, values: Any) -> None:
    wanted = [values[start : start + BLOCK_ROWS].sum(axis=0) for start in range(0, N_ROWS, BLOCK_ROWS)]
    work = partial(dask_trial.slow_sums, 0.1)
    sums = list(table.map(work, range(2)))
    os.kill(next(table.map(dask_trial.its_process)), signal.SIGKILL)  # it may hold results of the next
    np.testing.assert_array_equal([*sums, *in_windows(table, work, first=2)], wanted)


def test_results_of_a_task_take_no_more_memory_than_they_may(
    table: StreamedTable, cluster: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task ends when they do, and what it left is cut into such lengths."""
    monkeypatch.setattr(streams, "PIECE_ROWS", N_ROWS)  # one task for all
    work = partial(dask_trial.slow_sums, 0.0)
    wanted = np.array(list(table.map(work))).tobytes()
    line = dask_engine._Cluster(cluster.scheduler_address)._line
    line.run(dask_trial.let_results_take, 2 * 32)
    try:
        for found in (list(table.map(work)), in_windows(table, work, 3)):
            assert np.array(found).tobytes() == wanted
    finally:
        line.run(dask_trial.pretend_no_more)
    every = [[*range(7)], [2, 3], [4, 5], [6]]
    assert [numbers for numbers, _ in sent] == [every[0], *every, *every]


def test_a_task_is_sent_the_weights_of_its_own_blocks(table: StreamedTable, values: Any, sent: list[Any]) -> None:
    weights = np.random.default_rng(3).uniform(size=N_ROWS)
    work = partial(dask_trial.weighted_sums, HeldNumbers(weights))
    found = in_windows(table, work)
    for number, own in enumerate(found):
        rows = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
        np.testing.assert_allclose(own, weights[rows] @ values[rows])
    assert sum(each.nbytes for _, (held,) in sent for each in held.values()) == weights.nbytes
    assert all(held.keys() == set(numbers) for numbers, (held,) in sent)


def test_weights_of_a_view_are_taken_out_of_its_work() -> None:
    weights = np.random.default_rng(3).uniform(size=N_ROWS)
    view = partial(_viewed, values_of, numbers_in(weights).changed(partial(_less, numbers_in(weights))), None, None)
    shared, held = dask_engine.without_held(view)
    assert len(pickle.dumps(shared)) < 2_000
    assert [each.values is weights for each in held] == [True, True]
    marks = weights < 0.3
    counts = counted(N_ROWS, "test", cn.SplitBy("bank"), marks, weights)
    shared, held = dask_engine.without_held(partial(_viewed, values_of, counts, None, None))
    assert len(pickle.dumps(shared)) < 2_000
    assert {id(each.values) for each in held} == {id(marks), id(weights)}


def _less(other: PerRow, number: int, values: Any) -> Any:
    return values - other.block(number)


def test_a_file_that_changes_is_no_table_any_more(table: StreamedTable, path: Path) -> None:
    found = table.map(partial(dask_trial.slow_sums, 0.0))
    next(found)
    pq.write_table(pa.table({name: [1.0] for name in NAMES}), path)
    with pytest.raises(cn.InputError, match="changed while it was in use"):
        list(found)
    with pytest.raises(cn.InputError, match="changed while it was in use"):
        list(table.map(partial(dask_trial.slow_sums, 0.0)))


def test_a_file_that_only_this_machine_sees_as_before_is_no_table(
    table: StreamedTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes look for themselves."""
    monkeypatch.setattr(type(table.rows), "check_unchanged", lambda _: None)
    os.utime(path, (0, 0))
    with pytest.raises(cn.InputError, match="changed while it was in use"):
        list(table.map(dask_trial.its_process))
    path.unlink()
    with pytest.raises(cn.EngineError, match=r"cannot be read on the machine .*: No such file"):
        list(table.map(dask_trial.its_process))


def test_storage_may_number_files_and_round_times_otherwise(path: Path) -> None:
    rows = open_rows("the table", [path], NAMES)
    second = path.stat().st_mtime_ns // 10**9 * 10**9
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").rename(path)
    os.utime(path, ns=(second, second))
    with pytest.raises(cn.InputError, match="changed"):
        rows.check_unchanged()
    there = rows.seen_from_here()
    there.check_unchanged()
    assert len(list(there.blocks())) == 7
    os.utime(path, ns=(second, second + 1))
    with pytest.raises(cn.InputError, match="changed"):
        there.check_unchanged()


def test_an_error_of_the_work_arrives_as_it_is(table: StreamedTable) -> None:
    with pytest.raises(ZeroDivisionError, match="in block 0"):
        list(table.map(dask_trial.failing))


def test_tasks_in_flight_are_few(table: StreamedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    submit = dask_engine._Cluster.submit

    def counted(self: Any, function: Any, *arguments: Any) -> Any:
        started.append(len(started))
        return submit(self, function, *arguments)

    monkeypatch.setattr(dask_engine._Cluster, "submit", counted)
    found = table.map(dask_trial.its_process)
    next(found)
    assert 2 <= len(started) <= 1 + 2 * 2 + 1


@pytest.mark.slow(sampled=False)
def test_work_that_ends_one_process_after_another_is_named(table: StreamedTable) -> None:
    with pytest.raises(cn.EngineError, match="lost one process after another"):
        list(table.map(dask_trial.exiting))


def test_a_cluster_that_is_not_there_is_named(path: Path) -> None:
    import dask

    rows = open_rows("the table", [path], NAMES)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(cn.EngineError, match=r"The Dask cluster at tcp://127.0.0.1:1 is not reached: .* Start it"),
    ):
        list(DaskEngine("tcp://127.0.0.1:1").map(dask_trial.its_process, rows))


def test_who_waits_for_a_scheduler_is_told_so_within_two_seconds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that of the first try: what it takes on a busy machine to give up is not counted."""
    import dask

    told: list[str] = []
    monkeypatch.setattr(warnings, "warn", lambda message, *_, **__: told.append(str(message)))
    rows = open_rows("the table", [path], NAMES)
    for seconds, n_told in ((1, 0), (3, 1)):
        with (
            dask.config.set({"distributed.comm.timeouts.connect": f"{seconds}s"}),
            pytest.raises(cn.EngineError, match=r"tcp://127.0.0.1:1 is not reached"),
        ):
            list(DaskEngine("tcp://127.0.0.1:1").map(dask_trial.its_process, rows))
        assert len(told) == n_told
    assert told == ["Waiting for the Dask scheduler at tcp://127.0.0.1:1, for 3 seconds at most."]
    assert dask_engine.NOTICE_SECONDS < 2


def test_a_cluster_without_processes_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(dask_engine, "PATIENCE_SECONDS", 0.2)
    rows = open_rows("the table", [path], NAMES)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        with pytest.raises(cn.EngineError, match=r"has had no process for 0.2 seconds. Start some."):
            list(DaskEngine(empty.scheduler_address).map(dask_trial.its_process, rows))
        dask_engine._Cluster._lines.pop(empty.scheduler_address).close()


def test_a_process_that_is_away_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute into a task, when one has gone and the next one has not come: a look then tells of no minute without."""
    import distributed

    waited: list[float] = []

    class Line:
        status = "running"
        as_current = nullcontext
        nthreads = dict

        def wait_for_workers(self, _: int, timeout: float) -> None:
            waited.append(timeout)

    def wait(*_: object, **__: object) -> None:
        if not waited:
            raise distributed.TimeoutError

    monkeypatch.setitem(dask_engine._Cluster._lines, "tcp://127.0.0.1:1", Line())
    monkeypatch.setattr(distributed, "wait", wait)
    dask_engine._Cluster("tcp://127.0.0.1:1")._wait("a task")
    assert waited == [dask_engine.PATIENCE_SECONDS]


@pytest.mark.parametrize("address", ["scheduler:8786", "tcp://scheduler:8786", "", 8786])
def test_an_address_that_is_none_or_without_tls_is_refused(address: Any) -> None:
    with pytest.raises(cn.InputError, match="tls://machine:8786"):
        DaskEngine(address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1", "tcp://localhost:", "tcp://[::1]", "tls://machine", "tls://m/"])
def test_an_address_without_a_port_is_named(address: str) -> None:
    with pytest.raises(cn.InputError, match=r"has no port\. Add .*'t[cl][ps]://[^/]*:8786'"):
        DaskEngine(address)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "find_spec", lambda _: None)
    with pytest.raises(cn.UnsupportedError, match=r"pip install 'colonnade\[dask\]'"):
        DaskEngine("tls://scheduler:8786")


def test_a_cluster_that_is_lost_in_a_pass_is_named(path: Path) -> None:
    import dask
    from distributed import LocalCluster

    rows = open_rows("the table", [path], NAMES)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as lost,
    ):
        engine = DaskEngine(lost.scheduler_address)
        found = engine.map(partial(dask_trial.slow_sums, 0.05), rows)
        next(found)
        lost.close()
        for _ in range(2):
            with pytest.raises(cn.EngineError, match=r"is not reached|was lost in the middle of a pass"):
                list(found)
            found = engine.map(partial(dask_trial.slow_sums, 0.0), rows)
        if (line := dask_engine._Cluster._lines.pop(engine.scheduler, None)) is not None:
            line.close()
