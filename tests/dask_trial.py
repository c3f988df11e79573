"""A Dask cluster of two real processes, with TLS, and what they are asked to do in tests."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from colonnade.data import dask_engine
from colonnade.data.arithmetic import arithmetic
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import Block


@contextmanager
def dask_cluster(folder: Path) -> Iterator[Any]:
    """Start two processes that work on one thread each; this process finds the certificates as an owner has it."""
    import dask
    from distributed import LocalCluster, Security

    security = Security.temporary()
    names = {"ca-file": security.tls_ca_file, "client.cert": security.tls_client_cert}
    files = {}
    for name, content in {**names, "client.key": security.tls_client_key}.items():
        path = folder / f"{name}.pem"
        path.write_text(content)
        files[f"distributed.comm.tls.{name}"] = str(path)
    with (
        dask.config.set(files),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tls://",
            security=security,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster
        hang_up()


def hang_up() -> None:
    """Close the lines to all clusters."""
    while dask_engine._Cluster._lines:
        dask_engine._Cluster._lines.popitem()[1].close()


def slow_sums(seconds: float, block: Block) -> Floats:
    time.sleep(seconds)
    return np.asarray(block.values.sum(axis=0))


def its_process(_: Block) -> int:
    return os.getpid()


def its_number(block: Block) -> int:
    return block.number


def failing(block: Block) -> None:
    raise ZeroDivisionError(f"in block {block.number}")


def exiting(_: Block) -> None:
    os._exit(1)


def pretend_another_blas() -> None:
    """Have this process say that it computes otherwise."""
    other = {**arithmetic(), "blas": "openblas 0.3.0 Haswell pthreads"}
    patch.object(dask_engine, "arithmetic", return_value=other).start()


def let_results_take(n_bytes: int) -> None:
    """Have this process end a task when its results take so many bytes."""
    patch.object(dask_engine, "RESULT_BYTES", n_bytes).start()


def weighted_sums(numbers: Callable[[int], Floats], block: Block) -> Floats:
    return np.asarray(numbers(block.number) @ block.values)


@contextmanager
def process_with(sources: Path, cluster: Any) -> Iterator[int]:
    """Start one more process, which finds a Colonnade there."""
    import dask

    tls = {name: dask.config.get(f"distributed.comm.tls.{name}") for name in ("ca-file", "client.cert", "client.key")}
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
    command += ["--nthreads", "1", "--no-dashboard", "--tls-ca-file", tls["ca-file"]]
    command += ["--tls-cert", tls["client.cert"], "--tls-key", tls["client.key"], "--local-directory", str(sources)]
    line = dask_engine._Cluster(cluster.scheduler_address)._line
    started = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(sources)}, stderr=subprocess.DEVNULL)
    try:
        line.wait_for_workers(3, timeout=60)
        yield started.pid
    finally:
        started.kill()
        started.wait()
        while len(line.nthreads()) > 2:
            time.sleep(0.05)


def pretend_no_more() -> None:
    patch.stopall()
