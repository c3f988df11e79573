"""The demo's table, its figure and its conclusion, from the results file alone."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from colonnade.demo.results import ALL_ROWS, CORESET, UNIFORM, Cell

COLOURS = {UNIFORM: "#c1440e", CORESET: "#0b6e4f"}
SHOWN_SIZE = 2000
WORDS = {
    "regression": ("Predict the arrival delay", "mean squared error, minutes²"),
    "clustering": ("Cluster the flights into 8 groups", "mean squared distance to the nearest centre, columns scaled"),
}


def table(found: Sequence[Cell], task: str) -> Table:
    """Lay out one task: all rows first, then each size, uniform and coreset."""
    title, unit = WORDS[task]
    mine = [cell for cell in found if cell.task == task]
    everything = next(cell for cell in mine if cell.method == ALL_ROWS)
    seeds = max(cell.seeds for cell in mine)
    layout = Table(
        title=f"{title} ({seeds} draws of each size)",
        caption=f"cost: {unit}\n"
        f"excess: how much higher than on all rows, on average and in the worst of the {seeds} draws\n"
        "seconds: one run, scoring all rows included",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    layout.add_column("learned on", no_wrap=True)
    for name in ("rows", "cost", "excess", "worst", "units", "bytes", "seconds"):
        layout.add_column(name, justify="right", no_wrap=True)
    for cell in mine:
        layout.add_row(
            f"[{COLOURS[cell.method]}]{cell.method}[/]" if cell.method in COLOURS else cell.method,
            f"{cell.size:,}",
            f"{cell.cost:.4g}",
            "-" if cell is everything else f"{cell.mean_excess:+,.1%}",
            "-" if cell is everything else f"{cell.worst_excess:+,.1%}",
            _human(cell.units),
            f"{_human(cell.bytes)}B",
            f"{cell.seconds:.2f}",
            end_section=cell.method != UNIFORM,
        )
    return layout


def conclusion(found: Sequence[Cell]) -> str:
    """Say in plain words what the table shows at SHOWN_SIZE rows, or the size nearest to it."""
    mine = [cell for cell in found if cell.task == "regression"]
    everything = next(cell for cell in mine if cell.method == ALL_ROWS)
    size = min((cell.size for cell in mine if cell.method == CORESET), key=lambda size: abs(size - SHOWN_SIZE))
    uniform, coreset = (
        next(cell for cell in mine if cell.method == method and cell.size == size) for method in COLOURS
    )
    return (
        f"Learned on {size:,} of {everything.size:,} flights, the coreset model's error is {coreset.mean_excess:,.1%} "
        f"above that of all rows on average and {coreset.worst_excess:,.1%} in the worst of {coreset.seeds} draws; "
        f"a uniform sample's is {uniform.mean_excess:,.1%} and {uniform.worst_excess:,.1%}. "
        f"The coreset sent {_human(coreset.bytes)}B; all rows are {_human(everything.bytes)}B."
    )


def figure(found: Sequence[Cell], path: Path) -> None:
    """Draw excess cost against bytes into a .png file: mean as a line, the worst seed above it."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(11, 4.6), layout="constrained")
    for axes, task in zip(canvas.subplots(1, 2), WORDS, strict=True):
        samples = [cell for cell in found if cell.task == task and cell.method in COLOURS]
        for method, colour in COLOURS.items():
            mine = [cell for cell in samples if cell.method == method]
            sent = [cell.bytes for cell in mine]
            axes.plot(sent, [100 * cell.mean_excess for cell in mine], "o-", color=colour, label=f"{method}, mean")
            axes.plot(
                sent, [100 * cell.worst_excess for cell in mine], "v:", color=colour, label=f"{method}, worst draw"
            )
        # A local optimum on all rows can be beaten, and a logarithm cannot show it.
        above = all(cell.mean_excess > 0 for cell in samples)
        axes.set(xscale="log", yscale="log" if above else "linear", title=WORDS[task][0])
        axes.set(xlabel="bytes sent", ylabel="excess cost over all rows, %")
        axes.grid(visible=True, which="both", alpha=0.2)
        axes.legend(frameon=False, fontsize=8)
    canvas.savefig(path, dpi=140)


def _human(number: float) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number / 1e3:.0f} k"
