"""`colonnade coreset`."""

from colonnade.cli.console import JsonFlag, SeedOption, round_progress
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
from colonnade.job_inputs import check_spot_check
from colonnade.run import check_destination


def command(
    job_file: JobFile,
    out: OutOption = None,
    test_fraction: FractionOption = None,
    split_by: SplitOption = None,
    spot_check: SpotCheckOption = None,
    seed: SeedOption = None,
    json: JsonFlag = False,
) -> None:
    """Let the parties of a job file agree on a coreset, and stop before any model is learned.

    Example: colonnade coreset examples/bank/job.toml --out run
    """
    job = with_split(read_job(job_file, seed), test_fraction, split_by)
    check_spot_check(job.sampler, spot_check)
    check_is_no_input(out, job, job_file)
    if out is not None:
        check_destination(out)  # before the work, not after it
    with round_progress() as on_round:
        federation = job.federation(job_file.parent, on_round)
        run = federation.coreset(job.task, job.sampler, split=job.split, seed=job.seed)
        run = run if spot_check is None else federation.spot_check(run, rows=spot_check)
    show_run(run, out, json=json)
