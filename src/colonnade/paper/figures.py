"""The paper's figures from stored trials: cost and communication by method, cost by size as boxes, cost by bytes."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from colonnade.paper.tables import tables, title
from colonnade.paper.trials import Cell, Trial, cells

COLOURS = {"C-": "#0b6e4f", "U-": "#c1440e", "": "#444444"}
FILLS = (1.0, 0.45)  # the first solver of a table, and the second


def figures(trials: Sequence[Trial]) -> dict[str, bytes]:
    """Draw one figure a table, once it has more than fits of all rows: PNG pictures by the title of their table."""
    begun = [table for table in tables(cells(trials)) if not all(cell.is_full for cell in table)]
    return {title(table[0]): _figure(table, trials) for table in begun}


def _figure(table: list[Cell], trials: Sequence[Trial]) -> bytes:
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(16, 5), layout="constrained")
    canvas.suptitle(title(table[0]))
    by_method, by_size, by_bytes = canvas.subplots(1, 3, width_ratios=(1.25, 1.1, 1.0))
    costs = {cell: [t.cost for t in trials if _belongs(t, cell)] for cell in table}
    every = [cost for group in costs.values() for cost in group]
    scale = "log" if max(every) > 2 * min(every) else "linear"
    _cost_and_communication(by_method, table)
    _cost_by_size(by_size, table, costs)
    _cost_by_bytes(by_bytes, table, costs)
    for axes in (by_method, by_size, by_bytes):
        axes.set(ylabel="cost a row", yscale=scale)
        axes.grid(visible=True, axis="y", alpha=0.2)
    _fit_to_bars(by_method, table, scale)
    picture = io.BytesIO()
    canvas.savefig(picture, dpi=110, format="png")
    return picture.getvalue()


def _belongs(trial: Trial, cell: Cell) -> bool:
    place = (trial.experiment, trial.task, trial.variant, trial.data, trial.method, trial.size)
    return place == (cell.experiment, cell.task, cell.variant, cell.data, cell.method, cell.size)


def _cost_and_communication(axes: Any, table: list[Cell]) -> None:
    shown = [cell for cell in table if cell.is_full or cell.size in _ends(table)]
    places = np.arange(len(shown))
    colours = [_colour(cell, table) for cell in shown]
    axes.bar(places, [c.mean for c in shown], yerr=[c.std for c in shown], color=colours, ecolor="#888888")
    labels = [c.method if c.is_full else f"{c.method} ({c.size})" for c in shown]
    axes.set_xticks(places, labels, rotation=40, ha="right", fontsize=8)
    axes.set_title("cost (bars) and units sent (dots, right)", fontsize=10)
    units = axes.twinx()
    units.plot(places, [c.units for c in shown], "D", color="#1f3a93", markersize=5)
    units.set(yscale="log", ylabel="units sent")


def _ends(table: list[Cell]) -> tuple[int, int]:
    sizes = [cell.size for cell in table if not cell.is_full]
    return min(sizes), max(sizes)


def _fit_to_bars(axes: Any, table: list[Cell], scale: str) -> None:
    """Cut the bars off below: their differences are a few per cent of their heights."""
    if scale == "linear":
        low, high = min(c.mean for c in table), max(c.mean + c.std for c in table)
        axes.set_ylim(low - 0.15 * (high - low), high + 0.05 * (high - low))


def _cost_by_size(axes: Any, table: list[Cell], costs: dict[Cell, list[float]]) -> None:
    sizes = sorted({cell.size for cell in table if not cell.is_full})
    methods = list(dict.fromkeys(cell.method for cell in table if not cell.is_full))
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        mine = [cell for cell in table if cell.method == method]
        places = [sizes.index(cell.size) + (i - (len(methods) - 1) / 2) * width for cell in mine]
        boxes = axes.boxplot(
            [costs[cell] for cell in mine],
            positions=places,
            widths=0.85 * width,
            patch_artist=True,
            manage_ticks=False,
            flierprops={"markersize": 2},
            medianprops={"color": "white"},
        )
        for box in boxes["boxes"]:
            box.set(facecolor=_colour(mine[0], table), linewidth=0.6)
        axes.plot([], [], "s", color=_colour(mine[0], table), label=method)
    _full_lines(axes, table)
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.set(xlabel="rows drawn")
    axes.set_title("cost by size", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper right")


def _cost_by_bytes(axes: Any, table: list[Cell], costs: dict[Cell, list[float]]) -> None:
    for method in dict.fromkeys(cell.method for cell in table if not cell.is_full):
        mine = sorted((cell for cell in table if cell.method == method), key=lambda cell: cell.bytes)
        means = np.array([cell.mean for cell in mine])
        reach = np.array([means - [min(costs[c]) for c in mine], [max(costs[c]) for c in mine] - means])
        reach[reach < 0] = 0.0  # equal costs have a mean that rounding moved past them
        look = {"color": _colour(mine[0], table), "elinewidth": 0.8, "markersize": 4, "label": method}
        axes.errorbar([cell.bytes for cell in mine], means, yerr=reach, fmt="o-", **look)
    for cell in (cell for cell in table if cell.is_full):
        axes.plot([cell.bytes], [cell.mean], "*", color=_colour(cell, table), markersize=11, label=cell.method)
    axes.set(xscale="log", xlabel="bytes sent")
    axes.set_title("mean cost by bytes, from best to worst draw", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


def _full_lines(axes: Any, table: list[Cell]) -> None:
    for cell, style in zip((cell for cell in table if cell.is_full), ("--", ":"), strict=False):
        axes.axhline(cell.mean, color=COLOURS[""], linestyle=style, linewidth=1, label=f"{cell.method}, all rows")


def _colour(cell: Cell, table: list[Cell]) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    solvers = list(dict.fromkeys(c.solver for c in table))
    prefix = "" if cell.is_full else cell.method[:2]
    strength = FILLS[solvers.index(cell.solver)]
    return tuple(1 - strength * (1 - part) for part in to_rgb(COLOURS[prefix]))
