"""`colonnade reproduce`: the paper's tables and figures, beside what its authors printed and stored."""

import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from colonnade.cli.console import JsonFlag, say, show, show_json, talk
from colonnade.errors import InputError
from colonnade.paper import page
from colonnade.paper.data_sets import loader
from colonnade.paper.design import Experiment
from colonnade.paper.experiments import EXPERIMENTS
from colonnade.paper.figures import figures
from colonnade.paper.runner import Settings, plan, run
from colonnade.paper.store import Store
from colonnade.paper.tables import LEGEND, layouts
from colonnade.paper.trials import Trial, cells, read_trials
from colonnade.paper.variants import VARIANTS

ALL = "all"
NAMES = [*EXPERIMENTS, ALL]


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    def check(given: str) -> str:
        if given not in choices:
            raise typer.BadParameter(f"{given!r} is not one of {', '.join(choices)}.")
        return given

    return check


Name = Annotated[str, typer.Argument(callback=_one_of(NAMES), help=f"One of {', '.join(NAMES)}.", metavar="NAME")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="The data set's file, or a folder; by default the folder COLONNADE_DATA.")
]
VariantOption = Annotated[
    str,
    typer.Option(
        callback=_one_of(VARIANTS),
        metavar="|".join(VARIANTS),
        help="as-written: what the library does. as-run: the choices behind the paper's printed numbers.",
    ),
]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, help="How often each draw is repeated.")]
QuickFlag = Annotated[bool, typer.Option("--quick", help="Fewer repeats and sizes: under two minutes an experiment.")]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Where results, tables, figures and the page are kept.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same models.")]


def command(
    name: Name,
    data: DataOption = None,
    variant: VariantOption = "as-written",
    repeats: RepeatsOption = 20,
    quick: QuickFlag = False,
    out: OutOption = Path("reproduce-output"),
    seed: SeedOption = 0,
    json: JsonFlag = False,
) -> None:
    """Repeat an experiment of the paper, and show its numbers beside those that the authors printed and stored.

    Finished models are kept in the results file: an interrupted run goes on where it stopped.

    Example: colonnade reproduce table1-regression --quick
    """
    if find_spec("matplotlib") is None:
        raise InputError("The figures need matplotlib. Install it with: pip install 'colonnade[demo]'")
    chosen = list(EXPERIMENTS.values()) if name == ALL else [EXPERIMENTS[name]]
    settings = Settings(VARIANTS[variant], repeats, seed, quick)
    stored = out / "results.jsonl"
    # One thread: bits do not depend on the machine, and idle threads do not fight busy neighbours.
    with threadpool_limits(1):
        trials = _run(chosen, settings, data, Store(stored))
    found = cells(trials)
    _write(out, read_trials(stored))
    if json:
        show_json(found)
    else:
        show("\n\n".join(layout.text() for layout in layouts(found)) + f"\n\n{LEGEND}")
        for experiment in chosen:
            show("".join(f"\n{experiment.name}: {remark}" for remark in experiment.remarks).lstrip("\n"))
    say(f"\nResults: {stored}\nTables:  {out / 'report.md'}\nPage:    {out / 'report.html'}, with figures in {out}")


def _run(chosen: list[Experiment], settings: Settings, data: Path | None, store: Store) -> list[Trial]:
    load, trials = loader(data), []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=talk()) as progress:
        bar = progress.add_task("reading data", total=sum(len(plan(experiment, settings)) for experiment in chosen))
        for experiment in chosen:
            for trial in run(experiment, settings, load, store):
                trials.append(trial)
                words = f"{experiment.name} on {trial.data}: {trial.method} of {trial.size:,}"
                progress.update(bar, advance=1, description=words)
    return trials


def _write(out: Path, trials: list[Trial]) -> None:
    pictures = figures(trials)
    (out / "report.md").write_text(page.markdown(trials))
    (out / "report.html").write_text(page.html(trials, pictures))
    for title, picture in pictures.items():
        (out / f"{re.sub(r'[^a-z0-9]+', '-', title.lower())}.png").write_bytes(picture)
