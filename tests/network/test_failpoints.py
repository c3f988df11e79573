"""A process is killed at any write, sync, rename or sending: the result is the same, and nothing is told twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from failpoint_trial import JOBS, Sweep, kills, sampled

# What the sample kills at in any case: between the end of a run and its result, in compaction, before an answer leaves.
ALWAYS = (
    ("spot check", "server", "after write a journal"),
    ("fit, central", "server", "before rename .run.fresh"),
    ("predict", "server", "before rename .jobs.json.fresh"),
    ("coreset, committed", "shop", "after rename spent.json"),
    ("fit, saga", "shop", "before rename a new journal"),
)


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    sweep = Sweep(tmp_path)
    yield sweep
    sweep.close()


def play(sweep: Sweep, jobs: list[str], number: int | None) -> int:
    """Kill in these jobs at every point, or at so many a job, and give how often somebody died."""
    died = 0
    for job in jobs:
        found = list(kills({(job, who): sweep.points(job, who) for who in ("server", "shop")}))
        always = [each for each in found if (each.job, each.who, each.point) in ALWAYS]
        for kill in found if number is None else [*always, *sampled(found, number, seed=len(job))]:
            outcome, was_killed = sweep.play_with(kill)
            assert sweep.check(kill, outcome) == [], kill
            died += was_killed
    assert sweep.left_behind() == []
    return died


def test_a_sample_of_all_points(sweep: Sweep) -> None:
    jobs = sorted({job for job, _, _ in ALWAYS})
    assert play(sweep, jobs, number=1) >= len(jobs)


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("job", JOBS)
def test_every_point(sweep: Sweep, job: str) -> None:
    assert play(sweep, [job], number=None) > 50
