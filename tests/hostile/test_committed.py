"""Committed draws that somebody would bend: each try is refused or found, by name, and buys nothing."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.contracts import Script
from colonnade.job_sheets import sheet_of
from colonnade.kernels.integer_draws import even_rows
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.privacy.identities import PinnedIdentity, signing_key
from colonnade.protocol.session import PartySession
from colonnade.protocol.sheet import read_sheet
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.committed.joint_seed import contribution_digest, even_count_of, even_key
from colonnade.sampling.committed.messages import (
    AskCommitment,
    AskContribution,
    Commitment,
    PartyCommitment,
    commitment_of,
)
from colonnade.sampling.plain.messages import Scores
from colonnade.sampling.rules.integers import integer_rule
from colonnade.transports.loopback import Loopback
from harness import sessions_of
from hostile_trial import hostile_server, turned_away
from network_trial import federation_in_threads
from secure_trial import made_parties

N, SIZE, CHEAT = 300, 60, "party2"
NAMES = ("party1", "party2", "party3")
COMMITTED = cn.ImportanceSampling(SIZE, draws="committed", scores="plain")
MIXED = cn.ImportanceSampling(SIZE, 0.4, "committed", scores="plain")
JOB = {"task": cn.Regression(), "sampler": COMMITTED, "seed": 0}
Change = Callable[[Any, Any], Message]
Meet = Callable[..., cn.Federation]


def bend(session: PartySession, changes: dict[str, Change]) -> None:
    """Let a session change what it answers to these kinds of request."""
    for request, handler in list(session._handlers.items()):
        if change := changes.get(request.__name__):

            def answer(state: Any, asked: Any, data: Any, honest: Any = handler.answer, change: Any = change) -> Any:
                state, reply = honest(state, asked, data)
                return state, change(reply, state)

            session._handlers[request] = replace(handler, answer=answer)


@pytest.fixture(params=["here", "network"])
def meet(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meet]:
    """Let three parties meet, in this process or over streams with TLS, of which the second changes its answers."""

    def meet(**changes: Change) -> cn.Federation:
        if request.param == "here":
            federation = cn.Federation(made_parties(N), transport=Loopback)
            bend(sessions_of(federation)[CHEAT], changes)
            return federation

        def bent(table: Any, policy: Any, identity: Any, *memory: Any) -> PartySession:
            session = party_session(table, policy, identity, *memory)
            bend(session, changes if identity.name == CHEAT else {})
            return session

        monkeypatch.setattr("network_trial.party_session", bent)
        return stack.enter_context(federation_in_threads(tmp_path, made_parties(N)))

    with ExitStack() as stack:
        yield meet


# 1. A party that tells false scores of rows that nobody but the shared seed drew.


def even_rows_of(run: cn.Run[None]) -> Any:
    """Find the rows that are drawn evenly and by no party."""
    assert run.coreset.evidence is not None
    return np.setdiff1d(run.coreset.rows, [row for each in run.coreset.evidence.parties.values() for row in each.rows])


def false_of_even_rows(reply: Scores, state: Any) -> Scores:
    """Double the scores of rows that the joint seed draws evenly, and the cheat did not draw itself."""
    n_even = even_count_of(state.joint_key, SIZE, MIXED.uniform_share)
    even = np.setdiff1d(even_rows(N, n_even, even_key(state.joint_key)), state.exchanged[-1].rows)
    assert len(even) > 10
    return Scores(sendable_floats(np.where(np.isin(state.rows, even), 2 * reply.scores, reply.scores)))


def test_false_scores_of_rows_drawn_only_evenly_are_found(meet: Meet) -> None:
    federation = meet(AskScores=false_of_even_rows)
    run = federation.coreset(cn.Regression(), MIXED, seed=3)
    with pytest.raises(cn.RemoteProtocolError, match=r"told another score of row .* than it had committed to") as error:
        federation.spot_check(run, rows=None)
    assert error.value.party == CHEAT
    with pytest.raises(cn.RemoteProtocolError, match="told another score of row"):
        federation.spot_check(run, rows=4)


def no_scores(reply: Scores, state: Any) -> Scores:
    """Tell nothing of the rows that others drew."""
    return Scores(sendable_floats(np.where(np.isin(state.rows, state.exchanged[-1].rows), reply.scores, 0.0)))


def more_than_all(reply: Scores, state: Any) -> Scores:
    """Tell what a row can have of all rows at once: more than was committed to for all of them together."""
    step = 2.0**-state.rule.exponent
    return Scores(sendable_floats(np.full_like(reply.scores, np.floor(1.9 / step) * step)))


@pytest.mark.parametrize(
    ("lie", "match"),
    [
        (no_scores, r"a Scores with a score of 0 of row \d+, outside"),
        (more_than_all, "a Scores with scores of .* rows"),
    ],
)
def test_scores_that_no_table_has_beside_the_committed_total_end_the_draw(meet: Meet, lie: Change, match: str) -> None:
    """They bent all weights until a spot check was asked for, if it was."""
    federation = meet(AskScores=lie)
    with pytest.raises(cn.RemoteProtocolError, match=match) as error:
        federation.coreset(cn.Regression(), MIXED, seed=3)
    assert error.value.party == CHEAT


@pytest.mark.parametrize("split", [None, cn.HoldOut(0.2)])
def test_even_rows_of_the_servers_choice_are_found(split: Any) -> None:
    """It puts rows that it likes in the place of those that the joint seed says, and weighs them as is due."""
    federation = cn.Federation(made_parties(N))
    run = federation.coreset(cn.Regression(), MIXED, split=split, seed=3)
    rows = run.coreset.rows.copy()
    at = next(at for at in range(SIZE - 1) if rows[at] in even_rows_of(run) and rows[at] + 1 < rows[at + 1])
    rows[at] += 1
    bent = replace(run, coreset=replace(run.coreset, rows=rows))
    with pytest.raises(cn.RemoteProtocolError, match="drew other even rows than the joint seed says") as error:
        bent.spot_check()
    assert error.value.party == SERVER


# 2. A draw that is begun again until somebody likes it.


def test_a_party_that_says_it_lost_its_contribution_buys_no_other_draw(meet: Meet) -> None:
    asked = []

    def lost_at_first(reply: Any, _: Any) -> Message:
        asked.append(reply)
        answer: Message = msgspec.structs.replace(reply, value=None) if len(asked) < 5 else reply
        return answer

    federation = meet(AskContribution=lost_at_first)
    with pytest.raises(cn.RemoteProtocolError) as error:
        federation.coreset(cn.Regression(), COMMITTED, seed=3)
    assert error.value.party == CHEAT
    assert len(asked) == 1


def opened_draw(federation: cn.Federation, digest: bytes) -> Script[tuple[AskCommitment, dict[str, Commitment]]]:
    rule = integer_rule(cn.Regression().score_rule(), federation.roster)
    request = AskCommitment(rule, digest)
    inbox = yield dict.fromkeys(NAMES, request)
    return request, inbox  # type: ignore[return-value]


def entries_of(commitments: dict[str, Commitment]) -> tuple[PartyCommitment, ...]:
    return tuple(entry_of(name, commitments[name]) for name in NAMES)


def entry_of(name: str, commitment: Commitment) -> PartyCommitment:
    return PartyCommitment(commitment_of(name, commitment), commitment.contribution_digest, commitment.signature)


def test_a_server_that_has_seen_contributions_gets_no_second_draw_of_a_run(meet: Meet) -> None:
    federation = meet()

    def twice() -> Script[None]:
        _, commitments = yield from opened_draw(federation, contribution_digest(SERVER, bytes(32)))
        yield dict.fromkeys(NAMES, AskContribution(entries_of(commitments)))
        yield from opened_draw(federation, contribution_digest(SERVER, b"!" * 32))

    with pytest.raises(cn.LocalProtocolError, match="DrawCommitted would be next in this job, not AskCommitment"):
        federation._runtime.play(twice(), "coreset", **JOB)


# 3. Two job sheets in one run: a party would score, and draw, other rows than the rest.


@pytest.mark.parametrize("other", NAMES)
def test_two_sheets_in_one_run_are_noticed_before_anything_is_drawn(tmp_path: Path, other: str) -> None:
    """One party is sent a sheet that holds rows out, and everything else is as in an honest run with plain scores."""
    with hostile_server(tmp_path, made_parties(N)) as server:
        split = cn.HoldOut(0.2)
        sheets = {
            name: sheet_of("coreset", {**JOB, "split": split if name == other else None}, server.roster, None)
            for name in NAMES
        }
        server.open_each(sheets)
        server.told(other, UseFrame("train", "own", split, None, None), Moments)
        rule, rng = cn.Regression().score_rule(), np.random.default_rng(0)
        script = COMMITTED.sample(server.roster, rule, rng, None)
        refused = turned_away(
            lambda: server.play(script), r"a commitment of '\w+' that '\w+' did not sign for this job"
        )
        assert isinstance(refused.request, AskContribution)
        assert server.disclosed() == {Reveals.TOTALS}


# 4. Commitments that are not by the party whose name they bear.


@pytest.mark.parametrize("forged", ["all", "signature"])
def test_a_commitment_that_the_server_made_up_for_a_party_is_refused(meet: Meet, forged: str) -> None:
    federation = meet()

    def in_its_place() -> Script[None]:
        _, commitments = yield from opened_draw(federation, contribution_digest(SERVER, bytes(32)))
        made_up = msgspec.structs.replace(
            commitments["party1"], root=bytes(32), contribution_digest=contribution_digest("party1", bytes(32))
        )
        entry = entry_of("party1", made_up if forged == "all" else commitments["party1"])
        entry = msgspec.structs.replace(entry, signature=entry.signature if forged == "all" else bytes(64))
        yield {"party2": AskContribution((entry, *entries_of(commitments)[1:]))}

    with pytest.raises(cn.ColonnadeError, match="a commitment of 'party1' that 'party1' did not sign for this job"):
        federation._runtime.play(in_its_place(), "coreset", **JOB)


@pytest.fixture
def pinned(tmp_path: Path) -> tuple[cn.Federation, Path]:
    """Let parties meet that have identities of their own; give the federation, and their pins."""
    parties, seeds = made_parties(N), {name: os.urandom(32) for name in NAMES}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    for party in parties:
        party.identity = PinnedIdentity(party.name, seeds[party.name], pins, os.urandom)
    (tmp_path / "pins.toml").write_text("".join(f'{name} = "{pin.hex()}"\n' for name, pin in pins.items()))
    return cn.Federation(parties), tmp_path / "pins.toml"


def test_a_server_cannot_pin_false_evidence_on_a_party(pinned: tuple[cn.Federation, Path]) -> None:
    """It changes the record of an honest run so that a party seems to have cheated: who has the pins sees it."""
    federation, pins = pinned
    run = federation.spot_check(federation.coreset(cn.Regression(), MIXED, seed=3), rows=3)
    assert "signed" in str(run.spot_check(pins=pins))
    evidence = run.coreset.evidence
    assert evidence is not None
    honest = evidence.parties["party1"]
    rows = tuple(sorted((*honest.rows[1:], honest.rows[1])))
    for change in ({"root": bytes(32)}, {"rows": rows}, {"total": honest.total - 1}, {"signature": b""}):
        blamed = {**evidence.parties, "party1": msgspec.structs.replace(honest, **change)}
        false = replace(run.coreset, evidence=msgspec.structs.replace(evidence, parties=blamed))
        with pytest.raises(cn.RemoteProtocolError) as error:
            replace(run, coreset=false).spot_check(pins=pins)
        assert error.value.party == SERVER


def test_a_server_cannot_say_that_it_was_another_job(pinned: tuple[cn.Federation, Path], tmp_path: Path) -> None:
    """Parties signed for one job sheet: a run that says another split or task, or has another sheet, is found out."""
    federation, pins = pinned
    federation.coreset(cn.Regression(), MIXED, split=cn.HoldOut(0.2), seed=3).save(tmp_path / "run")
    run = cn.Run.load(tmp_path / "run")
    assert "for this job" in str(run.spot_check(pins=pins))
    evidence, other = run.coreset.evidence, federation.coreset(cn.Regression(), MIXED, seed=3).coreset.evidence
    assert evidence is not None
    assert other is not None

    def with_sheet(sheet: bytes, **changes: Any) -> cn.Run[None]:
        changed = replace(run.coreset, evidence=msgspec.structs.replace(evidence, sheet=sheet))
        return replace(run, coreset=changed, **changes)

    for bent, why in (
        (replace(run, split=cn.HoldOut(0.2, seed=1)), "another task, sampler, split or other parties"),
        (with_sheet(other.sheet), "another task, sampler, split or other parties"),
        (with_sheet(msgspec.msgpack.encode(msgspec.structs.replace(read_sheet(evidence.sheet), seed=1))), "not sign"),
        (with_sheet(b"no sheet"), "cannot be read"),
    ):
        with pytest.raises(cn.RemoteProtocolError, match=why) as error:
            bent.spot_check(pins=pins)
        assert error.value.party == SERVER
    with pytest.raises(cn.UnsupportedError, match="no job sheet, for which parties sign"):
        with_sheet(b"").spot_check(pins=pins)
    assert "Signatures were not compared" in str(with_sheet(b"").spot_check()), "a run of an earlier version"
