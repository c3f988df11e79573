"""The headline: what was learned from whom, how good it is, and what it took, in words; and the key numbers."""

from collections.abc import Iterator
from typing import Any

from colonnade.number_words import count, duration, in_bytes, per_cent, value
from colonnade.report import known
from colonnade.report.sections import Tile
from colonnade.report.tables import name, names
from colonnade.run import Run
from colonnade.run_words import bytes_of_all


def sentences(run: Run[Any]) -> Iterator[str]:
    """Put a run into four sentences or so, for somebody who reads nothing else."""
    yield _what(run)
    if run.model is not None:
        yield from _how_good(run)
        if run.findings.certificate is not None:
            yield certified(run.findings.certificate)
    yield sent(run)


def tiles(run: Run[Any]) -> Iterator[Tile]:
    """Give the key numbers."""
    report = run.findings.evaluation
    if report is not None:
        measure, best = known.first_measure(report), run.findings.all_rows
        beside = "" if best is None else f"{known.first_measure(best).shown} with all rows"
        yield Tile(measure.name, measure.shown, beside or f"on {_rows_of(run, report)}")
    found = run.findings.certificate
    if found is not None:
        bound = found.relative_excess
        yield Tile(
            "Above the best possible",
            "not known" if bound is None else f"at most {per_cent(bound)}",
            _certificate_note(found),
        )
    part = per_cent(run.ledger.bytes / bytes_of_all(run))
    yield Tile("Sent", in_bytes(run.ledger.bytes), f"{part} of {known.cells(run)}")
    if known.took_all_rows(run):
        yield Tile("Learned on", f"{count(len(run.coreset))} rows", "all that count")
    else:
        yield Tile("Learned on", f"{count(len(run.coreset))} rows", f"of {count(run.coreset.n_rows)}")
    yield Tile("Rounds", count(run.ledger.n_rounds), f"in {duration(run.seconds)}")
    yield Tile("Parties", count(len(run.roster.cards)), f"{count(len(run.roster.feature_names))} columns")


def _certificate_note(found: Any) -> str:
    if not found.trusted:
        return "the certificate doubts this run"
    return "the certificate has no bound" if found.relative_excess is None else "certified, 95 % confidence"


def _what(run: Run[Any]) -> str:
    cards, n_rows = run.roster.cards, count(run.coreset.n_rows)
    whose = f"{count(len(cards))} parties ({names(card.name for card in cards)})" if len(cards) > 1 else "one party"
    columns = f"{count(len(run.roster.feature_names))} columns"
    if run.model is None:
        return f"{whose} with {columns} agreed on a coreset of {count(len(run.coreset))} of their {n_rows} rows."
    at = f", which {name(run.roster.label_party)} holds," if run.task.needs_label and run.roster.label_party else ""
    thing = known.learned(run)
    if known.took_all_rows(run):
        on = f"on all {n_rows} rows" if run.split is None else f"on all {count(len(run.coreset))} rows not held out"
    else:
        on = (
            f"on a coreset of {count(len(run.coreset))} of {n_rows} rows"
            f" ({per_cent(len(run.coreset) / run.coreset.n_rows)})"
        )
    were = "were" if thing.endswith("clusters") and not thing.startswith("1 ") else "was"
    article = "" if were == "were" or not thing[0].isalpha() else "A "
    begin = f"{article}{thing[0].lower() if article else thing[0]}{thing[1:]}"
    return f"{begin}{at} {were} learned from {columns} of {whose}, {on}."


def _how_good(run: Run[Any]) -> Iterator[str]:
    report, best = run.findings.evaluation, run.findings.all_rows
    if report is None:
        yield "How good it is on rows that it has not seen has not been measured."
        return
    measure = known.first_measure(report)
    text = f"On {_rows_of(run, report)}, the {_spoken(measure.name)} is {measure.shown}"
    interval = getattr(report, "auc_interval", None) if measure.name == "AUC" else None
    if interval is not None:
        text += f" ({known.quality(interval[0])} to {known.quality(interval[1])} with 95 % confidence)"
    if best is not None:
        text += f"; a model learned from all rows has {known.first_measure(best).shown}"
    gap = run.findings.excess
    if gap is not None:
        text += f", and this one costs {per_cent(abs(gap))} {'more' if gap >= 0 else 'less'} there"
    yield f"{text}."


def certified(found: Any) -> str:
    """Put a certificate into a sentence."""
    if not found.trusted:
        return "The certificate doubts this run: do not use its model before you know why (see Remarks)."
    if found.excess is None:
        return f"The certificate gives no bound: {found.why_no_bound}."
    if found.excess == 0:
        return "The certificate says that no model is better: it was learned on all rows."
    amount = value(found.excess) if found.relative_excess is None else per_cent(found.relative_excess)
    return f"The certificate says that its cost is at most {amount} above the best possible, with 95 % confidence."


def sent(run: Run[Any]) -> str:
    """Say what was sent, beside all cells of all parties."""
    all_cells, own = bytes_of_all(run), run.ledger.bytes
    part = per_cent(own / all_cells) if own <= all_cells else f"{own / all_cells:,.1f} times"
    beside = f"{part} of the {in_bytes(all_cells)} that {known.cells(run)} would take"
    return f"{in_bytes(own)} were sent in {count(run.ledger.n_rounds)} rounds, {beside}."


def _rows_of(run: Run[Any], report: Any) -> str:
    if getattr(report, "cost_interval", None) is not None:
        return f"a sample of {count(report.n_evaluated)} rows"
    if run.split is not None and report.table in ("same", None):
        return f"{count(report.n_evaluated)} rows that were held out"
    return (
        f"{count(report.n_evaluated)} rows" if report.table == "new rows" else f"all {count(report.n_evaluated)} rows"
    )


def _spoken(measure: str) -> str:
    return measure if measure in ("R²", "AUC") else measure.lower()
