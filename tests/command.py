"""The command in processes of its own, forked from one that has imported it: to import everything takes a second."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
# What commands import, those of our dependencies too (pydantic is typer's); what is not installed is left out.
FORKS.set_forkserver_preload(
    ["colonnade.cli.main", "pyarrow.csv", "pyarrow.parquet", "pydantic.type_adapter", "rich.table", "sklearn.cluster"]
)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `colonnade` with these arguments, and wait for its end."""
    with tempfile.TemporaryDirectory() as folder:
        process = FORKS.Process(target=_command, args=(arguments, environment, folder))
        process.start()
        process.join()
        out, err = (Path(folder, name).read_text() for name in ("out", "err"))
    assert process.exitcode is not None
    return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


def run_afresh(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Do the same by an interpreter that starts with nothing, as a user does."""
    command = [sys.executable, "-m", "colonnade", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _command(arguments: tuple[str, ...], environment: dict[str, str], folder: str) -> None:
    from colonnade.cli.main import main

    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(environment)
    sys.argv = ["colonnade", *arguments]
    main()
