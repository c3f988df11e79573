"""A Dask cluster of two real processes, with TLS, and what they are asked to do in tests."""

import os
import time
from collections.abc import Iterator
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


def failing(block: Block) -> None:
    raise ZeroDivisionError(f"in block {block.number}")


def exiting(_: Block) -> None:
    os._exit(1)


def pretend_another_blas() -> None:
    """Have this process say that it computes otherwise."""
    other = {**arithmetic(), "blas": "openblas 0.3.0 Haswell pthreads"}
    patch.object(dask_engine, "arithmetic", return_value=other).start()


def pretend_no_more() -> None:
    patch.stopall()
