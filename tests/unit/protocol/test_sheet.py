"""Opening a run: a sheet that the server signed, that can be read, and has the party on it as it is; or a refusal."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.data.tables import read_table
from colonnade.errors import RemoteProtocolError
from colonnade.job_sheets import ROUTES, sheet_of
from colonnade.ledger import SERVER
from colonnade.privacy.identities import identities_here
from colonnade.protocol.hello import WIRE_VERSION, Card, Hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.protocol.sheet import MAX_SHEET_BYTES, JobAccepted, JobSheet, OpenJob, open_job
from colonnade.sampling.selecting import Ready, UseAllRows, UseSharedDraw
from colonnade.signing import DrawSeeds, digest, sheet_statement

N = 12
PEOPLE = identities_here(["airline", "weather"], np.random.default_rng(0).bytes)
ROSTER = Roster((PartyCard("airline", N, ("x", "z"), "y"), PartyCard("weather", N, ("t",), None)))
WHAT = {"task": cn.Regression(), "sampler": cn.UniformSampling(5), "split": None, "seed": 3}
SHEET = sheet_of("coreset", WHAT, ROSTER, None)


def opening(policy: Policy | None = None, **roles: Any) -> PartySession:
    rng = np.random.default_rng(0)
    table = read_table("airline", rng.normal(size=(N, 2)), label=rng.normal(size=N), **roles)
    return party_session(table, policy or Policy(level="open"), PEOPLE["airline"]).greeted(b"run")


def request_of(sheet: JobSheet | bytes, signer: str = SERVER) -> OpenJob:
    encoded = msgspec.msgpack.encode(sheet) if isinstance(sheet, JobSheet) else sheet
    return OpenJob(encoded, PEOPLE[signer].sign(sheet_statement(encoded)))


def changed(**fields: Any) -> JobSheet:
    return msgspec.structs.replace(SHEET, **fields)


def refused(session: PartySession, request: OpenJob) -> Refused:
    before = session.state
    reply = session.answer(request)
    assert isinstance(reply, Refused)
    assert session.state is before, "a refused job leaves the state as it was"
    return reply


def test_an_honest_sheet_is_accepted_by_its_digest() -> None:
    session, request = opening(), request_of(SHEET)
    reply = session.answer(request)
    assert isinstance(reply, JobAccepted)
    assert session.state.sheet == digest(request.sheet)
    assert reply.digest == digest(request.sheet, reply.fingerprint or b"")[:16]
    assert isinstance(session.answer(UseSharedDraw(5, SHEET.draws[0].shared, distinct=True)), Ready)


def test_nothing_else_opens_a_run() -> None:
    reply = opening().answer(UseAllRows())
    assert isinstance(reply, Refused)
    assert reply.reason.startswith(
        "Hello, AskKeyCard, OpenJob would be next in this job, not UseAllRows. A party answers only"
    )


def test_a_run_is_opened_once() -> None:
    session = opening()
    session.answer(request_of(SHEET))
    assert "UseSharedDraw would be next in this job, not OpenJob" in refused(session, request_of(SHEET)).reason
    session = opening()
    assert isinstance(session.answer(Hello(WIRE_VERSION)), Card)
    assert "nothing more would be next in this job, not OpenJob" in refused(session, request_of(SHEET)).reason


@pytest.mark.parametrize("signer", ["airline", "weather"])
def test_a_sheet_that_the_server_did_not_sign(signer: str) -> None:
    """Not even one of the parties can open a run, nor a server without its key."""
    honest = request_of(SHEET)
    for request in (
        request_of(SHEET, signer),
        OpenJob(honest.sheet, b""),
        OpenJob(honest.sheet, honest.signature[:-1]),
        OpenJob(request_of(changed(seed=4)).sheet, honest.signature),
    ):
        reply = refused(opening(), request)
        assert reply.cause == "input"
        assert "a job sheet that the server its owner pinned did not sign" in reply.reason


def listed(sheet: JobSheet) -> list[Any]:
    """List the fields of a sheet as they travel."""
    found: list[Any] = msgspec.to_builtins(sheet, builtin_types=(bytes,))
    return found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "cannot be read"),
        (b"not msgpack", "cannot be read"),
        (b"\xff" * 40, "cannot be read"),
        (b"\x90", "cannot be read: Expected `array` of at least length 3, got 0"),
        (b"\x80", "cannot be read: Expected `array`, got `object`"),
        (msgspec.msgpack.encode(SHEET)[:-1], "cannot be read"),
        (
            msgspec.msgpack.encode([*listed(SHEET), 1]),
            "Expected `array` of at most length 20, got 21",
        ),
        (msgspec.msgpack.encode(["fit", [], "12"]), r"Expected `int`, got `str` - at `$[2]`"),
        (msgspec.msgpack.encode([*listed(SHEET)[:-1], {"pairs": "abc"}]), "at `$[19][...]`"),
        (msgspec.msgpack.encode(SHEET) + b" " * MAX_SHEET_BYTES, "a job sheet of 6"),
        (b"\x91" * MAX_SHEET_BYTES, "cannot be read"),
        (b"\x95\xa3fit\x90\x01\xc0\x81\xa1a" + b"\x91" * 60_000, "cannot be read"),
    ],
    ids=[
        "empty",
        "no msgpack",
        "no text",
        "a list",
        "nothing",
        "cut",
        "unknown",
        "other type",
        "options",
        "too large",
        "nested",
        "nested options",
    ],
)
def test_a_sheet_that_cannot_be_read(text: bytes, reason: str) -> None:
    reply = refused(opening(), request_of(text))
    assert reply.cause == "request"
    assert reason in reply.reason


OURS, THEIRS = SHEET.parties


@pytest.mark.parametrize(
    "parties",
    [
        (msgspec.structs.replace(OURS, features=1), THEIRS),
        (msgspec.structs.replace(OURS, label=False), THEIRS),
        (msgspec.structs.replace(OURS, weights=True), THEIRS),
        (msgspec.structs.replace(OURS, split=True), THEIRS),
        (THEIRS,),
    ],
    ids=["fewer columns", "no label", "weights", "a split column", "left out"],
)
def test_a_sheet_with_other_columns_than_the_party_has(parties: Any) -> None:
    reply = refused(opening(), request_of(changed(parties=parties)))
    assert "on which this party's columns or rows are not as they are" in reply.reason


def test_a_sheet_of_other_rows() -> None:
    assert "columns or rows are not as they are" in refused(opening(), request_of(changed(rows=N - 1))).reason


@pytest.mark.parametrize(
    ("parties", "named"),
    [
        ((OURS,), "a job sheet of airline, where its owner pinned airline, weather"),
        ((OURS, THEIRS, msgspec.structs.replace(THEIRS, name="stranger")), "of airline, weather, stranger"),
        ((OURS, THEIRS, THEIRS), "of airline, weather, weather"),
        ((OURS, msgspec.structs.replace(THEIRS, name="stranger")), "of airline, stranger"),
    ],
    ids=["alone", "with a stranger", "twice", "with another"],
)
def test_a_sheet_of_other_parties_than_the_owner_pinned(parties: Any, named: str) -> None:
    assert named in refused(opening(), request_of(changed(parties=parties))).reason


def test_an_unknown_verb_is_named() -> None:
    reply = refused(opening(), request_of(changed(verb="read")))
    assert reply.cause == "input"
    assert "a job sheet says 'read', which is none of align, prepare, coreset, fit" in reply.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"task": None}, "a job sheet lacks `task`"),
        ({"solver": {"kind": "any", "size": "abc"}}, "a job sheet's solver cannot be read"),
        ({"sampler": None}, "a job sheet lacks `sampler`"),
        ({"task": {"kind": "divination"}}, "a job sheet's task cannot be read"),
        ({"sampler": {"kind": "uniform", "size": -1}}, "size must be"),
        ({"sampler": {"kind": "uniform", "size": 5, "more": 1}}, "a job sheet's sampler cannot be read"),
        ({"draws": (msgspec.structs.replace(SHEET.draws[0], own=()),)}, "has seeds for other parties than it names"),
        ({"verb": "fit", "solver": {"kind": "central", "x": 1}}, "a job sheet's solver cannot be read"),
        ({"verb": "predict", "model": (b"", b"", b"")}, "has parts of a model for other parties than it names"),
        ({"verb": "predict"}, "a job sheet lacks `model`"),
        ({"verb": "deliver", "model": (b"", b"")}, "a job sheet lacks `to`"),
        ({"verb": "plan"}, "a job sheet lacks `size`"),
        ({"model": ()}, "a job sheet has parts of a model for other parties than it names"),
        ({"seed": -1}, "a job sheet that cannot be read: Expected `int` >= 0 - at `$[8]`"),
        (
            {"draws": (DrawSeeds(-1, ()),)},
            "a job sheet that cannot be read: Expected `int` >= 0 - at `$[9][0][0]`",
        ),
    ],
    ids=str,
)
def test_a_sheet_that_no_honest_server_plays(fields: Any, reason: str) -> None:
    assert reason in refused(opening(), request_of(changed(**fields))).reason


numbers = st.integers(-5, 40) | st.sampled_from([2**31, 2**62, 2**63, -(2**63)])
seeds = st.integers(0, 40) | numbers
words = st.sampled_from(["", "airline", "weather", "stranger", "server", "cv", "abc"])
plain = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | words
KINDS = ["regression", "kmeans", "importance", "uniform", "all", "central", "compact", "gram", "saga", "lloyd"]
FIELDS = ["size", "n_clusters", "l2", "standardize", "uniform_share", "bits", "fraction", "party", "draws", "scores"]
structs = st.none() | st.builds(
    lambda fields, kind: {**fields, "kind": kind},
    st.dictionaries(st.sampled_from(FIELDS), plain, max_size=3),
    st.sampled_from(KINDS),
)
digests = st.just((b"", bytes(32))) | st.lists(st.sampled_from([b"", bytes(32), b"x" * 100]), max_size=3).map(tuple)
sheets = st.builds(
    changed,
    verb=st.sampled_from(sorted(ROUTES)),
    task=st.sampled_from([SHEET.task, {"kind": "kmeans", "n_clusters": 2}]) | structs,
    sampler=st.sampled_from([SHEET.sampler, {"kind": "all"}]) | structs,
    solver=st.sampled_from([{"kind": "central"}, {"kind": "gram"}, {"kind": "saga"}, {"kind": "lloyd"}]) | structs,
    split=st.none() | structs,
    seed=seeds,
    draws=st.lists(st.builds(DrawSeeds, shared=seeds, own=digests), max_size=2).map(tuple),
    coreset=st.none() | st.tuples(st.binary(max_size=3), numbers),
    model=st.none() | digests,
    chosen=st.none() | st.tuples(st.binary(max_size=3), numbers),
    size=st.none() | numbers,
    to=st.none() | words,
    bits=st.none() | numbers,
    run_by=st.none() | words,
    options=st.dictionaries(
        st.sampled_from(["directions", "secure", "pairs", "centers"]), st.booleans() | numbers, max_size=3
    ),
)


@settings(max_examples=500)
@given(sheets)
def test_whatever_a_hostile_server_signs_it_gets_an_answer_and_never_a_crash(sheet: JobSheet) -> None:
    """Under a policy that looks at nothing, and one that looks at everything a sheet can say."""
    strict = Policy(
        level="open", tasks=["regression", "kmeans"], least_parties=1, parameters_a_row=0.5, known_only=True
    )
    for policy in (Policy(), strict):
        assert isinstance(opening(policy).answer(request_of(sheet)), Refused | JobAccepted)


# At the server


@pytest.mark.parametrize("changes", [{"digest": bytes(16)}, {"fingerprint": bytes(15) + b"1"}, {"fingerprint": b""}])
def test_the_same_sheet_goes_to_all_and_all_must_have_read_it(changes: dict[str, bytes]) -> None:
    script = open_job(SHEET, PEOPLE[SERVER])
    outbox = next(script)
    assert list(outbox) == ["airline", "weather"]
    first, second = outbox.values()
    assert first is second
    assert isinstance(first, OpenJob)
    accepted = JobAccepted(digest(first.sheet, bytes(16))[:16], bytes(16))
    with pytest.raises(RemoteProtocolError, match="'weather' sent a JobAccepted with the digest of another") as caught:
        script.send({"airline": accepted, "weather": msgspec.structs.replace(accepted, **changes)})
    assert caught.value.party == "weather"


def test_a_fingerprint_has_its_length() -> None:
    script = open_job(SHEET, PEOPLE[SERVER])
    first = next(script)["airline"]
    assert isinstance(first, OpenJob)
    long = JobAccepted(digest(first.sheet, bytes(17))[:16], bytes(17))
    with pytest.raises(RemoteProtocolError, match="'airline' sent a JobAccepted with a fingerprint of 17 bytes"):
        script.send({"airline": long, "weather": long})


def test_a_sheet_says_how_many_columns_there_are_and_not_their_names() -> None:
    text = request_of(SHEET).sheet
    read = msgspec.msgpack.decode(text, type=JobSheet)
    assert read == SHEET
    assert [card.n_features for card in read.roster().cards] == [2, 1]
    assert (read.roster().label_party, read.place("weather")) == ("airline", 1)
    for name in ("x", "z", "y", "t"):
        assert msgspec.msgpack.encode(name) not in text


def test_on_how_many_rows_is_learned() -> None:
    assert SHEET.size_of_coreset() == 5
    assert changed(sampler={"kind": "all"}).size_of_coreset() == N
    assert changed(coreset=(b"", 7)).size_of_coreset() == 7
