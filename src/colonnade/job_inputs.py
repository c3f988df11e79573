"""What a command, or a server's job, is given from disk: saved runs, models and plans, checked before any work."""

from pathlib import Path
from typing import Any

from colonnade.contracts import Model, Report, Roster
from colonnade.diagnostics.certificate import Certificate
from colonnade.errors import InputError, UnsupportedError
from colonnade.planning.records import Plan
from colonnade.protocol.splits import AnySplit
from colonnade.run import RUN, Run
from colonnade.sampling import AnySampler
from colonnade.tasks import load_model


def check_spot_check(sampler: AnySampler | None, rows: int | None) -> None:
    """Require draws that can be checked."""
    if rows is not None and getattr(sampler, "draws", None) != "committed":
        raise UnsupportedError(
            f"A spot check compares draws with what was committed to, and {sampler} commits to nothing. "
            'Draw with kind = "importance" and draws = "committed", or leave the spot check out.'
        )


def read_plan(path: Path, split: AnySplit | None) -> Plan:
    """Read a saved plan, for a job that holds out these rows, or leaves that to the plan."""
    plan = Plan.load(path)
    if split not in (None, plan.split):
        raise InputError(f"The job holds out {split}, the plan {plan.split or 'nothing'}. Plan with the same split.")
    return plan


def read_model(folder: Path) -> tuple[Model[Any], AnySplit | None]:
    """Read the model of a saved run, and which rows the run held out; or a model that was saved by itself."""
    if not (folder / RUN.record).exists():
        return load_model(folder), None
    run = read_run(folder)
    return run.model, run.split


def keep_evaluation(folder: Path, report: Report, split: AnySplit | None) -> bool:
    """Keep an evaluation with the run it is of, if it is one: of the run's own table, and of all rows it held out."""
    is_sampled = getattr(report, "cost_interval", None) is not None
    if not (folder / RUN.record).exists() or getattr(report, "table", None) != "same" or is_sampled:
        return False
    run = read_run(folder)
    return run.split == split and _kept(run.with_findings(report), folder)


def keep_certificate(folder: Path, run: Run[Any], certificate: Certificate) -> bool:
    """Keep a certificate with its run."""
    return certificate.table == "same" and _kept(run.with_findings(certificate=certificate), folder)


def _kept(run: Run[Any], folder: Path) -> bool:
    """Save a run again, where its folder can be written: it may be somebody else's to read."""
    try:
        run.save(folder)
    except InputError:
        return False
    return True


def unseen(model: Model[Any], held_out: AnySplit | None, roster: Roster) -> AnySplit | None:
    """Give the split of a run where these are its rows; of other tables, all rows are new to its model."""
    learned_from = getattr(model, "learned_from_", None)
    if learned_from is None:
        return held_out
    is_same = (learned_from.rows, learned_from.alignment) == (roster.n_rows, roster.alignment)
    return held_out if is_same else None


def read_run(folder: Path) -> Run[Any]:
    """Read a saved run that has a model."""
    run = Run.load(folder)
    if run.model is None:
        raise InputError(f"The run in {folder} is a coreset without a model. Pass a folder that `fit --out` wrote.")
    return run
