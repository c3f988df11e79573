"""Every kind of job between real processes, which are killed at a named point or at any moment, and started again."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import colonnade as cn
from colonnade.node.memory_file import MEMORY, KeptInFile
from colonnade.protocol.memory import TableKey
from network_trial import Trial, until, write_federation_file, write_party_file
from nursery import Child, Nursery

LIMIT = 60.0
# What a party says when it has rebuilt its runs.
UP = "Dialling"
REGRESSION = {"kind": "regression", "l2": 0.1}
KMEANS = {"kind": "kmeans", "n_clusters": 3, "n_starts": 2}
CLASSES = {"kind": "classification", "l2": 0.01}


def sampler(**changes: object) -> dict[str, object]:
    return {"kind": "importance", "size": 60, "scores": "plain", **changes}


def fit(solver: dict[str, object], task: dict[str, object] = REGRESSION, **changes: object) -> dict[str, object]:
    return {"do": "fit", "task": task, "sampler": sampler(), "solver": solver, "seed": 4, "out": "run", **changes}


def coreset(**changes: object) -> dict[str, object]:
    return {"do": "coreset", "task": REGRESSION, "sampler": sampler(**changes), "seed": 4, "out": "run"}


BLIND = sampler(class_blind=True)
# Who is killed at every point: the server, the label party, and another.
SIDES = ("server", "bank", "shop")
# By name; `base` is a run that is there before, and `diagnose` no job of a server's file.
JOBS: dict[str, dict[str, object]] = {
    "coreset": coreset(),
    "coreset, secure": coreset(scores="secure"),
    "coreset, distinct": coreset(draws="distinct", uniform_share=0.2),
    "coreset, distinct and secure": coreset(draws="distinct", scores="secure"),
    "coreset, committed": coreset(draws="committed"),
    "coreset, committed and secure": coreset(draws="committed", scores="secure"),
    "spot check": {**coreset(draws="committed"), "spot_check": 3},
    "fit, central": fit({"kind": "central"}),
    "fit, compact": fit({"kind": "compact"}),
    "fit, gram": fit({"kind": "gram"}),
    "fit, saga": fit({"kind": "saga", "batch": 20, "max_epochs": 2}),
    "fit, prepared": fit({"kind": "central"}, split={"kind": "fraction", "fraction": 0.2}),
    "fit, k-means": fit({"kind": "central"}, KMEANS),
    "fit, lloyd": fit({"kind": "lloyd"}, KMEANS),
    "fit, distdim": fit({"kind": "distdim"}, KMEANS),
    "fit, classes": fit({"kind": "central"}, CLASSES),
    "fit, classes without rows": fit({"kind": "gram"}, CLASSES, sampler=BLIND),
    "planned fit": {"do": "fit", "task": REGRESSION, "budget_bytes": 20_000, "seed": 4, "out": "run"},
    # It draws fewer than all rows, and those of its pilot join them.
    "planned fit, joined": {"do": "fit", "task": REGRESSION, "target_excess": 0.02, "seed": 4, "out": "run"},
    "predict": {"do": "predict", "model": "base", "to": "bank", "out": "predictions.csv"},
    "deliver": {"do": "deliver", "model": "base", "to": "shop"},
    "evaluate": {"do": "evaluate", "model": "base", "out": "evaluation.json"},
    "evaluate by a party": {"do": "evaluate", "model": "base", "by": "bank", "out": "evaluation.json"},
    "evaluate classes": {"do": "evaluate", "model": "classes", "out": "evaluation.json"},
    "evaluate classes by a party": {"do": "evaluate", "model": "classes", "by": "bank", "out": "evaluation.json"},
    "certify": {"do": "certify", "run": "base", "rows": 100, "out": "certificate.json"},
    "diagnose": {"do": "diagnose"},
}
# What is otherwise in the parties' files: what they make of their columns, and a label in words.
PREPARE: dict[str, dict[str, object]] = {
    "bank": {
        "prepare": {"columns": {"age": {"kind": "category", "rare": 8}, "income": {"kind": "number", "scale": True}}}
    },
    "shop": {"prepare": {"columns": {"purchases": {"kind": "category"}, "basket": {"kind": "number", "log": True}}}},
}
LABEL_CLASSES: dict[str, dict[str, object]] = {
    "bank": {"data": {"file": "bank-classes.csv", "key": "customer", "label": "spends"}}
}
OTHER_FILES = {"fit, prepared": PREPARE} | {job: LABEL_CLASSES for job in JOBS if "classes" in job}
# Parties draw these with entropy of their own: what comes of them differs from time to time.
BY_CHANCE = ("coreset, committed", "coreset, committed and secure", "spot check")
# Where a party dies in a sum under masks, its key dies with it: all mask the same numbers again, under new keys.
MASKED = (
    "coreset, secure",
    "coreset, distinct and secure",
    "coreset, committed and secure",
    "fit, gram",
    "fit, lloyd",
    "fit, classes without rows",
    "deliver",
    "evaluate by a party",
    "evaluate classes by a party",
)
FILES = ("predictions.csv", "bank-predictions.csv", "shop-predictions.csv", "evaluation.json", "certificate.json")
# What somewhat less than half of the customers spend more than.
MUCH = 1500.0
AMOUNTS = ("rows", "row_ids", "numbers", "moments")


class Kill(NamedTuple):
    """Who dies where, the so many-th time that it comes by."""

    job: str
    who: str
    point: str
    time: int


class Fall(NamedTuple):
    """Who dies at once, so many seconds after the fall before, and how long they lie."""

    after: float
    who: tuple[str, ...]
    rest: float


@dataclass
class Outcome:
    """What came of a job: files by name, and what each party told in it."""

    code: int
    said: str
    results: dict[str, bytes]
    told: dict[str, Counter[str]]
    spent: dict[str, Counter[str]]
    runs: dict[str, int]  # opened by each party
    twice: list[tuple[str, str, int]]


class Sweep:
    """A server and three parties, of which some are killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trial = Trial(folder, [], wait_seconds=LIMIT)
        for name in Trial.names:
            write_party_file(folder, name, self._trial.port, wait_seconds=LIMIT)
        _write_classes(folder)
        self._nursery = Nursery(folder)
        self.parties = {name: self._party(name) for name in Trial.names}
        self._undisturbed: dict[str, Outcome] = {}
        self._files: dict[str, dict[str, object]] = {}
        self._wait_for_parties()
        assert self.play(fit({"kind": "central"}, out="base")).code == 0

    def close(self) -> None:
        self._nursery.close()

    def _party(self, name: str, **options: Any) -> Child:
        return self._nursery.start("party", f"{name}.toml", "--json", **options)

    def _renewed(self, name: str, **options: Any) -> Child:
        """Stop a party, and start it without what it remembers of what it told: it has to write that again.

        It still knows its table: else results would say that nobody can tell whether that is the same.
        """
        self.parties[name].kill(signal.SIGTERM)
        path = self.folder / f"{name}-state" / MEMORY
        memory = KeptInFile(path)
        known = [note for note in memory.notes() if isinstance(note, TableKey)]
        memory.close()
        path.unlink()
        for kept in path.parent.glob("p*-*.json"):
            kept.unlink()
        memory = KeptInFile(path)
        memory.keep(known)
        memory.close()
        return self._party(name, **options)

    def _server(self, job: dict[str, object], **options: Any) -> Child:
        is_job = job["do"] != "diagnose"
        jobs = {"job": [job]} if is_job else {}
        path = write_federation_file(self.folder, Trial.names, self._trial.port, wait_seconds=LIMIT, **jobs)
        return self._nursery.start("server" if is_job else "diagnose", str(path), **options)

    def points(self, job: str, who: str) -> Counter[str]:
        """List the points that a process comes by in a job, and how often; and keep what came of it undisturbed."""
        self._give_files(OTHER_FILES.get(job, {}))
        trace = self.folder / "trace.txt"
        trace.unlink(missing_ok=True)
        if who == "server":
            self._undisturbed[job] = self.play(JOBS[job], trace=trace)
        else:
            self.parties[who] = self._renewed(who, trace=trace)
            self._undisturbed[job] = self.play(JOBS[job])
        assert self._undisturbed[job].code == 0, self._undisturbed[job].said
        until(lambda: not list(self.folder.glob("*-state/*.journal")))  # parties end a run when the server has gone
        return Counter(trace.read_text().splitlines())

    def _give_files(self, files: dict[str, dict[str, object]]) -> None:
        """Start parties anew where the job wants other columns."""
        if files == self._files:
            return
        for name in files | self._files:
            write_party_file(self.folder, name, self._trial.port, wait_seconds=LIMIT, **files.get(name, {}))
            self.parties[name] = self._renewed(name)
        self._files = files
        self._wait_for_parties()
        if files == LABEL_CLASSES and not (self.folder / "classes").exists():
            assert self.play(fit({"kind": "central"}, CLASSES, out="classes")).code == 0

    def play(self, job: dict[str, object], **options: Any) -> Outcome:
        """Let the server do a job, with nobody dying."""
        before = self._clear()
        server = self._server(job, **options)
        server.wait(LIMIT)
        return self._outcome(server, before)

    def play_with(self, kill: Kill) -> tuple[Outcome, bool]:
        """Do a job while a process is killed and started again; tell whether it came by its point."""
        before, job, where = self._clear(), JOBS[kill.job], (kill.point, kill.time)
        if kill.who == "server":
            server = self._server(job, kill=where)
            was_killed = server.wait(LIMIT) == -signal.SIGKILL
            if was_killed and not self._is_over():
                server = self._server(job)
        else:
            victim = self._renewed(kill.who, kill=where)
            server = self._server(job)
            until(lambda: victim.poll() is not None or server.poll() is not None, LIMIT)
            time.sleep(0.05)
            was_killed = victim.poll() is not None
            victim.kill(signal.SIGTERM)  # the job is over, and it may come by its point in the next one
            self.parties[kill.who] = self._party(kill.who)
        server.wait(2 * LIMIT)
        self._wait_for_parties()
        return self._outcome(server, before), was_killed

    def play_with_falls(self, job: str, falls: list[Fall]) -> tuple[Outcome, list[str]]:
        """Do a job while processes fall at these moments, and tell who did before it was over."""
        before, fallen = self._clear(), list[str]()
        server = self._server(JOBS[job])
        for fall in falls:
            time.sleep(fall.after)
            if server.poll() is not None:
                break
            for who in fall.who:
                (server if who == "server" else self.parties[who]).kill()
            fallen.extend(fall.who)
            time.sleep(fall.rest)
            for who in fall.who:
                if who != "server":
                    self.parties[who] = self._party(who)
                elif not self._is_over():
                    server = self._server(JOBS[job])
        server.wait(2 * LIMIT)
        self._wait_for_parties()
        return self._outcome(server, before), fallen

    def _wait_for_parties(self) -> None:
        for party in self.parties.values():
            party.wait_until_it_says(UP)

    def _is_over(self) -> bool:
        """Tell whether the server had done all but exit: whoever starts it then wants its jobs done anew."""
        state = self.folder / "server-state"
        return bool(self._results()) and not (state / "jobs.json").exists() and not list(state.glob("*.journal"))

    def check(self, job: str, outcome: Outcome, fallen: Sequence[str]) -> list[str]:
        """Name all that is not as it should be, after these have been killed."""
        wanted, dead_parties = self._undisturbed[job], sum(who != "server" for who in fallen)
        if outcome.code not in (0, -signal.SIGKILL):
            return [f"it failed: {outcome.said[-300:]}"]
        wrong = []
        if job not in BY_CHANCE and outcome.results != wanted.results:
            wrong.append(f"results differ: {sorted(outcome.results)}, {sorted(wanted.results)}")
        if outcome.results.keys() != wanted.results.keys():
            wrong.append(f"{sorted(outcome.results)} instead of {sorted(wanted.results)}")
        if outcome.runs != wanted.runs:
            wrong.append(f"runs opened at the parties: {outcome.runs} instead of {wanted.runs}")
        wrong.extend(f"answered anew: {each}" for each in outcome.twice)
        for party in Trial.names:
            for word, found, expected in (
                ("told", outcome.told[party], wanted.told[party]),
                ("counted", outcome.spent[party], wanted.spent[party]),
            ):
                if not self._agree(job, dead_parties, found, expected):
                    wrong.append(f"{party} {word} {dict(found)} instead of {dict(expected)}")
        if left := list((self.folder / "server-state").glob("*.journal")):
            wrong.append(f"the server left {[file.name for file in left]}")
        return wrong

    @staticmethod
    def _agree(job: str, dead_parties: int, found: Counter[str], expected: Counter[str]) -> bool:
        """Compare amounts, but for what differs from time to time: how many of the rows are whose."""
        names = [name for name in AMOUNTS if job not in BY_CHANCE or name != "row_ids"]
        if job in MASKED and dead_parties:
            most = 1 + 2 * dead_parties
            return all(expected[name] <= found[name] <= most * expected[name] for name in names)
        if job == "spot check":  # rows that were drawn twice are opened once
            return all(abs(expected[name] - found[name]) <= 0.2 * expected[name] for name in names)
        return all(expected[name] == found[name] for name in names)

    def left_behind(self) -> list[str]:
        """Name what stays of runs once a server has come and gone."""
        any_job = "fit, classes" if self._files == LABEL_CLASSES else "coreset"
        assert self.play(JOBS[any_job]).code == 0

        def left() -> list[str]:
            paths = [path for path in self.folder.rglob("*") if path.suffix in (".journal", ".fresh")]
            return [str(path.relative_to(self.folder)) for path in paths]

        with suppress(AssertionError):  # parties may still be at it
            until(lambda: not left(), 5.0)
        return left()

    def _clear(self) -> dict[str, tuple[int, Counter[str]]]:
        for file in ((self.folder / "run").glob("*"), *([self.folder / name] for name in (*FILES, "diagnosis.txt"))):
            for each in file:
                each.unlink(missing_ok=True)
        return {name: (len(self._log(name)), self._spent(name)) for name in Trial.names}

    def _log(self, name: str) -> bytes:
        """Read a log that may be written to meanwhile: whole lines only."""
        path = self.folder / f"{name}-state" / "log.jsonl"
        read = path.read_bytes() if path.exists() else b""
        return read[: read.rfind(b"\n") + 1]

    def _spent(self, name: str) -> Counter[str]:
        path = self.folder / f"{name}-state" / "spent.json"
        return Counter(json.loads(path.read_text())["spent"].get("server", {})) if path.exists() else Counter()

    def _outcome(self, server: Child, before: dict[str, tuple[int, Counter[str]]]) -> Outcome:
        # Only what is new is parsed: a log of hundreds of kills takes longer than one of them.
        logs = {name: _events(self._log(name)[size:]) for name, (size, _) in before.items()}
        answers = {name: [line for line in log if line["event"] == "answered"] for name, log in logs.items()}
        told = {name: _sums(log) for name, log in logs.items()}
        spent = {name: self._spent(name) - counted for name, (_, counted) in before.items()}
        opened = {
            name: len({line["run"] for line in log if line["event"] == "run opened" and line["verb"] != "hello"})
            for name, log in logs.items()
        }
        code = server.poll()
        assert code is not None
        counted = Counter((name, line["run"], line["number"]) for name, lines in answers.items() for line in lines)
        twice = [each for each, times in counted.items() if times > 1]
        return Outcome(code, server.said(), self._results(), told, spent, opened, twice)

    def _results(self) -> dict[str, bytes]:
        found = {file: self.folder / file for file in (*FILES, "diagnosis.txt")}
        results = {name: path.read_bytes() for name, path in found.items() if path.exists()}
        if (self.folder / "run" / "run.json").exists():
            run = cn.Run.load(self.folder / "run")
            results["rows"] = run.coreset.rows.tobytes() + run.coreset.weights.tobytes()
            results["model"] = b"" if run.model is None else b"".join(run.model.files().values())
        return results


def _write_classes(folder: Path) -> None:
    """Write the bank's table again, with words for what customers spend."""
    with (folder / "bank.csv").open() as read, (folder / "bank-classes.csv").open("w") as written:
        next(read)
        written.write("customer,income,age,spends\n")
        for line in read:
            *others, spending = line.split(",")
            written.write(",".join([*others, "much" if float(spending) > MUCH else "little"]) + "\n")


def _events(log: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def _sums(log: list[dict[str, Any]]) -> Counter[str]:
    """Add up what was told: each reply once, also where the party died before it could log it.

    A party that was dead at the end of an earlier run finds that one again, and what it told in it: it counts there.
    """
    opened = {line["run"] for line in log if line["event"] == "run opened"}
    lines = [line for line in log if line["event"] in ("answered", "run rebuilt") and line["run"] in opened]
    replies = {(line["run"], line["number"]): line for line in lines}
    counted: Counter[str] = Counter()
    for line in replies.values():
        counted.update({name: line[name] for name in AMOUNTS if line[name]})
    return counted


def kills(points: dict[tuple[str, str], Counter[str]]) -> Iterator[Kill]:
    """List every point of every process in every job: the first, middle and last time that it comes by."""
    for (job, who), counts in points.items():
        for point, most in counts.items():
            for count in sorted({1, (most + 1) // 2, most}):
                yield Kill(job, who, point, count)


def sampled(found: list[Kill], number: int, seed: int) -> list[Kill]:
    """Choose some of them."""
    return random.Random(seed).sample(found, min(number, len(found)))  # noqa: S311  # whom to kill is no secret


def random_falls(chance: random.Random, seconds: float) -> list[Fall]:
    """Choose up to three moments in a job that takes so long undisturbed, and who dies in each: one process, or two."""
    names = ("server", *Trial.names)
    return [
        Fall(
            chance.uniform(0.0, seconds), tuple(chance.sample(names, chance.choice((1, 1, 2)))), chance.uniform(0, 0.3)
        )
        for _ in range(chance.randint(1, 3))
    ]
