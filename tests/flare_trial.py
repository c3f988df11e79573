"""The FLARE example as it is run: in FLARE's simulator, or provisioned on this machine with mutual TLS."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from colonnade.node.identity_files import new_identities
from network_trial import BANK, free_port

EXAMPLE = BANK.parent / "flare"
NAMES = ("bank", "telephone", "shop")
NVFLARE = [sys.executable, "-m", "nvflare.cli"]
needs_flare = pytest.mark.skipif(
    importlib.util.find_spec("nvflare") is None, reason="NVIDIA FLARE is not here: pip install 'colonnade[flare]'"
)


def environment(folder: Path) -> dict[str, str]:
    """Keep FLARE's files of the user out of the user's home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # its scripts start `python3`
    return {**os.environ, **one_thread, "HOME": str(home), "PATH": path}


def job_folder(folder: Path, jobs: str) -> Path:
    """Copy the example's job with other [[job]] tables."""
    copied = folder / "job"
    shutil.copytree(EXAMPLE / "job", copied, dirs_exist_ok=True)
    file = copied / "server" / "config" / "federation.toml"
    file.write_text(file.read_text().partition("[[job]]")[0] + jobs)
    return copied


def simulate(folder: Path, job: Path) -> Path:
    """Play a job in FLARE's simulator, a process for each party, and give the folder of its results."""
    workspace = folder / "simulated"
    local = workspace / "local"  # copied to every simulated site
    local.mkdir(parents=True)
    for name in NAMES:
        shutil.copy(EXAMPLE / "local" / f"{name}.toml", local)
        shutil.copy(BANK / f"{name}.csv", local)
    new_identities(local, NAMES)
    allowed = {"format_version": 2, "class_allow_list": ["nvflare.collab.runtime", "colonnade.flare_job"]}
    (local / "resources.json").write_text(json.dumps(allowed))
    command = [*NVFLARE, "simulator", str(job), "-w", str(workspace), "-c", ",".join(NAMES), "-t", str(len(NAMES))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=folder, env=environment(folder)
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return workspace / "server" / "simulate_job"


class Provisioned:
    """A server and three sites, each a real process of FLARE's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        project = (EXAMPLE / "project.yml").read_text()
        for port in ("8002", "8003"):
            project = project.replace(port, str(free_port()))
        (folder / "project.yml").write_text(project)
        self._nvflare("provision", "-p", "project.yml", "-w", "provisioned", "--force")
        self.sites = folder / "provisioned" / "colonnade" / "prod_00"
        self._run([sys.executable, str(EXAMPLE / "prepare.py"), str(self.sites)])
        self._kit = ("--startup-kit", str(self.sites / "admin@trial.example"))
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Provisioned":
        for name in ("localhost", *NAMES):
            with (self.folder / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    ["bash", str(self.sites / name / "startup" / "sub_start.sh"), "--once"],  # noqa: S607  # wherever
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=environment(self.folder),
                    start_new_session=True,  # FLARE starts a process for each job
                )
            self._processes.append(process)
        self._wait(lambda: "Registered clients: 3" in self._nvflare("system", "status", *self._kit, check=False))
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()

    def submit(self, job: Path) -> str:
        found = re.search(r"job_id: (\S+)", self._nvflare("job", "submit", "-j", str(job), *self._kit))
        assert found is not None
        return found[1]

    def outcome(self, job: str) -> str:
        """Wait for the end, and give FLARE's word for it."""
        said = self._nvflare("job", "wait", job, *self._kit, check=False)
        found = re.search(r"FINISHED:\w+", said)
        assert found is not None, said
        return found[0]

    def download(self, job: str) -> Path:
        self._nvflare("job", "download", job, "-o", "downloaded", *self._kit)
        return self.folder / "downloaded" / job / "workspace"

    def wait_for_round(self, number: int) -> None:
        """Wait until the newest run has come so far."""
        status = self.sites / "localhost" / "colonnade-state" / "status.json"

        def is_there() -> bool:
            runs: list[dict[str, Any]] = json.loads(status.read_text())["runs"] if status.exists() else []
            return bool(runs) and runs[-1]["round"] >= number

        self._wait(is_there)

    def kill_job(self, job: str, name: str) -> None:
        """Kill -9 the process in which a site takes part in a job."""
        listed = self._run(["ps", "-wweo", "pid,args"])
        pids = [int(line.split()[0]) for line in listed.splitlines() if job in line and f"/{name}" in line]
        assert pids, listed
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def _wait(self, is_there: Any) -> None:
        until = time.monotonic() + 90
        while not is_there():
            assert time.monotonic() < until, "FLARE does not get there"
            time.sleep(0.5)

    def _nvflare(self, *arguments: str, check: bool = True) -> str:
        return self._run([*NVFLARE, *arguments], check=check)

    def _run(self, command: list[str], *, check: bool = True) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=self.folder,
            env=environment(self.folder),
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr
