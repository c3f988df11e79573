"""Contenders timed in turns in one run, work in a process of its own with its peak memory, and both kept as JSON lines.

Seconds on a busy machine mean little, so nothing here is compared with a time of another run: every contender runs once
in every repeat, and medians are compared; within a process, of processor time, in which others hardly show. A line is a
case and what was found for it. A case that is stored is not measured again, so that a run that was stopped goes on.
"""

import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import colonnade as cn

Line = dict[str, Any]
PACKAGES = ("colonnade", "numpy", "scipy", "scikit-learn", "pyarrow", "polars", "faiss-cpu")
REPEATS, MOST_REPEATS, BUDGET, PATIENCE = 9, 99, 2.0, 10.0
# What a child may take of the machine's memory: work that needs more is refused, and the machine goes on.
MEMORY_SHARE = 0.7
REFUSALS = (cn.ColonnadeError, MemoryError)
HERE = Path(__file__).parent
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Store:
    """Measurements in a file of JSON lines; the first one is the machine that they were taken on."""

    def __init__(self, path: Path, *, again: bool = False) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._path, self._again, self._new = path, again, set[str]()
        self._lines = {_key(line["case"]): line for line in lines if "case" in line}
        here, there = machine(), next((line["machine"] for line in lines if "machine" in line), Line())
        # What only one of both runs had, such as a contender that is no dependency, is kept.
        self._machine = {**there, **here}
        if self._lines and not again and self._machine != {**here, **there}:
            raise SystemExit(
                f"{path} has measurements of another machine or of other versions: {there}, and this is {here}. "
                "Pass --again to measure all of them here, or another --out."
            )

    def lacks(self, case: Line) -> bool:
        """Tell whether a case is still to be measured."""
        return _key(case) not in (self._new if self._again else self._lines)

    def fill(self, case: Line, measure: Callable[[], Line]) -> None:
        """Measure a case that is lacking, and store and say what was found, be it that it is refused."""
        if not self.lacks(case):
            return
        try:
            found = measure()
        except REFUSALS as error:
            found = {"seconds": {}, "refused": {"ours": _said(error)}}
        self._lines[_key(case)] = {"case": case, "by": taken_by(), **found}
        self._new.add(_key(case))
        self._write()
        print(f"{', '.join(f'{value:,}' if isinstance(value, int) else value for value in case.values())}:", end=" ")
        print(json.dumps(found), flush=True)

    def scratch(self, n_bytes: int = 0) -> tempfile.TemporaryDirectory[str]:
        """Make a folder for tables of so many bytes, where TMPDIR says, or beside the measurements; it is deleted."""
        place = Path(os.environ.get("TMPDIR", self._path.parent))
        place.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(place).free
        if free < n_bytes:
            raise MemoryError(f"{place} has room for {free / 1e9:.1f} GB, and {n_bytes / 1e9:.1f} GB are written there")
        return tempfile.TemporaryDirectory(dir=place)

    def _write(self) -> None:
        lines = [{"machine": self._machine}, *self._lines.values()]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        half = self._path.with_suffix(".part")
        half.write_text("".join(json.dumps(line) + "\n" for line in lines))
        half.replace(self._path)


def _key(case: Line) -> str:
    return json.dumps(case, sort_keys=True)


def machine() -> Line:
    """Describe the machine, and what runs on it."""
    model = [line for line in _read("/proc/cpuinfo").splitlines() if line.startswith("model name")]
    return {
        "processor": model[0].partition(":")[2].strip() if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory GB": round(_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: number for name in PACKAGES if (number := _version(name))},
    }


def taken_by() -> Line:
    """Say by which code and when a line is taken: a file may have lines of several versions."""
    git = shutil.which("git")
    command = [git or "git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE) if git else None  # noqa: S603
    commit = found.stdout.strip() if found is not None and not found.returncode else "no checkout"
    return {"commit": commit, "kernels": _blas(), "date": time.strftime("%Y-%m-%d", time.gmtime())}


def _blas() -> str:
    """Name the processors whose kernels the BLAS uses: by some, plain products are half again as fast as by others."""
    return ", ".join(
        sorted({each.get("architecture", "?") for each in threadpool_info() if each["user_api"] == "blas"})
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def time_in_turns(contenders: Mapping[str, Callable[[], object]]) -> Line:
    """Give each contender's median of seconds of processor time, and who refused.

    Their order is another in every repeat: who runs after one that reads much finds less in the cache. What takes a
    few milliseconds is repeated more often. The first time is not counted, unless it is so long that nobody waits for
    another: who has used up its budget is not asked a third time.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    refused: dict[str, str] = {}
    order = random.Random(0)  # noqa: S311  # no secret
    for turn in range(MOST_REPEATS + 1):
        if turn > REPEATS and sum(map(sum, taken.values())) > BUDGET:
            break
        for name, run in order.sample([*contenders.items()], len(contenders)):
            used = sum(taken[name])
            if name in refused or used > PATIENCE or (used > BUDGET and len(taken[name]) > 1):
                continue
            started = time.process_time()
            try:
                run()
            except REFUSALS as error:
                refused[name] = _said(error)
                continue
            taken[name].append(time.process_time() - started)
    found = {name: times[1:] or times for name, times in taken.items() if name not in refused}
    line: Line = {"seconds": {name: short(median(times)) for name, times in found.items()}}
    return line | {"repeats": {name: len(times) for name, times in found.items()}} | _if_any(refused)


def children_in_turns(script: str, works: Mapping[str, Line], repeats: int = 3) -> Line:
    """Let each work be done by a process of its own, in turns, and tell seconds of both kinds, and the peak of memory.

    Of processor time it is the median; of the clock the least, which is nearest to what a quiet machine shows.
    """
    found: dict[str, list[Line]] = {name: [] for name in works}
    refused: dict[str, str] = {}
    for _ in range(repeats):
        for name, work in works.items():
            if name not in refused:
                told = in_child(script, work)
                refused |= {name: told["refused"]} if "refused" in told else {}
                found[name].append(told)
    told_all = {name: told for name, told in found.items() if name not in refused}
    return {
        "seconds": {name: short(median(each["seconds"] for each in told)) for name, told in told_all.items()},
        "clock": {name: short(min(each["clock"] for each in told)) for name, told in told_all.items()},
        "peak MB": {name: max(each["peak MB"] for each in told) for name, told in told_all.items()},
        **_if_any(refused),
    }


def in_child(script: str, work: Line) -> Line:
    """Have a script do a work in a process of its own, one BLAS thread, and give what it tells; or why it did not."""
    command = [sys.executable, script, json.dumps(work)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603  # ourselves
    if done.returncode:
        return {"refused": _said(done.stderr.strip().rpartition("\n")[2] or f"ended with {done.returncode}")}
    told: Line = json.loads(done.stdout.splitlines()[-1])
    return told


def as_child(does: Callable[..., Line]) -> None:
    """Do the work on the command line, within the memory that a child may take, and tell what came of it."""
    limit = int(MEMORY_SHARE * _memory())
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    work = json.loads(sys.argv[1])
    cores = work.pop("cores", None)
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    print(json.dumps({**does(**work), "peak MB": peak_mb()}))


def peak_mb(process: int | str = "self") -> int:
    """Tell the most memory that a process has held (ru_maxrss would count that of the process which started it)."""
    return round(int(_read(f"/proc/{process}/status").split("VmHWM:")[1].split()[0]) / 1024)


def touch_memory(n_bytes: int) -> None:
    """Write to so many bytes and let them go, so that a work is not charged for what is no part of it.

    A virtual machine takes memory that it has not used for seconds from its host anew: five to ten times what memory
    costs otherwise, and much or little by chance. The peak of memory is counted from here on.
    """
    np.ones(n_bytes, np.uint8)
    Path("/proc/self/clear_refs").write_text("5")


def both_times(action: Callable[[], object]) -> tuple[float, float]:
    """Time one action: seconds of processor time, of all threads together, and of the clock."""
    started = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - started[0], time.perf_counter() - started[1]


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one core, whatever threads it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def short(value: float) -> float:
    """Keep four digits."""
    return float(f"{value:.4g}")


def _said(error: object) -> str:
    said = str(error) or type(error).__name__
    return said if len(said) < 200 else f"{said[:197]}..."


def _if_any(refused: Mapping[str, str]) -> Line:
    return {"refused": dict(refused)} if refused else {}
