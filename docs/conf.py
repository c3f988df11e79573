"""The documentation site: the pages of this folder, and the docstrings of the public names."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent

project = "Colonnade"
author = "The Colonnade developers"
release = metadata.version("colonnade")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "README.md"]  # index.md shows it
html_theme = "furo"
html_show_copyright = False
html_title = f"{project} {release}"

myst_heading_anchors = 3
default_role = "code"  # single backticks in docstrings are code, as in Markdown
autodoc_typehints = "none"  # docstrings say it in words
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False


def downloads(_app: Sphinx, name: str, source: list[str]) -> None:
    """Let links that lead out of this folder to Markdown, which is no page here, give the file."""
    here = (DOCS / name).parent

    def link(found: re.Match[str]) -> str:
        outside = not (here / found[1]).resolve().is_relative_to(DOCS)
        return f"](path:{found[1]})" if outside else found[0]

    source[0] = re.sub(r"\]\((\.\./[^)#]*\.md)(?:#[^)]*)?\)", link, source[0])


def toctrees(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add the sections of README.md, in its order, to the site's navigation."""
    if name == "index":
        for section in (DOCS / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
            pages = re.findall(r"^- \[.*?\]\((.*?)\.md\)", section, flags=re.MULTILINE)
            title, _, _ = section.partition("\n")
            source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```\n"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the above."""
    app.connect("source-read", downloads)
    app.connect("source-read", toctrees)
    return {"parallel_read_safe": True}
