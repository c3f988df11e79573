"""How far one job walks through the library: how many files, functions and switches from file to file it takes.

    python scripts/walk.py [--files JOB] [--json]

A job is played twice on made-up data: once to finish imports, then under `sys.setprofile`, from the call that does the
work to its return; tables, federation and desk are made before. Only files below src/colonnade count, and only what the
calling thread does there.

files         files of which some code ran
functions     pieces of code that ran, each once: functions, methods, lambdas and, on Python 3.11, comprehensions
switches      entries (calls, and generators that resume) into another file than that of the entry before
with returns  calls and returns after which another file is running than before: the same walk with its ways back
without rows  switches without what brings rows to the work on them, block by block
unguarded     of these, without what the guard does: sheets, routes, signatures, what a party remembers and is told
"""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import colonnade as cn
from colonnade.cli.main import main as command
from colonnade.contracts import Script
from colonnade.messages import Message
from colonnade.protocol.session import PartySession

LIBRARY = f"{Path(cn.__file__).parent}/"
JOB_FILE = Path(__file__).parents[1] / "examples" / "bank" / "job.toml"
COUNTS = ["files", "functions", "switches", "with returns", "without rows", "unguarded"]
# The guard's files: what runs in them, or is called from there, but for the script that `opened` plays.
GUARD = (
    *("job_sheets.py", "routes.py", "signing.py", "protocol/sheet.py", "protocol/judging.py", "protocol/sums.py"),
    *("protocol/weighing.py", "protocol/memory.py", "evaluation/telling.py", "sampling/seeds.py"),
    *("privacy/identities.py", "sampling/score_limits.py"),
)
# What brings rows to the work on them, block by block.
BRINGING = ("kernels/blocks.py", "kernels/per_row.py", "kernels/row_blocks.py", "data/engines.py", "data/tables.py")
TABLE = np.random.default_rng(0).normal(size=(200, 6))

Play = Callable[[], object]


class Walk:
    """What a profiler sees of one job."""

    def __init__(self, play: Play) -> None:
        self._entered: list[CodeType] = []
        self._unguarded: list[str] = []
        self._running: list[str] = []  # the file, after each call and return
        sys.setprofile(self._see)
        try:
            play()
        finally:
            sys.setprofile(None)
        files = [code.co_filename.removeprefix(LIBRARY) for code in self._entered]
        self.files = list(dict.fromkeys(files))
        without_rows = [file for file in files if file not in BRINGING]
        switches = _changes(files), _changes(self._running), _changes(without_rows), _changes(self._unguarded)
        counts = len(self.files), len(set(self._entered)), *switches
        self.counts = dict(zip(COUNTS, counts, strict=True))

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not _is_ours(frame):
            return
        if event == "call":
            self._entered.append(frame.f_code)
            if not _is_guarding(frame) and not frame.f_code.co_filename.endswith(BRINGING):
                self._unguarded.append(frame.f_code.co_filename)
        runs = frame if event == "call" else frame.f_back
        while runs is not None and not _is_ours(runs):  # NumPy and other packages in between are looked through
            runs = runs.f_back
        if runs is not None:
            self._running.append(runs.f_code.co_filename)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(LIBRARY)


def _is_guarding(frame: FrameType | None) -> bool:
    """Tell whether this is done by the guard, or for it."""
    while frame is not None:
        file = frame.f_code.co_filename.removeprefix(LIBRARY)
        if file in GUARD and frame.f_code.co_name != "opened":
            return True
        frame = frame.f_back
    return False


def _changes(files: list[str]) -> int:
    return sum(before != after for before, after in pairwise(files))


def fit() -> Play:
    """Regression by importance sampling of three parties in one process, solved at the server."""
    federation = cn.Federation(cn.split_columns(TABLE, TABLE.sum(axis=1), [2, 2, 2]))
    return lambda: federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=40), solver=cn.Central())


def secure() -> Play:
    """Regression in which nobody sees rows, or another party's scores."""
    federation = cn.Federation(cn.split_columns(TABLE, TABLE.sum(axis=1), [2, 2, 2]))
    sampler = cn.ImportanceSampling(size=40, scores="secure")
    return lambda: federation.fit(cn.Regression(), sampler=sampler, solver=cn.SecureGram())


def party() -> Play:
    """One party on a machine of its own answers the requests of a fit: bytes to bytes, journal and log too."""
    from colonnade.catalogue import codec, party_session
    from colonnade.contracts import PartyCard, Roster
    from colonnade.job_sheets import sheet_of
    from colonnade.ledger import SERVER
    from colonnade.node.allowance import Allowance, DayLimits
    from colonnade.node.desk import PartyDesk
    from colonnade.node.log import EventLog
    from colonnade.node.state_folder import StateFolder
    from colonnade.privacy.identities import identities_here
    from colonnade.protocol.sheet import opened
    from colonnade.tasks.jobs import learn
    from colonnade.transports.envelopes import Ask

    scratch = tempfile.TemporaryDirectory()
    folder, wire, people = StateFolder(Path(scratch.name)), codec(), identities_here(["bank"], os.urandom)
    table = cn.Party("bank", TABLE[:, 1:], label=TABLE[:, 0]).table
    session = party_session(table, cn.Policy(level="open"), people["bank"])
    allowance, log = (
        Allowance(folder.path / "spent.json", SERVER, DayLimits(), None),
        EventLog(folder.path / "log.jsonl"),
    )
    desk = PartyDesk(session, wire, allowance=allowance, folder=folder, log=log)
    roster = Roster((PartyCard("bank", table.n_rows, table.feature_names, table.label_name),))
    task, sampler, solver = cn.Regression(), cn.ImportanceSampling(size=20), cn.Central()
    sheet = sheet_of("fit", {"task": task, "sampler": sampler, "solver": solver}, roster, None)
    script = opened(sheet, people[SERVER], learn(task, sampler, solver, None, roster, 0))
    requests = _requests(script, session.greeted(os.urandom(32)))
    asks = [Ask("fit-1", i + 1, wire.encode(request)) for i, request in enumerate(requests)]

    def answer() -> None:
        for ask in asks:
            desk.answer(ask)
            desk.after_sending()
        if (folder.path / "log.jsonl").read_text().count('"answered"') != len(asks):
            raise SystemExit("The desk refused a request of the walk. Correct the requests in scripts/walk.py.")
        scratch.cleanup()

    return answer


def _requests(script: Script[Any], session: PartySession) -> list[Message]:
    """List what a script asks its only party."""
    requests: list[Message] = []
    outbox = next(script)
    with contextlib.suppress(StopIteration):
        while True:
            requests += outbox.values()
            outbox = script.send({name: session.answer(request) for name, request in outbox.items()})
    return requests


def job_file() -> Play:
    """`colonnade fit examples/bank/job.toml`, from the command's door on."""

    def run() -> None:
        sys.argv = ["colonnade", "fit", str(JOB_FILE)]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                command()
        except SystemExit as ended:
            if ended.code:
                raise SystemExit(said.getvalue()) from ended

    return run


JOBS = {"fit": fit, "secure": secure, "party": party, "command": job_file}


def main() -> None:
    """Walk through the jobs and print what was seen."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--files", metavar="JOB", choices=JOBS, help="list a job's files, in order of first entry")
    options.add_argument("--json", action="store_true", help="print the counts and the files, as JSON")
    chosen = options.parse_args()
    walks = {}
    for name in [chosen.files] if chosen.files else JOBS:
        JOBS[name]()()
        walks[name] = Walk(JOBS[name]())
    if chosen.json:
        lines = [json.dumps({name: {**walk.counts, "list": walk.files} for name, walk in walks.items()}, indent=2)]
    elif chosen.files:
        lines = walks[chosen.files].files
    else:
        rows = [["job", *COUNTS], *([name, *map(str, walk.counts.values())] for name, walk in walks.items())]
        lines = ["".join(f"{cell:>14}" for cell in row) for row in rows]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
