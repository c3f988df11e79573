"""The examples between machines: their files can be read, and the how-to's three terminals do what it says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from colonnade.node.files import read_federation_file, read_party_file
from colonnade.server_jobs import read_jobs
from network_trial import free_port

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "examples"
HOW_TO = PROJECT / "docs" / "how-to" / "connect-machines.md"
NAMES = ["bank", "telephone", "shop"]


def read_yaml(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not here")
    return yaml.safe_load(path.read_text())


def test_the_compose_file_gives_each_party_its_own_files_and_no_others(tmp_path: Path) -> None:
    compose = read_yaml(EXAMPLES / "network" / "compose.yaml")
    services, configs = compose["services"], compose["configs"]
    assert list(services) == ["server", *NAMES]
    assert [name for name, service in services.items() if "ports" in service] == ["server"], "parties open no port"
    for name, service in services.items():
        assert (EXAMPLES / "network" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        mounted = {target: source for source, target in (each.split(":")[:2] for each in service["volumes"])}
        secrets = {Path(source).name for source in mounted.values() if source.endswith((".key", ".identity"))}
        assert secrets == {f"{name}.key", f"{name}.identity"}
        assert {source for source in mounted.values() if "/" not in source} <= set(compose["volumes"])
        (config,) = service["configs"]
        file = tmp_path / f"{name}.toml"
        file.write_text(configs[config["source"]]["content"])
        named = re.findall(r'"((?:certs/|\w+\.csv)[^"]*)"', file.read_text())
        home = Path(config["target"]).parent
        assert {str(home / path) for path in named} <= set(mounted), "what its file names is mounted"
        if name == "server":
            read = read_federation_file(file)
            assert (read.parties, len(read_jobs(read.job, file))) == (NAMES, 2)
        else:
            assert read_party_file(file).name == name


def test_the_files_for_flare_agree(tmp_path: Path) -> None:
    folder = EXAMPLES / "flare"
    meta = json.loads((folder / "job" / "meta.json").read_text())
    file = read_federation_file(folder / "job" / "server" / "config" / "federation.toml")
    sites = [each["name"] for each in read_yaml(folder / "project.yml")["participants"] if each["type"] == "client"]
    assert file.parties == meta["mandatory_clients"] == meta["deploy_map"]["parties"] == sites == NAMES
    assert len(file.job) == 3
    assert Path(file.identity.key).resolve().parent.name == "local", "at the server's site: no secret travels"
    for name in NAMES:
        path = shutil.copy(folder / "local" / f"{name}.toml", tmp_path)
        assert (read_party_file(Path(path)).name, read_party_file(Path(path)).server) == (name, "flare")
        assert tomllib.loads(Path(path).read_text())["data"]["file"] == f"{name}.csv"
    named = re.findall(r'"path": "([\w.]+)"', "".join(path.read_text() for path in (folder / "job").rglob("*.json")))
    assert {path for path in named if path.startswith("colonnade.")} == {
        "colonnade.flare_job.JobServer",
        "colonnade.flare_job.SiteParty",
    }
    assert not list((folder / "job").rglob("*.py")), "no code travels"


@pytest.mark.slow
def test_three_terminals_do_what_the_how_to_says(tmp_path: Path) -> None:
    """In a folder with nothing but the examples in it, and the command on the path."""
    rehearsal = HOW_TO.read_text().partition("## Rehearse on one machine")[2].partition("\n## ")[0]
    terminals, (wanted,) = (
        re.findall(r"```sh\n(.*?)```", rehearsal, re.S)[:3],
        re.findall(r"```text\n(.*?)```", rehearsal, re.S),
    )
    for name in ("network", "bank"):
        shutil.copytree(
            EXAMPLES / name, tmp_path / "examples" / name, ignore=shutil.ignore_patterns("certs", "*-state", "run")
        )
    port = str(free_port())  # another rehearsal may be using the one in the files
    for file in (tmp_path / "examples" / "network").glob("*.toml"):
        file.write_text(file.read_text().replace("7143", port))
    command = tmp_path / "bin" / "colonnade"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from colonnade.cli.main import main; main()' \"$@\"\n")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    started: list[subprocess.Popen[str]] = []
    try:
        for terminal in terminals:
            started.append(
                subprocess.Popen(
                    ["bash", "-c", terminal],  # noqa: S607  # wherever it is
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    cwd=tmp_path,
                    env=environment,
                    start_new_session=True,
                )
            )
            if terminal is terminals[0]:
                while not (tmp_path / "examples" / "network" / "certs" / "pins.toml").exists():
                    assert started[0].poll() is None
                    time.sleep(0.05)
        said, _ = started[-1].communicate(timeout=120)
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    assert started[-1].returncode == 0, said
    here = str((tmp_path / "examples" / "network").resolve())
    lines = [line.replace(here, "...") for line in said.splitlines() if "waiting for" not in line]
    expected = [line for line in wanted.splitlines() if "waiting for" not in line]
    assert " ".join(lines) == " ".join(expected), "but for where lines break"
    assert (tmp_path / "examples" / "network" / "shop-predictions.csv").read_text().count("\n") == 801
