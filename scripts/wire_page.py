"""Put the measurements of benchmarks/wire.py into docs/explanation/wire.md: its tables, and the figure beside it.

    python scripts/wire_page.py [benchmarks/wire.jsonl]

Everything comes from the stored lines; the text around the tables is left alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[1]
STORED = PROJECT / "benchmarks" / "wire.jsonl"
PAGE = PROJECT / "docs" / "explanation" / "wire.md"
FIGURE = PAGE.with_suffix(".svg")
ARMS = {"paper": "the paper's wire", "ours": "importance, compact", "uniform": "uniform, compact"}
COLOURS = {"paper": "#444444", "ours": "#0b6e4f", "uniform": "#c1440e"}

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """Read the stored lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def bars(lines: list[Line]) -> str:
    """Lay out the excess at the bytes of the paper's wire."""
    columns = ("job", "arm", "rows", "bytes", "mean excess", "worst", "of the paper's", "bar")
    rows = [f"| {' | '.join(columns)} |", "|---|---" + "|---:" * 6 + "|"]
    for job in (line for line in lines if "bar" in line):
        arms = {line["arm"]: line for line in runs(lines, job) if line["budget"] == job["budget"]}
        paper = np.mean(arms["paper"]["excess"])
        for arm, line in arms.items():
            share = "1" if arm == "paper" else f"1/{paper / np.mean(line['excess']):.1f}"
            bar = f"1/{1 / job['bar']:.0f}" if arm == "ours" else ""
            excess = [_percent(float(each(line["excess"]))) for each in (np.mean, np.max)]
            place = (job["job"], ARMS[arm], f"{line['size']:,}", f"{max(line['bytes']):,}")
            rows.append(f"| {' | '.join([*place, *excess, share, bar])} |")
        rows.append(f"| {job['job']} | everything | all | {job['everything']:,} | 0 | 0 | | |")
    return "\n".join(rows)


def runs(lines: list[Line], job: Line) -> list[Line]:
    """Choose the measurements of a job, one for each arm and budget."""
    return [line for line in lines if line["job"] == job["job"] and "arm" in line]


def times(lines: list[Line]) -> str:
    """Lay out the times against zstd."""
    rows = ["| job | rows | ours | zstd level 3 | ours | zstd level 3 |", "|---|---:|---:|---:|---:|---:|"]
    for line in (line for line in lines if "speed" in line):
        found = [line["speed"][name] for name in ("ours", "zstd")]
        ms, sizes = (f"{each['ms']:.2f} ms" for each in found), (f"{each['bytes']:,} B" for each in found)
        rows.append(f"| {line['job']} | {line['size']:,} | {' | '.join([*ms, *sizes])} |")
    return "\n".join(rows)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def draw(lines: list[Line], path: Path) -> None:
    """Draw excess against bytes, a panel a job, with the middle 80 % of the seeds."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "wire", "svg.fonttype": "none"})  # the same bytes each time, and few
    jobs = [line for line in lines if "bar" in line]
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axes, job in zip(figure.subplots(1, len(jobs), squeeze=False)[0], jobs, strict=True):
        for arm, label in ARMS.items():
            found = sorted((line for line in runs(lines, job) if line["arm"] == arm), key=lambda line: line["budget"])
            sent = [np.mean(line["bytes"]) for line in found]
            excess = 100 * np.array([line["excess"] for line in found])
            axes.fill_between(sent, *np.quantile(excess, [0.1, 0.9], axis=1), color=COLOURS[arm], alpha=0.15, lw=0)
            axes.plot(sent, excess.mean(axis=1), "o-", color=COLOURS[arm], label=label, ms=4)
        axes.axvline(job["everything"], color="#999999", ls=":", label="everything (no excess)")
        axes.set(title=job["job"], xlabel="bytes sent", xscale="log", yscale="log")
        axes.grid(visible=True, which="major", alpha=0.25)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    first = figure.axes[0]
    first.set_ylabel("excess loss, mean of 20 seeds")
    first.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def page(text: str, lines: list[Line]) -> str:
    """Put the tables between their marks."""
    for name, table in (("bars", bars(lines)), ("times", times(lines))):
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        text = f"{before}<!-- {name} -->\n{table}\n{end}{after}"
    return text


def main() -> None:
    """Read, draw, write."""
    lines = read(Path(sys.argv[1]) if len(sys.argv) > 1 else STORED)
    draw(lines, FIGURE)
    PAGE.write_text(page(PAGE.read_text(), lines))


if __name__ == "__main__":
    main()
