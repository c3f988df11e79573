"""A second look at a pilot's rows that is finer, oftener, or of other rows than the sheet says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.branches import Branch
from colonnade.job_sheets import FINE_STEP, PILOT_STEP, finer_dithers, pilot_dithers, sheet_of
from colonnade.messages import Reveals, sendable_rows
from colonnade.planning.pilot import pilot_requests, play_pilot
from colonnade.protocol.caps import Branches
from colonnade.protocol.sheet import JobAccepted, TakeBranch
from colonnade.sampling.seeds import Seeds
from colonnade.sampling.selecting import Ready, UseSharedDraw
from colonnade.solvers.finer_rows import AskFinerRows, FinerRows
from colonnade.solvers.whitened_columns import AskWhitenedColumns, WhitenedColumns
from colonnade.tasks.jobs import shared_seed
from hostile_trial import HostileServer, hostile_server, made_parties, turned_away

TARGET, TASK, PILOT = "party1", cn.Regression(), 30
CAPS = Branches(("compact",), 20, 40)


def opened(server: HostileServer, verb: str = "planned") -> None:
    """Open a job with a pilot, and play that."""
    branches = {"branches": CAPS} if verb == "planned" else {}
    server.open(sheet_of(verb, {"task": TASK, "pilot": PILOT, "seed": 0, **branches}, server.roster, None))
    server.play(play_pilot(TASK, server.roster, None, PILOT, None, 0))


def look(
    server: HostileServer,
    *places: int,
    step: float = PILOT_STEP,
    finer_step: float = FINE_STEP,
    seed: int | None = None,
    finer_seed: int | None = None,
) -> FinerRows:
    """Ask for what the sheet says, but for what is given."""
    shared = shared_seed(0)
    first = pilot_dithers(server.roster, shared)[0] if seed is None else seed
    again = finer_dithers(server.roster, shared)[0] if finer_seed is None else finer_seed
    request = AskFinerRows(step, first, finer_step, again, sendable_rows(places or (0, 1, 2)))
    return server.told(TARGET, request, FinerRows)


def by_a_finer_step(server: HostileServer) -> None:
    """Exact values, in place of some bits."""
    opened(server)
    look(server, finer_step=1e-6)


def by_another_step(server: HostileServer) -> None:
    """What rounding by a coarse step took off is most of a value."""
    opened(server)
    look(server, step=16.0)


def by_another_dither(server: HostileServer) -> None:
    """The same rows rounded by dithers of the server's choice."""
    opened(server)
    look(server, finer_seed=5)


def by_another_first_dither(server: HostileServer) -> None:
    """What rows are beyond values that they were never rounded to."""
    opened(server)
    look(server, seed=5)


def thrice(server: HostileServer) -> None:
    """Each time the same row stands in another place, with another dither."""
    opened(server)
    for places in ((0, 9), (9,), (3, 9)):
        look(server, *places)


def at_a_row_many_times(server: HostileServer) -> None:
    """One row in many places of a request: its value to a small part of the step."""
    opened(server)
    look(server, *[3] * 1000)


def at_rows_out_of_range(server: HostileServer) -> None:
    """Rows that the pilot does not have, though the table may."""
    opened(server)
    look(server, 3, 60)


def at_rows_before_the_first(server: HostileServer) -> None:
    """Places as Python counts them from the end."""
    opened(server)
    look(server, -1)


def before_the_pilot(server: HostileServer) -> None:
    """Look at rows that were agreed on, and not told yet."""
    server.open(sheet_of("plan", {"task": TASK, "pilot": PILOT, "seed": 0}, server.roster, None))
    server.play_until(play_pilot(TASK, server.roster, None, PILOT, None, 0), AskWhitenedColumns)
    look(server)


def at_rows_of_another_draw(server: HostileServer) -> None:
    """Look at those of the run that follows the pilot."""
    opened(server)
    server.told(TARGET, TakeBranch(Branch("evenly", 40, 0.5).encoded()), JobAccepted)
    server.told(TARGET, UseSharedDraw(40, Seeds.of(np.random.default_rng([0, 0]), 3).shared, distinct=True), Ready)
    look(server)


def in_a_fit(server: HostileServer) -> None:
    """Rows that were fetched with a coarse step, as a policy may like it: their values once more."""
    solver = cn.CompactCentral(PILOT_STEP)
    server.new_run("fit", task=TASK, sampler=cn.UniformSampling(40), solver=solver, seed=0)
    server.told(TARGET, UseSharedDraw(40, Seeds.of(np.random.default_rng([0, 0]), 3).shared, distinct=True), Ready)
    look(server)


def after_a_plan(server: HostileServer) -> None:
    """Take a look for the columns that a plan has asked for already."""
    opened(server, "plan")
    look(server)
    server.told(TARGET, pilot_requests(TASK, server.roster, 0)[TARGET], WhitenedColumns)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_a_finer_step, "the job sheet says 0.00390625 where this AskFinerRows has finer_step = 1e-06"),
        (by_another_step, "the job sheet says 0.25 where this AskFinerRows has step = 16.0"),
        (by_another_dither, "where this AskFinerRows has finer_seed = 5"),
        (by_another_first_dither, "where this AskFinerRows has seed = 5"),
        (thrice, "TakeBranch would be next in this job, not AskFinerRows"),
        (at_a_row_many_times, "a row twice"),
        (at_rows_out_of_range, "row ids that do not ascend within 0"),
        (at_rows_before_the_first, "row ids that do not ascend within 0"),
        (before_the_pilot, "AskWhitenedColumns would be next in this job, not AskFinerRows"),
        (at_rows_of_another_draw, "AskWhitenedColumns would be next in this job, not AskFinerRows"),
        (in_a_fit, "AskWhitenedColumns would be next in this job, not AskFinerRows"),
        (after_a_plan, "AskFinerRows would be next in this job, not AskWhitenedColumns"),
    ],
)
def test_a_finer_look_is_that_of_the_sheet(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        looked = [reply for _, reply in server.received if isinstance(reply, FinerRows)]
        assert len(looked) <= 2
        assert all(reply.size <= 3 for reply in looked)


def test_a_finer_look_is_counted_as_rows(tmp_path: Path) -> None:
    """An owner who shows 95 rows a day shows a pilot of 30, scores and columns, and these rows again once."""
    with hostile_server(tmp_path, made_parties(), {"rows_a_day": 95}) as server:
        opened(server)
        rows = next(reply.size for _, reply in server.received if isinstance(reply, WhitenedColumns))
        look(server, *range(rows))
        refused = turned_away(lambda: look(server, *range(rows)), "95 rows")
        assert refused.party == TARGET


@pytest.mark.parametrize("kept", ["features", "moments"])
def test_a_policy_that_keeps_rows_opens_no_pilot(tmp_path: Path, kept: str) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": [kept]}) as server:
        turned_away(lambda: opened(server, "plan"), f"never reveals {kept}")
        assert Reveals.FEATURES not in server.disclosed()
