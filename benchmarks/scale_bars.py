"""What was asked of scale, and what benchmarks/scale.py stored for it: a bar's worst factor, and where that is.

No bar is on seconds: each divides what was measured side by side in one run, or is on memory, or on cost.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

Line = dict[str, Any]
Found = Iterator[tuple[str, float]]
# How often all files are read by each work, at least.
READS = {"scores": 2, "fit": 2, "evaluate": 1, "predict": 1}
ONE_START, TEN_STARTS, STARTS = "KMeans, 1 start", "KMeans, 10 starts", 10
MODELS = ("regression", "classification", "k-means")
# The contenders that do a work's arithmetic, where that is more than the product of a linear model.
ARITHMETIC = {
    "classification predict": "bare chances",
    "classification evaluate": "bare report",
    "compact fit, scores cached": "Central",
    "committed draw, scores cached": "plain",
}


def count(value: int) -> str:
    """Write 1e6 for a million."""
    return f"{value:,}" if value < 100_000 or value % 100_000 else f"{value:.0e}".replace("e+0", "e")


def place(line: Line) -> str:
    """Say of which case a line is."""
    case = {name: value for name, value in line["case"].items() if name not in ("bench", "size")}
    words = [value for value in case.values() if isinstance(value, str)]
    sizes = {name: value for name, value in case.items() if isinstance(value, int)}
    numbers = [f"k = {value}" if name == "k" else f"{count(value)} {name}" for name, value in sizes.items()]
    return ", ".join([*words, *numbers])


def of(lines: list[Line], bench: str, **case: Any) -> list[Line]:
    """Choose the lines of a benchmark, and of a case there, in order of size."""
    wanted = {"bench": bench, **case}.items()
    found = [line for line in lines if wanted <= line.get("case", {}).items()]
    return sorted(
        found, key=lambda line: [line["case"].get(name, 0) for name in ("rows", "columns", "parties", "size")]
    )


def factor(line: Line, name: str, other: str, by: str = "seconds") -> float | None:
    """Divide the seconds of one contender by those of another, where both have some."""
    times: dict[str, float] = line.get(by, {})
    return times[name] / times[other] if name in times and other in times else None


class Bar(NamedTuple):
    """A limit, on the largest of what was found, or on the least."""

    what: str
    limit: float
    found: Callable[[list[Line]], Found]
    at_least: bool = False
    unit: str = " x"

    def worst(self, lines: list[Line]) -> tuple[str, float] | None:
        """Give the measurement that is worst, and where it is."""
        return (min if self.at_least else max)(self.found(lines), key=lambda each: each[1], default=None)

    def holds(self, value: float) -> bool:
        """Tell whether a measurement is within the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


def factors(bench: str, name: str, other: str, *works: str) -> Callable[[list[Line]], Found]:
    """Compare two contenders in all lines of some works."""

    def found(lines: list[Line]) -> Found:
        for work in works:
            for line in of(lines, bench, work=work):
                value = factor(line, name, other)
                if value is not None:
                    yield place(line), value

    return found


def over_arithmetic(lines: list[Line]) -> Found:
    """Compare what is made of a model with its own arithmetic."""
    for work in APPLIED:
        yield from OVER(ARITHMETIC.get(work, "bare"), work)(lines)


def of_files(*works: str, other: str) -> Callable[[list[Line]], Found]:
    """Compare works on files with reading them as often."""

    def found(lines: list[Line]) -> Found:
        for line in of(lines, "files"):
            kind = f"{line['case']['work']}, {count(line['case']['rows'])} rows"
            for work in works:
                value = factor(line, work, other)
                if value is not None:
                    yield f"{work}, {kind}", value / READS.get(work, 1)

    return found


def cores(lines: list[Line]) -> Found:
    """Compare one core with all."""
    for line in of(lines, "files", work="Parquet"):
        for work in READS:
            value = factor(line, work, f"{work}, all cores", by="clock")
            if value is not None:
                yield f"{work}, {count(line['case']['rows'])} rows", value


def ten_starts(lines: list[Line]) -> Found:
    """Compare ten starts of scikit-learn's with the scores."""
    return factors("clusters", TEN_STARTS, "ours", "scores")(lines)


def with_ten_starts(lines: list[Line]) -> list[Line]:
    """Put starts that were timed one by one together, where there are ten: of each party's costs the least counts."""
    starts = of(lines, "clusters", work="a start")
    found = []
    for line in (line for line in lines if line not in starts):
        case = line.get("case", {})
        own = [each for each in starts if {**case, "work": "a start", "start": each["case"]["start"]} == each["case"]]
        found.append(_with_starts(line, own) if case.get("work") == "scores" and len(own) == STARTS else line)
    return found


def _with_starts(line: Line, starts: list[Line]) -> Line:
    seconds = sum(start["seconds"][ONE_START] for start in starts)
    least, first = (map(min, zip(*(start["costs"] for start in starts), strict=True)), starts[0]["costs"])
    return {
        **line,
        "seconds": {**line["seconds"], TEN_STARTS: seconds},
        "cost": {**line["cost"], TEN_STARTS: round(sum(least) / sum(first), 4)},
    }


def local_costs(lines: list[Line]) -> Found:
    """Compare what a party's own clustering costs with one start of scikit-learn's, in per cent more."""
    for line in of(lines, "clusters", work="scores"):
        yield place(line), 100 * (line["cost"]["ours"] - 1)


def peaks(n_rows: int) -> Callable[[list[Line]], Found]:
    """Give the memory of a whole job on so many rows."""

    def found(lines: list[Line]) -> Found:
        for line in of(lines, "growth", rows=n_rows):
            if "peaks" in line and "refused" not in line:
                yield place(line), line["peak MB"] / 1000

    return found


# Beside what a federation costs: what of it no federation can do without.
GRAM_ARITHMETIC = "SecureGram's arithmetic"


def hundred_parties(lines: list[Line]) -> Found:
    """Divide what a hundred parties cost in one process by what three cost."""
    few, many = (of(lines, "parties", work="in one process", parties=count) for count in (3, 100))
    for three, hundred in zip(few, many, strict=False):
        for name, value in ((name, value) for name, value in hundred["seconds"].items() if name != GRAM_ARITHMETIC):
            yield name, value / three["seconds"][name]


def over_linear(lines: list[Line]) -> Found:
    """Divide growth in seconds from the last but one number of parties to the last by growth in parties."""
    for scores in ("plain", "secure"):
        grown = [line for line in of(lines, "parties", work=f"loopback, {scores}", size=200) if "seconds" in line]
        for before, after in zip(grown[-2:], grown[-1:], strict=False):
            parties = [line["case"]["parties"] for line in (before, after)]
            seconds = [line["seconds"]["all"] for line in (before, after)]
            yield f"{scores}, {parties[0]} to {parties[1]} parties", seconds[1] / seconds[0] * parties[0] / parties[1]


def refusals(lines: list[Line]) -> Found:
    """Count works that were refused; that there are none is known only where the largest table was tried."""
    found = [line for line in lines if "refused" in line]
    if found or of(lines, "growth", rows=100_000_000):
        yield "all benchmarks", float(len(found))


def strata(lines: list[Line]) -> Found:
    """Compare the excess of draws by classes of scores with that of draws by sorted scores."""
    for line in of(lines, "strata"):
        yield line["case"]["table"], line["mean"]["classes"] / line["mean"]["sorted"]


APPLIED = [f"{model} {verb}" for model in MODELS for verb in ("predict", "evaluate")]
OVER = partial(factors, "verbs", "ours")
BARS = (
    Bar("regression fit over `LinearRegression` of all rows", 1, OVER("LinearRegression", "regression fit")),
    Bar("k-means fit over `KMeans(n_init=1)` of all rows", 1, OVER(ONE_START, "k-means fit")),
    Bar("`CompactCentral` over `Central`", 3, OVER("Central", "compact fit, scores cached")),
    Bar("`CompactCentral` over `Central`, real tables", 3, factors("compact", "ours", "Central", "compact fit")),
    Bar("100 parties over 3, in one process", 40, hundred_parties),
    Bar("100 parties on loopback: over linear growth", 1, over_linear),
    Bar("regression scores over their arithmetic", 1.3, OVER("bare", "regression scores")),
    Bar("regression scores over reading the files twice", 2, of_files("scores", other="pyarrow")),
    Bar("the draw, scores cached, over the scores", 1, OVER("scores", "regression draw, scores cached")),
    Bar("excess of draws by classes over sorted strata", 1.05, strata),
    Bar("`predict`, `evaluate` over their bare arithmetic", 3, over_arithmetic),
    Bar("k-means scores over one assignment pass", 3, OVER("bare", "k-means scores")),
    Bar("k-means scores of Covertype and of files over that pass", 3, factors("clusters", "ours", "bare", "scores")),
    Bar("k-means `predict` of these over that pass", 3, factors("clusters", "ours", "bare", "assignment")),
    Bar("local cost above scikit-learn's with one start", 2, local_costs, unit=" %"),
    Bar("ten starts of scikit-learn's over k-means scores", 25, ten_starts, at_least=True),
    Bar("1e8 x 10 in Parquet: fit, evaluate, predict", 2, peaks(100_000_000), unit=" GB"),
    Bar("2e7 x 10 in Parquet: fit, evaluate, predict", 1.2, peaks(20_000_000), unit=" GB"),
    Bar("one core over both, from files", 1.6, cores, at_least=True),
    Bar("reading a file over pyarrow's reading it", 1.5, of_files("blocks", other="pyarrow")),
    Bar("of these benchmarks, refused for rows or memory", 0, refusals, unit=""),
)
