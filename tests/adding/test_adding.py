"""What CONTRIBUTING says of adding something, tried: a copy of the library gets a toy and its lines, and uses it."""

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import colonnade as cn
from adding.toy_transport import Counting
from colonnade.transports.inprocess import InProcess

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PACKAGE = PROJECT / "src" / "colonnade"


class Addition(NamedTuple):
    """A toy, the folder it belongs to, and lines: the file, a text that is there once, what takes its place."""

    toy: str
    folder: str
    lines: tuple[tuple[str, str, str], ...]


TASK = "from colonnade.tasks.regression import Regression\n"
SAMPLER = "from colonnade.sampling.importance import ImportanceSampling\n"
SOLVER = "from colonnade.solvers.saga import Saga\n"
PUBLIC = "from colonnade.run import Run\n"

ADDITIONS = {
    "task": Addition(
        "toy_median.py",
        "tasks",
        (
            ("tasks/registry.py", TASK, f"{TASK}from colonnade.tasks.toy_median import Median\n"),
            ("tasks/registry.py", "\nAnyTask = ", "\nAnyTask = Median | "),
            ("__init__.py", PUBLIC, f"{PUBLIC}from colonnade.tasks.toy_median import Median\n"),
            ("__init__.py", '    "Party",\n', '    "Median",\n    "Party",\n'),
        ),
    ),
    "sampler": Addition(
        "toy_sampler.py",
        "sampling",
        (
            ("sampling/__init__.py", SAMPLER, f"{SAMPLER}from colonnade.sampling.toy_sampler import Told\n"),
            ("sampling/__init__.py", "\nAnySampler = ", "\nAnySampler = Told | "),
            ("__init__.py", PUBLIC, f"{PUBLIC}from colonnade.sampling.toy_sampler import Told\n"),
            ("__init__.py", '    "TransportError",\n', '    "Told",\n    "TransportError",\n'),
        ),
    ),
    "solver": Addition(
        "toy_solver.py",
        "solvers",
        (
            ("solvers/__init__.py", SOLVER, f"{SOLVER}from colonnade.solvers import toy_solver\n"),
            ("solvers/__init__.py", "\nAnySolver = ", "\nAnySolver = toy_solver.Gathered | "),
            ("solvers/__init__.py", "\nHANDLERS = (\n", "\nHANDLERS = (\n    *toy_solver.HANDLERS,\n"),
            ("__init__.py", PUBLIC, f"{PUBLIC}from colonnade.solvers.toy_solver import Gathered\n"),
            ("__init__.py", '    "HoldOut",\n', '    "Gathered",\n    "HoldOut",\n'),
        ),
    ),
    "message": Addition(
        "toy_message.py",
        "diagnostics",
        (
            ("diagnostics/__init__.py", "    audited_distances,\n", "    audited_distances,\n    toy_message,\n"),
            ("diagnostics/__init__.py", "\nHANDLERS = (\n", "\nHANDLERS = (\n    *toy_message.HANDLERS,\n"),
        ),
    ),
    "subcommand": Addition(
        "toy_command.py",
        "cli",
        (
            ("cli/main.py", "    status,\n", "    status,\n    toy_command,\n"),
            ("cli/main.py", '    "version": version,\n', '    "kinds": toy_command,\n    "version": version,\n'),
        ),
    ),
}


def library_with(addition: Addition, folder: Path) -> Path:
    """Copy the library, with the toy in its place and its lines in the registries."""
    copy = folder / "colonnade"
    shutil.copytree(PACKAGE, copy)
    shutil.copy(HERE / addition.toy, copy / addition.folder)
    for name, old, new in addition.lines:
        text = (copy / name).read_text()
        assert text.count(old) == 1, f"{name}: {old!r}"
        (copy / name).write_text(text.replace(old, new))
    return folder


def touched(library: Path) -> tuple[int, dict[str, int]]:
    """Count the files that are new in a copy, and in each other file the lines that are new or not what they were."""
    copies = {str(path.relative_to(library / "colonnade")): path for path in library.rglob("*.py")}
    before = {name: PACKAGE / name for name in copies if (PACKAGE / name).exists()}
    lines = {name: written(path.read_text(), copies[name].read_text()) for name, path in before.items()}
    return len(copies) - len(before), {name: count for name, count in lines.items() if count}


def written(old: str, new: str) -> int:
    if old == new:
        return 0
    return sum(line.startswith("+ ") for line in difflib.ndiff(old.splitlines(), new.splitlines()))


def as_told(what: str) -> tuple[int, dict[str, int]]:
    """Read the same from the table in CONTRIBUTING."""
    found = re.search(rf"^\| a {what} \| (\d) \| (.*?) \|", (PROJECT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert found, f"CONTRIBUTING does not say how to add a {what}"
    return int(found[1]), {name: int(count) for count, name in re.findall(r"(\d) in `(.*?)`", found[2])}


@pytest.mark.parametrize("what", ADDITIONS)
def test_it_takes_the_files_and_lines_that_contributing_says_and_works(what: str, tmp_path: Path) -> None:
    library = library_with(ADDITIONS[what], tmp_path / "library")
    assert touched(library) == as_told(what)
    path = os.pathsep.join([str(library), str(HERE.parent)])
    done = subprocess.run(
        [sys.executable, str(HERE / f"try_{what}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_transport_is_a_class_of_one_method_and_stands_in_no_registry() -> None:
    assert as_told("transport") == (1, {})
    X = np.random.default_rng(0).normal(size=(40, 4))
    ours, theirs = (
        cn.Federation(cn.split_columns(X, X[:, 0], [2, 2]), transport=transport).fit(
            cn.Regression(), sampler=cn.AllRows()
        )
        for transport in (Counting, InProcess)
    )
    assert ours.model.coef_.tobytes() == theirs.model.coef_.tobytes()
    hello, rounds = 1, {entry.round for entry in theirs.ledger}
    assert (Counting.rounds, ours.ledger) == (hello + len(rounds), theirs.ledger)


def test_mypy_names_what_a_sampler_or_a_solver_lacks(tmp_path: Path) -> None:
    """Each toy without one thing of its contract; so would it be in the library, where jobs are typed by contracts."""
    for contract, toy, made, thing in (
        ("Sampler", "toy_sampler.py", "Told(3)", "route"),
        ("Solver", "toy_solver.py", "Gathered()", "between_machines"),
    ):
        text = (HERE / toy).read_text()
        assert text.count(f"def {thing}(") == 1
        text = text.replace(f"def {thing}(", "def other(")
        (tmp_path / toy).write_text(f"{text}\nfrom colonnade.contracts import {contract}\nit: {contract} = {made}\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False).stdout
    assert sorted(re.findall(r'"(\w+)" is missing following "(\w+)" protocol member:\n.*note: +(\w+)\n', found)) == [
        ("Gathered", "Solver", "between_machines"),
        ("Told", "Sampler", "route"),
    ]
    assert "Found 2 errors in 2 files" in found
