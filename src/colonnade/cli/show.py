"""How a run looks: as tables for people, as one object for programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade.cli.console import say, show, show_json
from colonnade.contracts import Report
from colonnade.ledger import Ledger
from colonnade.run import Run
from colonnade.sampling import AllRows


@dataclass(frozen=True)
class Comparison:
    """How a model does on rows held out, or on all; the cost there of a model of all rows; what finding out sent."""

    report: Report
    best: float | None
    ledger: Ledger

    @property
    def excess(self) -> float | None:
        """By what part of the best cost the model's is above it."""
        return None if self.best is None or self.best <= 0 else self.report.cost / self.best - 1


def show_run(run: Run[Any], out: Path | None, comparison: Comparison | None = None, *, json: bool) -> None:
    """Save a run where asked, and print it: tables, or one JSON object."""
    saved = None if out is None else run.save(out)
    if json:
        show_json(run_summary(run, saved, comparison))
        return
    show(run_text(run, comparison))
    say(f"Saved to {saved}" if saved else "Not saved; --out FOLDER keeps the run.")


def run_text(run: Run[Any], comparison: Comparison | None = None) -> str:
    """Lay out a run for people: model, coreset, costs, what was sent."""
    model = [] if run.model is None else [f"{run.model.table()}\n"]
    why = [] if run.why is None else [run.why]
    return "\n".join([*model, *why, _facts(run), *_costs(run, comparison), f"\nWhat was sent:\n{run.ledger}"])


def run_summary(run: Run[Any], saved: Path | None, comparison: Comparison | None = None) -> dict[str, Any]:
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
        "evaluation": None if comparison is None else comparison.report,
        "excess": None if comparison is None else comparison.excess,
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


def _costs(run: Run[Any], comparison: Comparison | None) -> list[str]:
    lines = []
    if "cost" in run.facts:
        rows = "all rows that count" if run.sampler == AllRows() else "the coreset, an estimate of that on all"
        lines.append(f"Objective {run.facts['cost']:.6g} on {rows}.")
    if "epochs" in run.facts:
        lines.append(f"{run.facts['epochs']:,} epochs.")
    if comparison is None:
        return lines
    report = comparison.report
    rows = f"all {report.n_evaluated:,} rows" if run.split is None else f"{report.n_evaluated:,} held-out rows"
    lines.append(f"On {rows}: {report.in_words()}.")
    if comparison.best is not None:
        excess = "" if comparison.excess is None else f": excess {100 * comparison.excess:.2f} %"
        lines.append(f"A model learned from all rows costs {comparison.best:.6g} there{excess}.")
    sent = comparison.ledger
    return [*lines, f"Finding that out sent {sent.units:,} units, {sent.bytes:,} bytes more."]
