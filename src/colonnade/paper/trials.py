"""What `colonnade reproduce` stores, one line a model, and its sums beside what the paper's authors have."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np

from colonnade.errors import InputError


class Trial(msgspec.Struct, frozen=True):
    """One model: which experiment it belongs to, how it was learned, what it costs, what was sent.

    Parameters
    ----------
    experiment, task, variant, data, method : str
        Where it stands in the tables; the method as the paper calls it, for instance C-Central.
    size, repeat : int
        Rows drawn (all of them for a method without C- or U-), and which of the repeats.
    seed : int
        The user's, from which the trial's own was made.
    cost : float
        A row, on all rows the experiment judges by.
    units, bytes : int
        Counted from messages.
    formula_units : int
        What the paper's printed formulas give for the same.
    seconds : float
        To learn, without judging.
    epochs : int or None
        Of SAGA.
    """

    experiment: str
    task: str
    variant: str
    data: str
    method: str
    size: int
    repeat: int
    seed: int
    cost: float
    units: int
    bytes: int
    formula_units: int
    seconds: float
    epochs: int | None = None


class AuthorsCell(msgspec.Struct, frozen=True):
    """What the paper's authors stored and printed; a size of None means all rows."""

    experiment: str
    task: str
    method: str
    size: int | None
    stored_mean: float
    stored_std: float
    printed: float | None


class Cell(msgspec.Struct, frozen=True):
    """One line of a table: a method at a size over its repeats, and the authors' numbers for it."""

    experiment: str
    task: str
    variant: str
    data: str
    method: str
    size: int
    repeats: int
    mean: float
    std: float
    stored_mean: float | None
    stored_std: float | None
    printed: float | None
    units: float
    bytes: float
    formula_units: float

    @property
    def is_full(self) -> bool:
        """Whether it was learned on all rows."""
        return not self.method.startswith(("C-", "U-"))

    @property
    def solver(self) -> str:
        """The method without C- or U-."""
        return self.method.removeprefix("C-").removeprefix("U-")

    @property
    def difference_in_stds(self) -> float | None:
        """Ours less the stored mean in pooled standard deviations; None where ours was not repeated."""
        if self.stored_mean is None or self.stored_std is None or self.repeats < 2:
            return None
        pooled = np.sqrt((self.std**2 + self.stored_std**2) / 2)
        return float((self.mean - self.stored_mean) / pooled) if pooled > 0 else None


def read_trials(path: Path) -> list[Trial]:
    """Read a results file: one JSON object a line; a last line that was torn off is left out."""
    try:
        content = path.read_bytes() if path.exists() else b""
        return msgspec.json.Decoder(Trial).decode_lines(content[: content.rfind(b"\n") + 1])
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path} is not a readable results file: {error}. Move it away and run again.") from error


def authors_cells() -> list[AuthorsCell]:
    """Read the table that comes with the package."""
    content = files("colonnade.paper").joinpath("authors.json").read_bytes()
    return msgspec.json.decode(content, type=list[AuthorsCell])


def cells(trials: Sequence[Trial]) -> list[Cell]:
    """Sum up repeats and put the authors' numbers beside them, in the order they were run."""
    authors = {(cell.experiment, cell.task, cell.method, cell.size): cell for cell in authors_cells()}
    groups: dict[tuple[str, str, str, str, str, int], list[Trial]] = {}
    for t in trials:
        groups.setdefault((t.experiment, t.task, t.variant, t.data, t.method, t.size), []).append(t)
    return [_cell(place, group, authors) for place, group in groups.items()]


def _cell(
    place: tuple[str, str, str, str, str, int],
    group: Sequence[Trial],
    authors: Mapping[tuple[str, str, str, int | None], AuthorsCell],
) -> Cell:
    experiment, task, _, _, method, size = place
    theirs = authors.get((experiment, task, method, size if method.startswith(("C-", "U-")) else None))
    costs = [trial.cost for trial in group]
    return Cell(
        *place,
        len(group),
        float(np.mean(costs)),
        float(np.std(costs)),  # the population's, as the authors stored it
        theirs.stored_mean if theirs else None,
        theirs.stored_std if theirs else None,
        theirs.printed if theirs else None,
        float(np.mean([trial.units for trial in group])),
        float(np.mean([trial.bytes for trial in group])),
        float(np.mean([trial.formula_units for trial in group])),
    )
