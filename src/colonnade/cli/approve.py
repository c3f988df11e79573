"""`colonnade approve`."""

from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.cli.party import PartyToml
from colonnade.node.allowance import Allowance
from colonnade.node.approval_words import day_in_words, facts_in_words, told_in_words
from colonnade.node.approvals import Decision, PendingJob, decide_for_owner, decision_on, pending_jobs
from colonnade.node.files import PartyFile, read_party_file
from colonnade.node.state_folder import is_held
from colonnade.text_tables import WIDTH

# A list has the whole digest: a server can find two sheets of its own that begin alike.
SHORTEST_SHEET = 12
Waiting = tuple[PendingJob, Decision | None, dict[str, int]]


def command(
    party_file: PartyToml,
    run: Annotated[str | None, typer.Argument(help="The run to decide on.", metavar="RUN")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Let the party take part in this run.")] = False,
    no: Annotated[str | None, typer.Option("--no", help="Refuse it; all sides are told this reason.")] = None,
    sheet: Annotated[
        str | None,
        typer.Option(help="The digest of the job sheet that you read, or its beginning.", metavar="DIGEST_PREFIX"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List the jobs that wait for a party's owner, and what each would tell whom; or decide on one of them.

    Run it where the party runs, as the same user. A party asks where its party.toml says approve = "ask".

    Example: colonnade approve bank.toml fit-0a1b2c3d4e5f --yes
    """
    file = read_party_file(party_file)
    state = Path(file.state)
    if run is not None:
        if yes == (no is not None):
            raise typer.BadParameter('Give --yes, or --no "a reason".')
        seen = None if sheet is None else _whole(state, run, sheet)
        decision = decide_for_owner(state, run, is_approved=yes, reason=no or "", digest=seen)
        if json:
            show_json({"run": run, "decision": decision})
        else:
            show(f"Run {run}: {'yes' if decision.is_approved else 'no'}.")
            if not is_held(state):
                say("The party is not running; it answers when it is started.")
        return
    if yes or no is not None or sheet is not None:
        raise typer.BadParameter("Name the run to decide on.")
    waiting = [(job, decision_on(state, job), _left(file, job)) for job in pending_jobs(state)]
    if json:
        show_json([{"job": job, "decision": decision, "left_today": left} for job, decision, left in waiting])
    elif not waiting:
        show(f"No job waits for the owner of {file.name}.")
    for each in [] if json else waiting:
        show(_described(file.name, *each))


def _whole(state: Path, run: str, sheet: str) -> str:
    """Find the digest that waits for this run and begins so; else give what was given, which is that of no job."""
    if len(sheet) < SHORTEST_SHEET:
        raise typer.BadParameter(f"--sheet {sheet!r} is too short. Give {SHORTEST_SHEET} characters of it or more.")
    found = (job.digest for job in pending_jobs(state) if job.run == run and job.digest.startswith(sheet))
    return next(found, sheet)


def _left(file: PartyFile, job: PendingJob) -> dict[str, int]:
    """Say what is left of the day's amounts; the table has as many rows as the sheet says."""
    rows = job.words.n_rows
    return Allowance(Path(file.state) / "spent.json", job.server, file.policy.a_day(rows), None).left()


def _described(party: str, job: PendingJob, decision: Decision | None, left: dict[str, int]) -> str:
    hours = max((job.until - datetime.now(UTC)).total_seconds(), 0) / 3600
    state = f"waits; refused in {hours:.1f} hours" if decision is None else f"decided: {_word(decision)}"
    lines = [f"{job.run} ({state})", _item(f"job: {facts_in_words(job.words.job)}"), f"  {party} would tell:"]
    lines += [_item(f"- {told_in_words(told)}", 4) for told in job.words.tells] or ["    nothing of its data"]
    lines += [
        _item(f"today: {day_in_words(job.words.takes, left)}"),
        *(_item(f"for all time: {words}") for words in job.words.in_all),
    ]
    lines.append(f"  sheet: {job.digest}")
    decide = f'colonnade approve PARTY.toml {job.run} --yes, or --no "reason"'
    return "\n".join([*lines, "" if decision else f"  {decide}\n"])


def _item(text: str, indent: int = 2) -> str:
    return fill(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _word(decision: Decision) -> str:
    return f"{'yes' if decision.is_approved else 'no'} by {decision.by}{decision.reason and f', {decision.reason}'}"
