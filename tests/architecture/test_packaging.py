"""What is handed out: what a wheel holds, and that numbers written in two places agree."""

import json
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
    assert {path.name for path in sources if path.suffix != ".py"} == {
        "py.typed",
        "authors.json",
        "page.html",
        "page.css",
        "page.js",
    }


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


def pins(name: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==[^\s;]+", (PROJECT / name).read_text(), flags=re.MULTILINE))


def test_what_runs_is_a_part_of_what_is_tested() -> None:
    """The image of a server or a party has the versions that the tests ran with, and no tool of theirs."""
    runtime, tested = pins("requirements-runtime.lock"), pins("requirements.lock")
    assert runtime < tested
    packages = {pin.partition("==")[0] for pin in runtime}
    wanted = [*NAMED["dependencies"], *NAMED["optional-dependencies"]["grpc"]]
    assert packages >= {re.match(r"[\w-]+", each)[0] for each in wanted}  # type: ignore[index]
    assert packages.isdisjoint({"pytest", "hypothesis", "mypy", "ruff", "sphinx", "build", "matplotlib", "nvflare"})


def test_a_bill_of_materials_names_all_that_runs() -> None:
    lock = "requirements-runtime.lock"
    done = subprocess.run(
        [sys.executable, PROJECT / "scripts" / "sbom.py", lock], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["version"]) == (
        "CycloneDX",
        "1.6",
        NAMED["version"],
    )
    assert {f"{each['name']}=={each['version']}" for each in bill["components"]} == pins(lock)
    references = [each["bom-ref"] for each in bill["components"]]
    assert len(references) == len(set(references))
    for each in bill["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert [known for known in each["properties"] if known["name"] == "colonnade:sha256"], each["name"]
