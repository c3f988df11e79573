"""Rules about the source that no linter knows."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import colonnade as cn

PROJECT = Path(__file__).parents[2]
SOURCES = sorted((PROJECT / "src").rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "shared", "manager"}
# The public face is two thirds docstrings and examples.
LONGER = {"api.py": 480}
PURE = {"diagnostics", "evaluation", "kernels", "privacy", "protocol", "sampling", "solvers", "tasks"}
WORDS = {"client", "guest", "worker", "host"}  # the design's word is party


def relative(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_from_outside_can_become_code(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in FORBIDDEN_MODULES
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS
        if isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_files_stay_short_and_well_named(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGER.get(path.name, 300)
    assert path.stem not in FORBIDDEN_NAMES


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_one_word_for_one_thing(path: Path) -> None:
    words = set(re.findall(r"[a-z]+", path.read_text().lower()))
    assert not words & WORDS


@pytest.mark.parametrize("path", [p for p in SOURCES if PURE & set(p.relative_to(PROJECT).parts[2:-1])], ids=relative)
def test_scripts_and_kernels_read_no_clock_and_open_nothing(path: Path) -> None:
    modules = {"time", "datetime", "socket", "logging", "threading", "asyncio", "os", "pathlib", "random", "secrets"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & modules
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in modules
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print"}


def test_all_is_what_is_public() -> None:
    assert cn.__all__ == sorted(cn.__all__)
    assert all(hasattr(cn, name) for name in cn.__all__)


RESULTS = ("Error", "Warning", "Model", "Report")  # what is raised or returned, not called


@pytest.mark.parametrize("name", [name for name in cn.__all__ if not name.endswith(RESULTS)])
def test_each_public_name_has_a_runnable_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(cn, name)) or "")
