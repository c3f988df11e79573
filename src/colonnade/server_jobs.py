"""The [[job]] tables of federation.toml: what a server does, one after another, and how far it has come."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from colonnade import disk
from colonnade.errors import ColonnadeError, InputError
from colonnade.federation import Federation
from colonnade.job_inputs import (
    check_spot_check,
    keep_certificate,
    keep_evaluation,
    read_model,
    read_plan,
    read_run,
    unseen,
)
from colonnade.node.files import read_federation_file
from colonnade.node.predictions_file import save_predictions
from colonnade.node.state_folder import write_private
from colonnade.planning.records import Plan
from colonnade.protocol.fingerprints import Changed
from colonnade.protocol.splits import AnySplit
from colonnade.run import check_destination
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver, Central
from colonnade.storage import check_file
from colonnade.tasks import AnyTask
from colonnade.toml_files import misnamed, mistyped

PROGRESS = "jobs.json"
# What a spot check was called in 0.1.0, in job tables and in what is kept of their progress.
SPOT_CHECK, FORMER_NAME = "spot_check", "audit"


class CoresetJob(msgspec.Struct, frozen=True, tag_field="do", tag="coreset", forbid_unknown_fields=True):
    """Agree on a coreset; `out` is the folder the run is saved to."""

    task: AnyTask
    sampler: AnySampler
    out: str
    split: AnySplit | None = None
    seed: int = 0
    spot_check: int | None = msgspec.field(default=None, name=FORMER_NAME)

    def check(self, _folder: Path) -> None:
        """Require draws that can be checked."""
        check_spot_check(self.sampler, self.spot_check)

    def play(self, federation: Federation, folder: Path, chance: int | None = None) -> dict[str, Any]:
        """Do it; by chance, a spot check opens some rows."""
        run = federation.coreset(self.task, self.sampler, split=self.split, seed=self.seed)
        run = run if self.spot_check is None else federation.spot_check(run, rows=self.spot_check, seed=chance)
        saved = run.save(folder / self.out)
        return {"rows": len(run.coreset), "units": run.ledger.units, "bytes": run.ledger.bytes, "saved": str(saved)}


class FitJob(msgspec.Struct, frozen=True, tag_field="do", tag="fit", forbid_unknown_fields=True):
    """Learn a model, by a sampler and a solver, by a saved plan, or within a limit; `out` is the run's folder."""

    task: AnyTask
    out: str
    sampler: AnySampler | None = None
    solver: AnySolver | None = None
    plan: str | None = None
    # Unset where they are not given: progress with jobs of before is known by the rest.
    budget_bytes: int | msgspec.UnsetType = msgspec.UNSET
    target_excess: float | msgspec.UnsetType = msgspec.UNSET
    split: AnySplit | None = None
    seed: int = 0
    spot_check: int | None = msgspec.field(default=None, name=FORMER_NAME)

    def __post_init__(self) -> None:
        if len(self._limits) + (self.sampler is not None) + (self.plan is not None) != 1:
            raise InputError(
                "A fit job draws its rows by a `sampler`, as a `plan` says, or as it finds best within `budget_bytes` "
                "or for a `target_excess`: give one of them"
            )
        if self.sampler is None and self.solver is not None:
            raise InputError("A plan decides sampler and solver: leave the solver out")

    def check(self, folder: Path) -> None:
        """Require a plan that can be read, and draws that can be checked."""
        planned = self._planned(folder)
        check_spot_check(self.sampler if planned is None else planned.sampler, self.spot_check)

    def play(self, federation: Federation, folder: Path, chance: int | None = None) -> dict[str, Any]:
        """Do it; by chance, a spot check opens some rows."""
        run: Any = federation.fit(self.task, seed=self.seed, **self._ways(folder))
        run = run if self.spot_check is None else federation.spot_check(run, rows=self.spot_check, seed=chance)
        saved = run.save(folder / self.out)
        told = {"rows": len(run.coreset), "units": run.ledger.units, "bytes": run.ledger.bytes, "saved": str(saved)}
        planned = run.facts.get("planned_bytes")
        return told if planned is None else {**told, "planned_bytes": round(planned)}

    @property
    def _limits(self) -> dict[str, float]:
        limits = {"budget_bytes": self.budget_bytes, "target_excess": self.target_excess}
        return {name: limit for name, limit in limits.items() if not isinstance(limit, msgspec.UnsetType)}

    def _ways(self, folder: Path) -> dict[str, Any]:
        """Say how to draw and to learn."""
        if self.plan is not None:
            return {"plan": self._planned(folder)}
        if self.sampler is None:
            return {"split": self.split, **self._limits}
        return {"sampler": self.sampler, "solver": self.solver or Central(), "split": self.split}

    def _planned(self, folder: Path) -> Plan | None:
        return None if self.plan is None else read_plan(folder / self.plan, self.split)


class EvaluateJob(msgspec.Struct, frozen=True, tag_field="do", tag="evaluate", forbid_unknown_fields=True):
    """Count the cost of a saved model; `out` is a JSON file. Where a party evaluates, the server learns sums only."""

    model: str
    out: str
    rows: int | None = None
    split: AnySplit | None = None
    by: str | None = None
    seed: int = 0
    changed: Changed = "refuse"

    def play(self, federation: Federation, folder: Path) -> dict[str, Any]:
        """Do it."""
        check_file(folder / self.out)
        model, held_out = read_model(folder / self.model)
        split = unseen(model, held_out, federation.roster) if self.split is None else self.split
        report = federation.evaluate(
            model, rows=self.rows, split=split, by=self.by, seed=self.seed, changed=self.changed
        )
        write_private(folder / self.out, msgspec.json.format(msgspec.json.encode(report)) + b"\n")
        keep_evaluation(folder / self.model, report, split)
        return {"rows": report.n_evaluated, "cost": report.cost, "table": report.table, "saved": str(folder / self.out)}


class PredictJob(msgspec.Struct, frozen=True, tag_field="do", tag="predict", forbid_unknown_fields=True):
    """Predict with a saved model, for a party, for a CSV or Parquet file here, or both."""

    model: str
    rows: list[int] | None = None
    to: str | None = None
    out: str | None = None

    def play(self, federation: Federation, folder: Path) -> dict[str, Any]:
        """Do it."""
        if self.to is None and self.out is None:
            raise InputError(
                "A predict job needs somewhere to put its predictions. Give `to` a party, or `out` a file."
            )
        if self.out is not None:
            check_file(folder / self.out)
        model, _ = read_model(folder / self.model)
        found = federation.predict(model, rows=self.rows, to=self.to)
        if self.out is not None:
            save_predictions(folder / self.out, self.rows, found)
        saved = None if self.out is None else str(folder / self.out)
        return {"rows": len(found), "delivered_to": self.to, "saved": saved}


class DeliverJob(msgspec.Struct, frozen=True, tag_field="do", tag="deliver", forbid_unknown_fields=True):
    """Let one party learn what a saved model predicts, under masks: nobody else does, nor the server."""

    model: str
    to: str
    rows: list[int] | None = None

    def play(self, federation: Federation, folder: Path) -> dict[str, Any]:
        """Do it."""
        model, _ = read_model(folder / self.model)
        federation.deliver(model, self.to, rows=self.rows)
        return {"rows": federation.roster.n_rows if self.rows is None else len(self.rows), "delivered_to": self.to}


class CertifyJob(msgspec.Struct, frozen=True, tag_field="do", tag="certify", forbid_unknown_fields=True):
    """Certify a saved run; `out` is a JSON file."""

    run: str
    out: str
    rows: int = 600
    seed: int = 1
    changed: Changed = "refuse"

    def play(self, federation: Federation, folder: Path) -> dict[str, Any]:
        """Do it."""
        check_file(folder / self.out)
        run = read_run(folder / self.run)
        found = federation.certify(run, rows=self.rows, seed=self.seed, changed=self.changed)
        write_private(folder / self.out, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
        keep_certificate(folder / self.run, run, found)
        return {"rows": found.rows, "certified": str(found), "saved": str(folder / self.out)}


AnyJob = CoresetJob | FitJob | EvaluateJob | PredictJob | DeliverJob | CertifyJob


class _Progress(msgspec.Struct):
    """How many are done; `chance` chooses what spot checks open, which nobody can tell beforehand."""

    jobs: str
    done: int
    chance: int | None = None


def read_jobs(tables: list[dict[str, Any]], path: Path) -> list[AnyJob]:
    """Read the [[job]] tables, in order, and check that what they write can be written."""
    try:
        jobs = msgspec.convert([_renamed(table) for table in tables], list[AnyJob])
    except msgspec.ValidationError as error:
        problem = str(error).replace(f".{FORMER_NAME}`", f".{SPOT_CHECK}`").replace("`$[", "`$.job[")
        raise InputError(f"{path}: {misnamed(list[AnyJob], tables, 'job') or mistyped(problem)}") from error
    if not jobs:
        raise InputError(f"{path} has no [[job]]. Add one, or use Federation.connect in Python.")
    for job in jobs:
        if isinstance(job, CoresetJob | FitJob):
            check_destination(path.parent / job.out)
            job.check(path.parent)
    return jobs


def _renamed(table: dict[str, Any]) -> dict[str, Any]:
    """Read a spot check by either of its names."""
    if SPOT_CHECK in table and FORMER_NAME in table:
        raise InputError(f"A job names `{SPOT_CHECK}` and `{FORMER_NAME}`, which are one thing. Keep `{SPOT_CHECK}`.")
    return {FORMER_NAME if name == SPOT_CHECK else name: value for name, value in table.items()}


class Progress:
    """How many jobs of a list, with results in this folder, are done; kept in the state folder."""

    def __init__(self, state: Path, jobs: list[AnyJob], folder: Path) -> None:
        self._path = state / PROGRESS
        # The folder too: what is done elsewhere is not there for the jobs that follow.
        self._jobs = hashlib.sha256(msgspec.json.encode((str(folder), jobs))).hexdigest()

    def done(self) -> int:
        """Tell how many are done; none if the list has changed since."""
        kept = self._kept()
        return 0 if kept is None else kept.done

    def chance(self) -> int:
        """Give the seed of this list's spot checks: a server that was killed opens no other rows when it goes on."""
        kept = self._kept() or _Progress(self._jobs, 0)
        if kept.chance is None:
            kept.chance = secrets.randbits(62)
            self._write(kept)
        return kept.chance

    def set(self, done: int) -> None:
        """Note how many are done."""
        kept = self._kept()
        self._write(_Progress(self._jobs, done, None if kept is None else kept.chance))

    def _kept(self) -> _Progress | None:
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Progress)
        except (OSError, ValueError):
            return None
        return kept if kept.jobs == self._jobs else None

    def _write(self, progress: _Progress) -> None:
        write_private(self._path, msgspec.json.encode(progress))

    def clear(self) -> None:
        """Forget it: all are done, and the next start begins anew."""
        disk.remove(self._path)
        disk.sync_folder(self._path.parent)


def do_jobs(federation_file: Path) -> Iterator[dict[str, Any]]:
    """Do the jobs of a file that are not done yet, and give what came of each."""
    file = read_federation_file(federation_file)
    jobs = read_jobs(file.job, federation_file)
    folder = federation_file.resolve().parent
    progress = Progress(Path(file.state), jobs, folder)
    with Federation.connect(federation_file) as federation:
        for number, job in enumerate(jobs[progress.done() :], start=progress.done() + 1):
            seed = partial(lambda number: progress.chance() + number, number)
            try:
                done = {"job": number, **play_job(job, federation, folder, seed)}
            except ColonnadeError as error:
                error.add_note(f"That was job {number}, {verb_of(job)}, of {federation_file}.")
                raise
            progress.set(number)
            federation.acknowledge(done.get("saved"))
            yield done
        federation.acknowledge()  # where it was killed before it could say so
    progress.clear()  # after all else: a server that starts without it does all jobs again


def play_job(job: AnyJob, federation: Federation, folder: Path, seed: Callable[[], int]) -> dict[str, Any]:
    """Do a job, and say what came of it; `seed` decides what a spot check opens."""
    if isinstance(job, CoresetJob | FitJob) and job.spot_check is not None:
        return {"do": verb_of(job), **job.play(federation, folder, seed())}
    return {"do": verb_of(job), **job.play(federation, folder)}


def summary(done: dict[str, Any]) -> str:
    """Put what came of a job into one line."""
    facts = ", ".join(f"{name} {_text(value)}" for name, value in done.items() if name not in ("job", "do") and value)
    return f"job {done['job']}, {done['do']}: {facts}"


def verb_of(job: AnyJob) -> str:
    """Give what a job does, in its own word."""
    return str(job.__struct_config__.tag)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)
