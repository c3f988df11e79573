"""The generated reference is what the code says, and what is written by hand knows every kind and every error."""

import re
import runpy
from pathlib import Path

import pytest

import colonnade as cn
from colonnade.catalogue import codec, kinds
from colonnade.messages import Message

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGES: dict[Path, str] = runpy.run_path(str(PROJECT / "scripts" / "reference.py"))["pages"]()
GOLDEN = sorted((PROJECT / "tests" / "golden").glob("wire_v*.txt"))[-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_generated_pages_are_current(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `make reference`, and read the page again"


@pytest.mark.parametrize("kind", sorted(kinds(), key=str), ids=lambda kind: kind.__name__)
def test_every_kind_is_described(kind: type[Message]) -> None:
    assert f"### `{kind.__name__}`\n" in (DOCS / "reference" / "messages.md").read_text()
    assert f"`{kind.__name__}`" in (DOCS / "explanation" / "what-is-disclosed.md").read_text()


def test_every_public_name_is_in_the_api_reference() -> None:
    named = re.findall(r"^\.\. auto\w+:: colonnade\.(\w+)$", (DOCS / "reference" / "api.md").read_text(), re.MULTILINE)
    assert sorted(named) == cn.__all__


def test_the_page_on_errors_knows_all_of_them() -> None:
    page = (DOCS / "reference" / "errors.md").read_text()
    assert [name for name in cn.__all__ if name.endswith(("Error", "Warning")) and name not in page] == []


def test_an_example_of_every_kind_weighs_what_the_page_on_the_wire_format_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "reference" / "wire-format.md").read_text(), re.DOTALL)
    names = {"__name__": "page"}
    exec(code, names)  # noqa: S102  # our own docs
    weight: object = names["weight"]
    assert callable(weight)
    examples = [bytes.fromhex(line.rpartition(": ")[2]) for line in GOLDEN.read_text().splitlines()]
    assert [weight(codec().decode(data)) for data in examples] == [len(data) for data in examples]
