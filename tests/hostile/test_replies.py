"""Hostile replies: one reply of one party is changed in every way that comes to mind, in every kind of job.

Each attack ends in an error of ours that names a party (of a lie under a mask, all that it can be of), or leaves the
result as it was, or changes it as that party's own false data could have: `FALSE_DATA` lists the fields whose owner is
free to say what it likes, within limits that the server checks.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import HANDLERS
from colonnade.contracts import Inbox, Outbox, Script
from colonnade.messages import Message
from colonnade.node.certificates import new_certificates
from colonnade.protocol.session import PartySession
from colonnade.solvers import central
from colonnade.transports.inprocess import InProcess
from harness import parties_of
from hostile.replies_changes import CODEC, changed_reply
from hostile.replies_jobs import Job, all_jobs, told
from network_trial import federation_in_threads

# What these jobs warn of is not what is tested here. Arithmetic that overflows is, and its warnings are errors.
pytestmark = pytest.mark.filterwarnings(
    "ignore::colonnade.ConvergenceWarning",
    "ignore::colonnade.AssumptionWarning",
    "ignore::colonnade.DisclosureWarning",
)
PARTIES = ("bank", "shop", "post")
JOBS = {job.name: job for job in all_jobs()}
# Of a hundred attacks on each of the others so many are on these, which take ten times as long or more.
SELDOM = {"plan Regression": 10, "plan KMeans": 10, "fit, ckks": 20}
# Encryption adds noise, other noise each time.
ROUNDED = {"fit, ckks": 1e-3}
# A reply with such a field stands for a table; the server checks that there is one, as far as it sees.
FALSE_DATA: Mapping[str, tuple[str, ...]] = {
    # What the table has, which rows count, and in which units: the owner's to say.
    "Card": ("feature_names", "label_name", "key_digest", "has_weights", "has_split"),
    "Split": ("held_out",),
    "RowWeights": ("weights",),
    "Moments": ("shift", "scale"),
    # Another rank, or other scores of rows that nobody drew; and scores of rows, within their bounds and the total.
    "Total": ("total",),
    "Scores": ("scores",),
    "ScoreCodes": ("codes",),
    # Rows drawn otherwise than by the scores: what committed draws and spot checks are for.
    "DrawnRows": ("rows",),
    # Values of columns, as they are or in another form.
    "Columns": ("features", "labels"),
    "WhitenedColumns": ("mean", "mixing", "label_mean", "codes"),
    "ScaledColumns": ("step", "levels", "codes"),
    "LocalClusters": ("centers", "nearest"),
    "WhitenedRows": ("features", "label"),
    # Saga: parts of a model that only the party has, and how far it is done with it.
    "SquaredNorms": ("norms",),
    "PartialProducts": ("products", "less_label"),
    "CodedProducts": ("products", "less_label"),
    "Progress": ("change", "size"),
    "Coefficients": ("coef", "offset"),
    # What its columns make of a model, or of rows; and how large their numbers are.
    "PartialPredictions": ("values", "label_spread"),
    "PartialDistances": ("values",),
    "RoundedParts": ("middles", "codes", "label_spread"),
    "AuditedPredictions": ("low", "step", "codes", "less_label", "mean", "variance"),
    "AuditedDistances": ("largest", "codes"),
    "PairDistances": ("values",),
    "RowDistances": ("values",),
    "MovedDistances": ("values",),
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
        self._inner = InProcess(sessions)
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
    """Play a job under an attack, and take its result apart."""
    federation = cn.Federation(job.parties(), transport=attack)
    given = job.prepare(federation)
    attack.armed = True
    return told(job.play(federation, given))


@cache
def honest(name: str) -> tuple[Any, dict[str, list[tuple[int, str]]]]:
    """Give a job's result, and where replies of each kind are, by number and party."""
    attack, places = Attack(), defaultdict(list)
    result = play(JOBS[name], attack)
    for number, inbox in enumerate(attack.heard):
        for party, reply in inbox.items():
            places[reply.kind].append((number, party))
    return result, dict(places)


def attacks(seed: int, count: int) -> Iterator[tuple[Job, str, Attack]]:
    """Choose jobs, and in them kinds, replies and changes, all alike."""
    rng = np.random.default_rng(seed)
    chances = np.array([SELDOM.get(name, 100) for name in JOBS], np.float64)
    for name in rng.choice(list(JOBS), size=count, p=chances / chances.sum()).tolist():
        places = honest(name)[1]
        kind = sorted(places)[int(rng.integers(len(places)))]
        number, party = places[kind][int(rng.integers(len(places[kind])))]
        yield JOBS[name], kind, Attack(number, party, int(rng.integers(2**62)))


def complaint(job: Job, kind: str, attack: Attack) -> str | None:
    """Say what is wrong with how an attack ended, if anything."""
    try:
        result = play(job, attack)
    except cn.ColonnadeError as error:
        if isinstance(error, cn.RemoteProtocolError) and error.party not in (None, attack.party):
            return f"{error.party} was named in its place: {error}"
        named = any(party in str(error) for party in PARTIES)
        return None if named or kind == "Card" else f"nobody was named: {error}"
    except Exception as error:  # any other is what we look for
        return f"{type(error).__name__}: {error}"
    if bad := list(_not_finite(result, infinite="diagnose" in job.name)):
        return f"numbers that are none: {bad[:3]}"
    if not _same(result, honest(job.name)[0], ROUNDED.get(job.name, 0.0)) and not attack.changed <= set(
        FALSE_DATA.get(kind, ())
    ):
        return "the result changed, and nobody noticed"
    return None


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

    def __init__(self, party: str, change: Any) -> None:
        self.party, self.change = party, change

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Replacing":
        self._inner = InProcess(sessions)
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        inbox = self._inner.exchange(outbox)
        return {party: self.change(reply) if party == self.party else reply for party, reply in inbox.items()}


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


def _all(value: Any, lie: float) -> Any:
    return np.full_like(value, lie) if isinstance(value, np.ndarray) else lie


def test_a_run_that_breaks_on_a_reply_is_over_and_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Script[None]:
        raise ZeroDivisionError

    job = JOBS["fit Regression, plain, central"]
    new_certificates(tmp_path / "certs", PARTIES)
    with federation_in_threads(tmp_path, job.parties()) as federation:
        with monkeypatch.context() as patch:
            patch.setattr(central, "_join", broken)
            with pytest.raises(cn.RemoteProtocolError, match="One of bank, shop, post sent numbers"):
                federation.fit(cn.Regression(), sampler=cn.AllRows())
        assert not list((tmp_path / "server-state").glob("*.journal")), "there is nothing to replay"
        assert np.isfinite(federation.fit(cn.Regression(), sampler=cn.AllRows()).model.coef_).all()
