"""What decides the bits of a result besides the data: the versions, and the processor, that computed it."""

import platform
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Arithmetic:
    """How a process computes: Colonnade and NumPy, the BLAS under it with its kernels, and the kind of processor."""

    colonnade: str
    numpy: str
    blas: str
    processor: str

    def difference(self, other: "Arithmetic") -> str | None:
        """Say in what the other differs from this, or None."""
        pairs = ((each.name, getattr(other, each.name), getattr(self, each.name)) for each in fields(self))
        found = [f"{name} is {theirs!r} there, and {own!r} here" for name, theirs, own in pairs if theirs != own]
        return "; ".join(found) or None


@cache
def arithmetic() -> Arithmetic:
    """Look at this process."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    instructions = " ".join([*simd.get("baseline", ()), *simd.get("found", ())])
    processor = f"{platform.machine()} {_model()} ({instructions})"
    return Arithmetic(version("colonnade"), np.__version__, _blas(), processor)


def _blas() -> str:
    """Name the BLAS that NumPy brought along; if it did not, all that are here."""
    from threadpoolctl import threadpool_info

    found = [each for each in threadpool_info() if each["user_api"] == "blas"]
    own = [each for each in found if "numpy" in each["filepath"]] or found
    parts = ("internal_api", "version", "architecture", "threading_layer")
    return ", ".join(sorted(" ".join(str(each.get(part)) for part in parts) for each in own))


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "") or (
        platform.processor()
    )
