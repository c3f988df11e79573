"""How a run looks: as tables for people, as one object for programs."""

from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from colonnade.cli.console import results, talk
from colonnade.run import Run
from colonnade.tasks import KMeansModel, LinearModel


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
        results().print(msgspec.json.encode(_summary(run, saved), enc_hook=lambda a: a.tolist()).decode(), markup=False)
        return
    if run.model is not None:
        results().print(_model_table(run.model))
    results().print(_facts(run), markup=False)
    results().print(f"\nWhat was sent:\n{run.ledger}", markup=False)
    talk().print(f"Saved to {saved}" if saved else "Not saved; --out FOLDER keeps the run.", markup=False)


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


def _model_table(model: LinearModel | KMeansModel) -> Table:
    table = Table(title="Model")
    table.add_column("feature")
    if isinstance(model, LinearModel):
        table.add_column("coefficient", justify="right")
        table.add_row("(intercept)", f"{model.intercept_:.6g}")
        for name, value in zip(model.feature_names_in_, model.coef_, strict=True):
            table.add_row(Text(name), f"{value:.6g}")
        return table
    for number in range(len(model.cluster_centers_)):
        table.add_column(f"centre {number + 1}", justify="right")
    for name, values in zip(model.feature_names_in_, model.cluster_centers_.T, strict=True):
        table.add_row(Text(name), *(f"{value:.4g}" for value in values))
    return table
