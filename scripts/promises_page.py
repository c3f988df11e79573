"""Put what benchmarks/promises.py measured into docs/explanation/promises.md: its tables, and the figure beside it.

    python scripts/promises_page.py [benchmarks/promises.jsonl]

Everything comes from the stored lines; the text around the tables is left alone.
"""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[1]
STORED = PROJECT / "benchmarks" / "promises.jsonl"
PAGE = PROJECT / "docs" / "explanation" / "promises.md"
FIGURE = PAGE.with_suffix(".svg")
REPORT = runpy.run_path(str(PROJECT / "benchmarks" / "promises_report.py"))
HALVES = {"chosen": "tables that constants were chosen on", "judged": "tables they are judged on"}
HELD, MISSED, PLANNED = "#0b6e4f", "#c1440e", "#b9c4d0"

Line = dict[str, Any]


def figure() -> str:
    """Refer to the figure."""
    return "![For each plan its interval for the mean, and the mean and range of its runs](promises.svg)"


def bars(lines: list[Line]) -> str:
    """Lay out every bar, over all tables and over the judged half."""
    halves = [REPORT["verdicts"](lines), REPORT["verdicts"]([line for line in lines if line["half"] == "judged"])]
    found = [{verdict.bar: verdict for verdict in half} for half in halves]
    rows = ["| bar | all tables | judged half |", "|---|---|---|"]
    rows += [f"| {bar} | {' | '.join(_verdict(half.get(bar)) for half in found)} |" for bar in found[0]]
    return "\n".join(rows)


def _verdict(verdict: Any) -> str:
    return "" if verdict is None else f"{'holds' if verdict.holds else '**missed**'}: {verdict.count}"


def halves(lines: list[Line]) -> str:
    """Name the tables of each half."""
    named = {half: dict.fromkeys(line["table"] for line in lines if line["half"] == half) for half in HALVES}
    return "\n".join(
        f"- **{half.capitalize()}**: {', '.join(f'`{name}`' for name in names)}." for half, names in named.items()
    )


def plans(lines: list[Line]) -> str:
    """Lay out each plan: what it promised, what came, and what others did at its bytes."""
    columns = (
        "table",
        "half",
        "budget",
        "way",
        "planned mean",
        "between",
        "one run",
        "mean of runs",
        "worst",
        "best arm",
        "paper",
    )
    rows = [f"| {' | '.join(columns)} |", "|---|---|---:|---" + "|---:" * 7 + "|"]
    return "\n".join([*rows, *(f"| {' | '.join(_cells(line))} |" for line in lines)])


def _cells(line: Line) -> list[str]:
    start = [line["table"], line["half"], f"{line['budget']:,}"]
    if "error" in line:
        return [*start, "**fails**", *[""] * 7]
    planned = line["planned"]
    told = ["unknown", ""] if planned is None else [_percent(planned[0]), _range(planned)]
    one_run = "" if line["one_run"] is None else _range(line["one_run"])
    came = [REPORT["mean"](line["excess"]), max(line["excess"])]
    warned = " (warned)" * bool(line["warnings"])
    others = [line.get("best"), line.get("arms", {}).get("paper")]
    return [*start, _way(line) + warned, *told, one_run, *map(_percent, came), *map(_other, others)]


def _way(line: Line) -> str:
    """Shorten what was chosen: the draw, its rows, and the step."""
    draw, _, rest = line["sampler"].partition("(")
    step = line["solver"].partition("step=")[2].rstrip(")")
    size = rest.partition("size=")[2].partition(",")[0].rstrip(")")
    names = {"ImportanceSampling": "importance", "UniformSampling": "uniform", "AllRows": "all rows"}
    return " ".join(part for part in (names.get(draw, draw), size, f"step {step}" if step else "exact") if part)


def _other(other: Line | None) -> str:
    return "" if other is None or "excess" not in other else _percent(REPORT["mean"](other["excess"]))


def _range(interval: list[float]) -> str:
    return f"{_percent(interval[1])} to {_percent(interval[2])}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if abs(share) < 1 else f"{100 * share:.0f} %"


def draw(lines: list[Line], path: Path) -> None:
    """Draw a panel a half, a line a plan: the interval promised, and the mean and range of the runs."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    matplotlib.rcParams.update({"svg.hashsalt": "promises", "svg.fonttype": "none"})  # the same bytes each time
    done = [line for line in lines if "error" not in line]
    panels = {half: [line for line in done if line["half"] == half] for half in HALVES}
    height = 1.2 + 0.15 * max(len(found) for found in panels.values())
    picture = Figure(figsize=(12, height), layout="constrained")
    for axes, (half, found) in zip(picture.subplots(1, 2, squeeze=False)[0], panels.items(), strict=True):
        for at, line in enumerate(found):
            _draw_plan(axes, at, line)
        axes.set_yticks(range(len(found)), [f"{line['table']}  {line['budget']:,}" for line in found], fontsize=6)
        axes.set(title=HALVES[half], xscale="log", xlabel="excess", ylim=(len(found) - 0.5, -0.5))
        axes.xaxis.set_major_locator(LogLocator(base=100))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.grid(visible=True, axis="x", which="major", alpha=0.25)
    picture.savefig(path, metadata={"Date": None})


def _draw_plan(axes: Any, at: int, line: Line) -> None:
    runs, planned = 100 * np.maximum(line["excess"], 1e-8), line["planned"]  # a run of all rows has none: log scale
    held = planned is not None and REPORT["inside"](REPORT["mean"](line["excess"]), planned)
    colour = HELD if held else "#777777" if planned is None else MISSED
    if planned is not None:
        axes.hlines(at, 100 * max(planned[1], 1e-8), 100 * max(planned[2], 1e-8), color=PLANNED, lw=5)
    axes.hlines(at, runs.min(), runs.max(), color=colour, lw=0.8)
    axes.plot(runs.mean(), at, "o", color=colour, ms=3)


def page(text: str, lines: list[Line]) -> str:
    """Put figure and tables between their marks."""
    parts = {"figure": figure(), "bars": bars(lines), "halves": halves(lines), "plans": plans(lines)}
    for name, part in parts.items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        text = f"{before}<!-- {name} -->\n{part}\n{end}{after}"
    return text


def in_order(lines: list[Line]) -> list[Line]:
    """Sort lines, which came as processes ended: by half and table, then by budget."""
    return sorted(lines, key=lambda line: (line["half"], line["table"], line["budget"], line["pilot"]))


def main() -> None:
    """Read, draw, write."""
    lines = in_order(REPORT["read"](Path(sys.argv[1]) if len(sys.argv) > 1 else STORED))
    draw(lines, FIGURE)
    PAGE.write_text(page(PAGE.read_text(), lines))


if __name__ == "__main__":
    main()
