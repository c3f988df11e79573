"""`colonnade plan`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, SeedOption, round_progress, say, show, show_json
from colonnade.cli.job import FractionOption, JobFile, SplitOption, check_out, read_job, with_split

BudgetOption = Annotated[
    int | None, typer.Option("--budget", help="Send at most this many bytes, pilot included, for the least excess.")
]
TargetOption = Annotated[
    float | None,
    typer.Option("--target", help="Lose at most this on average, 0.02 for 2 % of the cost, for the fewest bytes."),
]
RoundsOption = Annotated[
    int | None, typer.Option("--max-rounds", help="Take at most this many rounds after the pilot's.")
]
PilotOption = Annotated[
    int | None, typer.Option("--pilot", help="Rows of the pilot; a few hundred if left out, fewer for a small budget.")
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="Save the plan to this JSON file.")]


def command(
    job_file: JobFile,
    budget: BudgetOption = None,
    target: TargetOption = None,
    max_rounds: RoundsOption = None,
    pilot: PilotOption = None,
    out: OutOption = None,
    test_fraction: FractionOption = None,
    split_by: SplitOption = None,
    seed: SeedOption = None,
    json: JsonFlag = False,
) -> None:
    """Choose how to run a job within a budget of bytes, or for a target, from a small pilot.

    Sends a few hundred rows, drawn by the parties' scores, in a few bits a value, and predicts from them the bytes,
    rounds and excess of every way to draw and send rows. The plan is the best within --budget, or the cheapest for
    --target; it replaces the job's own sampler and solver. Run it with `colonnade fit JOB.toml --plan plan.json`.

    Example: colonnade plan examples/bank/job.toml --budget 12000 --out plan.json
    """
    if (budget is None) == (target is None):
        raise typer.BadParameter("A plan needs one limit: give --budget 100000, in bytes, or --target 0.02.")
    job = with_split(read_job(job_file, seed), test_fraction, split_by)
    check_out(out, job, job_file)
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        plan = federation.plan(
            job.task,
            budget_bytes=budget,
            target_excess=target,
            max_rounds=max_rounds,
            pilot=pilot,
            split=job.split,
            seed=job.seed,
        )
    saved = None if out is None else plan.save(out)
    if json:
        show_json(plan)
        return
    show(str(plan))
    say(f"Saved to {saved}" if saved else "Not saved; --out FILE keeps the plan for `colonnade fit --plan FILE`.")
