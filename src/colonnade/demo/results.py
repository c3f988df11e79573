"""What the demo stores, one line a model, and its sums over seeds."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from colonnade.errors import InputError

ALL_ROWS, UNIFORM, CORESET = "all rows", "uniform", "coreset"


class Result(msgspec.Struct, frozen=True):
    """One model: how it was learned, what it costs on all rows, what was sent."""

    task: str
    method: str
    size: int
    seed: int
    cost: float
    excess: float
    units: int
    bytes: int
    seconds: float


class Cell(msgspec.Struct, frozen=True):
    """One line of the table: a method at a size, over its seeds."""

    task: str
    method: str
    size: int
    seeds: int
    cost: float
    mean_excess: float
    worst_excess: float
    units: float
    bytes: float
    seconds: float


def read_results(path: Path) -> list[Result]:
    """Read a results file: one JSON object a line."""
    try:
        return msgspec.json.Decoder(Result).decode_lines(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} is not a readable results file: {error}. Run `colonnade demo` again.") from error


def cells(results: Sequence[Result]) -> list[Cell]:
    """Sum up the seeds of each task, method and size, in the order they were run."""
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        groups.setdefault((result.task, result.method, result.size), []).append(result)
    return [
        Cell(
            *key,
            len(group),
            float(np.mean([r.cost for r in group])),
            float(np.mean([r.excess for r in group])),
            max(r.excess for r in group),
            float(np.mean([r.units for r in group])),
            float(np.mean([r.bytes for r in group])),
            float(np.median([r.seconds for r in group])),
        )
        for key, group in groups.items()
    ]
