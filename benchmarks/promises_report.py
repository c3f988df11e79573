"""Whether what `promises.py` stored holds its bars; each is counted over all tables, and over the judged half alone.

    python benchmarks/promises_report.py [benchmarks/promises.jsonl]

Counts are strict: a mean of twenty runs has an error of its own, and a plan just inside or outside its interval is
counted as it came. Beside them stands how many fail beyond that error (95 %). Exits with 0 if all bars hold, else 1.
"""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

STORED = Path(__file__).with_name("promises.jsonl")
COVERED, ABOVE, BEHIND = 0.9, 2.0, 1.25
NEGLIGIBLE = 1e-5  # an excess of a thousandth of a percent is as good as none; where all rows are sent it is rounding
PAPER_BARS = {"houses": 0.0035, "years-whole": 0.0024}
Line = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Whether a bar holds, the count it is judged by, and which plans do not hold it."""

    bar: str
    holds: bool
    count: str
    failing: tuple[str, ...] = ()


def key(line: Line) -> tuple[Any, ...]:
    """Tell which measurement a line is."""
    return tuple(line[name] for name in ("table", "rows", "place", "pilot", "seeds"))


def read(path: Path) -> list[Line]:
    """Read the stored lines; of a measurement that was made again after an error, the last."""
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return list({key(line): line for line in lines}.values())


def mean(excess: Iterable[float]) -> float:
    """Average."""
    return float(np.mean(list(excess)))


def error(excess: list[float]) -> float:
    """Give half the width of the 95 % interval of a mean."""
    if len(excess) < 2:
        return float("inf")
    return float(student.ppf(0.975, len(excess) - 1) * np.std(excess, ddof=1) / np.sqrt(len(excess)))


def inside(value: float, interval: list[float], slack: float = 0.0) -> bool:
    """Tell whether an interval holds a value; none is told apart from rounding."""
    _, low, high = interval
    return low - slack - 1e-9 <= value <= high + slack + 1e-9


def behind(line: Line, other: list[float], times: float, *, surely: bool = False) -> bool:
    """Tell whether a plan's mean is above so many times another's; surely: beyond the error of both."""
    gap = mean(line["excess"]) - times * mean(other)
    slack = np.hypot(error(line["excess"]), times * error(other)) if surely else 0.0
    return mean(line["excess"]) > NEGLIGIBLE and gap > slack


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Judge each bar for which there is a measurement."""
    done = [line for line in lines if "error" not in line]
    every = (
        _errors,
        _means,
        _runs,
        _far_above,
        _silent,
        _collinear,
        _over_budget,
        _least,
        _best_arm,
        _paper,
        _paper_bars,
    )
    return [verdict for judge in every if (verdict := judge(lines if judge is _errors else done)) is not None]


def _errors(lines: list[Line]) -> Verdict:
    failing = [line for line in lines if "error" in line]
    return _none("every plan and run comes to its end", lines, failing)


def _means(lines: list[Line]) -> Verdict | None:
    told = [line for line in lines if line["planned"] is not None]
    missed = [line for line in told if not inside(mean(line["excess"]), line["planned"])]
    surely = [line for line in missed if not inside(mean(line["excess"]), line["planned"], error(line["excess"]))]
    return _share("the interval for the mean holds it", told, missed, f"beyond the runs' error {len(surely)} miss")


def _runs(lines: list[Line]) -> Verdict | None:
    told = [line for line in lines if line["one_run"] is not None]
    n_runs = sum(len(line["excess"]) for line in told)
    if not n_runs:
        return None
    missed = {place(line): sum(not inside(each, line["one_run"]) for each in line["excess"]) for line in told}
    held = 1 - sum(missed.values()) / n_runs
    failing = tuple(f"{name} ({count})" for name, count in missed.items() if count)
    bar = f"the interval for a run holds it in {COVERED:.0%} of runs"
    return Verdict(bar, held >= COVERED, f"{held:.1%} of {n_runs}", failing)


def _far_above(lines: list[Line]) -> Verdict:
    told = [line for line in lines if line["planned"] is not None and not line["warnings"]]
    failing = [line for line in told if mean(line["excess"]) > ABOVE * line["planned"][2] + 1e-9]
    return _none("without a warning no mean is more than twice above the interval", told, failing)


def _silent(lines: list[Line]) -> Verdict:
    unknown = [line for line in lines if line["planned"] is None]
    return _none(
        "where no number is given there is a warning", unknown, [line for line in unknown if not line["warnings"]]
    )


def _collinear(lines: list[Line]) -> Verdict | None:
    mine = [line for line in lines if line["table"].startswith(("even-", "sparse-")) and line["planned"] is not None]
    failing = [line for line in mine if mean(line["excess"]) > max(ABOVE * line["planned"][0], NEGLIGIBLE)]
    return _none("collinear parties: the mean is at most twice the planned, or no number", mine, failing)


def _over_budget(lines: list[Line]) -> Verdict:
    return _none("no run is over budget", lines, [line for line in lines if max(line["bytes"]) > line["budget"]])


def _least(lines: list[Line]) -> Verdict | None:
    mine = [line for line in lines if "named" in line]
    failing = [line for line in mine if len(line["named"]) > 1 or line["less_works"]]
    return _none("the least budget that works is the one named", mine, failing) if mine else None


def _best_arm(lines: list[Line]) -> Verdict | None:
    return _compared(f"at most {BEHIND} times the best fixed arm", lines, BEHIND, lambda line: line.get("best"))


def _paper(lines: list[Line]) -> Verdict | None:
    return _compared("never behind the paper's wire", lines, 1.0, lambda line: line.get("arms", {}).get("paper"))


def _compared(bar: str, lines: list[Line], times: float, other: Callable[[Line], Line | None]) -> Verdict | None:
    pairs = [(line, found["excess"]) for line in lines if (found := other(line)) is not None and "excess" in found]
    failing = [line for line, excess in pairs if behind(line, excess, times)]
    surely = [line for line, excess in pairs if behind(line, excess, times, surely=True)]
    return (
        _none(bar, [line for line, _ in pairs], failing, f"; beyond the error of both {len(surely)}") if pairs else None
    )


def _paper_bars(lines: list[Line]) -> Verdict | None:
    mine = [line for line in lines if line["place"] == "paper"]
    failing = [line for line in mine if mean(line["excess"]) > PAPER_BARS[line["table"]]]
    listed = ", ".join(f"{name} {100 * bar:g} %" for name, bar in PAPER_BARS.items())
    return _none(f"at the bytes of the paper's wire at most: {listed}", mine, failing) if mine else None


def _share(bar: str, lines: list[Line], failing: list[Line], beside: str) -> Verdict | None:
    if not lines:
        return None
    held = 1 - len(failing) / len(lines)
    names = tuple(place(line) for line in failing)
    return Verdict(f"{bar} in {COVERED:.0%} of plans", held >= COVERED, f"{held:.1%} of {len(lines)}; {beside}", names)


def _none(bar: str, lines: list[Line], failing: list[Line], beside: str = "") -> Verdict:
    return Verdict(
        bar, not failing, f"{len(failing)} of {len(lines)} fail{beside}", tuple(place(line) for line in failing)
    )


def place(line: Line) -> str:
    """Name a plan."""
    return f"{line['table']} {line['place']}" + (f" pilot {line['pilot']}" if line["pilot"] else "")


def report(lines: list[Line]) -> int:
    """Print every bar, and give 0 if all hold."""
    holds = bool(lines)
    for title, mine in (("all tables", lines), ("judged", [line for line in lines if line["half"] == "judged"])):
        print(f"\n{title}: {len(mine)} plans on {len({line['table'] for line in mine})} tables")
        for verdict in verdicts(mine) if mine else []:
            print(f"  {'PASS' if verdict.holds else 'FAIL'}  {verdict.bar}: {verdict.count}")
            if not verdict.holds:
                print(f"        {', '.join(verdict.failing)}")
            holds &= verdict.holds
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(report(read(Path(sys.argv[1]) if len(sys.argv) > 1 else STORED)))
