"""A refused plan names what would do: what refusals of narrower sheets would have told, and no more however often."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.branches import Branch
from colonnade.catalogue import codec
from colonnade.job_sheets import sheet_of
from colonnade.planning.pilot import play_pilot
from colonnade.protocol.caps import PLANNED, Branches
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, TakeBranch
from colonnade.sampling.plain.messages import AskTotal, Total
from colonnade.solvers.whitened_columns import AskWhitenedColumns
from hostile_trial import N_ROWS, HostileServer, TurnedAwayError, hostile_server, made_parties, turned_away

TARGET, TASK, PILOT = "party1", cn.Regression(), 30
POLICIES: list[dict[str, object]] = [
    {"level": "open", "never": ["scores"]},
    {"level": "open", "solvers": ["compact"]},
    {"level": "open", "rows_a_request": 40},
    {"level": "open", "parameters_a_row": 0.2},
    {"level": "open", "rows_a_request": 25, "never": ["row ids"], "solvers": ["compact", "gram"]},
]
NO_PLAN: list[dict[str, object]] = [
    {"level": "strict"},
    {"level": "open", "never": ["features"]},
    {"level": "open", "tasks": ["kmeans"]},
    {"level": "open", "solvers": ["central"]},
    {"level": "open", "parameters_a_row": 0.2, "rows_a_request": 40},
]


def ask(server: HostileServer, verb: str = "plan", choice: Branches | None = None, pilot: int = PILOT) -> None:
    what = {"task": TASK, "pilot": pilot, "seed": 0, **({} if choice is None else {"branches": choice})}
    server.open(sheet_of(verb, what, server.roster, None))


def refusal(server: HostileServer, choice: Branches | None = None, verb: str = "plan") -> Refused:
    return turned_away(lambda: ask(server, verb, choice), "its owner's policy").refusal


def is_accepted(server: HostileServer, choice: Branches, verb: str = "plan") -> bool:
    try:
        ask(server, verb, choice, min(PILOT, choice.most))
    except TurnedAwayError as error:
        return error.refusal.cause != "policy"
    return True


def wider(choice: Branches) -> list[Branches]:
    """List what is wider in one way, and as narrow in all others."""
    replace = msgspec.structs.replace
    ways = [replace(choice, solvers=PLANNED), replace(choice, least=choice.least - 1), replace(choice, evenly=False)]
    ways.append(replace(choice, most=choice.most + 1))
    return [each for each in ways if each != choice and each.least >= 1 and each.most <= N_ROWS]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("verb", ["plan", "planned"])
def test_an_offer_is_what_refusals_would_have_told(tmp_path: Path, policy: Mapping[str, object], verb: str) -> None:
    with hostile_server(tmp_path, made_parties(), policies={TARGET: policy}) as server:
        offer = refusal(server, Branches(PLANNED, 1, N_ROWS), verb).instead
        assert offer is not None
        assert is_accepted(server, offer, verb)
        assert not any(is_accepted(server, each, verb) for each in wider(offer)), "it could have been wider"
        assert server.disclosed() == set()


@pytest.mark.parametrize("policy", NO_PLAN, ids=str)
def test_nothing_is_offered_where_every_plan_is_refused(tmp_path: Path, policy: Mapping[str, object]) -> None:
    with hostile_server(tmp_path, made_parties(), policies={TARGET: policy}) as server:
        assert refusal(server).instead is None
        for solvers in (PLANNED, *((each,) for each in PLANNED)):
            for evenly in (False, True):
                assert not is_accepted(server, Branches(solvers, 11, 11, evenly))
        assert server.disclosed() == set()


def test_no_job_but_a_plan_is_answered_with_an_offer(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), policies={TARGET: {"level": "strict"}}) as server:
        what = {"task": TASK, "sampler": cn.AllRows(), "solver": cn.Central(), "seed": 0}
        error = turned_away(lambda: server.new_run("fit", **what), "allows the solvers gram")
        assert error.refusal.instead is None


def test_offers_hang_on_the_policy_and_not_on_the_data(tmp_path: Path) -> None:
    told = set()
    for number, scale in enumerate((1.0, -1e6)):
        first, *others = made_parties()
        other = cn.Party(TARGET, scale * np.random.default_rng(number).normal(size=(N_ROWS, 3)))
        folder = tmp_path / str(number)
        folder.mkdir()
        parties = [first, *others] if number == 0 else [other, *others]
        with hostile_server(folder, parties, policies={TARGET: POLICIES[-1]}) as server:
            told.add(codec().encode(refusal(server)))
    assert len(told) == 1


def test_asking_again_and_again_tells_nothing_more_and_is_counted(tmp_path: Path) -> None:
    """Sheets that are refused open no run, and count as requests do."""
    policy = {"level": "usual", "never": ["scores"], "requests_a_minute": 12}
    with hostile_server(tmp_path, made_parties(), policies={TARGET: policy}) as server:
        state = {path.name for path in tmp_path.glob(f"{TARGET}-state/*")}
        told = {codec().encode(refusal(server)) for _ in range(5)}
        told |= {codec().encode(refusal(server, Branches(PLANNED, 1, N_ROWS))) for _ in range(3)}
        assert len(told) == 1
        reasons = [turned_away(lambda: ask(server), "policy").refusal.reason for _ in range(5)]
        assert "limits requests to 12 a minute" in reasons[-1]
        assert server.disclosed() == set()
        opened = [event["run"] for event in server.log_of(TARGET) if event["event"] == "run opened"]
        assert [run for run in opened if not run.startswith("hello")] == []
        left = {path.name for path in tmp_path.glob(f"{TARGET}-state/*")}
        assert not [name for name in left - state if "plan" in name], "no journal, nothing remembered"


def by_scores(server: HostileServer) -> None:
    """Ask for scores all the same."""
    ask(server, choice=Branches(PLANNED, 20, 40, evenly=True))
    rule = TASK.score_rule()
    server.told(TARGET, AskTotal(rule), Total)


def by_a_branch_of_scores(server: HostileServer) -> None:
    """Play an even pilot, and go on by scores."""
    ask(server, "planned", Branches(PLANNED, 20, 40, evenly=True))
    server.play(play_pilot(TASK, server.roster, None, PILOT, None, 0, evenly=True))
    server.told(TARGET, TakeBranch(Branch("scores", 30, None).encoded()), JobAccepted)


def by_the_run_of_a_plan(server: HostileServer) -> None:
    """Take a branch of a plan, whose run has a sheet of its own."""
    ask(server, choice=Branches(PLANNED, 20, 40, evenly=True))
    server.play(play_pilot(TASK, server.roster, None, PILOT, None, 0, evenly=True))
    server.told(TARGET, TakeBranch(Branch("evenly", 30, None).encoded()), JobAccepted)


def by_more_rows(server: HostileServer) -> None:
    """Draw a larger pilot than was offered."""
    ask(server, choice=Branches(PLANNED, 20, 40, evenly=True))
    larger = play_pilot(TASK, server.roster, None, PILOT + 1, None, 0, evenly=True)
    server.play_until(larger, AskWhitenedColumns)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_scores, "UseSharedDraw would be next in this job, not AskTotal"),
        (by_a_branch_of_scores, "the job sheet says one of central, compact on 20 to 40 rows where this TakeBranch"),
        (by_the_run_of_a_plan, "would be next in this job, not TakeBranch|nothing more"),
        (by_more_rows, "the job sheet says 30 where this UseSharedDraw has count = 31"),
    ],
)
def test_who_agreed_to_even_draws_is_asked_for_no_others(tmp_path: Path, attack: object, why: str) -> None:
    policy = {"level": "open", "never": ["scores"]}
    with hostile_server(tmp_path, made_parties(), policies={TARGET: policy}) as server:
        turned_away(lambda: attack(server), why)  # type: ignore[operator]
