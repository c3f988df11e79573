"""Sheets that an honest server would not send, and runs that leave theirs."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.branches import Branch
from colonnade.contracts import Sampler
from colonnade.job_sheets import sheet_of
from colonnade.messages import Reveals
from colonnade.planning.pilot import play_pilot
from colonnade.protocol.caps import Branches
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, JobSheet, OpenJob, TakeBranch
from colonnade.sampling.plain.messages import AskScores, AskTotal, DrawnRows, DrawRows, Draws, OpenDraw, Scores, Total
from colonnade.sampling.seeds import Seeds
from colonnade.sampling.selecting import Ready, UseAllRows, UseSharedDraw
from colonnade.signing import SignedRows
from colonnade.solvers.central import AskColumns, Columns
from colonnade.tasks.jobs import draw, learn
from hostile_trial import HostileServer, hostile_server, made_parties, turned_away

TARGET = "party1"
TASK, GRAM, CENTRAL = cn.Regression(), cn.SecureGram(), cn.Central()
JOB = {"task": TASK, "sampler": cn.AllRows(), "solver": CENTRAL, "seed": 0}


def sheet(server: HostileServer, **changes: object) -> JobSheet:
    """Give an honest sheet, with changes."""
    return msgspec.structs.replace(sheet_of("fit", JOB, server.roster, None), **changes)


def unsigned(server: HostileServer) -> None:
    """No signature."""
    server.begin()
    server.told(TARGET, OpenJob(msgspec.msgpack.encode(sheet(server)), bytes(64)), JobAccepted)


def signed_by_a_party(server: HostileServer) -> None:
    """A party that joins forces, and would be the server."""
    server.open_each({TARGET: sheet(server)}, signed_by="party2")


def of_fewer_parties(server: HostileServer) -> None:
    """A sheet without the others, among whom sums would hide the target."""
    server.open_each({TARGET: sheet(server, parties=sheet(server).parties[:1])})


def of_other_columns(server: HostileServer) -> None:
    """A sheet on which the target has more columns than it has."""
    first, *others = sheet(server).parties
    server.open_each({TARGET: sheet(server, parties=(msgspec.structs.replace(first, features=9), *others))})


def of_more_rows(server: HostileServer) -> None:
    """A sheet of more rows than there are, to be allowed more parameters."""
    server.open_each({TARGET: sheet(server, rows=10_000)})


def of_columns_without_end(server: HostileServer) -> None:
    """A sheet on which another party has more columns than the target can write down."""
    first, second, third = sheet(server).parties
    server.open_each({TARGET: sheet(server, parties=(first, msgspec.structs.replace(second, features=10**15), third))})


def of_no_such_verb(server: HostileServer) -> None:
    """A verb that no server has."""
    server.open_each({TARGET: sheet(server, verb="dump")})


def of_an_unknown_option(server: HostileServer) -> None:
    """An option that no solver has."""
    server.open_each({TARGET: sheet(server, solver={"kind": "central", "all": True})})


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (unsigned, "a job sheet that the server its owner pinned did not sign"),
        (signed_by_a_party, "a job sheet that the server its owner pinned did not sign"),
        (of_fewer_parties, "a job sheet of party1, where its owner pinned party1, party2, party3"),
        (of_other_columns, "this party's columns or rows are not as they are"),
        (of_more_rows, "this party's columns or rows are not as they are"),
        (of_columns_without_end, "a job sheet of 1,000,000,000,000,006 columns"),
        (of_no_such_verb, "a job sheet says 'dump', which is none of"),
        (of_an_unknown_option, "a job sheet's solver cannot be read"),
    ],
)
def test_a_sheet_that_is_not_as_it_should_be_opens_nothing(
    tmp_path: Path, attack: Callable[[HostileServer], None], why: str
) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        # Nothing is open after it.
        closed = "OpenJob would be next|does not know this run|is no longer in this run"
        turned_away(lambda: server.told(TARGET, UseAllRows(), Ready), closed)
        assert server.disclosed() == set()


def by_a_second_sheet(server: HostileServer) -> None:
    """Agree on Gram matrices, and open the run again for columns."""
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=GRAM)
    server.told(TARGET, UseAllRows(), Ready)
    encoded = msgspec.msgpack.encode(sheet(server))
    server.told(TARGET, OpenJob(encoded, bytes(64)), JobAccepted)


def by_a_greeting(server: HostileServer) -> None:
    """Greet in the middle of a run, where a run could begin anew."""
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=GRAM)
    server.told(TARGET, Hello(WIRE_VERSION), JobAccepted)


def after_the_end(server: HostileServer) -> None:
    """Play a whole job, and ask for more."""
    script = learn(TASK, cn.AllRows(), GRAM, None, server.roster, 0)
    server.honestly(script, "fit", task=TASK, sampler=cn.AllRows(), solver=GRAM)
    server.told(TARGET, AskColumns(False), Columns)


def by_leaving_out(server: HostileServer) -> None:
    """Ask for columns before rows were agreed on."""
    server.new_run("fit", **JOB)
    server.told(TARGET, AskColumns(True), Columns)


def twice(server: HostileServer) -> None:
    """Ask for columns, and then for another draw in the same run."""
    server.new_run(task=TASK, sampler=cn.UniformSampling(20), solver=GRAM, seed=0)
    seed = Seeds.of(np.random.default_rng([0, 0]), 3).shared
    for _ in range(2):
        server.told(TARGET, UseSharedDraw(20, seed, distinct=True), Ready)


def planned(server: HostileServer, most: int = 40) -> None:
    """Open a planned fit, and play its pilot of 30 rows."""
    caps = Branches(("compact",), 20, most)
    server.open(sheet_of("planned", {"task": TASK, "pilot": 30, "branches": caps, "seed": 0}, server.roster, None))
    server.play(play_pilot(TASK, server.roster, None, 30, None, 0))


def by_a_larger_branch(server: HostileServer) -> None:
    """Go on with more rows than the sheet says."""
    planned(server)
    server.told(TARGET, TakeBranch(Branch("evenly", 41, 0.5).encoded()), JobAccepted)


def by_another_branch(server: HostileServer) -> None:
    """Go on with a solver that the sheet does not have."""
    planned(server)
    server.told(TARGET, TakeBranch(Branch("evenly", 40, None).encoded()), JobAccepted)


def by_two_branches(server: HostileServer) -> None:
    """Choose once more, after rows were drawn."""
    planned(server)
    for size in (30, 40):
        server.told(TARGET, TakeBranch(Branch("evenly", size, 0.5).encoded()), JobAccepted)


def by_totals_again(server: HostileServer) -> None:
    """Ask for what the pilot told."""
    taken(server)
    server.told(TARGET, AskTotal(TASK.score_rule()), Total)


def by_another_rule(server: HostileServer) -> None:
    """Draw by other scores than the pilot's."""
    server.told(TARGET, OpenDraw(TASK.score_rule(), 10, taken(server), Draws.DISTINCT), DrawnRows)


def by_more_draws(server: HostileServer) -> None:
    """Draw more rows than the branch has."""
    server.told(TARGET, OpenDraw(None, 41, taken(server), Draws.DISTINCT), DrawnRows)


def by_another_seed(server: HostileServer) -> None:
    """Draw from a seed of one's own."""
    server.told(TARGET, OpenDraw(None, 10, taken(server) + 1, Draws.DISTINCT), DrawnRows)


def taken(server: HostileServer) -> int:
    """Go on by scores; give the seed of the target's draw."""
    planned(server)
    server.told(TARGET, TakeBranch(Branch("scores", 40, 0.5).encoded()), JobAccepted)
    return Seeds.of(np.random.default_rng([0, 0]), 3).own[0]


def test_a_branch_by_scores_goes_by_those_of_the_pilot(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        drawn = server.told(TARGET, OpenDraw(None, 10, taken(server), Draws.DISTINCT), DrawnRows)
        assert len(drawn.rows) == 10


def by_a_branch_of_no_pilot(server: HostileServer) -> None:
    """Choose before there was a pilot."""
    caps = Branches(("central",), 20, 100)
    server.open(sheet_of("planned", {"task": TASK, "pilot": 30, "branches": caps, "seed": 0}, server.roster, None))
    server.told(TARGET, TakeBranch(Branch("all", None, None).encoded()), JobAccepted)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_a_larger_branch, "the job sheet says one of compact on 20 to 40 rows where this TakeBranch has"),
        (by_another_branch, "the job sheet says one of compact on 20 to 40 rows where this TakeBranch has"),
        (by_two_branches, "UseSharedDraw would be next in this job, not TakeBranch"),
        (by_a_branch_of_no_pilot, "AskTotal, OpenDraw would be next in this job, not TakeBranch"),
        (by_totals_again, "OpenDraw would be next in this job, not AskTotal"),
        (by_another_rule, "the job sheet says None where this OpenDraw has rule = LeverageScores"),
        (by_more_draws, "the job sheet says 0 to 40 where this OpenDraw has count = 41"),
        (by_another_seed, "the job sheet says what has the digest .* where this OpenDraw has seed"),
    ],
)
def test_a_branch_is_one_of_the_sheets(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        assert server.rows_disclosed() <= 3 * 30 * 2, "scores and rounded rows of the pilot"


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"solvers": ["gram"]}, "allows the solvers gram, not 'compact'"),
        ({"never": ["features"]}, "never reveals features"),
        ({"parameters_a_row": 0.1}, "parameters would be learned on 20 rows"),
        ({"phases": ["framing", "sampling"]}, "allows the phases framing, sampling, not 'solving'"),
    ],
)
def test_a_policy_judges_branches_by_their_caps(tmp_path: Path, policy: dict[str, object], why: str) -> None:
    with hostile_server(tmp_path, made_parties(), policy) as server:
        turned_away(lambda: by_a_branch_of_no_pilot(server), why)
        assert server.disclosed() == set()


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_a_second_sheet, "AskPairKey would be next in this job, not OpenJob"),
        (by_a_greeting, "UseAllRows would be next in this job, not Hello"),
        (after_the_end, "nothing more would be next in this job, not AskColumns"),
        (by_leaving_out, "UseAllRows would be next in this job, not AskColumns"),
        (twice, "AskPairKey would be next in this job, not UseSharedDraw"),
    ],
)
def test_a_run_keeps_to_its_sheet(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed(TARGET) <= {Reveals.MOMENTS}


def test_a_request_cannot_be_taken_back(tmp_path: Path) -> None:
    """The same number with other contents, as after a lost line: a repeat must be the same request."""
    with hostile_server(tmp_path, made_parties()) as server:
        server.new_run("coreset", task=TASK, sampler=cn.ImportanceSampling(40), seed=0)
        seed = Seeds.of(np.random.default_rng([0, 0]), 3).own[0]
        server.told(TARGET, AskTotal(TASK.score_rule()), Total)
        first = server.told(TARGET, DrawRows(10, seed, Draws.STRATIFIED), DrawnRows)
        again = server.ask_instead(TARGET, DrawRows(10, seed, Draws.STRATIFIED))
        assert isinstance(again, DrawnRows)
        np.testing.assert_array_equal(again.rows, first.rows)
        other = server.ask_instead(TARGET, DrawRows(20, seed, Draws.STRATIFIED))
        assert isinstance(other, Refused)
        assert "does not follow request 3, or differs from it" in other.reason


def test_what_was_signed_in_one_job_counts_in_no_other(tmp_path: Path) -> None:
    """Relay the rows that a party drew in an earlier run, of another seed."""
    with hostile_server(tmp_path, made_parties()) as server:
        draws = []
        for seed in (0, 1):
            server.new_run("coreset", task=TASK, sampler=cn.ImportanceSampling(30), seed=seed)
            seeds = Seeds.of(np.random.default_rng([seed, 0]), 3)
            server.told_by_all(AskTotal(TASK.score_rule()), Total)
            orders = {
                party: DrawRows(10, own, Draws.STRATIFIED)
                for party, own in zip(server.roster.names, seeds.own, strict=True)
            }
            draws.append(server.told_by_each(orders, DrawnRows))
        relayed = [SignedRows("party2", draws[0]["party2"].rows, draws[0]["party2"].signature)]
        relayed += [SignedRows("party3", draws[1]["party3"].rows, draws[1]["party3"].signature)]
        request = AskScores(30, tuple(relayed), 0.0, seeds.shared)
        why = "rows that 'party2' did not sign to have drawn in this job"
        turned_away(lambda: server.told(TARGET, request, Scores), why)
        assert Reveals.SCORES not in server.disclosed()


def test_a_sheet_that_is_sent_again_opens_the_same_job(tmp_path: Path) -> None:
    """Every draw and fold follows from it, and sums that are told again are the same."""
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "labels"]}) as server:
        sampler, models = cn.UniformSampling(60), []
        again = sheet_of("fit", {"task": TASK, "sampler": sampler, "solver": GRAM, "seed": 3}, server.roster, None)
        for _ in range(2):
            server.open(again)
            models.append(server.play(learn(TASK, sampler, GRAM, None, server.roster, 3)).model)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)


def test_a_coreset_is_as_large_as_its_sheet_says(tmp_path: Path) -> None:
    """A model of ten parameters on twenty rows, which are said to be a thousand: the policy asks for a hundred."""
    with hostile_server(tmp_path, made_parties(), {"level": "strict"}) as server:
        even = cn.UniformSampling(20)
        known = server.honestly(draw(TASK, even, None, server.roster, 0), "coreset", task=TASK, sampler=even).coreset
        honest = sheet_of("fit", {"task": TASK, "coreset": known, "solver": GRAM, "seed": 0}, server.roster, None)
        turned_away(
            lambda: server.open(honest), "allows 0.1 parameters a row; 10 parameters would be learned on 20 rows"
        )
        assert honest.coreset is not None
        server.open(msgspec.structs.replace(honest, coreset=(honest.coreset[0], 1000)))
        attack = lambda: server.play(learn(TASK, known, GRAM, None, server.roster, 0))  # noqa: E731
        turned_away(attack, "the job sheet says 1,000 rows with the digest")
        assert Reveals.MOMENTS not in server.disclosed()


def test_large_even_draws_are_remembered_in_few_bytes(tmp_path: Path) -> None:
    """Before, two bytes for each row drawn, for all time: 32 MB a run of 2^24 rows, which no budget counts."""
    with hostile_server(tmp_path, made_parties()) as server:
        samplers: tuple[Sampler, ...] = (cn.UniformSampling(1 << 20), cn.ImportanceSampling(1 << 16, 0.9999))
        for sampler in samplers:
            server.honestly(draw(TASK, sampler, None, server.roster, 0), "coreset", task=TASK, sampler=sampler)
        assert (tmp_path / f"{TARGET}-state" / "memory.notes").stat().st_size < 1000
