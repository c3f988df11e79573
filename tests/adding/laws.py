"""The laws of plug-ins, in a copy of the library: conftest and laws are the project's own."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def try_laws(file: str, *names: str) -> None:
    """Try the laws in this file of tests/conformance on what has all these names; there must be some."""
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-c", str(PROJECT / "pyproject.toml"), "--slow=none"]
    code = pytest.main([*options, "-k", " and ".join(names), str(PROJECT / "tests" / "conformance" / file)])
    assert code == pytest.ExitCode.OK
