"""The command in processes of its own, forked from one that has imported it: to import everything takes a second."""

import fcntl
import multiprocessing
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from contextlib import suppress
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


def run_on_terminal(*arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Do the same on a terminal of so many columns; give the exit code and all that it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "colonnade", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    pieces = []
    with suppress(OSError):  # where nobody has the other end any more
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
    os.close(ours)
    return process.wait(), b"".join(pieces).decode().replace("\r\n", "\n")


def _command(arguments: tuple[str, ...], environment: dict[str, str], folder: str) -> None:
    from colonnade.cli.main import main

    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(environment)
    sys.argv = ["colonnade", *arguments]
    main()
