"""Plans within what parties' policies allow: in one process, between machines, and with parties that offer nonsense."""

from pathlib import Path
from typing import Any

import pytest

import colonnade as cn
from colonnade.ledger import Entry
from colonnade.planning.terms import Terms
from colonnade.protocol.caps import PLANNED, Branches
from colonnade.transports.loopback import Loopback
from network_trial import federation_in_threads
from random_parties import make_parties


def parties(**policies: cn.Policy) -> list[cn.Party]:
    """Make three parties with policies of their own."""
    made = make_parties(3000)
    for party in made:
        party.policy = policies.get(party.name, party.policy)
    return made


def allows(**rules: Any) -> cn.Policy:
    return cn.Policy(level="open", **rules)


TASKS = [cn.Regression(), cn.KMeans(n_clusters=3)]


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")  # as some pilots of so little money raise
@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"never": ["scores"]}, "the policy of 'party1' allows no draws by scores"),
        ({"phases": ["sampling", "solving"]}, "the policy of 'party1' allows no draws by scores"),
        ({"solvers": ["compact"]}, "the policy of 'party1' lets rows be sent by CompactCentral only"),
        ({"rows_a_request": 400}, "the policy of 'party1' allows 400 rows at most"),
        ({"parameters_a_row": 0.01}, "the policy of 'party1' asks for "),
    ],
    ids=str,
)
def test_plans_and_planned_fits_are_such_as_every_party_allows(task: Any, rules: dict[str, Any], why: str) -> None:
    federation = cn.Federation(parties(party1=allows(**rules)))
    budget = 300_000 if "solvers" in rules else 11_000
    plan = federation.plan(task, budget_bytes=budget)
    run: Any = federation.fit(task, plan=plan, seed=1)
    at_once: Any = federation.fit(task, budget_bytes=budget, seed=1)
    for each in (run, at_once):
        assert each.ledger.bytes <= budget
        assert why in each.why
        assert getattr(each.sampler, "size", 3000) <= rules.get("rows_a_request", 3000)
        if "solvers" in rules:
            assert isinstance(each.solver, cn.CompactCentral)
        if "never" in rules or "phases" in rules:
            assert not isinstance(each.sampler, cn.ImportanceSampling)
            assert "scores" not in {what for entry in each.ledger for what in entry.reveals}
    assert plan.why == run.why


def test_what_policies_leave_is_what_all_of_them_leave() -> None:
    rules = {
        "party1": allows(never=["scores"]),
        "party2": allows(solvers=["compact"]),
        "party3": allows(rows_a_request=400),
    }
    federation = cn.Federation(parties(**rules), transport=Loopback)
    run = federation.fit(cn.Regression(), budget_bytes=30_000)
    assert isinstance(run.sampler, cn.UniformSampling)
    assert isinstance(run.solver, cn.CompactCentral)
    assert run.sampler.size <= 400
    for party in rules:
        assert f"the policy of {party!r}" in str(run.why)
    refused = [entry.sender for entry in run.ledger if entry.kind == "Refused"]
    assert [refused.count(party) for party in rules] == [1, 2, 3], "all refuse until they were heard, one after another"


def test_nothing_more_is_sent_where_nobody_objects() -> None:
    federation = cn.Federation(parties())
    plan = federation.plan(cn.Regression(), budget_bytes=11_000)
    assert not [entry for entry in plan.pilot if entry.kind == "Refused"]
    assert "policy" not in plan.why


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(
    "rules", [{"never": ["features"]}, {"never": ["moments"]}, {"solvers": ["gram"]}, {"least_parties": 4}], ids=str
)
def test_where_no_plan_is_possible_nothing_but_the_sheet_is_sent(task: Any, rules: dict[str, Any]) -> None:
    federation = cn.Federation(parties(party2=allows(**rules)))
    for plans in (federation.plan, federation.fit):
        position = len(federation.ledger)
        with pytest.raises(
            cn.PolicyRefusedError, match=r"No plan is possible. Party 'party2' .* its owner's policy"
        ) as no:
            plans(task, budget_bytes=20_000)
        secure = "SecureGram" if task == TASKS[0] else "SecureLloyd"
        assert f"name a sampler and a solver that the policy allows: {secure}() shows only sums" in str(no.value)
        assert no.value.party == "party2"
        assert {entry.phase for entry in federation.ledger.since(position)} == {"opening"}
        assert {entry.kind for entry in federation.ledger.since(position)} == {"OpenJob", "JobAccepted", "Refused"}


def test_what_it_names_instead_works() -> None:
    strict = cn.Policy(level="strict")
    federation = cn.Federation(parties(party1=strict, party2=strict, party3=strict))
    with pytest.raises(cn.PolicyRefusedError, match="SecureGram"):
        federation.plan(cn.Regression(), budget_bytes=20_000)
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(500), solver=cn.SecureGram())
    assert run.model.coef_.shape == (6,)


def test_a_pilot_that_a_policy_has_too_few_rows_for() -> None:
    federation = cn.Federation(parties(party1=allows(rows_a_request=100)))
    with pytest.raises(cn.InputError, match=r"The policy of 'party1' answers for 100 rows at most, .* have 150"):
        federation.plan(cn.Regression(), budget_bytes=9_000)
    federation = cn.Federation(parties(party1=allows(rows_a_request=200)))
    with pytest.raises(cn.InputError, match=r"200 rows at most, and the pilot would have 300. Pass pilot=200"):
        federation.plan(cn.Regression(), budget_bytes=30_000, pilot=300)
    assert federation.plan(cn.Regression(), budget_bytes=30_000).pilot_rows <= 200


@pytest.mark.filterwarnings("ignore::colonnade.DisclosureWarning")
def test_between_machines_it_is_the_same(tmp_path: Path) -> None:
    made = parties(party1=allows(never=["scores"], solvers=["compact"]), party3=allows(rows_a_request=900))
    here = cn.Federation(made)
    plan, run = here.plan(cn.Regression(), budget_bytes=12_000), here.fit(cn.Regression(), budget_bytes=12_000)
    with federation_in_threads(tmp_path, made) as far:
        planned = far.plan(cn.Regression(), budget_bytes=12_000)
        fitted: Any = far.fit(cn.Regression(), budget_bytes=12_000)
        carried_out: Any = far.fit(cn.Regression(), plan=planned)
    assert (planned.chosen, planned.why) == (plan.chosen, plan.why)
    assert (fitted.model.coef_ == run.model.coef_).all()
    assert fitted.why == run.why
    assert carried_out.ledger.bytes <= 12_000


def refusal(party: str, instead: object) -> cn.PolicyRefusedError:
    return cn.PolicyRefusedError("No.", party=party, instead=instead)


def said_no(party: str) -> list[Entry]:
    return [Entry("opening", 1, party, "server", "Refused", 0, 50, (), ())]


NONSENSE = [
    None,
    "scores",
    Branches((), 1, 3000),
    Branches(("pickle", "central"), 1, 3000),
    Branches(PLANNED, 3001, 3001),
    Branches(PLANNED, 1, 0),
    Branches(PLANNED, -5, -1),
    Branches(PLANNED, 2**70, 2**71),
]


@pytest.mark.parametrize("instead", NONSENSE, ids=str)
def test_an_offer_that_leaves_nothing_is_a_refusal(instead: object) -> None:
    terms = Terms(cn.Regression(), Branches(PLANNED, 28, 3000))
    with pytest.raises(cn.PolicyRefusedError, match="No plan is possible"):
        terms.narrowed(refusal("party1", instead), said_no("party1"))


def test_offers_only_narrow_and_come_to_an_end() -> None:
    """Two parties that take turns could else send a server round and round, with a row less each time."""
    terms, tries = Terms(cn.Regression(), Branches(PLANNED, 28, 3000)), 0
    with pytest.raises(cn.PolicyRefusedError):  # noqa: PT012  # the last of them
        for tries in range(100):
            party = f"party{tries % 2}"
            offer = Branches((*PLANNED, "saga"), 1, 2999 - tries, evenly=tries == 0)
            terms = terms.narrowed(refusal(party, offer), said_no(party))
            assert terms.choice == Branches(PLANNED, 28, 2999 - tries, evenly=True)
    assert tries <= 4


def test_a_refusal_after_something_was_told_is_the_owners() -> None:
    terms = Terms(cn.Regression(), Branches(PLANNED, 28, 3000))
    entries = [*said_no("party1"), Entry("summing", 2, "party1", "server", "Refused", 0, 50, (), ())]
    with pytest.raises(cn.PolicyRefusedError, match=r"^No\.$"):
        terms.narrowed(refusal("party1", Branches(PLANNED, 28, 500)), entries)
