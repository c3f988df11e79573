"""Kill the server or a party in every kind of job, and count what came of it.

`python benchmarks/reliability.py` kills each side at every failpoint; `--kills 6` at six a job and side. Jobs that were
swept in full with the same source are left out, unless it is told `--again`. `--random 300` kills so many processes at
any moment instead, often several in a job. Two jobs are played at a time (`--workers`), on a core each.

Counts go to benchmarks/reliability*.jsonl, a line a job, and into the tables of docs/explanation/reliability.md.
"""

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))

from failpoint_trial import JOBS, SIDES, Sweep, kills, random_falls, sampled  # noqa: E402  # found once the path is set

PAGE = HOME / "docs" / "explanation" / "reliability.md"
Line = dict[str, Any]
OUTCOMES = {"identical": "identical", "errors": "a clear error", "twice": "told twice", "else": "else"}


class Table(NamedTuple):
    """Where counts are kept, and how they are shown: names of columns by names of counts."""

    stored: Path
    mark: str
    columns: dict[str, str]

    def lines(self) -> dict[str, Line]:
        """Read what was counted before, by job."""
        lines = [json.loads(line) for line in self.stored.read_text().splitlines()] if self.stored.exists() else []
        return {line["job"]: line for line in lines}

    def keep(self, counted: dict[str, Line]) -> None:
        """Store the counts, and put them into the page."""
        lines = [counted[job] for job in JOBS if job in counted]
        self.stored.write_text("".join(json.dumps(line) + "\n" for line in lines))
        rows = [f"| job | {' | '.join(self.columns.values())} |", f"|---{'|---:' * len(self.columns)}|"]
        rows += [
            f"| {line['job']} | " + " | ".join(f"{line[name]:,}" for name in self.columns) + " |" for line in lines
        ]
        totals = {name: sum(line[name] for line in lines) for name in self.columns}
        rows.append("| **all** | " + " | ".join(f"**{total:,}**" for total in totals.values()) + " |")
        if sample := sum(line["source"] is None for line in lines):
            rows += ["", f"In {sample} of these {len(lines)} jobs at points chosen by chance only."]
        begin, end = f"<!-- {self.mark}: made by benchmarks/reliability.py -->\n", f"<!-- end of {self.mark} -->"
        text = PAGE.read_text()
        PAGE.write_text(text.split(begin)[0] + begin + "\n".join(rows) + "\n" + end + text.split(end)[1])


SWEPT = Table(
    HOME / "benchmarks" / "reliability.jsonl",
    "kills",
    {"server": "points: server", "bank": "label party", "shop": "party", "kills": "kills", **OUTCOMES},
)
AT_RANDOM = Table(
    HOME / "benchmarks" / "reliability_random.jsonl",
    "random kills",
    {"plays": "played", "server": "killed: server", "parties": "parties", "kills": "in all", **OUTCOMES},
)


@contextmanager
def swept(job: str) -> Iterator[tuple[Sweep, Line]]:
    """Set the processes up, and count what stays of runs in the end as something else that is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        sweep, line = Sweep(Path(folder)), Line(job=job, kills=0, **dict.fromkeys(OUTCOMES, 0))
        try:
            yield sweep, line
            if left := sweep.left_behind():
                print(job, "left behind:", left, flush=True)
                line["else"] += 1
        finally:
            sweep.close()


def outcome_of(wrong: list[str]) -> str:
    """Name the worst."""
    if any(" told " in each or "anew" in each or "opened" in each for each in wrong):
        return "twice"
    if any(each.startswith("it failed") for each in wrong):
        return "errors"
    return "else" if wrong else "identical"


def sweep_points(number: int | None, job: str) -> Line:
    """Kill at so many points a side, or all."""
    with swept(job) as (sweep, line):
        for who in SIDES:
            points = sweep.points(job, who)
            line[who] = points.total()
            found = list(kills({(job, who): points}))
            for kill in sampled(found, number or len(found), seed=1):
                outcome, was_killed = sweep.play_with(kill)
                wrong = sweep.check(job, outcome, [who])
                line["kills"] += was_killed
                line[outcome_of(wrong)] += was_killed or bool(wrong)
                if wrong:
                    print(kill, wrong, flush=True)
    return line | {"source": None if number else source()}


def kill_at_random(number: int, job: str) -> Line:
    """Kill so many processes, or one more, at any moment."""
    chance = random.Random(job)  # noqa: S311  # whom to kill is no secret
    fallen: Counter[str] = Counter()
    with swept(job) as (sweep, line):
        line["plays"] = 0
        begun = time.monotonic()
        sweep.points(job, "server")
        seconds = time.monotonic() - begun
        while fallen.total() < number:
            falls = random_falls(chance, seconds)
            outcome, who = sweep.play_with_falls(job, falls)
            wrong = sweep.check(job, outcome, who)
            fallen.update(who)
            line["plays"] += bool(who)
            line[outcome_of(wrong)] += bool(who) or bool(wrong)
            if wrong:
                print(job, falls, wrong, flush=True)
    parties = fallen.total() - fallen["server"]
    return line | {"kills": fallen.total(), "server": fallen["server"], "parties": parties, "source": source()}


def source() -> str:
    """Know the version that was tried by its source."""
    files = sorted((HOME / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def count(table: Table, jobs: list[str], play: Callable[[str], Line], workers: int) -> None:
    """Play jobs, so many at a time, and keep the counts of each as it is done."""
    counted, failed = table.lines(), []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        playing = {pool.submit(play, job): job for job in jobs}
        for done in as_completed(playing):
            if error := done.exception():  # a process that hangs, for one: the other jobs go on
                failed.append(playing[done])
                traceback.print_exception(error)
                continue
            counted[playing[done]] = done.result()
            table.keep(counted)
            print(done.result(), flush=True)
    if failed:
        sys.exit(f"Not counted: {', '.join(failed)}.")


def main() -> None:
    """Go through the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, help="so many a job and side; at every point if left out")
    parser.add_argument("--random", type=int, help="so many in all, at any moment")
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), help="only these; the others stay as they were")
    parser.add_argument("--workers", type=int, default=2, help="so many jobs at a time")
    parser.add_argument("--again", action="store_true", help="also jobs that were swept in full")
    options = parser.parse_args()
    if options.random:
        number = -(-options.random // len(options.jobs))
        count(AT_RANDOM, options.jobs, partial(kill_at_random, number), options.workers)
        return
    before, now = SWEPT.lines(), source()
    is_due = {job: options.again or options.kills or before.get(job, {}).get("source") != now for job in options.jobs}
    count(SWEPT, [job for job, due in is_due.items() if due], partial(sweep_points, options.kills), options.workers)


if __name__ == "__main__":
    main()
