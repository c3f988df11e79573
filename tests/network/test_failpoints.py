"""A process is killed at any write, sync, rename or sending: the result is the same, and nothing is told twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from failpoint_trial import JOBS, SIDES, Fall, Kill, Sweep, kills

# What the sample kills at: between the end of a run and its result, in compaction, before an answer leaves.
SAMPLE = (
    Kill("spot check", "server", "before sync run.json", 1),
    Kill("fit, central", "server", "before rename .run.fresh", 1),
    Kill("fit, prepared", "shop", "before rename .prepared-NAME.json.fresh", 1),
    Kill("fit, prepared", "bank", "after write memory.notes", 1),
    Kill("fit, prepared", "server", "after rename status.json", 3),
    Kill("predict", "server", "before rename .jobs.json.fresh", 1),
    Kill("coreset, committed", "shop", "after rename spent.json", 2),
    Kill("fit, saga", "shop", "before rename a new journal", 2),
    Kill("coreset", "bank", "after write log.jsonl", 9),
    Kill("coreset, distinct", "shop", "after write log.jsonl", 7),
    Kill("coreset, distinct and secure", "bank", "after write log.jsonl", 11),
    Kill("planned fit, joined", "shop", "after write log.jsonl", 9),
    Kill("fit, classes without rows", "bank", "after write log.jsonl", 12),
    Kill("evaluate classes by a party", "server", "before rename .jobs.json.fresh", 1),
)


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    sweep = Sweep(tmp_path)
    yield sweep
    sweep.close()


def play(sweep: Sweep, kill: Kill) -> bool:
    outcome, was_killed = sweep.play_with(kill)
    assert sweep.check(kill.job, outcome, [kill.who]) == [], kill
    return was_killed


def test_a_sample_of_all_points(sweep: Sweep) -> None:
    for kill in SAMPLE:
        assert kill.point in sweep.points(kill.job, kill.who)
        assert play(sweep, kill), "it comes by"
    assert sweep.left_behind() == []


def test_two_fall_at_once(sweep: Sweep) -> None:
    for job, who in (("coreset", ("server", "bank")), ("fit, saga", ("bank", "shop"))):
        sweep.points(job, "server")
        outcome, fallen = sweep.play_with_falls(job, [Fall(0.1, who, 0.1), Fall(0.1, who[::-1], 0.0)])
        assert sweep.check(job, outcome, fallen) == []
        assert len(fallen) >= 2
    assert sweep.left_behind() == []


@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("who", SIDES)
@pytest.mark.parametrize("job", JOBS)
def test_every_point(sweep: Sweep, job: str, who: str) -> None:
    """Of one process, some 50 to 150 kills: one or two a second, where the machine does nothing else."""
    died = sum(play(sweep, kill) for kill in kills({(job, who): sweep.points(job, who)}))
    assert died > 16
    assert sweep.left_behind() == []
