"""Totals that are set, and committed draws between honest parties: what they give and cost, who could bend them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import PartyCard, Roster
from colonnade.kernels.per_row import numbers_in
from colonnade.messages import Message, sendable_rows
from colonnade.privacy.identities import PinnedIdentity, RehearsedIdentity, identities_here, signing_key
from colonnade.protocol.refusal import Refused
from colonnade.sampling.committed.messages import (
    AskCommitment,
    AskContribution,
    AskOpenings,
    Commitment,
    DrawCommitted,
    Openings,
    PartyCommitment,
)
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores, integer_rule
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from harness import sessions_of, watch
from secure_trial import Restarting, Wire

N, WIDTHS, SIZE = 300, (2, 3, 1), 40
NAMES = ("party1", "party2", "party3")
COMMITTED = cn.ImportanceSampling(SIZE, draws="committed")
SET = cn.ImportanceSampling(SIZE, totals="set")


def make_federation(transport: Any = Loopback, identities: Any = None, low_rank: bool = False) -> cn.Federation:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(N, sum(WIDTHS)))
    if low_rank:
        X[:, 3] = X[:, 2]
    parties = cn.split_columns(X, X @ rng.normal(size=sum(WIDTHS)) + rng.normal(size=N), WIDTHS)
    for party in parties if identities is not None else ():
        party.identity = identities[party.name]
    return cn.Federation(parties, transport=transport)


def rounds(run: cn.Run[Any]) -> int:
    return max(entry.round for entry in run.ledger)


# Totals that are set.


def test_setting_totals_saves_a_round_and_nobody_tells_one() -> None:
    federation = make_federation()
    checked, fixed = (federation.coreset(cn.Regression(), each, seed=1) for each in (cn.ImportanceSampling(SIZE), SET))
    assert (rounds(checked), rounds(fixed)) == (4, 3), "the first opens the job"
    assert "Total" not in {entry.kind for entry in fixed.ledger}
    assert not any("totals" in entry.reveals for entry in fixed.ledger)
    assert checked.ledger.units - fixed.ledger.units == 3, "the paper's count less T totals"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("task", "totals"), [(cn.Regression(), (3, 4, 4)), (cn.KMeans(4), (10, 10, 10))])
def test_scores_are_filled_up_to_the_total_exactly(task: Any, totals: tuple[int, ...], weighted: bool) -> None:
    federation = make_federation(low_rank=True)
    plain, filled = task.score_rule(), FilledScores(task.score_rule())
    weights = np.random.default_rng(1).uniform(0, 3, size=N).round() if weighted else None
    for session, total in zip(sessions_of(federation).values(), totals, strict=True):
        table = session._data.table
        if weights is not None:
            from colonnade.protocol.viewed_table import ViewedTable

            table = ViewedTable(table, numbers_in(weights), None, None)
        scores, missing = filled.scores(table), total - plain.scores(table).sum()
        assert scores.sum() == pytest.approx(total, rel=1e-14)
        assert missing > -1e-9
        share = np.full(N, 1 / N) if weights is None else weights / weights.sum()
        np.testing.assert_allclose(scores, np.asarray(plain.scores(table)) + missing * share, rtol=1e-9, atol=1e-15)


def test_a_party_of_low_rank_gets_the_share_of_its_columns() -> None:
    federation = make_federation(low_rank=True)
    run = federation.coreset(cn.Regression(), SET)
    assert run.coreset.total == 11
    assert federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE)).coreset.total == pytest.approx(10)


def test_set_totals_weigh_without_bias() -> None:
    """Mean of 300 weight sums within 4 standard errors of n; false alarm below 1e-4."""
    federation = make_federation(low_rank=True)
    sums = [federation.coreset(cn.Regression(), SET, seed=s).coreset.weights.sum() for s in range(300)]
    assert abs(np.mean(sums) - N) < 4 * np.std(sums) / np.sqrt(300)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"totals": "guessed"}, 'totals must be "checked" or "set"'),
        ({"draws": "sealed"}, "draws must be one of stratified, independent, distinct, committed"),
        ({"round_scores": True, "totals": "set"}, r'round_scores=True and totals="set" do not go together'),
        ({"round_scores": True, "draws": "committed"}, r'round_scores=True and draws="committed" do not go together'),
    ],
)
def test_options_that_make_no_sense(options: Any, match: str) -> None:
    with pytest.raises(cn.InputError, match=match):
        cn.ImportanceSampling(5, **options)


# Committed draws.


def test_the_same_seed_gives_the_same_rows_in_one_process_and_other_bytes() -> None:
    seen: list[list[bytes]] = [[], []]
    runs = []
    for bytes_seen in seen:
        wire = Wire(lambda _s, _r, data, b=bytes_seen: b.append(data) or data)  # type: ignore[misc]
        runs.append(make_federation(wire).coreset(cn.Regression(), COMMITTED, seed=5))
    np.testing.assert_array_equal(runs[0].coreset.rows, runs[1].coreset.rows)
    assert runs[0].coreset.weights.tobytes() == runs[1].coreset.weights.tobytes()
    assert runs[0].ledger == runs[1].ledger
    roots = [[each.root for each in run.coreset.evidence.parties.values()] for run in runs]  # type: ignore[union-attr]
    assert not set(roots[0]) & set(roots[1]), "salts come from entropy"
    other = make_federation().coreset(cn.Regression(), COMMITTED, seed=6)
    assert not np.array_equal(other.coreset.rows, runs[0].coreset.rows)


def test_between_owners_with_identities_the_seed_alone_decides_nothing() -> None:
    """Contributions come from each party's entropy: a server that knows its seed does not know the rows."""
    runs = [make_federation(identities=own_identities()).coreset(cn.Regression(), COMMITTED, seed=5) for _ in range(2)]
    assert not np.array_equal(runs[0].coreset.rows, runs[1].coreset.rows)
    for run in runs:
        run.spot_check()


def own_identities() -> dict[str, PinnedIdentity]:
    import os

    seeds = {name: os.urandom(32) for name in NAMES}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    return {name: PinnedIdentity(name, seeds[name], pins, os.urandom) for name in NAMES}


def test_secure_sums_change_no_committed_draw() -> None:
    plain, secure = (
        make_federation().coreset(cn.Regression(), cn.ImportanceSampling(SIZE, draws="committed", scores=s), seed=5)
        for s in ("plain", "secure")
    )
    np.testing.assert_array_equal(plain.coreset.rows, secure.coreset.rows)
    np.testing.assert_allclose(plain.coreset.weights, secure.coreset.weights, rtol=1e-6)
    assert not any("scores" in entry.reveals for entry in secure.ledger)


def test_rows_follow_the_committed_scores() -> None:
    """Mean counts of 400 runs within 5 standard errors of m g / G for every row; false alarm below 2e-4."""
    federation, runs = make_federation(InProcess), 400
    rule = cn.Regression().score_rule()
    scores = np.sum([session._data.scores(rule) for session in sessions_of(federation).values()], axis=0)
    counts = np.zeros((runs, N))
    for seed in range(runs):
        rows = federation.coreset(cn.Regression(), COMMITTED, seed=seed).coreset.rows
        np.add.at(counts[seed], rows, 1)
    expected = SIZE * scores / scores.sum()
    errors = np.maximum(counts.std(axis=0), np.sqrt(expected)) / np.sqrt(runs)
    assert (np.abs(counts.mean(axis=0) - expected) < 5 * errors).all()


def test_one_more_round_and_what_it_shows() -> None:
    run = make_federation().coreset(cn.Regression(), COMMITTED)
    kinds = list(dict.fromkeys(entry.kind for entry in run.ledger))
    assert kinds == [
        "OpenJob", "JobAccepted", "AskCommitment", "Commitment", "AskContribution", "Contribution", "DrawCommitted",
        "CommittedRows", "AskScores", "Scores",
    ]  # fmt: skip
    assert rounds(run) == 5
    assert run.ledger.units == SIZE + 2 * SIZE * 3 + 2 * 3, "the paper's m + 2mT + 2T"


def test_parties_with_tens_of_thousands_of_columns_are_told_why_not() -> None:
    card = PartyCard("wide", 10**6, tuple(map(str, range(2**14))), None)
    with pytest.raises(cn.UnsupportedError, match=r"does not fit in 64 bits.*Split its columns"):
        integer_rule(LeverageScores(fit_intercept=True), Roster((card,)))
    narrow = Roster((PartyCard("narrow", 10**6, tuple(map(str, range(90))), "y"),))
    assert integer_rule(LeverageScores(fit_intercept=True), narrow).exponent == 55


def test_a_party_without_an_identity_does_not_commit() -> None:
    identities = identities_here(NAMES, np.random.default_rng(0).bytes)
    federation = make_federation(identities={**identities, "party2": None})
    with pytest.raises(cn.InputError, match=r"'party2' did not answer OpenJob: it has no identity"):
        federation.coreset(cn.Regression(), COMMITTED)


# A server, or somebody on the line, that would bend the draw.


def asked_otherwise(kind: str, change: Callable[[Any], Message]) -> Wire:
    def meddle(_sender: str, receiver: str, data: bytes) -> bytes:
        request = codec().decode(data)
        return codec().encode(change(request)) if receiver == "party2" and request.kind == kind else data

    return Wire(meddle)


def other_contribution(index: int) -> Callable[[DrawCommitted], DrawCommitted]:
    def change(request: DrawCommitted) -> DrawCommitted:
        parties = (*request.parties[:index], b"?" * 32, *request.parties[index + 1 :])
        return msgspec.structs.replace(request, parties=parties)

    return change


OUT_OF_RANGE = "the job sheet says 0 to 40 where this DrawCommitted has"


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("DrawCommitted", other_contribution(0), "another contribution of 'party1'"),
        ("DrawCommitted", other_contribution(1), "another contribution of 'party2'"),
        ("DrawCommitted", lambda r: msgspec.structs.replace(r, server=bytes(32)), "another contribution of 'server'"),
        ("DrawCommitted", lambda r: msgspec.structs.replace(r, parties=r.parties[:2]), "2 contributions of 3 parties"),
        (
            "DrawCommitted",
            lambda r: msgspec.structs.replace(r, count=-1),
            OUT_OF_RANGE,
        ),
        (
            "DrawCommitted",
            lambda r: msgspec.structs.replace(r, n_even=-1),
            OUT_OF_RANGE,
        ),
        ("AskContribution", lambda r: AskContribution(r.parties[:2]), "2 commitments, where party1, party2, party3"),
    ],
)
def test_a_server_that_changes_the_seed_is_refused(kind: str, change: Any, match: str) -> None:
    with pytest.raises(cn.LocalProtocolError, match=match):
        make_federation(asked_otherwise(kind, change)).coreset(cn.Regression(), COMMITTED)


@pytest.mark.parametrize("exponent", [12, 62, 2**62, -(2**62)])
def test_steps_that_are_too_coarse_or_too_fine_are_refused(exponent: int) -> None:
    def other_step(request: AskCommitment) -> AskCommitment:
        return AskCommitment(msgspec.structs.replace(request.rule, exponent=exponent), request.contribution_digest)

    with pytest.raises(cn.LocalProtocolError, match=r"the job sheet says IntegerScores\(.* exponent=59\) where this"):
        make_federation(asked_otherwise("AskCommitment", other_step)).coreset(cn.Regression(), COMMITTED)
    rule = IntegerScores(LeverageScores(fit_intercept=True), exponent)
    with pytest.raises(cn.InputError, match=rf"steps of 2\^-{exponent} were asked for. Ask for 2\^-48 to"):
        rule.scores(sessions_of(make_federation())["party1"]._data.table)


def test_salts_and_identities_are_nowhere_to_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Derived secrets are looked for on the wire, in the run and in states; opened rows' salts do go out."""
    derived: list[bytes] = []
    honest = RehearsedIdentity.derived

    def recorded(self: RehearsedIdentity, context: bytes) -> bytes:
        derived.append(honest(self, context))
        return derived[-1]

    monkeypatch.setattr(RehearsedIdentity, "derived", recorded)
    texts: list[bytes] = []
    entropy = Recorded()
    federation = make_federation(
        Wire(lambda _s, _r, data: texts.append(data) or data),  # type: ignore[func-returns-value]
        identities_here(NAMES, entropy),
    )
    sessions = watch(federation)
    run = federation.coreset(cn.Regression(), COMMITTED)
    states = [repr((s.state, s, s._data.identity)).encode() for s in sessions.values()]
    run = federation.spot_check(run, rows=3)
    texts += [path.read_bytes() for path in run.save(tmp_path / "run").iterdir()]
    texts += [*states, *(repr((s.state, s, s._data.identity)).encode() for s in sessions.values())]
    secrets = [*entropy.drawn, *derived]
    assert len(secrets) == 4 + 3 + 3, "signing keys, the server's too; salts of the commitment and of the openings"
    for secret in secrets:
        for form in (secret, secret.hex().encode(), base64.b64encode(secret), repr(secret)[2:-1].encode()):
            assert not any(form in text for text in texts)


class Recorded:
    """Entropy that remembers what it gave."""

    def __init__(self) -> None:
        self._rng, self.drawn = np.random.default_rng(0), list[bytes]()

    def __call__(self, count: int) -> bytes:
        self.drawn.append(self._rng.bytes(count))
        return self.drawn[-1]


def test_a_server_that_shows_another_commitment_gets_no_contribution() -> None:
    fake = asked_otherwise("AskContribution", lambda _: AskContribution((PartyCommitment(b"", b"", b""),) * 3))
    with pytest.raises(cn.LocalProtocolError, match="another commitment of this party than it made in this run"):
        make_federation(fake).coreset(cn.Regression(), COMMITTED)


@pytest.mark.parametrize("scores", ["plain", "secure"])
@pytest.mark.parametrize("kind", ["AskCommitment", "AskContribution", "DrawCommitted", "AskScores", "AskMaskedScores"])
def test_a_party_that_restarts_keeps_the_draw_honest(kind: str, scores: Any) -> None:
    """Its contribution is the same: nothing is begun again, so nobody can make it seem that something was lost."""
    restarting = Restarting(kind)
    federation = make_federation(restarting, own_identities())
    sampler = cn.ImportanceSampling(SIZE, draws="committed", scores=scores)
    run = federation.coreset(cn.Regression(), sampler, seed=5)
    assert restarting.restarts == (kind != ("AskScores" if scores == "secure" else "AskMaskedScores"))
    assert sum(entry.kind == "AskCommitment" for entry in run.ledger) == 3
    federation.spot_check(run, rows=None)


def test_openings_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    session = sessions_of(make_federation())["party1"]
    rule = integer_rule(LeverageScores(fit_intercept=True), make_federation().roster)
    twice = session.answer(AskOpenings(rule, bytes(32), sendable_rows([4, 4])))
    assert isinstance(twice, Refused)
    assert "a row to open twice" in twice.reason
    monkeypatch.setattr("colonnade.sampling.committed.party.MAX_NODES", 9 * 5)
    assert isinstance(session.answer(AskOpenings(rule, bytes(32), sendable_rows(np.arange(5)))), Openings)
    many = session.answer(AskOpenings(rule, bytes(32), sendable_rows(np.arange(6))))
    assert isinstance(many, Refused)
    assert "6 openings do not fit one message" in many.reason


def test_totals_that_would_wrap_round_are_refused() -> None:
    """Steps of 2^-61 are fine for a total of 2, and not for this party's 4."""
    session = sessions_of(make_federation())["party2"]
    fine = AskCommitment(IntegerScores(LeverageScores(fit_intercept=True), 61), bytes(32))
    refused = session.answer(fine)
    assert isinstance(refused, Refused)
    assert "do not add up within 64 bits" in refused.reason
    coarser = AskCommitment(IntegerScores(LeverageScores(fit_intercept=True), 60), bytes(32))
    assert isinstance(session.answer(coarser), Commitment)
