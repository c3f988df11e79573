"""A run: what was asked, what came of it, what was sent. Saved as JSON and Arrow, never pickle."""

import platform
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import PartyCard, Roster, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.ledger import Ledger
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver
from colonnade.tasks import AnyModel, AnyTask

M = TypeVar("M")
FORMAT = 1
RECORD, CORESET, LEDGER = "run.json", "coreset.arrow", "ledger.json"


@dataclass(frozen=True, eq=False)
class Run(Generic[M]):
    """The result of `Federation.fit` or `Federation.coreset`.

    Parameters
    ----------
    task : Regression or KMeans
        What was asked.
    sampler : ImportanceSampling, UniformSampling, AllRows, or None
        How rows were drawn; None where a coreset was given.
    solver : Solver or None
        How the model was learned; None where none was asked for.
    split : HoldOut, SplitBy or None
        Which rows were held out.
    seed : int
        With the data and the options, it decides the result bit for bit.
    roster : Roster
        The parties and their columns.
    coreset : Coreset
        Rows and weights.
    model : LinearModel, KMeansModel or None
        What was learned.
    facts : dict of str to float
        What the solver tells of itself, such as the objective on the coreset, or epochs.
    ledger : Ledger
        Every message of this run.
    seconds : float
        How long it took.
    versions : dict of str to str
        Of Python, NumPy and Colonnade.

    Examples
    --------
    >>> import numpy as np, colonnade as cn, tempfile
    >>> federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20), seed=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = cn.Run.load(run.save(folder + "/run"))
    >>> bool((again.model.coef_ == run.model.coef_).all()), again.ledger == run.ledger
    (True, True)
    """

    task: Task[Any]
    sampler: AnySampler | None
    solver: AnySolver | None
    split: AnySplit | None
    seed: int
    roster: Roster
    coreset: Coreset
    model: M
    facts: dict[str, float]
    ledger: Ledger
    seconds: float
    versions: dict[str, str]

    @property
    def diagnostics(self) -> dict[str, float]:
        """How steady the coreset's weights are (their sum estimates the weight of all rows), and the solver's facts."""
        weights = self.coreset.weights
        return {
            "size": len(self.coreset),
            "distinct_rows": len(np.unique(self.coreset.rows)),
            "effective_size": self.coreset.effective_size,
            "weight_sum": float(weights.sum()),
            "total_weight": self.coreset.total_weight,
            "largest_weight": float(weights.max()),
            **self.facts,
        }

    def save(self, path: str | Path) -> Path:
        """Write the run to a folder, whole or not at all.

        Parameters
        ----------
        path : str or Path
            A new folder, or one that holds a run, which is replaced.

        Returns
        -------
        Path
            The folder.
        """
        path = check_destination(path)
        try:
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
                _write(Path(scratch) / "fresh", self)
                _put_in_place(Path(scratch) / "fresh", path, Path(scratch) / "stale")
        except OSError as error:
            raise InputError(f"The run could not be saved to {path}: {error}. Choose another folder.") from error
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Run[Any]":
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
            The folder.

        Returns
        -------
        Run
            Equal to the one saved.
        """
        path = Path(path)
        try:
            return _read(path)
        except InputError:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a readable run: {error}. Pass a folder that Run.save wrote.") from error


class _Record(msgspec.Struct):
    format: int
    task: AnyTask
    sampler: AnySampler | None
    solver: AnySolver | None
    split: AnySplit | None
    seed: int
    parties: tuple[PartyCard, ...]
    n_rows: int
    total_weight: float
    drawn_by: str
    rule: str | None
    total: float | None
    model: AnyModel | None
    facts: dict[str, float]
    seconds: float
    versions: dict[str, str]


class _Format(msgspec.Struct):
    format: int


def _record(run: Run[Any]) -> _Record:
    coreset = run.coreset
    return _Record(
        FORMAT,
        run.task,  # type: ignore[arg-type]  # the door let in only tasks of the registry
        run.sampler,
        run.solver,
        run.split,
        run.seed,
        run.roster.cards,
        coreset.n_rows,
        coreset.total_weight,
        coreset.sampler,
        coreset.rule,
        coreset.total,
        run.model,
        run.facts,
        run.seconds,
        run.versions,
    )


def _write(folder: Path, run: Run[Any]) -> None:
    folder.mkdir()
    (folder / RECORD).write_bytes(msgspec.json.format(_encode(_record(run)), indent=2))
    (folder / LEDGER).write_text(run.ledger.to_json(), encoding="utf-8")
    _write_coreset(folder / CORESET, run.coreset)


def _put_in_place(fresh: Path, path: Path, stale: Path) -> None:
    if path.exists():
        path.rename(stale)
    try:
        fresh.rename(path)
    except OSError:
        if stale.exists():
            stale.rename(path)
        raise


def _read(path: Path) -> Run[Any]:
    record = _decode((path / RECORD).read_bytes(), path)
    rows, weights = _read_coreset(path / CORESET)
    ledger = Ledger.from_json((path / LEDGER).read_text(encoding="utf-8"))
    coreset = Coreset(rows, weights, record.n_rows, record.total_weight, record.drawn_by, record.rule, record.total)
    if not record.parties:
        raise ValueError("it names no parties")
    return Run(
        record.task,
        record.sampler,
        record.solver,
        record.split,
        record.seed,
        Roster(record.parties),
        coreset,
        record.model,
        record.facts,
        ledger,
        record.seconds,
        record.versions,
    )


def current_versions() -> dict[str, str]:
    """Name the versions that decide a run's bits."""
    return {"colonnade": version("colonnade"), "numpy": np.__version__, "python": platform.python_version()}


def check_destination(path: str | Path) -> Path:
    """Require a folder a run can be saved to: a new or empty one, or one that holds a run, where we may write.

    Parameters
    ----------
    path : str or Path
        Where the run shall go; folders above it are made.

    Returns
    -------
    Path
        The same.
    """
    path = Path(path).resolve()
    try:
        if path.exists() and not _is_ours(path):
            raise InputError(f"{path} exists and is not a saved run. Choose a new folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InputError(f"A run cannot be saved to {path}: {error}. Choose a folder you may write to.") from error
    return path


def _is_ours(path: Path) -> bool:
    """Tell whether a folder may be replaced: it is empty, or holds a run and nothing else."""
    if not path.is_dir():
        return False
    names = {file.name for file in path.iterdir()}
    if not names:
        return True
    try:
        msgspec.json.decode((path / RECORD).read_bytes(), type=_Format)
    except (OSError, ValueError):
        return False
    return names == {RECORD, CORESET, LEDGER}


def _encode(record: _Record) -> bytes:
    return msgspec.json.encode(record, enc_hook=lambda array: array.tolist())


def _decode(data: bytes, path: Path) -> _Record:
    found = msgspec.json.decode(data, type=_Format).format
    if found != FORMAT:
        raise InputError(
            f"{path} was saved in run format {found}; this version reads format {FORMAT}. "
            "Read it with the version that wrote it, or run again."
        )
    return msgspec.json.decode(data, type=_Record, dec_hook=_read_array)


def _read_array(_: type, numbers: Any) -> Floats:
    return np.array(numbers, dtype=np.float64)


def _write_coreset(path: Path, coreset: Coreset) -> None:
    import pyarrow as pa

    table = pa.table({"row": coreset.rows, "weight": coreset.weights})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def _read_coreset(path: Path) -> tuple[Any, Any]:
    import pyarrow as pa

    try:
        with pa.ipc.open_file(str(path)) as reader:
            table = reader.read_all()
        return table["row"].to_numpy(), table["weight"].to_numpy()
    except (pa.ArrowException, KeyError) as error:
        raise InputError(f"{path} is not a readable coreset: {error}. Pass a folder that Run.save wrote.") from error
