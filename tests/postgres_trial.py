"""A PostgreSQL of the tests' own: on loopback, in a folder of its own, with a password."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "s3cret/of:the@bank"  # noqa: S105  # of a server that lives for these tests
QUOTED = "s3cret%2Fof%3Athe%40bank"
USER = "owner"
SECONDS = 60.0


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server, give its address, end it; skip where PostgreSQL is not installed."""
    programs = _programs()
    person = _person()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        (folder / "password").write_text(PASSWORD)
        for path in (folder, folder / "password") if person else ():
            shutil.chown(path, **person)
        data, port = folder / "data", _free_port()
        initdb = [programs / "initdb", "-D", data, "-U", USER, "--pwfile", folder / "password", "-A", "scram-sha-256"]
        quick = ["-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*initdb, *quick], check=True, capture_output=True, cwd=folder, **person)  # type: ignore[call-overload]
        options = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(  # type: ignore[call-overload]
                [programs / "postgres", "-D", data, "-p", str(port), *options], stderr=log, cwd=folder, **person
            )
        try:
            _wait_for(port, server, folder / "log")
            yield f"postgresql://{USER}:{QUOTED}@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait(SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    pytest.importorskip("adbc_driver_postgresql", reason="the extra postgres is not installed")
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders or not (folders[-1] / "initdb").exists():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return folders[-1]


def _person() -> dict[str, str]:
    """Say who runs it: it refuses to run as root."""
    if os.geteuid():
        return {}
    if not [each for each in pwd.getpwall() if each.pw_name == "postgres"]:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": "postgres", "group": "postgres"}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS
    while "ready to accept connections" not in log.read_text():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < end, f"PostgreSQL did not start on port {port}: {log.read_text()}"
        time.sleep(0.05)
