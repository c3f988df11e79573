"""Hostile replies: one reply of one party is changed in every way that comes to mind, in every kind of job.

Each attack ends in an error of ours that names a party (of a lie under a mask, all that it can be of), or leaves the
result as it was, or changes it as that party's own false data could have: `FALSE_DATA` lists the fields whose owner is
free to say what it likes, and `replies_laws` works out from the others' tables whether any data of it could have led
there.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import HANDLERS, party_session
from colonnade.contracts import Inbox, Outbox, Script
from colonnade.messages import Message
from colonnade.node.certificates import new_certificates
from colonnade.protocol.session import PartySession
from colonnade.sampling.committed import server as committed
from colonnade.sampling.score_limits import ScoreLimits
from colonnade.sampling.selecting import Ready
from colonnade.solvers import central
from colonnade.transports.inprocess import InProcess
from harness import parties_of
from hostile.replies_changes import CODEC, changed_reply
from hostile.replies_jobs import Job, all_jobs, told
from hostile.replies_laws import broken_laws
from network_trial import events, federation_in_threads

# What these jobs warn of is not what is tested here. Arithmetic that overflows is, and its warnings are errors.
pytestmark = pytest.mark.filterwarnings(
    "ignore::colonnade.ConvergenceWarning",
    "ignore::colonnade.AssumptionWarning",
    "ignore::colonnade.DisclosureWarning",
)
PARTIES = ("bank", "shop", "post")
JOBS = {job.name: job for job in all_jobs()}
# Of a hundred attacks on each of the others so many are on these, which take ten times as long or more.
SELDOM = {"plan Regression": 10, "plan KMeans": 10, "plan classes": 10, "look again": 10}
# Encryption adds noise, other noise each time.
ROUNDED = {"fit, ckks": 1e-3}
# A reply with such a field stands for a table; the server checks that there is one, as far as it sees.
FALSE_DATA: Mapping[str, tuple[str, ...]] = {
    # What the table has, which rows count, and in which units: the owner's to say.
    "Card": ("feature_names", "label_name", "key_digest", "has_weights", "has_split", "prepares", "label_is_text"),
    "Split": ("held_out",),
    # What the classes are called; numbers, which labels are then held to, stay what they are.
    "Classes": ("names", "values"),
    # Which table it says that it has.
    "JobAccepted": ("digest", "fingerprint"),
    "RowWeights": ("weights",),
    "Moments": ("shift", "scale"),
    # What the columns are called that it makes.
    "PreparedColumns": ("feature_names", "levels"),
    # How many rows it has beside those with a key of their own, and other keys than its own.
    "KeyCard": ("n_rows",),
    "KeysInClear": ("lengths", "text"),
    "Pseudonyms": ("tokens",),
    "Points": ("points",),
    # Another rank, or other scores of rows that nobody drew; and scores of rows, within their bounds and the total.
    "Total": ("total",),
    "Scores": ("scores",),
    "ScoreCodes": ("codes",),
    # And by which factor they were drawn, within what chances add up to.
    "DistinctScores": ("scores", "factor"),
    "DistinctCodes": ("codes", "factor"),
    # Rows drawn otherwise than by the scores: what committed draws and spot checks are for.
    "DrawnRows": ("rows",),
    # Values of columns, as they are or in another form.
    "Columns": ("features", "labels"),
    "WhitenedColumns": ("mean", "mixing", "label_mean", "codes"),
    "ScaledColumns": ("step", "levels", "codes"),
    "FinerRows": ("codes",),
    "LocalClusters": ("centers", "nearest"),
    "WhitenedRows": ("features", "label"),
    # Saga: parts of a model that only the party has, and how far it is done with it.
    "SquaredNorms": ("norms",),
    "PartialProducts": ("products", "less_label"),
    "CodedProducts": ("products", "less_label"),
    "ClassNorms": ("norms", "labels"),
    "Progress": ("change", "size"),
    "Coefficients": ("coef", "offset"),
    # What its columns make of a model, or of rows; and how large their numbers are.
    "PartialPredictions": ("values", "label_spread"),
    "PartialDistances": ("values",),
    "RoundedParts": ("middles", "codes", "label_spread"),
    # Its labels, for sums that rows could have.
    "ClassLosses": ("sums", "confusion", "areas", "calibration"),
    "AuditedPredictions": ("low", "step", "codes", "less_label", "mean", "variance"),
    "AuditedLogits": ("low", "step", "codes", "mean", "variance", "classes", "share", "class_mean"),
    "AuditedDistances": ("largest", "codes"),
    "PairDistances": ("values",),
    "RowDistances": ("values",),
    "MovedDistances": ("values",),
    # What its columns, or its label, make of directions that only it and the server know.
    "StepPart": ("block",),
    "StepColumn": ("coef", "intercept", "loss", "total", "share", "blocks"),
    "LloydOpened": ("magnitude",),
    "Magnitude": ("exponent",),
}


class Attack:
    """A transport that plays honestly until it is armed, keeps what it hears, and changes one reply."""

    def __init__(self, number: int = -1, party: str = "", seed: int = 0) -> None:
        self.number, self.party, self.rng = number, party, np.random.default_rng(seed)
        self.heard: list[dict[str, Message]] = []
        self.armed = False
        self.what = "nothing"
        self.changed: set[str] = set()

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Attack":
        """Carry the rounds of one more run."""
        self.sessions, self._inner = sessions, InProcess(sessions)
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        """Carry a round."""
        inbox = dict(self._inner.exchange(outbox))
        if self.armed:
            self.heard.append(dict(inbox))
            if len(self.heard) == self.number + 1:
                inbox[self.party] = self._attacked(inbox)
        return inbox

    def _attacked(self, inbox: dict[str, Message]) -> Message:
        honest = inbox[self.party]
        others = [reply for party, reply in inbox.items() if party != self.party]
        before = [each[self.party] for each in self.heard[:-1] if type(each.get(self.party)) is type(honest)]
        what, sent = changed_reply(honest, [*others, *before[-2:]], self.rng)
        self.what = f"{honest.kind} of {self.party} in round {self.number + 1}, {what}"
        lie = CODEC.decode(sent, party=self.party)
        self.changed = {name for name in honest.__struct_fields__ if _differs(honest, lie, name)}
        return lie


def _differs(honest: Message, lie: Message, name: str) -> bool:
    ours, theirs = getattr(honest, name), getattr(lie, name, None)
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return ours.shape != theirs.shape or not np.array_equal(ours, theirs)
    return isinstance(ours, np.ndarray) or isinstance(theirs, np.ndarray) or ours != theirs


def play(job: Job, attack: Attack) -> Any:
    """Play a job under an attack."""
    federation = cn.Federation(job.parties(), transport=attack)
    given = job.prepare(federation)
    attack.armed = True
    return job.play(federation, given)


@cache
def honest(name: str) -> tuple[Any, dict[str, list[tuple[int, str]]]]:
    """Give a job's result, and where replies of each kind are, by number and party."""
    attack, places = Attack(), defaultdict(list)
    result = told(play(JOBS[name], attack))
    for number, inbox in enumerate(attack.heard):
        for party, reply in inbox.items():
            places[reply.kind].append((number, party))
    return result, dict(places)


@cache
def jobs_with() -> dict[str, list[str]]:
    """List the jobs in which replies of each kind are."""
    found = defaultdict(list)
    for name in JOBS:
        for kind in honest(name)[1]:
            found[kind].append(name)
    return {kind: found[kind] for kind in sorted(found)}


def attacks(seed: int, count: int) -> Iterator[tuple[Job, str, Attack]]:
    """Choose kinds, all alike, and jobs in which they are, replies and changes."""
    rng = np.random.default_rng(seed)
    for kind in rng.choice(list(jobs_with()), size=count).tolist():
        names = jobs_with()[kind]
        chances = np.array([SELDOM.get(name, 100) for name in names], np.float64)
        name = str(rng.choice(names, p=chances / chances.sum()))
        places = honest(name)[1][kind]
        number, party = places[int(rng.integers(len(places)))]
        yield JOBS[name], kind, Attack(number, party, int(rng.integers(2**62)))


def complaint(job: Job, kind: str, attack: Attack) -> str | None:
    """Say what is wrong with how an attack ended, if anything."""
    try:
        found = play(job, attack)
    except cn.ColonnadeError as error:
        if isinstance(error, cn.RemoteProtocolError) and error.party not in (None, attack.party):
            return f"{error.party} was named in its place: {error}"
        return None if attack.party in str(error) or kind == "Card" else f"it was not named: {error}"
    except Exception as error:  # any other is what we look for
        return f"{type(error).__name__}: {error}"
    result = told(found)
    if bad := list(_not_finite(result, infinite="diagnose" in job.name)):
        return f"numbers that are none: {bad[:3]}"
    if not _same(result, honest(job.name)[0], ROUNDED.get(job.name, 0.0)) and not attack.changed <= set(
        FALSE_DATA.get(kind, ())
    ):
        return "the result changed, and nobody noticed"
    return "; ".join(broken_laws(found, job, attack.party, attack.sessions)) or None


def _same(result: Any, other: Any, tolerance: float) -> bool:
    if isinstance(result, dict) and isinstance(other, dict):
        return result.keys() == other.keys() and all(_same(result[name], other[name], tolerance) for name in result)
    if isinstance(result, list) and isinstance(other, list):
        return len(result) == len(other) and all(map(_same, result, other, [tolerance] * len(result)))
    if isinstance(result, float) and isinstance(other, float):
        return math.isclose(result, other, rel_tol=tolerance)
    return bool(result == other)


def _not_finite(result: Any, *, infinite: bool) -> Iterator[float]:
    """Find NaN, and infinity where a result cannot be; in a diagnosis gamma may be 0, and what grows with 1/gamma."""
    if isinstance(result, dict | list):
        for each in result.values() if isinstance(result, dict) else result:
            yield from _not_finite(each, infinite=infinite)
    elif isinstance(result, float) and (math.isnan(result) or (math.isinf(result) and not infinite)):
        yield result


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 200), *(pytest.param(n, 500, marks=pytest.mark.slow(sampled=False)) for n in range(1, 21))]
)
def test_hostile_replies_end_in_a_named_error_or_change_no_more_than_false_data(seed: int, count: int) -> None:
    found = []
    for job, kind, attack in attacks(seed, count):
        if (what := complaint(job, kind, attack)) is not None:
            found.append(f"{job.name}, {attack.what}: {what}")
    assert not found, "\n".join(found)


def test_every_kind_of_reply_is_in_some_job() -> None:
    """With the list of what may change: its fields exist."""
    kinds = {handler.request.reply.__name__: handler.request.reply for handler in HANDLERS if handler.request.reply}
    seen = {kind for name in JOBS if "plan" not in name for kind in honest(name)[1]}
    assert seen == set(kinds)
    for kind, names in FALSE_DATA.items():
        assert set(names) <= set(kinds[kind].__struct_fields__), kind


class Replacing:
    """A transport that puts other replies in place of one party's."""

    def __init__(self, party: str, change: Any, inner: Any = InProcess) -> None:
        self.party, self.change, self.inner = party, change, inner

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Replacing":
        self._inner = self.inner(sessions)
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        inbox = self._inner.exchange(outbox)
        return {party: self.change(reply) if party == self.party else reply for party, reply in inbox.items()}


def test_a_seed_that_cannot_be_read_is_laid_to_who_encrypted_it() -> None:
    """The party that could not read it was named, and the server."""
    job = JOBS["fit Regression, plain, gram"]
    lies = Replacing("bank", lambda reply: _with(reply, "SealedSeeds", {"boxes": tuple(bytes(48) for _ in range(2))}))
    with pytest.raises(cn.ColonnadeError, match="an encrypted text of 'bank' that was changed on the way"):
        job.play(cn.Federation(job.parties(), transport=lies), None)


@pytest.mark.parametrize(
    ("name", "kind", "change", "match"),
    [
        ("fit KMeans, plain, lloyd", "LloydOpened", {"magnitude": 400}, "since rows of 'shop' are so far apart"),
        ("evaluate KMeans, by", "Magnitude", {"exponent": 60}, "a column of one of bank, post, shop is large"),
        ("evaluate Regression, by", "Magnitude", {"exponent": 60}, "a column of one of bank, shop, post is large"),
    ],
)
def test_magnitudes_that_leave_no_digits_are_laid_to_who_can_have_said_so(
    name: str, kind: str, change: dict[str, Any], match: str
) -> None:
    """Data can be so large, and then nothing is left of the others'. Nobody was named."""
    job = JOBS[name]
    federation = cn.Federation(job.parties())
    given = job.prepare(federation)
    parties_of(federation).transport = Replacing("shop", lambda reply: _with(reply, kind, change))
    with pytest.raises(cn.InputError, match=match):
        job.play(federation, given)


@pytest.mark.parametrize(
    ("kind", "change", "task", "match"),
    [
        ("Scores", {"scores": 1e9}, "Regression", "'shop' sent a Scores with a score of 1e.09 of row"),
        ("AuditedPredictions", {"variance": 1e-99}, "Regression", "'shop' sent a AuditedPredictions with a mean of"),
        ("AuditedDistances", {"largest": 1e99}, "KMeans", "'shop' sent a AuditedDistances with distances of its row"),
    ],
)
def test_lies_that_were_silent_or_crashes(kind: str, change: dict[str, Any], task: str, match: str) -> None:
    lies = Replacing("shop", lambda reply: _with(reply, kind, change))
    job = JOBS[f"certify {task}"]
    federation = cn.Federation(job.parties())
    attacked = JOBS["fit Regression, plain, central"] if kind == "Scores" else job
    given = attacked.prepare(federation)
    parties_of(federation).transport = lies
    with pytest.raises(cn.RemoteProtocolError, match=match) as caught:
        attacked.play(federation, given)
    assert caught.value.party == "shop"


@pytest.mark.parametrize(
    ("job", "kind", "change", "match"),
    [
        ("central", "Columns", {"labels": 0.5}, "'bank' sent a label that is none of the classes that it named"),
        ("central", "Classes", {"names": ("no", "yes")}, "'bank' sent a Classes with text for a label of numbers"),
        ("compact", "Classes", {"names": None}, "'bank' sent a Classes with text for a label of numbers, or numbers"),
    ],
)
def test_classes_that_the_label_does_not_have(job: str, kind: str, change: dict[str, Any], match: str) -> None:
    """The first named nobody; the others led to a model of classes that the party's table has not."""
    attacked = JOBS[f"fit Classification, {job}"]
    lies = Replacing("bank", lambda reply: _with(reply, kind, change))
    with pytest.raises(cn.RemoteProtocolError, match=match) as caught:
        attacked.play(cn.Federation(attacked.parties(), transport=lies), None)
    assert caught.value.party == "bank"


def test_the_variance_of_rows_that_nobody_drew_leads_to_a_result() -> None:
    """One of them can be so large. It was a ZeroDivisionError, at every start of the server."""
    job = JOBS["certify Regression"]
    federation = cn.Federation(job.parties())
    run = job.prepare(federation)
    lie = {"variance": 1e99}
    parties_of(federation).transport = Replacing("shop", lambda reply: _with(reply, "AuditedPredictions", lie))
    found = federation.certify(run, rows=80)
    assert np.isfinite([found.cost, *found.cost_interval, found.draws_p]).all()
    assert not found.trusted, "the party's own rows say otherwise"


def _with(reply: Any, kind: str, change: dict[str, Any]) -> Any:
    if reply.kind != kind:
        return reply
    return msgspec.structs.replace(reply, **{name: _all(getattr(reply, name), lie) for name, lie in change.items()})


def _all(value: Any, lie: Any) -> Any:
    return np.full_like(value, lie) if isinstance(value, np.ndarray) else lie


@pytest.mark.parametrize("lie", [0.0, 2.0**-13, 3.0, 7.0])  # whole steps, where scores are committed to
@pytest.mark.parametrize("sampler", ["plain", "independent", "committed"])
def test_lies_that_a_server_without_limits_lets_through_are_seen(
    sampler: str, lie: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the attacks above are judged by can fail: it does where the server no longer checks scores."""
    monkeypatch.setattr(ScoreLimits, "broken_by", lambda *_: None)
    monkeypatch.setattr(committed, "_check_copies", lambda *_: None)
    job, attack = JOBS[f"fit Regression, {sampler}, central"], Attack()
    federation = cn.Federation(job.parties(), transport=attack)
    parties_of(federation).transport = Replacing("shop", lambda reply: _with(reply, "Scores", {"scores": lie}), attack)
    found = job.play(federation, None)
    assert broken_laws(found, job, "shop", attack.sessions)


def test_a_run_that_breaks_on_a_reply_is_over_and_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Script[None]:
        raise ZeroDivisionError

    job = JOBS["fit Regression, plain, central"]
    new_certificates(tmp_path / "certs", PARTIES)
    with federation_in_threads(tmp_path, job.parties()) as federation:
        with monkeypatch.context() as patch:
            patch.setattr(central, "_check_columns", broken)
            with pytest.raises(cn.RemoteProtocolError, match="One of bank, shop, post sent numbers"):
                federation.fit(cn.Regression(), sampler=cn.AllRows())
        assert not list((tmp_path / "server-state").glob("*.journal")), "there is nothing to replay"
        assert np.isfinite(federation.fit(cn.Regression(), sampler=cn.AllRows()).model.coef_).all()


LIES_OVER_THE_NETWORK: Mapping[str, tuple[str, str, Any, str | None]] = {
    # The job, who is named, and which reply is changed how.
    "one number": (
        "certify KMeans",
        "AuditedDistances",
        lambda reply: _with(reply, reply.kind, {"largest": 1e99}),
        "shop",
    ),
    "a matrix": (
        "fit Regression, plain, central",
        "Columns",
        lambda reply: _with(reply, reply.kind, {"features": 1e101}),
        "shop",
    ),
    "another kind": ("fit Regression, plain, gram", "PairKey", lambda _: Ready(), "shop"),
    "under a mask": (
        "fit KMeans, plain, lloyd",
        "MaskedDistances",
        lambda reply: _with(reply, reply.kind, {"masked": b"\xff" * len(reply.masked)}),
        None,
    ),
}


@pytest.mark.parametrize("lie", LIES_OVER_THE_NETWORK)
def test_a_reply_that_ends_a_run_over_the_network_ends_it_for_all_sides_by_one_reason(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, kind, change, named = LIES_OVER_THE_NETWORK[lie]
    job = JOBS[name]
    lying: list[bool] = []

    def bent(table: Any, policy: Any, identity: Any, *memory: Any) -> PartySession:
        session = party_session(table, policy, identity, *memory)
        if identity.name == "shop":
            for request, handler in session._handlers.items():

                def answer(state: Any, asked: Any, data: Any, honest: Any = handler.answer) -> Any:
                    state, reply = honest(state, asked, data)
                    return state, change(reply) if lying and reply.kind == kind else reply

                session._handlers[request] = replace(handler, answer=answer)
        return session

    monkeypatch.setattr("network_trial.party_session", bent)
    with federation_in_threads(tmp_path, job.parties()) as federation:
        given = job.prepare(federation)
        federation.acknowledge()
        lying.append(True)
        with pytest.raises(cn.RemoteProtocolError) as caught:
            job.play(federation, given)
        assert caught.value.party == named
        assert "shop" in str(caught.value)
        assert not list((tmp_path / "server-state").glob("*.journal")), "there is nothing to replay"
        lying.clear()
        job.play(federation, given)
    for side in ("server", *PARTIES):
        log = events(tmp_path / f"{side}-state" / "log.jsonl")
        ended = [line["reason"] for line in log if line["event"] == "run ended" and line["status"] == "failed"]
        assert ended == [str(caught.value)[:1000]], side
        assert not [line for line in log if line["event"] == "run resumed"]
    assert not list(tmp_path.rglob("*.journal"))
