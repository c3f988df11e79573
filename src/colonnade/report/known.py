"""What is known of a run beside what it learned: how good it is, by the name that each task has for that."""

from typing import Any, NamedTuple

from colonnade.contracts import ClusteringTask, LinearTask, LogisticTask, Report
from colonnade.number_words import count, value
from colonnade.report.tables import name
from colonnade.run import Run
from colonnade.sampling import AllRows


class Measure(NamedTuple):
    """One measure of how good a model is."""

    name: str
    number: float
    shown: str


def quality(number: float) -> str:
    """Write a measure whose best is 1, with three decimals."""
    return f"{number:.3f}" if abs(number) < 10 else value(number)


def first_measure(report: Report) -> Measure:
    """Give the measure that matters first: R² or AUC where there is one, else the cost a row."""
    for field, title in (("r2", "R²"), ("auc", "AUC"), ("accuracy", "Accuracy")):
        number = getattr(report, field, None)
        if number is not None:
            return Measure(title, number, quality(number))
    cost = float(getattr(report, "cost_per_row", report.cost))
    return Measure("Cost a row", cost, value(cost))


def measures(report: Report) -> list[Measure]:
    """Give all single numbers of a report, those that matter first."""
    fields = (
        ("r2", "R²", quality),
        ("auc", "AUC", quality),
        ("accuracy", "Accuracy", quality),
        ("mse", "Mean squared error", value),
        ("mae", "Mean absolute error", value),
        ("log_loss", "Log-loss a row", value),
        ("brier", "Brier score", value),
        ("cost", "Cost on all these rows", value),
        ("cost_per_row", "Cost a row", value),
    )
    named = [(title, getattr(report, field, None), shown) for field, title, shown in fields]
    same = "cost_per_row" if any(hasattr(report, field) for field in ("mse", "log_loss")) else ""
    return [
        Measure(title, number, shown(number))
        for (field, _, _), (title, number, shown) in zip(fields, named, strict=True)
        if number is not None and field != same
    ]


def label(run: Run[Any]) -> str | None:
    """Name the label, as its party does."""
    return next((card.label_name for card in run.roster.cards if card.label_name is not None), None)


def learned(run: Run[Any]) -> str:
    """Say in a few words what was learned."""
    target = label(run)
    if run.model is None:
        return "Coreset"
    if isinstance(run.task, ClusteringTask):
        return f"{count(run.task.n_clusters)} clusters"
    if isinstance(run.task, LogisticTask):
        return f"Classification of {name(target)}"
    if isinstance(run.task, LinearTask):
        return f"Regression of {name(target)}"
    kind = type(run.task).__name__
    return kind if target is None or not run.task.needs_label else f"{kind} of {name(target)}"


def took_all_rows(run: Run[Any]) -> bool:
    """Tell whether nothing was drawn."""
    return run.sampler == AllRows()


def cells(run: Run[Any]) -> str:
    """Say what `bytes_of_all` counts."""
    return "sending every prepared cell" if run.tables is not None and run.tables.prepared else "sending every cell"
