"""Each Python example runs by itself, warns of nothing, and prints what examples/README.md shows."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
README = (EXAMPLES / "README.md").read_text()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_is_shown(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    shown = re.search(rf"^## {re.escape(script.name)}\n\n```text\n(.*?)```", README, flags=re.MULTILINE | re.DOTALL)
    assert shown is not None, "show in examples/README.md what it prints"
    assert capsys.readouterr().out == shown[1], "look at what it prints now, and show that in examples/README.md"
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_is_short_listed_and_keeps_to_the_public_names(script: Path) -> None:
    source = script.read_text()
    assert f"| [{script.name}]({script.name}) |" in README
    assert len(source.splitlines()) <= 50
    assert set(re.findall(r"^\s*(?:import|from) (colonnade.*)", source, flags=re.MULTILINE)) == {"colonnade as cn"}
