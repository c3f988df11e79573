"""Excess against bytes: of several runs, and of what a plan says that other budgets would buy."""

from collections.abc import Iterator, Sequence
from typing import Any

from colonnade.number_words import count, in_bytes, per_cent
from colonnade.planning.records import Plan
from colonnade.report import figures, known
from colonnade.report.figures import FrontierPoint
from colonnade.report.sections import Section, Shown
from colonnade.report.tables import Cell, Table, number, table, text
from colonnade.run import Run


def frontier_section(runs: Sequence[Run[Any]], plan: Plan | None) -> Section | None:
    """Show what more bytes would buy; None where there is nothing to compare."""
    if len(runs) < 2 and plan is None:
        return None
    words, points = [], []
    if len(runs) > 1:
        found, said = _of_runs(runs)
        points += found
        words += said
    if plan is not None:
        points += _of_plan(plan)
        words.append(_planned(plan))
    tables = (_compared(runs),) if len(runs) > 1 else ()
    shown = (Shown(figures.frontier(points), _points(points)),) if points else ()
    return Section("frontier", "What more bytes would buy", tuple(words), shown, tables)


def _of_runs(runs: Sequence[Run[Any]]) -> tuple[list[FrontierPoint], list[str]]:
    """Compare costs with that of a model of all rows, or else with the least of these."""
    costs = [(run, run.findings.evaluation.cost) for run in runs if run.findings.evaluation is not None]
    left_out = len(runs) - len(costs)
    said = [f"{count(left_out)} of {count(len(runs))} runs were not evaluated, and are not drawn."] if left_out else []
    if not costs:
        return [], said
    rows = {run.findings.evaluation.n_evaluated for run, _ in costs}
    if len(rows) > 1:
        said.append("The runs were evaluated on different numbers of rows: compare them with care.")
    of_all = [best.cost for run in runs if (best := run.findings.all_rows) is not None]
    of_all += [cost for run, cost in costs if known.took_all_rows(run)]
    least = of_all[0] if of_all else min(cost for _, cost in costs)
    said.append(
        "Excess is by how much a model's cost is above that of a model of all rows."
        if of_all
        else "Nobody has learned from all rows: excess is by how much a model's cost is above the least of these."
    )
    if not least > 0:
        return [], [*said, "That cost is 0: there is no excess relative to it."]
    points = [
        FrontierPoint(_label(run, place), run.ledger.bytes, max(cost / least - 1, 0.0), None, None, run is runs[0])
        for place, (run, cost) in ((runs.index(run) + 1, (run, cost)) for run, cost in costs)
    ]
    return points, said


def _of_plan(plan: Plan) -> Iterator[FrontierPoint]:
    if plan.unclear is not None:
        return
    for choice in plan.frontier:
        excess = choice.excess
        label = f"planned: {count(getattr(choice.sampler, 'size', plan.parties[0].n_rows))} rows"
        yield FrontierPoint(
            label, plan.pilot_bytes + choice.bytes, excess.mean, excess.low, excess.high, choice == plan.chosen
        )


def _planned(plan: Plan) -> str:
    if plan.unclear is not None:
        return f"What the plan's excess would be is not known: {plan.unclear}"
    found = plan.chosen.excess
    return (
        f"The plan expected {in_bytes(plan.bytes)} and an excess of {per_cent(found.mean)}, between "
        f"{per_cent(found.low)} and {per_cent(found.high)} on average over runs. {plan.why}"
    )


def _label(run: Run[Any], place: int) -> str:
    rows = "all rows" if known.took_all_rows(run) else f"{count(len(run.coreset))} rows"
    return f"{'this run' if place == 1 else f'run {place}'}: {rows}"


def _points(points: Sequence[FrontierPoint]) -> Table:
    lines = [
        (
            text(point.label),
            number(point.bytes, in_bytes(point.bytes)),
            number(point.excess, per_cent(point.excess)),
            *(Cell("") if end is None else number(end, per_cent(end)) for end in (point.low, point.high)),
            Cell("yes" if point.chosen else ""),
        )
        for point in points
    ]
    head = ("what", "bytes", "excess", "low", "high", "chosen")
    return table("Excess against bytes", head, lines, all_of_it="All are in plan.frontier.")


def _compared(runs: Sequence[Run[Any]]) -> Table:
    lines = []
    for place, run in enumerate(runs, start=1):
        report, found = run.findings.evaluation, run.findings.certificate
        measure = None if report is None else known.first_measure(report)
        bound = None if found is None else found.relative_excess
        lines.append(
            (
                number(place, "this run" if place == 1 else f"run {place}"),
                text(known.learned(run)),
                text(run.sampler or run.coreset.sampler),
                text(run.solver or ""),
                number(len(run.coreset), count(len(run.coreset))),
                number(run.ledger.bytes, in_bytes(run.ledger.bytes)),
                Cell("") if measure is None else number(measure.number, f"{measure.name} {measure.shown}"),
                Cell("") if bound is None else number(bound, per_cent(bound)),
            )
        )
    head = ("run", "learned", "sampler", "solver", "rows", "bytes", "how good", "certified excess, at most")
    return table("The runs beside each other", head, lines, all_of_it="Give fewer runs to see them all.")
