"""Every docstring example and every Python block in the docs runs, and prints what the page shows."""

import doctest
import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import colonnade

PROJECT = Path(__file__).parents[2]
REFRESH = runpy.run_path(str(PROJECT / "scripts" / "refresh_docs.py"))
PAGES: list[Path] = [*REFRESH["PAGES"], PROJECT / "examples" / "README.md"]
MODULES = sorted(module.name for module in pkgutil.walk_packages(colonnade.__path__, "colonnade."))


@pytest.mark.parametrize("name", ["colonnade", *MODULES])
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.stem
)
def test_python_blocks_run_and_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for shown, output in REFRESH["printed"](page):
        assert shown[2] == output, "run scripts/refresh_docs.py, and read the page again"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
