"""How a run looks: as tables for people, as one object for programs."""

from pathlib import Path
from typing import Any

from colonnade.cli.console import say, show, show_json
from colonnade.ledger import Ledger
from colonnade.run import Run
from colonnade.sampling import AllRows


def show_run(run: Run[Any], out: Path | None, sent_since: Ledger | None = None, *, json: bool) -> None:
    """Save a run where asked, and print it, with what finding out more of it sent: tables, or one JSON object."""
    saved = None if out is None else run.save(out)
    if json:
        show_json(run_summary(run, saved))
        return
    show(run_text(run, sent_since))
    say(f"Saved to {saved}" if saved else "Not saved; --out FOLDER keeps the run.")


def run_text(run: Run[Any], sent_since: Ledger | None = None) -> str:
    """Lay out a run for people: model, coreset, costs, what was sent."""
    model = [] if run.model is None else [f"{run.model.table()}\n"]
    why = [] if run.why is None else [run.why]
    return "\n".join([*model, *why, _facts(run), *_costs(run, sent_since), f"\nWhat was sent:\n{run.ledger}"])


def run_summary(run: Run[Any], saved: Path | None) -> dict[str, Any]:
    """Put a run into one object for programs."""
    return {
        "task": run.task,
        "sampler": run.sampler,
        "solver": run.solver,
        "why": run.why,
        "split": run.split,
        "seed": run.seed,
        "model": run.model,
        "diagnostics": run.diagnostics,
        "units": run.ledger.units,
        "bytes": run.ledger.bytes,
        "by_phase": run.ledger.by_phase(),
        "by_party": run.ledger.by_party(),
        "evaluation": run.findings.evaluation,
        "excess": run.findings.excess,
        "certificate": run.findings.certificate,
        "tables": run.tables,
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


def _costs(run: Run[Any], sent_since: Ledger | None) -> list[str]:
    lines = []
    if "cost" in run.facts:
        rows = "all rows that count" if run.sampler == AllRows() else "the coreset, an estimate of that on all"
        lines.append(f"Objective {run.facts['cost']:.6g} on {rows}.")
    if "epochs" in run.facts:
        lines.append(f"{run.facts['epochs']:,} epochs.")
    found = run.findings
    if found.evaluation is not None:
        n_evaluated = found.evaluation.n_evaluated
        rows = f"all {n_evaluated:,} rows" if run.split is None else f"{n_evaluated:,} held-out rows"
        lines.append(f"On {rows}: {found.evaluation.in_words()}.")
    if found.all_rows is not None:
        excess = "" if found.excess is None else f": excess {100 * found.excess:.2f} %"
        lines.append(f"A model learned from all rows costs {found.all_rows.cost:.6g} there{excess}.")
    if found.certificate is not None:
        lines.append(f"Certificate: {found.certificate}.")
    if sent_since is not None:
        lines.append(f"Finding that out sent {sent_since.units:,} units, {sent_since.bytes:,} bytes more.")
    return lines
