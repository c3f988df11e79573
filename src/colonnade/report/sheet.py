"""The disclosure sheet, for a page and for a privacy officer."""

from collections.abc import Iterator
from typing import Any

from colonnade.disclosure import LIMITS, DisclosureLine
from colonnade.findings import NOTHING_FOUND
from colonnade.messages import Reveals
from colonnade.number_words import count
from colonnade.report.known import took_all_rows
from colonnade.report.sections import Section
from colonnade.report.tables import Cell, number, table, text
from colonnade.run import Run

# What is told of single rows: in a run, of those that were drawn; and what is told of any.
OF_DRAWN = {Reveals.FEATURES, Reveals.LABELS, Reveals.SCORES, Reveals.SCORE_SUMS, Reveals.PREDICTIONS}
OF_ANY = {Reveals.KEYS, Reveals.ROW_WEIGHTS, Reveals.ROW_IDS, Reveals.MATCHES}


def sheet_section(run: Run[Any]) -> Section:
    """Say who learned what about whom."""
    sheet = run.disclosure
    lines = [
        (
            text(line.who),
            text(line.about),
            Cell(line.meaning),
            number(line.numbers, count(line.numbers)),
            Cell("no single row") if (rows := rows_of(run, line)) is None else number(rows, count(rows)),
            text(", ".join(line.messages)),
        )
        for line in sheet.lines
    ]
    head = ("who learned", "about whom", "what", "numbers, at most", "of rows, at most", "told in")
    all_of_it = "`colonnade report RUN --disclosure --json` prints all."
    shown = table("Who learned what about whom, the worst first", head, lines, all_of_it=all_of_it)
    return Section("disclosure", "Disclosure sheet", (sheet.headline, LIMITS, *not_counted(run)), tables=(shown,))


def rows_of(run: Run[Any], line: DisclosureLine) -> int | None:
    """Say of how many single rows this was told, at most; None where it is of none."""
    what, n_rows = Reveals(line.what), run.coreset.n_rows
    if what in OF_ANY or (what in OF_DRAWN and run.why is not None):  # a plan's pilot may have had other rows
        return min(n_rows, line.numbers)
    return min(run.coreset.n_distinct, line.numbers) if what in OF_DRAWN else None


def not_counted(run: Run[Any]) -> Iterator[str]:
    """Say what was told before the run, or since, and does not stand on its ledger."""
    if run.coreset.alignment is not None:
        yield (
            'Records were matched before this run, and what that told is not counted here: with align = "clear" the '
            "server was told all keys."
        )
    if run.findings != NOTHING_FOUND:
        yield "What evaluations and certificates told since is not counted here: it stands on ledgers of their own."


def safeguards(run: Run[Any]) -> Iterator[str]:
    """Say by what less was told than might have been."""
    shown = {line.what for line in run.disclosure.lines}
    if not {Reveals.FEATURES, Reveals.LABELS} & shown:
        yield "In this run no party's columns or labels left it for any row."
    if Reveals.SCORE_SUMS in shown and Reveals.SCORES not in shown:
        yield "How unusual rows are was summed over the parties in secret: the server saw sums only."
    if len(run.coreset) < run.coreset.n_rows and not took_all_rows(run):
        yield f"Only drawn rows were used in it: {count(run.coreset.n_distinct)} of {count(run.coreset.n_rows)}."
    if run.coreset.evidence is not None:
        yield "Draws were committed to before they were made, so that they can be checked afterwards (spot check)."
    yield "Every message is on the ledger, with what it reveals."
    yield "Each party answers only what its owner's policy allows."
    yield "Parties refuse questions that do not follow from the job that they were told of when the run began."
