"""The tutorial on raw tables: typed as it stands, where nothing but the examples is, it prints what it shows."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from network_trial import free_port

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "tutorial" / "raw-tables.md"
BLOCK = re.compile(r"^```(sh|toml|text)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
# What is printed here follows from which people are held out and drawn, and that from secrets of an alignment.
BY_CHANCE = re.compile(r"server federation|evaluation.json|\.log$|predictions.csv", flags=re.MULTILINE)
NUMBER = re.compile(r"(?<!rows )-?\b\d[\d,.]*(e[+-]?\d+)?")


def typed(folder: Path) -> Iterator[tuple[re.Match[str], str, str]]:
    """Do what the page says, block by block; give what it shows, the commands above that, and what they printed."""
    port, commands, said = str(free_port()), "", ""
    for block in BLOCK.finditer(PAGE.read_text()):
        if block[1] == "toml":
            edit(block[2], folder)
        elif block[1] == "sh":
            commands, said = block[2], run(block[2], folder)
            if entered := re.search(r"^cd (\w+)$", commands, re.MULTILINE):
                folder /= entered[1]
            for file in folder.glob("*.toml"):
                file.write_text(file.read_text().replace("7143", port))  # another rehearsal may be using that one
        else:
            lines = said.replace(str(folder.resolve()), "...").splitlines(keepends=True)
            yield block, commands, "".join(line for line in lines if "waiting for" not in line)


def run(commands: str, folder: Path) -> str:
    """Type the lines of a block."""
    bash = ["bash", "-ec", commands]
    done = subprocess.run(bash, cwd=folder, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def edit(lines: str, folder: Path) -> None:
    """Put lines into the file that the first one names: jobs below, others in place of what is said there."""
    name, _, rest = lines.partition("\n")
    file = folder / name.removeprefix("# ")
    if rest.startswith("[[job]]"):
        file.write_text(f"{file.read_text()}\n{rest}")
        return
    column = rest.partition(" =")[0]
    text, n = re.subn(rf"^(# )?{column} = .*$", rest.rstrip(), file.read_text(), flags=re.MULTILINE)
    assert n == 1, f"{name} has no line on {column}"
    file.write_text(text)


def words(text: str, commands: str) -> list[str]:
    """List what was printed, wherever lines break; of what is chance, no numbers but those of rows, and in no order."""
    if not BY_CHANCE.search(commands):
        return text.split()
    return sorted(NUMBER.sub("0", re.sub(r"\b[0-9a-f]{32}\b", "name", text)).replace(".,", ",").split())


@pytest.mark.slow
def test_the_tutorial_on_raw_tables_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROJECT / "examples" / "raw", tmp_path / "examples" / "raw")
    command = tmp_path / "bin" / "colonnade"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from colonnade.cli.main import main; main()' \"$@\"\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    shown = [(block[2], commands, said) for block, commands, said in typed(tmp_path)]
    assert len(shown) > 8
    for page, commands, said in shown:
        assert words(said, commands) == words(page, commands), said
