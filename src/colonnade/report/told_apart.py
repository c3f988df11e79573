"""How well classes are told apart: calibration, ROC, and who is taken for whom."""

from typing import Any

from colonnade.number_words import count, per_cent
from colonnade.report import figures, known
from colonnade.report.sections import Section, Shown
from colonnade.report.tables import Cell, Table, name, number, table, text
from colonnade.run import Run

MOST_CLASSES = 12
ALL_OF_THE_REPORT = "All are in run.findings.evaluation."


def quality_section(run: Run[Any]) -> Section | None:
    """Show all measures of the model on the rows it was tried on, beside those of a model of all rows."""
    report, best = run.findings.evaluation, run.findings.all_rows
    if report is None:
        return None
    beside = {} if best is None else {each.name: each for each in known.measures(best)}
    head = ["measure", "this model", *(["a model of all rows"] if beside else [])]
    lines = [
        [
            text(each.name),
            number(each.number, each.shown),
            *([number(beside[each.name].number, beside[each.name].shown)] if each.name in beside else []),
        ]
        for each in known.measures(report)
    ]
    lines = [line for line in lines if len(line) == len(head)]
    tables = [table(f"Measured on {count(report.n_evaluated)} rows", head, lines, all_of_it="")]
    shown: list[Shown] = []
    if getattr(report, "calibration", ()):
        of_what = _of_what(report)
        shown.append(Shown(figures.calibration(report.calibration), _calibration(report, of_what)))
        if len(report.by_class) == 2:
            shown.append(Shown(figures.roc(report.calibration, report.auc)))
    if hasattr(report, "confusion"):
        tables += [_classes(report), _confusion(report)]
    words: tuple[str, ...] = ()
    if hasattr(report, "calibration"):
        words = (
            "Calibration compares the chances that the model gives with what came true: on the diagonal, of 100 rows "
            "with a chance of 30 %, 30 have it.",
        )
        if not report.calibration:
            words = ("There are too few rows to compare chances with what came true.",)
    return Section("quality", "How good it is", words, tuple(shown), tuple(tables))


def _of_what(report: Any) -> str:
    if len(report.by_class) == 2:
        return f"chance of {name(report.by_class[-1].name)}"
    return "chance of the most likely class"


def _calibration(report: Any, of_what: str) -> Table:
    lines = [
        (
            number(line.predicted, per_cent(line.predicted)),
            number(line.observed, per_cent(line.observed)),
            number(line.support, count(line.support)),
        )
        for line in report.calibration
    ]
    return table("Calibration", (of_what, "came true", "rows"), lines, all_of_it=ALL_OF_THE_REPORT)


def _classes(report: Any) -> Table:
    lines = [
        (
            text(line.name),
            number(line.support, count(line.support)),
            _share(line.precision),
            _share(line.recall),
            Cell("") if line.auc is None else number(line.auc, known.quality(line.auc)),
        )
        for line in report.by_class
    ]
    head = ("class", "rows", "precision", "recall", "AUC")
    return table("Each class against the others", head, lines, all_of_it=ALL_OF_THE_REPORT)


def _confusion(report: Any) -> Table:
    classes = [line.name for line in report.by_class]
    lines = [
        [text(each), *(number(weight, count(weight)) for weight in taken[:MOST_CLASSES])]
        for each, taken in zip(classes, report.confusion, strict=False)
    ]
    head = ("class", *(f"taken for {name(each)}" for each in classes[:MOST_CLASSES]))
    return table("Who is taken for whom, rows", head, lines, all_of_it=ALL_OF_THE_REPORT)


def _share(found: float | None) -> Cell:
    return Cell("") if found is None else number(found, per_cent(found))
