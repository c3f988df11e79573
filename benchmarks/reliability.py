"""Kill the server or a party at failpoints, in every kind of job, and count what came of it.

`python benchmarks/reliability.py` kills at every point, which takes an hour or two; `--kills 6` at six a job and side.
Counts go to benchmarks/reliability.jsonl, a line a job, and into the table of docs/explanation/reliability.md.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))

from failpoint_trial import JOBS, Sweep, kills, sampled  # noqa: E402  # it is found once the path is set

STORED, PAGE = HOME / "benchmarks" / "reliability.jsonl", HOME / "docs" / "explanation" / "reliability.md"
SIDES = ("server", "shop")
BEGIN, END = "<!-- kills: made by benchmarks/reliability.py -->\n", "<!-- end of kills -->"
COLUMNS = ("job", "points: server", "party", "kills", "identical", "a clear error", "told twice", "else")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---{'|---:' * 7}|"


def count(job: str, number: int | None) -> dict[str, Any]:
    """Kill in one job, and count."""
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(Path(folder))
        try:
            points = {(job, who): sweep.points(job, who) for who in SIDES}
            found = {who: list(kills({(job, who): points[job, who]})) for who in SIDES}
            told: dict[str, Any] = {who: sum(points[job, who].values()) for who in SIDES}
            told |= {"job": job, "kills": 0, "identical": 0, "errors": 0, "twice": 0, "else": 0}
            for kill in [each for who in SIDES for each in sampled(found[who], number or len(found[who]), seed=1)]:
                outcome, was_killed = sweep.play_with(kill)
                wrong = sweep.check(kill, outcome)
                told["kills"] += was_killed
                told["identical"] += was_killed and not wrong
                told["errors"] += any(each.startswith("it failed") for each in wrong)
                told["twice"] += any(" told " in each or "anew" in each or "opened" in each for each in wrong)
                told["else"] += bool(wrong)
                if wrong:
                    print(kill, wrong, flush=True)
            told["left"] = sweep.left_behind()
            told["else"] -= told["errors"] + told["twice"]
            return told
        finally:
            sweep.close()


def page(lines: list[dict[str, Any]]) -> None:
    """Put the table into the page."""
    names = (*SIDES, "kills", "identical", "errors", "twice", "else")
    rows = [f"| {line['job']} | " + " | ".join(f"{line[name]:,}" for name in names) + " |" for line in lines]
    total = {name: sum(line[name] for line in lines) for name in names}
    rows.append("| **all** | " + " | ".join(f"**{total[name]:,}**" for name in names) + " |")
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join([HEAD, *rows]) + "\n" + END + after)


def main() -> None:
    """Go through the jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, help="so many a job and side; all if left out")
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="only these; the others stay as they were")
    options = parser.parse_args()
    lines = [json.loads(line) for line in STORED.read_text().splitlines()] if STORED.exists() else []
    counted = {line["job"]: line for line in lines}
    for job in options.jobs:
        counted[job] = count(job, options.kills)
        print(counted[job], flush=True)
        kept = [counted[name] for name in JOBS if name in counted]
        STORED.write_text("".join(json.dumps(line) + "\n" for line in kept))
        page(kept)


if __name__ == "__main__":
    main()
