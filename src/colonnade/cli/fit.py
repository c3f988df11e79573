"""`colonnade fit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from colonnade.cli.console import JsonFlag, SeedOption, round_progress, show
from colonnade.cli.job import (
    FractionOption,
    JobFile,
    OutOption,
    SplitOption,
    SpotCheckOption,
    check_is_no_input,
    read_job,
    with_split,
)
from colonnade.cli.show import show_run
from colonnade.federation import Federation
from colonnade.job_inputs import check_spot_check, read_plan
from colonnade.ledger import Ledger
from colonnade.planning.outcome import compared
from colonnade.run import Run, check_destination
from colonnade.sampling import AllRows

ExcessFlag = Annotated[
    bool, typer.Option("--excess", help="Also learn from all rows, and say how much more the coreset's model costs.")
]
PlanOption = Annotated[
    Path | None,
    typer.Option("--plan", help="Draw and learn as this file of `colonnade plan --out` says."),
]
BudgetOption = Annotated[
    int | None, typer.Option("--budget", help="Plan and fit in one run that sends at most this many bytes.")
]
TargetOption = Annotated[
    float | None,
    typer.Option("--target", help="Plan and fit in one run, to lose this much on average, 0.02 for 2 %."),
]


def command(
    job_file: JobFile,
    plan: PlanOption = None,
    budget: BudgetOption = None,
    target: TargetOption = None,
    out: OutOption = None,
    test_fraction: FractionOption = None,
    split_by: SplitOption = None,
    excess: ExcessFlag = False,
    spot_check: SpotCheckOption = None,
    seed: SeedOption = None,
    json: JsonFlag = False,
) -> None:
    """Learn a model from the parties of a job file, and print it with everything that was sent.

    With rows held out, the model is evaluated on them. With a plan, what it predicted is printed beside what was sent.
    With --budget or --target, a pilot decides how to draw and learn, within the same run, in place of the job's own
    sampler and solver; `colonnade plan` shows what it would decide, first.

    Example: colonnade fit examples/bank/job.toml --test-fraction 0.2 --out run
    """
    job = with_split(read_job(job_file, seed), test_fraction, split_by)
    check_is_no_input(out, job, job_file)
    if out is not None:
        check_destination(out)  # before the work, not after it
    if sum(given is not None for given in (plan, budget, target)) > 1:
        raise typer.BadParameter("Give one of --plan, --budget and --target: each decides how to draw and to learn.")
    planned = None if plan is None else read_plan(plan, job.split)
    is_limited = budget is not None or target is not None
    check_spot_check(None if is_limited else job.sampler if planned is None else planned.sampler, spot_check)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        run: Run[Any]
        if is_limited:
            run = federation.fit(job.task, budget_bytes=budget, target_excess=target, split=job.split, seed=job.seed)
        elif planned is None:
            run = federation.fit(job.task, sampler=job.sampler, solver=job.solver, split=job.split, seed=job.seed)
        else:
            run = federation.fit(job.task, plan=planned, seed=job.seed)
        run = run if spot_check is None else federation.spot_check(run, rows=spot_check)
        sent_since = None
        if excess or run.split is not None:
            run, sent_since = _judged(federation, run, excess=excess)
    show_run(run, out, sent_since, json=json)
    if planned is not None and not json:
        show(f"\n{compared(planned, run, run.findings.excess)}")


def _judged(federation: Federation, run: Run[Any], *, excess: bool) -> tuple[Run[Any], Ledger]:
    """Evaluate the model, beside one of all rows where asked; tell what that sent."""
    run = run.with_findings(federation.evaluate(run.model, split=run.split))
    if not excess:
        return run, federation.sent
    sent = [*federation.sent]
    full: Run[Any] = federation.fit(run.task, sampler=AllRows(), split=run.split, seed=run.seed)
    run = run.with_findings(all_rows=federation.evaluate(full.model, split=run.split))
    return run, Ledger([*sent, *full.ledger, *federation.sent])
