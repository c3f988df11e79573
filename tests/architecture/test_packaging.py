"""What is handed out: what a wheel holds, and that numbers written in two places agree."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "src" / "colonnade"
NAMED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=PROJECT, check=True)
    (file,) = folder.iterdir()
    assert file.name == f"colonnade-{NAMED['version']}-py3-none-any.whl"
    return zipfile.ZipFile(file)


def test_a_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    sources = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    about = f"colonnade-{NAMED['version']}.dist-info"
    assert set(wheel.namelist()) == {str(path.relative_to(PACKAGE.parent)) for path in sources} | {
        f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    assert {path.name for path in sources if path.suffix != ".py"} == {"py.typed", "authors.json"}


def test_a_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "colonnade = colonnade.cli.main:main" in wheel.read(entries).decode()


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {NAMED['version']}\n" in (PROJECT / "CITATION.cff").read_text()
    assert f"\n## [{NAMED['version']}] - " in (PROJECT / "CHANGELOG.md").read_text()


def test_the_hosted_runner_does_what_ours_does_for_each_version_named() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not here")
    job = yaml.safe_load((PROJECT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["run"]
    steps = [step["run"] for step in job["steps"] if "run" in step]
    assert steps == re.findall(r"^make \w+$", (PROJECT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(NAMED["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == classifiers
    assert NAMED["requires-python"] == f">={classifiers[0]}"
