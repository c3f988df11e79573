"""Rules about the source that no linter knows."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import colonnade as cn

PROJECT = Path(__file__).parents[2]
TEXTS = {str(path.relative_to(PROJECT)): path.read_text() for path in sorted((PROJECT / "src").rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
FORBIDDEN_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "shared", "manager"}
LINES_OF_CODE = 300
WORDS = {"client", "guest", "worker", "host"}  # the design's word is party
OWN_NAMES = {
    "src/colonnade/data/dask_engine.py": {"client"},  # Dask has no other name for who connects to a cluster
    "src/colonnade/board/guard.py": {"host"},  # HTTP's header
    "src/colonnade/board/metrics.py": {"client"},  # prometheus-client is a library's name
}
PURE = {"diagnostics", "evaluation", "kernels", "privacy", "protocol", "sampling", "solvers", "tasks"}
OUTSIDE = {"time", "datetime", "socket", "logging", "threading", "asyncio", "os", "pathlib", "random", "secrets"}


def uses(tree: ast.AST, modules: set[str], calls: set[str]) -> set[str]:
    """Find which of these modules are imported and which of these names called."""
    imported: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(node.func.id)
    return imported & modules | called & calls


def keywords(tree: ast.AST) -> set[str | None]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}


def lines_of_code(name: str) -> int:
    """Count lines but those of docstrings, of comments alone, and blank ones."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, described) and ast.get_docstring(node) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = [line for number, line in enumerate(TEXTS[name].splitlines(), start=1) if number not in docstrings]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def offenders(found: dict[str, Any]) -> dict[str, Any]:
    """Keep the files with something to say."""
    assert len(found) > 1, "no source was looked at"
    return {name: what for name, what in found.items() if what}


def test_nothing_from_outside_can_become_code() -> None:
    assert not offenders({name: uses(tree, FORBIDDEN_MODULES, FORBIDDEN_CALLS) for name, tree in TREES.items()})
    assert not offenders({name: keywords(tree) & {"allow_pickle"} for name, tree in TREES.items()})


def test_files_stay_short_and_well_named() -> None:
    assert not offenders({name: max(0, lines_of_code(name) - LINES_OF_CODE) for name in TEXTS}), "lines too many"
    assert not offenders({name: {Path(name).stem} & FORBIDDEN_NAMES for name in TEXTS})


def folders(root: Path) -> set[Path]:
    return {path.parent.relative_to(root) for path in root.rglob("*.py")}


def test_the_unit_tests_mirror_the_source() -> None:
    assert folders(PROJECT / "tests" / "unit") == folders(PROJECT / "src" / "colonnade")


def test_one_word_for_one_thing() -> None:
    words = {name: set(re.findall(r"[a-z]+", text.lower())) & WORDS for name, text in TEXTS.items()}
    assert not offenders({name: found - OWN_NAMES.get(name, set()) for name, found in words.items()})


def test_scripts_and_kernels_read_no_clock_and_open_nothing() -> None:
    trees = {name: tree for name, tree in TREES.items() if PURE & set(Path(name).parts)}
    assert not offenders({name: uses(tree, OUTSIDE, {"open", "print"}) for name, tree in trees.items()})


def test_all_is_what_is_public() -> None:
    assert cn.__all__ == sorted(cn.__all__)
    assert all(hasattr(cn, name) for name in cn.__all__)


RESULTS = ("Error", "Warning", "Model", "Report")  # what is raised or returned, not called


@pytest.mark.parametrize("name", [name for name in cn.__all__ if not name.endswith(RESULTS)])
def test_each_public_name_has_a_runnable_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(cn, name)) or "")
