"""The job file: a small TOML that lists parties, task, sampler, solver and seed."""

from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer

from colonnade.api import Federation
from colonnade.data.parties import Party
from colonnade.errors import InputError
from colonnade.protocol.conductor import RoundListener
from colonnade.protocol.policy import Policy
from colonnade.run import Run
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver, Central
from colonnade.tasks import AnyModel, AnyTask

JobFile = Annotated[
    Path, typer.Argument(help="TOML file with parties, task, sampler, solver, seed.", metavar="JOB.toml")
]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a saved run, from `fit --out`.", metavar="RUN")]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Save the run to this folder.")]


SECTIONS: dict[str, Any] = {"task": AnyTask, "sampler": AnySampler, "solver": AnySolver}


class PartyEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One [[party]] of a job."""

    name: str
    file: str
    label: str | None = None
    key: str | None = None
    never: list[str] = []


class Job(msgspec.Struct, forbid_unknown_fields=True):
    """A job file's content; `folder` is where its relative paths start."""

    party: list[PartyEntry]
    task: AnyTask
    sampler: AnySampler
    solver: AnySolver = Central()
    seed: int = 0

    def parties(self, folder: Path) -> list[Party]:
        """Read the parties' files."""
        return [
            Party(entry.name, folder / entry.file, label=entry.label, key=entry.key, policy=Policy(entry.never))
            for entry in self.party
        ]

    def federation(self, folder: Path, on_round: RoundListener) -> Federation:
        """Read the parties' files and let them meet."""
        return Federation(self.parties(folder), on_round=on_round)


def read_job(path: Path, seed: int | None) -> Job:
    """Read a job file.

    Parameters
    ----------
    path : Path
        A TOML file.
    seed : int or None
        Takes the place of the file's seed.

    Returns
    -------
    Job
        Every name in it known, every value of its type.
    """
    try:
        job = msgspec.toml.decode(path.read_bytes(), type=Job)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the job file {path}: {error}. Pass the path of a TOML file.") from error
    except msgspec.ValidationError as error:
        raise InputError(f"Job file {path}: {error}. {_advice(str(error))}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"Job file {path} is not TOML: {error}. Mend that line.") from error
    return job if seed is None else msgspec.structs.replace(job, seed=seed)


def read_model(folder: Path) -> AnyModel:
    """Read the model of a saved run.

    Parameters
    ----------
    folder : Path
        What `fit --out` wrote.

    Returns
    -------
    LinearModel or KMeansModel
        The model.
    """
    model: AnyModel | None = Run.load(folder).model
    if model is None:
        raise InputError(f"The run in {folder} is a coreset without a model. Pass a folder that `fit --out` wrote.")
    return model


def _advice(problem: str) -> str:
    if "unknown field" in problem or "Invalid value" in problem or "missing required field" in problem:
        return _options()
    if "$.party" in problem and "got `object`" in problem:
        return "Write [[party]], with two brackets, once a party."
    if "`$.task.l2`" in problem or "`$.task.l1`" in problem:
        return 'Write a number, or "cv" to let it be chosen by cross-validation.'
    return "Mend that value."


def _options() -> str:
    return "Known options: " + "; ".join(
        [
            f"at the top: {_names(Job)}",
            f"[[party]]: {_names(PartyEntry)}",
            *(
                f'[{section}] kind = "{kind.__struct_config__.tag}": {_names(kind) or "none"}'
                for section, kinds in SECTIONS.items()
                for kind in get_args(kinds) or (kinds,)
            ),
        ]
    )


def _names(kind: Any) -> str:
    return ", ".join(kind.__struct_fields__)
