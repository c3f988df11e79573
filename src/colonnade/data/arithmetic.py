"""What decides the bits of a result besides the data: the versions, and the processor, that computed it.

This file needs nothing of Colonnade: its text is sent to processes that may have another one, or none.
"""

import os
import platform
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

MISSING = "not installed"


@cache
def arithmetic() -> dict[str, str]:
    """Say how this process computes: Colonnade, Python and packages, the BLAS under them, the kind of processor."""
    packages = {name: _version(name) for name in ("numpy", "scipy", "pyarrow")}
    own = {"colonnade": _colonnade(), "python": platform.python_version(), **packages}
    return {**own, "blas": _blas(), "processor": _processor()}


def machine() -> str:
    """Name this process."""
    return f"{platform.node()} (process {os.getpid()})"


def difference(own: dict[str, str], other: dict[str, str]) -> str | None:
    """Say in what the other differs, or None."""
    pairs = ((name, other.get(name, MISSING), own[name]) for name in own)
    found = [f"{name} is {theirs!r} there, and {ours!r} here" for name, theirs, ours in pairs if theirs != ours]
    return "; ".join(found) or None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def _colonnade() -> str:
    """Tell the sources that are found, too: a checkout has the version of the one before it."""
    found = find_spec("colonnade")
    if found is None or not found.submodule_search_locations:
        return MISSING
    (folder, *_) = map(Path, found.submodule_search_locations)
    sources = sha256()
    for path in sorted(folder.rglob("*.py")):
        sources.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{_version('colonnade')}, sources {sources.hexdigest()[:12]}"


def _blas() -> str:
    """Name those that NumPy and SciPy brought along; if they did not, all that are here."""
    with suppress(ImportError):
        import scipy.linalg  # noqa: F401  # which brings its own
        from threadpoolctl import threadpool_info

        found = [each for each in threadpool_info() if each["user_api"] == "blas"]
        own = [each for each in found if "numpy" in each["filepath"] or "scipy" in each["filepath"]] or found
        parts = ("internal_api", "version", "architecture", "threading_layer")
        return ", ".join(sorted(" ".join(str(each.get(part)) for part in parts) for each in own))
    return MISSING


def _processor() -> str:
    instructions = MISSING
    with suppress(ImportError):
        import numpy as np

        simd = np.show_config(mode="dicts")["SIMD Extensions"]
        instructions = " ".join([*simd.get("baseline", ()), *simd.get("found", ())])
    return f"{platform.machine()} {_model()} ({instructions})"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "") or (
        platform.processor()
    )
