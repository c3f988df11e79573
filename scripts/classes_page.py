"""Put the measurements of benchmarks/classification.py into docs/explanation/classes.md: its tables, and the figure.

    python scripts/classes_page.py [benchmarks/classification.jsonl]

Everything comes from the stored lines; the text around the tables is left alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[1]
STORED = PROJECT / "benchmarks" / "classification.jsonl"
PAGE = PROJECT / "docs" / "explanation" / "classes.md"
FIGURE = PAGE.with_suffix(".svg")
ARMS = {
    "even": "drawn evenly, floats",
    "by class": "by leverage and class, floats",
    "sharpened": "sharpened, floats",
    "compact": "sharpened, rounded",
}
COLOURS = {"even": "#c1440e", "by class": "#7a6a00", "sharpened": "#3b6fb6", "compact": "#0b6e4f"}
# Of the issue that asked for it: a table, an arm, the bytes or rows it has, and the excess at most, in per cent.
BARS = (
    ("credit default", "sharpened", {"size": 2000}, 0.9),
    ("credit default", "compact", {"bytes": 20_000}, 1.0),
    ("credit default", "compact", {"bytes": 60_000}, 0.35),
    ("1.1 % positive", "compact", {"bytes": 20_000}, 1.3),
    ("Covertype class 2", "compact", {"bytes": 792_000}, 0.2),
)
COMPARED = tuple((table, budget) for table in ("credit default", "1.1 % positive") for budget in (20_000, 60_000))

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """Read the stored lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def runs(lines: list[Line], table: str, arm: str | None = None) -> list[Line]:
    """Choose the measurements of a table, or of one arm there, by size."""
    found = [line for line in lines if line["table"] == table and "arm" in line and arm in (None, line["arm"])]
    return sorted(found, key=lambda line: (list(ARMS).index(line["arm"]), line["size"]))


def within(lines: list[Line], table: str, arm: str, limit: dict[str, int]) -> Line:
    """Find what an arm does at a size, or with the most bytes within a budget."""
    able = [
        line
        for line in runs(lines, table, arm)
        if (line["size"] == limit["size"] if "size" in limit else max(line["bytes"]) <= limit["bytes"])
    ]
    return able[-1]


def bars(lines: list[Line]) -> str:
    """Lay out what was asked for, and what came."""
    rows = [
        "| table | rows drawn | sent | mean excess | asked for | AUC | of all rows |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for table, arm, limit, bar in BARS:
        line, whole = within(lines, table, arm, limit), _whole(lines, table)
        asked = (
            f"{bar} % at {limit['size']:,} rows of floats"
            if "size" in limit
            else f"{bar} % at {limit['bytes']:,} bytes"
        )
        cells = (table, f"{line['size']:,}", f"{max(line['bytes']):,}", _excess(line), asked)
        rows.append(f"| {' | '.join(cells)} | {np.mean(line['auc']):.4f} | {whole['auc']:.4f} |")
    return "\n".join(rows)


def everything(lines: list[Line]) -> str:
    """Lay out all that was measured."""
    rows = [
        "| table | how | rows drawn | step | bytes | mean excess | worst | AUC |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for whole in (line for line in lines if "arm" not in line):
        rows.append(
            f"| {whole['table']} | all rows | {whole['rows']:,} | | {whole['bytes']:,} | 0 | 0 | {whole['auc']:.4f} |"
        )
        for line in runs(lines, whole["table"]):
            place = (
                line["table"],
                ARMS[line["arm"]],
                f"{line['size']:,}",
                f"{line['step'] or ''}",
                f"{max(line['bytes']):,}",
            )
            worst = f"{_percent(max(line['excess']))} %"
            rows.append(f"| {' | '.join(place)} | {_excess(line)} | {worst} | {np.mean(line['auc']):.4f} |")
    return "\n".join(rows)


def gain(lines: list[Line], table: str, budget: int) -> float:
    """Divide the excess of float rows, drawn the best plain way, by that of rounded ones, both within a budget."""
    plain = [
        np.mean(line["excess"])
        for arm in ("even", "by class")
        for line in runs(lines, table, arm)
        if max(line["bytes"]) <= budget
    ]
    return float(min(plain) / np.mean(within(lines, table, "compact", {"bytes": budget})["excess"]))


def gains(lines: list[Line]) -> str:
    """Lay out how many times less rounded rows lose than float rows drawn evenly, or by class, at the same bytes."""
    rows = ["| table | bytes | times less |", "|---|---:|---:|"]
    places = (
        ("credit default", 20_000),
        ("credit default", 60_000),
        ("1.1 % positive", 20_000),
        ("1.1 % positive", 60_000),
    )
    rows += [f"| {table} | {budget:,} | {gain(lines, table, budget):.0f} |" for table, budget in places]
    return "\n".join(rows)


def _whole(lines: list[Line], table: str) -> Line:
    return next(line for line in lines if line["table"] == table and "arm" not in line)


def _excess(line: Line) -> str:
    error = np.std(line["excess"]) / np.sqrt(len(line["excess"]))
    return f"{_percent(float(np.mean(line['excess'])))} ± {_percent(float(error), digits=1)} %"


def _percent(share: float, digits: int = 3) -> str:
    return f"{100 * share:,.0f}" if share > 1 or (digits == 1 and share > 0.1) else f"{100 * share:.{digits}g}"


def draw(lines: list[Line], path: Path) -> None:
    """Draw excess and AUC against bytes, a column a table."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "classes", "svg.fonttype": "none"})  # the same bytes each time, and few
    tables = [line for line in lines if "arm" not in line]
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    for (upper, lower), whole in zip(figure.subplots(2, len(tables), squeeze=False).T, tables, strict=True):
        for arm, label in ARMS.items():
            found = runs(lines, whole["table"], arm)
            sent = [np.mean(line["bytes"]) for line in found]
            excess = 100 * np.array([line["excess"] for line in found])
            upper.fill_between(sent, *np.quantile(excess, [0.1, 0.9], axis=1), color=COLOURS[arm], alpha=0.15, lw=0)
            upper.plot(sent, excess.mean(axis=1), "o-", color=COLOURS[arm], label=label, ms=4)
            lower.plot(sent, [np.mean(line["auc"]) for line in found], "o-", color=COLOURS[arm], ms=4)
        lower.axhline(whole["auc"], color="#999999", ls=":", label="all rows")
        upper.set(title=whole["table"], xscale="log", yscale="log")
        lower.set(xlabel="bytes sent", xscale="log")
        upper.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        for axes in (upper, lower):
            axes.grid(visible=True, which="major", alpha=0.25)
    figure.axes[0].set_ylabel("excess log-loss, mean of all seeds")
    figure.axes[0].legend(fontsize=8, frameon=False)
    lower_first = figure.axes[len(tables)]
    lower_first.set_ylabel("AUC on all rows")
    lower_first.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def page(text: str, lines: list[Line]) -> str:
    """Put the tables between their marks."""
    for name, table in (("bars", bars(lines)), ("gains", gains(lines)), ("everything", everything(lines))):
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
