"""How an owner's policy judges a sheet, before anything is answered."""

from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.evaluation.telling import model_digest
from colonnade.job_sheets import route_of, sheet_of
from colonnade.privacy.identities import identities_here
from colonnade.protocol.judging import objection_to_job
from colonnade.protocol.memory import CoresetNote, ModelNote
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import PartyData
from colonnade.protocol.sheet import JobSheet
from colonnade.signing import rows_digest
from colonnade.solvers import HANDLERS

N = 50
NAMES = ("airline", "weather", "registry")
PEOPLE = identities_here(NAMES, np.random.default_rng(0).bytes)
ROSTER = Roster(
    (
        PartyCard("airline", N, ("x", "z"), "y"),
        PartyCard("weather", N, ("t",), None),
        PartyCard("registry", N, ("a", "b"), None),
    )
)
FIT = {"task": cn.Regression(l2=0.1), "sampler": cn.ImportanceSampling(40), "solver": cn.Central(), "seed": 0}
MODEL = cn.LinearModel(np.arange(5.0), 1.0, ROSTER.feature_names)
SOLVERS = {handler.request: handler.solver for handler in HANDLERS}
CORESET = cn.Coreset(np.arange(9), np.ones(9), N, float(N))


def data(party: str, **policy: Any) -> PartyData:
    card = next(card for card in ROSTER.cards if card.name == party)
    rng = np.random.default_rng(0)
    label = None if card.label_name is None else rng.normal(size=N)
    table = read_table(party, rng.normal(size=(N, card.n_features)), label=label)
    return PartyData(table, PEOPLE[party], Policy(**{"level": "open", **policy}))


def objection(verb: str, what: Any, party: str = "airline", **policy: Any) -> str | None:
    sheet = sheet_of(verb, what, ROSTER, None)
    return judged(sheet, data(party, **policy))


def test_without_a_word_of_the_owner_every_job_is_done() -> None:
    assert objection("fit", FIT) is None


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"tasks": ["kmeans"]}, "allows the tasks kmeans, not 'regression'"),
        ({"tasks": []}, "allows the tasks none, not 'regression'"),
        ({"solvers": ["gram", "lloyd"]}, "allows the solvers gram, lloyd, not 'central'"),
        ({"phases": ["framing", "sampling", "summing"]}, "framing, sampling, summing, not 'solving'"),
        ({"phases": []}, "allows the phases none, not 'sampling'"),
        ({"never": ["scores"]}, "never reveals scores, which a Scores would"),
        ({"never": ["totals"]}, "never reveals totals, which a Total would"),
        ({"never": ["row ids"]}, "never reveals row ids, which a DrawnRows would"),
        ({"never": ["features"]}, "never reveals features, which a Columns would"),
        ({"least_parties": 4}, "asks for 4 parties at least; this job has 3"),
        ({"parameters_a_row": 0.1}, "allows 0.1 parameters a row; 5 parameters would be learned on 40 rows"),
    ],
    ids=str,
)
def test_what_an_owner_has_against_a_job(policy: Any, why: str) -> None:
    assert why in (objection("fit", FIT, **policy) or "")


@pytest.mark.parametrize(
    "policy",
    [
        {"tasks": ["regression"]},
        {"solvers": ["central"]},
        {"phases": ["sampling", "summing", "solving"]},
        {"never": ["moments", "predictions", "row weights"]},
        {"least_parties": 3},
        {"parameters_a_row": 5 / 40},
        {"known_only": True},
    ],
    ids=str,
)
def test_what_is_within_an_owners_policy(policy: Any) -> None:
    assert objection("fit", FIT, **policy) is None


def test_a_model_whose_task_nobody_names_is_none_that_was_allowed() -> None:
    """Whoever says nothing does not pass for what is allowed: it must be a model that the party helped to learn."""
    sheet = sheet_of("predict", {"model": MODEL, "seed": 0}, ROSTER, None)
    assert sheet.task is None
    party = data("airline", tasks=["regression"])
    assert "applies only models that it helped to learn" in (judged(sheet, party) or "")
    party.memory.keep([ModelNote(model_digest(MODEL.parts(ROSTER)["airline"]))])
    assert judged(sheet, party) is None
    assert judged(sheet, data("airline", solvers=["gram"])) is None, "nothing is learned"


def test_moments_that_come_with_rounded_rows_are_kept() -> None:
    """A reply may leave them out, as the server asks: the sheet is refused before a row is drawn all the same."""
    for verb, what in (("fit", {**FIT, "solver": cn.CompactCentral()}), ("plan", {**FIT, "pilot": 20})):
        assert "never reveals moments, which a WhitenedColumns" in (objection(verb, what, never=["moments"]) or "")


def test_labels_are_kept_by_whom_they_are_of() -> None:
    """Whoever learns from labels is refused them at the sheet, before a score is told; other parties have none."""
    for solver in (cn.Central(), cn.CompactCentral(), cn.Saga()):
        what = {**FIT, "solver": solver}
        assert "never reveals labels" in (objection("fit", what, never=["labels"]) or "")
        assert objection("fit", what, "weather", never=["labels"]) is None
    clusters = {**FIT, "task": cn.KMeans(n_clusters=3)}
    assert objection("fit", clusters, never=["labels"]) is None, "which looks at no label"
    secure = {**FIT, "solver": cn.SecureGram(), "sampler": cn.ImportanceSampling(40, scores="secure")}
    assert objection("fit", secure, never=["labels"]) is None
    assert objection("evaluate", {"model": MODEL, "seed": 0}, never=["labels"]) is None, "of k-means, for all it knows"


def test_solvers_are_those_of_all_that_is_asked() -> None:
    """A pilot fetches rows as CompactCentral does, whatever its verb."""
    pilot = {"task": cn.Regression(), "pilot": 40, "seed": 0}
    assert "allows the solvers gram, not 'compact'" in (objection("plan", pilot, solvers=["gram"]) or "")
    assert objection("plan", pilot, solvers=["compact"]) is None


def test_copies_of_rows_allow_no_more_parameters() -> None:
    many = {**FIT, "sampler": cn.UniformSampling(100 * N)}
    assert f"on {N} rows" in (objection("fit", many, parameters_a_row=4 / N) or "")


def test_parameters_of_clusters_are_counted_for_each_cluster() -> None:
    what = {**FIT, "task": cn.KMeans(n_clusters=3)}
    assert "15 parameters would be learned on 40 rows" in (objection("fit", what, parameters_a_row=0.2) or "")
    assert objection("fit", what, parameters_a_row=15 / 40) is None
    small = {**FIT, "source": CORESET}
    assert "on 9 rows" in (objection("fit", small, parameters_a_row=0.2) or ""), "of the coreset, not of all"


def judged(sheet: JobSheet, party: PartyData) -> str | None:
    return objection_to_job(SOLVERS.get, sheet, route_of(sheet, party.name), party)


def test_only_coresets_that_the_party_agreed_on_are_used_again() -> None:
    sheet, party = sheet_of("fit", {**FIT, "source": CORESET}, ROSTER, None), data("airline", known_only=True)
    known = rows_digest(CORESET.rows)
    assert f"only coresets again that it agreed on, not {known.hex()}" in (judged(sheet, party) or "")
    party.memory.keep([ModelNote(known)])
    assert judged(sheet, party) is not None, "a model is no coreset"
    party.memory.keep([CoresetNote(known, b"", b"")])
    assert judged(sheet, party) is None


@pytest.mark.parametrize("verb", ["predict", "evaluate", "deliver"])
def test_only_models_that_the_party_helped_to_learn_or_its_owner_accepted_are_applied(verb: str) -> None:
    to = {"to": "weather"} if verb == "deliver" else {}
    sheet = sheet_of(verb, {"model": MODEL, "seed": 0, **to}, ROSTER, None)
    part = model_digest(MODEL.parts(ROSTER)["airline"])
    party = data("airline", known_only=True)
    assert f"applies only models that it helped to learn, .* {part.hex()}".split(" .* ")[0] in (
        judged(sheet, party) or ""
    )
    assert part.hex() in (judged(sheet, party) or ""), "so that an owner can accept it"
    assert judged(sheet, data("airline", known_only=True, accepted=[part.hex()])) is None
    assert judged(sheet, data("airline", known_only=True, accepted=[bytes(32).hex()])) is not None
    party.memory.keep([ModelNote(part)])
    assert judged(sheet, party) is None
    other = msgspec.structs.replace(sheet, model=tuple(reversed(sheet.model or ())))
    assert judged(other, party) is not None, "its own part counts, not that of another"


def test_strict_trains_by_secure_sums_and_not_otherwise() -> None:
    """The level that tells nothing of single rows still lets a model be learned."""
    strict = Policy(level="strict")
    what = {"task": cn.Regression(l2=0.1), "sampler": cn.UniformSampling(50), "solver": cn.SecureGram(), "seed": 0}
    for sampler in (cn.ImportanceSampling(50, scores="secure"), cn.UniformSampling(50)):
        sheet = sheet_of("fit", {**what, "sampler": sampler}, ROSTER, None)
        for name in NAMES:
            party = PartyData(data(name).table, PEOPLE[name], strict)
            assert judged(sheet, party) is None
    for change in ({"solver": cn.Central()}, {"sampler": cn.ImportanceSampling(50)}):
        sheet = sheet_of("fit", {**what, **change}, ROSTER, None)
        assert judged(sheet, PartyData(data("airline").table, PEOPLE["airline"], strict)) is not None
