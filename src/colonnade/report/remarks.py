"""What to know before one relies on a run, in words; the worst first."""

from collections.abc import Iterator
from typing import Any

from colonnade.diagnostics.certificate import FALSE_ALARMS
from colonnade.number_words import count, in_bytes, per_cent
from colonnade.report import known
from colonnade.report.learned import summary_of
from colonnade.report.sections import Section
from colonnade.report.tables import name
from colonnade.run import Run

# Rows that count like fewer than half as many, and fewer than so many a coefficient, are few. Ten is the usual rule of
# thumb for regressions.
UNEVEN, ROWS_A_COEFFICIENT = 0.5, 10
# Weights estimate the weight of all rows; who sees them a tenth off should ask why.
OFF = 0.1
# The mean of fewer rows is not far from any of them.
FEW_IN_CLUSTER = 10
TABLES = {
    "changed": "a table that changed since the model was learned: its numbers are neither of rows that it learned "
    "from, nor of rows held out",
    "aligned again": "records that were matched again since",
    "new rows": "other rows than those of the run",
}


def remarks_section(run: Run[Any]) -> Section:
    """Say what to know; that there is nothing, if so."""
    found = tuple(remarks(run))
    words = () if found else ("Nothing that was looked at gives cause for doubt.",)
    return Section("remarks", "Remarks", words, remarks=found)


def remarks(run: Run[Any]) -> Iterator[str]:
    """Give each thing to know as a sentence or two."""
    yield from _doubts(run.findings.certificate)
    yield from _tables(run)
    yield from _rows(run)
    if run.model is not None:
        yield from _unmeasured(run)
    if hasattr(run.model, "coef_"):
        _, said = summary_of(run)
        yield from said
    if run.disclosure.raw:
        yield f"{run.disclosure.headline} See the disclosure sheet."
    yield from _small_clusters(run)
    yield from _facts(run)


def _doubts(found: Any) -> Iterator[str]:
    if found is None:
        return
    if found.draws_p < FALSE_ALARMS:
        yield (
            "The certificate doubts the draws: the drawn rows do not add up to the parties' own sums "
            f"(p = {found.draws_p:.4f}). Do not use the model before you know why; draw again with committed draws."
        )
    if found.gradient_p is not None and found.gradient_p < FALSE_ALARMS:
        yield (
            "The certificate doubts the coreset: rows that the model has not seen pull it where an honest coreset "
            f"would not have left it (p = {found.gradient_p:.4f}), so that its bound does not hold."
        )
    if found.excess is None and found.why_no_bound is not None:
        yield f"The certificate gives no bound for how far the model is from the best: {found.why_no_bound}."
    if found.n_hidden:
        yield (
            f"In {count(found.n_hidden)} direction{'s' * (found.n_hidden > 1)} rounding hides how the parties' columns "
            "differ; the certificate's bound does not count what is finer."
        )
    if found.table == "changed":
        yield f"The certificate is of {TABLES['changed']}."


def _tables(run: Run[Any]) -> Iterator[str]:
    report = run.findings.evaluation
    if report is not None and report.table in TABLES:
        yield f"The evaluation is of {TABLES[report.table]}."


def _rows(run: Run[Any]) -> Iterator[str]:
    if known.took_all_rows(run):
        return
    coreset, size = run.coreset, len(run.coreset)
    effective = coreset.effective_size
    if effective < UNEVEN * size:
        yield (
            f"Weights are uneven: {count(size)} rows count like {count(effective)} of equal weight. A few rows decide "
            "much; draw more, or mix in even draws (uniform_share=0.1)."
        )
    coefficients = len(run.roster.feature_names)
    if run.task.needs_label and effective < ROWS_A_COEFFICIENT * coefficients:
        yield (
            f"There are few rows for so many columns: {count(effective)} effective rows for {count(coefficients)} "
            f"coefficients, where {ROWS_A_COEFFICIENT} a coefficient are usual. Draw more rows, or use a penalty."
        )
    off = coreset.weight_sum / coreset.total_weight - 1
    if abs(off) > OFF:
        yield (
            f"The weights add up to {per_cent(abs(off))} {'more' if off > 0 else 'less'} than all rows weigh: the draw "
            "was unlucky, or a few heavy rows decide it. Draw more rows."
        )


def _unmeasured(run: Run[Any]) -> Iterator[str]:
    report = run.findings.evaluation
    if report is None:
        yield (
            "How good the model is has not been measured. Hold out rows (split=cn.HoldOut(0.2)), evaluate, and keep "
            "what comes of it with the run (run.with_findings)."
        )
    elif run.split is None and report.table != "new rows":
        yield (
            "No rows were held out: the model was evaluated on rows that it could have learned from, which flatters "
            "it. Hold out rows (split=cn.HoldOut(0.2))."
        )
    if run.findings.certificate is None:
        yield "The run has no certificate: how far the model can be from the best possible is not known."


def _small_clusters(run: Run[Any]) -> Iterator[str]:
    sizes = getattr(run.findings.evaluation, "cluster_sizes", ())
    small = [place for place, size in enumerate(sizes) if size < FEW_IN_CLUSTER]
    if small:
        yield (
            f"{count(len(small))} of {count(len(sizes))} clusters have fewer than {FEW_IN_CLUSTER} rows, the first is "
            f"cluster {small[0]}: such a centre says much of single rows. Think before you hand this page on."
        )


def _facts(run: Run[Any]) -> Iterator[str]:
    planned = run.facts.get("planned_bytes")
    if planned is not None:
        yield f"The plan had foreseen {in_bytes(planned)}; {in_bytes(run.ledger.bytes)} were sent."
    if "epochs" in run.facts:
        yield f"{name(type(run.solver).__name__)} took {count(run.facts['epochs'])} epochs."
