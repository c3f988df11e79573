"""Put the measurements of benchmarks/scale.py into docs/explanation/scale.md: its tables, and the figure beside it.

    python scripts/scale_page.py [benchmarks/scale.jsonl]

Everything comes from the stored lines; the text around the tables is left alone.
"""

import json
import runpy
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
STORED = PROJECT / "benchmarks" / "scale.jsonl"
PAGE = PROJECT / "docs" / "explanation" / "scale.md"
FIGURE = PAGE.with_suffix(".svg")
OURS, BARE, COLOURS = "#0b6e4f", "#444444", ("#c1440e", "#3b6fb6", "#7a6a00")
BILLION, UNKEPT_ROWS = 1_000_000_000, 20_000_000
REPORT = runpy.run_path(str(PROJECT / "benchmarks" / "scale_bars.py"))
of, factor, place, count = (REPORT[name] for name in ("of", "factor", "place", "count"))
READS, BARS, ARITHMETIC = (REPORT[name] for name in ("READS", "BARS", "ARITHMETIC"))
WHOLE_FITS = {
    "regression fit": "LinearRegression",
    "classification fit": "LogisticRegression",
    "k-means fit": "KMeans, 1 start",
}
STEPS = ("open", "fit", "evaluate", "predict")
TASKS = ("regression", "k-means, k = 10")

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """Read the stored lines; starts that were timed one by one are one contender."""
    lines: list[Line] = REPORT["with_ten_starts"]([json.loads(line) for line in path.read_text().splitlines()])
    return lines


def bars(lines: list[Line]) -> str:
    """Lay out what was asked for, what came where it was worst, and whether that is met."""
    rows = []
    for bar in BARS:
        asked, worst = f"{bar.limit:g}{bar.unit} {'or more' if bar.at_least else 'or less'}", bar.worst(lines)
        where, value = worst or ("", None)
        verdict = "not measured" if worst is None else "met" if bar.holds(value) else "**missed**"
        measured = "" if value is None else f"{value:.3g}{bar.unit}"  # 1.02 is no 1
        rows.append((bar.what, asked, measured, where, verdict))
    return _table(("bar", "asked for", "measured, the worst", "where", ""), rows, left=(0, 3, 4))


def machine(lines: list[Line]) -> str:
    """Describe the machine."""
    found = dict(next(line["machine"] for line in lines if "machine" in line))
    kind = f"{found.pop('processor')}, {found.pop('cores')} cores, {found.pop('memory GB')} GB, {found.pop('system')}"
    return f"{kind}; {', '.join(f'{name} {number}' for name, number in found.items())}. {versions(lines)}."


def versions(lines: list[Line]) -> str:
    """Say how many lines are of which code, BLAS kernels and day; starts that were added up are of their line's."""
    counts = Counter(tuple(line["by"].values()) for line in lines if "by" in line)
    counted = [
        f"{number} of commit {commit}, OpenBLAS kernels for {kernels}, {date}"
        for (commit, kernels, date), number in counts.items()
    ]
    older = sum("by" not in line for line in lines if "case" in line)
    return f"Lines: {'; '.join([*counted, *([f'{older} older'] if older else [])])}"


def verbs(lines: list[Line]) -> str:
    """Lay out seconds of every verb on ten columns, and how many times the bare arithmetic that is."""
    return _by("rows", of(lines, "verbs", columns=10))


def wide(lines: list[Line]) -> str:
    """Lay out the same for more columns of 1e5 rows."""
    return _by("columns", of(lines, "verbs", rows=100_000))


def _by(size: str, lines: list[Line]) -> str:
    sizes = sorted({line["case"][size] for line in lines})
    rows = []
    for work in dict.fromkeys(line["case"]["work"] for line in lines):
        found = {line["case"][size]: line for line in lines if line["case"]["work"] == work}
        pairs = [_seconds_and_factor(found[each]) if each in found else ("", "") for each in sizes]
        rows.append((work, *(cell for pair in pairs for cell in pair)))
    heads = [head for each in sizes for head in (f"{count(each)} {size}", "over bare")]
    return _table(("work", *heads), rows)


def _seconds_and_factor(line: Line) -> tuple[str, str]:
    return _seconds(line, "ours") or "refused", _cell(_over_bare(line), " x")


def _over_bare(line: Line) -> float | None:
    over: float | None = factor(line, "ours", ARITHMETIC.get(line["case"]["work"], "bare"))
    return over


def fits(lines: list[Line]) -> str:
    """Lay out whole fits beside scikit-learn's of all rows."""
    rows = []
    for work in WHOLE_FITS:
        for line in of(lines, "verbs", work=work):
            case, times = line["case"], line["seconds"]
            others = [name for name in times if name not in ("ours", "bare")]
            beside = ", ".join(f"{name} {_seconds(line, name)}" for name in others)
            ratio = factor(line, "ours", WHOLE_FITS[work])
            shape = (work, count(case["rows"]), str(case["columns"]), _seconds(line, "ours"))
            rows.append((*shape, beside, WHOLE_FITS[work], _cell(ratio, " x")))
    return _table(("fit", "rows", "columns", "ours", "beside it", "ours over", ""), rows, left=(0, 4, 5))


def reports(lines: list[Line]) -> str:
    """Lay out chances and evaluations of classes beside the product, their arithmetic, and scikit-learn's measures."""
    rows = []
    for work in ("classification predict", "classification evaluate"):
        for line in of(lines, "verbs", work=work):
            case, other = line["case"], "log_loss, roc_auc_score"
            names = ("bare", ARITHMETIC[work], other)
            over = [_cell(factor(line, "ours", name), " x") for name in names]
            seconds = [_seconds(line, name) for name in ("ours", *names)]
            rows.append((work, count(case["rows"]), str(case["columns"]), *seconds, *over))
    others = ("the product", "its arithmetic", "scikit-learn's")
    heads = ("work", "rows", "columns", "ours", *others, *(f"over {each}" for each in others))
    return _table(heads, rows)


def compact(lines: list[Line]) -> str:
    """Lay out fits on rounded rows of real tables."""
    rows = []
    for line in of(lines, "compact"):
        seconds = (_cell(line["seconds"].get(name), " s") for name in ("ours", "Central"))
        rows.append(
            (line["case"]["table"], str(line["features"]), *seconds, _cell(factor(line, "ours", "Central"), " x"))
        )
    return _table(("table", "features", "`CompactCentral`", "`Central`", "over `Central`"), rows)


def strata(lines: list[Line]) -> str:
    """Lay out what draws by classes of scores lose to those by sorted scores."""
    rows = []
    for line in of(lines, "strata"):
        mean, error = line["mean"], line["error"]
        cells = [f"{100 * mean[arm]:.3g} ± {100 * error[arm]:.2g} %" for arm in ("classes", "sorted", "independent")]
        rows.append((line["case"]["table"], *cells, f"{mean['classes'] / mean['sorted']:.3f} ± {_of_ratio(line):.3f}"))
    return _table(("table", "by classes", "by sorted scores", "independent", "classes over sorted"), rows)


def _of_ratio(line: Line) -> float:
    relative = [line["error"][arm] / line["mean"][arm] for arm in ("classes", "sorted")]
    return float(line["mean"]["classes"] / line["mean"]["sorted"] * (relative[0] ** 2 + relative[1] ** 2) ** 0.5)


def files(lines: list[Line]) -> str:
    """Lay out works on files beside reading them."""
    rows = []
    for line in of(lines, "files"):
        for work in (*READS, "blocks", "pyarrow", "polars"):
            if work in line["seconds"] or work in line.get("refused", {}):
                kind = f"{line['case']['work']}, {count(line['case']['rows'])} rows"
                rows.append((kind, work, *_beside_reading(line, work), _cell(line["peak MB"].get(work), " MB")))
    heads = ("file", "work", "one core", "reads", "over pyarrow", "over polars", "one core over all", "peak")
    return _table(heads, rows, left=(0, 1))


def _beside_reading(line: Line, work: str) -> list[str]:
    reads, found = READS.get(work, 1), (factor(line, work, other) for other in ("pyarrow", "polars"))
    over = [None if each is None else each / reads for each in found]
    all_cores = factor(line, work, f"{work}, all cores", by="clock")
    seconds = _cell(line["seconds"].get(work), " s") or "refused"
    return [seconds, str(reads), *(_cell(each, " x") for each in (*over, all_cores))]


def clusters(lines: list[Line]) -> str:
    """Lay out k-means scores and assignment."""
    rows = []
    for line in of(lines, "clusters"):
        case = line["case"]
        kind = f"{case['table']}, {count(case['rows'])} rows, k = {case['k']}"
        for name in line["seconds"]:
            cost = line.get("cost", {}).get(name)
            cells = (_seconds(line, name), _cell(factor(line, "ours", name), " x"), f"{cost:.4f}" if cost else "")
            rows.append((kind, case["work"], name, *cells))
    return _table(("table", "work", "who", "seconds", "ours over it", "local cost"), rows, left=(0, 1, 2))


def growth(lines: list[Line]) -> str:
    """Lay out seconds and memory by rows, and where a billion rows would stand."""
    rows = []
    for line in of(lines, "growth"):
        task, seconds, peaks = line["case"]["task"], line.get("seconds", {}), line.get("peaks", {})
        cells = [_cell(seconds.get(step), " s") or "refused" for step in STEPS]
        cells.append(_cell(sum(line.get("clock", {}).values()) or None, " s"))
        rows.append((task, count(line["case"]["rows"]), *cells, _cell(max(peaks.values(), default=None), " MB")))
    for task in TASKS:
        if (reached := billion(lines, task)) is not None:
            seconds, clock, peak = reached
            cells = [*(_cell(seconds[step], " s") for step in STEPS), _cell(sum(clock.values()), " s")]
            rows.append((task, f"{count(BILLION)}, **extrapolated**", *cells, _cell(peak, " MB")))
    heads = ("task", "rows", *STEPS, "all, by the clock", "peak of the process")
    return _table(heads, sorted(rows, key=lambda row: TASKS.index(row[0])))


def billion(lines: list[Line], task: str) -> tuple[dict[str, float], dict[str, float], float] | None:
    """Draw a straight line through the two largest tables that were done whole, to a billion rows.

    Of smaller tables scores are kept, or they are held in memory altogether: they say nothing of a billion rows.
    """
    found = [line for line in of(lines, "growth", task=task) if line["case"]["rows"] >= UNKEPT_ROWS]
    whole = [line for line in found if "refused" not in line]
    if len(whole) < 2:
        return None
    first, last = whole[-2:]
    reach = (BILLION - last["case"]["rows"]) / (last["case"]["rows"] - first["case"]["rows"])

    def beyond(before: float, after: float) -> float:
        return float(after + reach * max(after - before, 0.0))

    processor, clock = (
        {step: beyond(first[by][step], value) for step, value in last[by].items()} for by in ("seconds", "clock")
    )
    return processor, clock, beyond(first["peak MB"], last["peak MB"])


def here(lines: list[Line]) -> str:
    """Lay out how fits in one process grow with parties."""
    found = of(lines, "parties", work="in one process")
    names = list(dict.fromkeys(name for line in found for name in line["seconds"]))
    rows = []
    for line in found:
        pairs = [(line["seconds"].get(name), found[0]["seconds"].get(name)) for name in names]
        cells = [f"{_cell(each, ' s')}, {_number(each / least)} x" if each and least else "" for each, least in pairs]
        rows.append((str(line["case"]["parties"]), *cells))
    return _table(("parties", *names), rows)


def loopback(lines: list[Line]) -> str:
    """Lay out fits between processes."""
    rows = []
    for scores in ("plain", "secure"):
        for line in of(lines, "parties", work=f"loopback, {scores}"):
            case, times, peaks = line["case"], line.get("seconds", {}), line.get("peaks", {})
            seconds = [_cell(times.get(name), " s") or "refused" for name in ("all", "server", "a party")]
            memory = [_cell(peaks.get(name), " MB") for name in ("server", "a party")]
            drawn = (scores, str(case["parties"]), f"{case['size']:,}")
            rows.append((*drawn, *seconds, *memory, f"{line.get('bytes', 0):,}"))
    heads = ("scores", "parties", "rows drawn", "seconds", "server", "a party", "peak: server", "a party", "bytes")
    return _table(heads, rows)


def refused(lines: list[Line]) -> str:
    """Name what was refused."""
    found = []
    for line in (line for line in lines if "refused" in line):
        why = line["refused"] if isinstance(line["refused"], dict) else {"all": line["refused"]}
        found += [f"- {place(line)}, {name}: {said}" for name, said in why.items()]
    return "\n".join(found) or "Nothing was refused."


def _seconds(line: Line, name: str) -> str:
    """Write the seconds of a contender; with a star where it ran once."""
    return _cell(line["seconds"].get(name), " s") + ("*" if line.get("repeats", {}).get(name) == 1 else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _cell(value: float | None, unit: str) -> str:
    return "" if value is None else f"{_number(value)}{unit}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: tuple[int, ...] = (0,)) -> str:
    marks = "|".join("---" if number in left else "---:" for number in range(len(heads)))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{marks}|", *(f"| {' | '.join(row)} |" for row in rows)])


TABLES = {
    each.__name__: each
    for each in (
        machine,
        bars,
        verbs,
        wide,
        fits,
        reports,
        compact,
        strata,
        files,
        clusters,
        growth,
        here,
        loopback,
        refused,
    )
}


def draw(lines: list[Line], path: Path) -> None:
    """Draw factors over the bare arithmetic, fits beside scikit-learn's, and growth with rows and with parties."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "scale", "svg.fonttype": "none"})  # the same bytes each time, and few
    figure = Figure(figsize=(12, 9), layout="constrained")
    panels = figure.subplots(2, 2)
    for panel, axes in zip((_draw_verbs, _draw_fits, _draw_growth, _draw_parties), panels.flat, strict=True):
        panel(lines, axes)
        axes.grid(visible=True, which="major", alpha=0.25)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8, framealpha=1, edgecolor="none")
    figure.savefig(path, metadata={"Date": None})


def _draw_verbs(lines: list[Line], axes: Any) -> None:
    found = [line for line in of(lines, "verbs", columns=10) if {"ours", "bare"} <= line["seconds"].keys()]
    works = list(dict.fromkeys(line["case"]["work"] for line in found))
    for size, alpha in zip(sorted({line["case"]["rows"] for line in found}), (0.3, 0.6, 1.0), strict=False):
        points = [line for line in found if line["case"]["rows"] == size]
        places = [works.index(line["case"]["work"]) for line in points]
        factors = [_over_bare(line) for line in points]
        axes.plot(factors, places, "o", color=OURS, alpha=alpha, label=f"{count(size)} rows")
    axes.axvline(1, color=BARE, ls=":")
    axes.set(title="seconds over the bare arithmetic, 10 columns", xscale="log", yticks=range(len(works)))
    axes.set_yticklabels(works)
    axes.invert_yaxis()


def _draw_fits(lines: list[Line], axes: Any) -> None:
    for (work, other), colour in zip(WHOLE_FITS.items(), COLOURS, strict=True):
        found = [line for line in of(lines, "verbs", work=work, columns=10) if factor(line, "ours", other) is not None]
        over = [factor(line, "ours", other) for line in found]
        if over:
            axes.plot([line["case"]["rows"] for line in found], over, "o-", color=colour, label=f"{work} over {other}")
    axes.axhline(1, color=BARE, ls=":")
    axes.set(title="a coreset fit over scikit-learn's of all rows", xlabel="rows", xscale="log", yscale="log")


def _draw_growth(lines: list[Line], axes: Any) -> None:
    found = [line for line in of(lines, "growth", task=TASKS[0]) if "refused" not in line]
    if not found:
        return
    rows, reached = [line["case"]["rows"] for line in found], billion(lines, TASKS[0])
    curves = {
        "seconds: open, fit, evaluate, predict": [sum(line["seconds"].values()) for line in found],
        "peak of memory, GB": [line["peak MB"] / 1000 for line in found],
    }
    ends = None if reached is None else (sum(reached[0].values()), reached[2] / 1000)
    for number, ((name, values), colour) in enumerate(zip(curves.items(), (OURS, COLOURS[1]), strict=True)):
        axes.plot(rows, values, "o-", color=colour, label=name)
        if ends is not None:
            label = None if number else "extrapolated"
            axes.plot([rows[-1], BILLION], [values[-1], ends[number]], ":", color=colour, label=label)
    axes.set(title="a regression of 10 columns in Parquet", xlabel="rows", xscale="log", yscale="log")


def _draw_parties(lines: list[Line], axes: Any) -> None:
    for scores, colour in (("plain", OURS), ("secure", COLOURS[0])):
        found = [line for line in of(lines, "parties", work=f"loopback, {scores}", size=200) if "seconds" in line]
        parties = [line["case"]["parties"] for line in found]
        for name, style in (("all", "o-"), ("server", "s--"), ("a party", "^:")) if found else ():
            seconds = [line["seconds"][name] for line in found]
            axes.plot(parties, seconds, style, color=colour, label=f"{scores}: {name}", ms=4)
    axes.set(title="a fit on loopback, seconds", xlabel="parties", xscale="log", yscale="log")
    counts = sorted({line["case"]["parties"] for line in of(lines, "parties", size=200)})
    axes.set_xticks(counts, [str(each) for each in counts])
    axes.minorticks_off()


def page(text: str, lines: list[Line]) -> str:
    """Put the tables between their marks."""
    for name, table in TABLES.items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        text = f"{before}<!-- {name} -->\n{table(lines)}\n{end}{after}"
    return text


def main() -> None:
    """Read, draw, write."""
    lines = read(Path(sys.argv[1]) if len(sys.argv) > 1 else STORED)
    draw(lines, FIGURE)
    PAGE.write_text(page(PAGE.read_text(), lines))


if __name__ == "__main__":
    main()
