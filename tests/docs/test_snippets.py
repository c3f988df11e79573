"""Every docstring example and every Python block in the docs runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import colonnade

PROJECT = Path(__file__).parents[2]
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").rglob("*.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(colonnade.__path__, "colonnade."))


@pytest.mark.parametrize("name", ["colonnade", *MODULES])
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def python_blocks(page: Path) -> str:
    """Join a page's Python blocks: they are read one after another, and run so."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(python_blocks(page), str(page), "exec"), {"__name__": "__main__"})  # noqa: S102  # our own docs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
