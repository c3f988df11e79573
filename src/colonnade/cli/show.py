"""How a run looks: as tables for people, as one object for programs."""

from pathlib import Path
from typing import Any

from colonnade.cli.console import say, show, show_json
from colonnade.ledger import aligned
from colonnade.run import Run
from colonnade.tasks import KMeansModel, LinearModel
from colonnade.tasks.penalty_path import RegularisationPath


def show_run(run: Run[Any], out: Path | None, *, json: bool) -> None:
    """Save a run where asked, and print it.

    Parameters
    ----------
    run : Run
        What to show.
    out : Path or None
        Where to save it.
    json : bool
        One JSON object instead of tables.
    """
    saved = None if out is None else run.save(out)
    if json:
        show_json(_summary(run, saved))
        return
    if run.model is not None:
        show(f"{_model_text(run.model)}\n")
    show(f"{_facts(run)}\n\nWhat was sent:\n{run.ledger}")
    say(f"Saved to {saved}" if saved else "Not saved; --out FOLDER keeps the run.")


def _summary(run: Run[Any], saved: Path | None) -> dict[str, Any]:
    return {
        "task": run.task,
        "sampler": run.sampler,
        "solver": run.solver,
        "seed": run.seed,
        "model": run.model,
        "diagnostics": run.diagnostics,
        "units": run.ledger.units,
        "bytes": run.ledger.bytes,
        "by_phase": run.ledger.by_phase(),
        "by_party": run.ledger.by_party(),
        "seconds": run.seconds,
        "versions": run.versions,
        "saved": None if saved is None else str(saved),
    }


def _facts(run: Run[Any]) -> str:
    d = run.diagnostics
    return (
        f"{run.coreset.sampler}: {d['size']:,} of {run.coreset.n_rows:,} rows ({d['distinct_rows']:,} distinct, as "
        f"steady as {d['effective_size']:,.0f} equal weights); weights sum to {d['weight_sum']:,.0f}.\n"
        f"{run.ledger.units:,} units, {run.ledger.bytes:,} bytes, {run.seconds:.2f} s, seed {run.seed}."
    )


def _model_text(model: LinearModel | KMeansModel) -> str:
    if isinstance(model, LinearModel):
        coefficients = zip(model.feature_names_in_, model.coef_, strict=True)
        named = [("(intercept)", model.intercept_), *coefficients]
        table = aligned([("feature", "coefficient"), *((name, f"{value:.6g}") for name, value in named)], numbers={1})
        return table if model.path is None else f"{table}\n\n{_path_text(model.path)}"
    centers = model.cluster_centers_
    header = ("feature", *(f"centre {number}" for number in range(1, len(centers) + 1)))
    lines = [
        (name, *(f"{value:.4g}" for value in values))
        for name, values in zip(model.feature_names_in_, centers.T, strict=True)
    ]
    return aligned([header, *lines], numbers=range(1, len(header)))


def _path_text(path: RegularisationPath) -> str:
    """Show every seventh penalty that was tried, and the chosen one."""
    header = ("l2", "l1", "squared error left out", "standard error", "")
    lines = [
        (f"{point.l2:.4g}", f"{point.l1:.4g}", f"{point.error:.6g}", f"{point.std_error:.2g}", "chosen" * chosen)
        for number, point in enumerate(path.points)
        if (chosen := point == path.chosen) or number % 7 == 0
    ]
    return (
        f"Chosen by cross-validation: l2 = {path.chosen.l2:.6g}, l1 = {path.chosen.l1:.6g}. Of the "
        f"{len(path.points)} penalties tried:\n{aligned([header, *lines], numbers=range(4))}"
    )
