"""Parties that cheat, in real sessions with altered handlers: each is caught, by name."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.coreset import Evidence
from colonnade.kernels.integer_draws import even_rows
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.privacy.identities import PinnedIdentity, signing_key
from colonnade.sampling.committed.joint_seed import even_key, joint_draw_statement, joint_key
from colonnade.sampling.committed.messages import (
    Commitment,
    CommittedRows,
    Contribution,
    DrawCommitted,
    Openings,
    commitment_of,
    commitment_statement,
)
from colonnade.sampling.committed.party import CommittedDraw
from colonnade.sampling.plain.messages import DrawnRows, DrawRows, OpenDraw, Scores, Total
from colonnade.sampling.plain.party import signed_draw
from colonnade.sampling.secure.messages import AskMaskedScores
from harness import sessions_of

N, WIDTHS, SIZE = 400, (2, 3, 1), 60
COMMITTED = cn.ImportanceSampling(SIZE, draws="committed")
DRAWS: tuple[Literal["stratified", "independent", "committed"], ...] = ("stratified", "independent", "committed")
CHEAT = "party2"
Change = Callable[[Any, Any], Message]


def make_federation(**cheats: Change) -> cn.Federation:
    """Let three parties meet, of which the second changes what it answers to these kinds of request."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(N, sum(WIDTHS)))
    federation = cn.Federation(cn.split_columns(X, X @ np.ones(sum(WIDTHS)) + rng.normal(size=N), WIDTHS))
    handlers = sessions_of(federation)[CHEAT]._handlers
    for request, handler in list(handlers.items()):
        if change := cheats.get(request.__name__):

            def answer(state: Any, asked: Any, data: Any, honest: Any = handler.answer, change: Any = change) -> Any:
                state, reply = honest(state, asked, data)
                return as_if_honest(state, reply, changed := signed(change(reply, data), asked, state, data)), changed

            handlers[request] = type(handler)(handler.request, answer, handler.after, handler.then, handler.solver)
    return federation


def signed(changed: Any, asked: Any, state: Any, data: Any) -> Message:
    """Let the cheat sign its lie."""
    if isinstance(changed, DrawnRows):
        return signed_draw(state, changed.rows, data)
    if isinstance(changed, Commitment):
        commitment = commitment_of(CHEAT, changed)
        statement = commitment_statement(CHEAT, state.sheet, asked, commitment, changed.contribution_digest)
        return msgspec.structs.replace(changed, signature=data.identity.sign(statement))
    if isinstance(changed, CommittedRows):
        key = joint_key(asked.server, asked.parties)
        even = even_rows(data.table.n_rows, asked.n_even, even_key(key), data.table.row_weights)
        statement = joint_draw_statement(CHEAT, state.sheet, key, changed.rows, even)
        return CommittedRows(changed.rows, data.identity.sign(statement))
    honest: Message = changed
    return honest


def as_if_honest(state: Any, reply: Message, changed: Message) -> Any:
    """Let the cheat remember its lie as if it were the truth, so that nothing but the lie itself gives it away."""
    if state.exchanged and state.exchanged[-1] is reply:
        state = replace(state, exchanged=(*state.exchanged[:-1], changed))
    if isinstance(changed, DrawnRows | CommittedRows):
        state = replace(state, rows=changed.rows)
    if isinstance(changed, Commitment):
        state = replace(state, secret=CommittedDraw(state.secret.contribution, commitment_of(CHEAT, changed)))
    return state


def with_rows(reply: Any, rows: Any) -> Message:
    drawn: Message = msgspec.structs.replace(reply, rows=sendable_rows(rows))
    return drawn


def evenly(reply: CommittedRows, data: Any) -> Message:
    """Draw evenly, whatever the scores: biased, and looks precise."""
    drawn = np.random.default_rng(1).integers(data.table.n_rows, size=len(reply.rows))
    return with_rows(reply, np.sort(drawn))


def one_row(reply: DrawnRows | CommittedRows, _: Any) -> Message:
    return with_rows(reply, np.full(len(reply.rows), reply.rows[0]))


def caught(federation: cn.Federation, sampler: cn.ImportanceSampling, match: str) -> cn.RemoteProtocolError:
    with pytest.raises(cn.RemoteProtocolError, match=match) as error:
        federation.spot_check(federation.coreset(cn.Regression(), sampler, seed=3), rows=None)
    assert error.value.party == CHEAT
    return error.value


def caught_at_once(federation: cn.Federation, sampler: cn.ImportanceSampling, match: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match=match) as error:
        federation.coreset(cn.Regression(), sampler, seed=3)
    assert error.value.party == CHEAT


@pytest.mark.parametrize("scores", ["plain", "secure"])
@pytest.mark.parametrize("totals", ["checked", "set"])
def test_honest_parties_are_not_accused(scores: Any, totals: Any, tmp_path: Path) -> None:
    federation = make_federation()
    sampler = cn.ImportanceSampling(SIZE, 0.2, "committed", scores=scores, totals=totals)
    for task in (cn.Regression(standardize=True), cn.KMeans(3)):
        run = federation.coreset(task, sampler, split=cn.HoldOut(0.2), seed=3)
        audited = federation.spot_check(run, rows=4)
        assert audited.coreset.evidence is not None
        assert all(each.opened for each in audited.coreset.evidence.parties.values())
        assert cn.Run.load(audited.save(tmp_path / "run")).spot_check() == audited.spot_check()
        assert len(audited.ledger) > len(run.ledger)


@pytest.mark.parametrize("draws", DRAWS)
def test_an_inflated_total_is_caught(draws: Any) -> None:
    federation = make_federation(
        AskTotal=lambda reply, _: Total(reply.total * 5),
        AskCommitment=lambda reply, _: msgspec.structs.replace(reply, total=reply.total * 5),
    )
    caught_at_once(federation, cn.ImportanceSampling(SIZE, draws=draws), r"the total 20.*add up to 4 at most")


def test_a_total_within_the_bound_that_is_not_the_committed_one_is_caught_by_an_audit() -> None:
    """A party of low rank claims more, up to its columns: its tree does not add up to it."""
    federation = make_federation(
        AskCommitment=lambda reply, _: msgspec.structs.replace(reply, total=reply.total - 1000),
    )
    caught(federation, COMMITTED, "opened row .* to something that it had not committed to")


def test_a_total_that_was_set_is_not_asked_for() -> None:
    federation = make_federation(AskTotal=lambda reply, _: Total(reply.total * 5))
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE, totals="set"))
    assert run.coreset.total == 3 + 4 + (1 + 3), "columns + 1; label and intercept count at the label party"


def test_a_set_total_that_a_commitment_falls_short_of_is_caught() -> None:
    federation = make_federation(
        AskCommitment=lambda reply, _: msgspec.structs.replace(reply, total=reply.total // 2),
    )
    caught_at_once(federation, cn.ImportanceSampling(SIZE, draws="committed", totals="set"), "total 2, where 4 was set")


def test_sampling_evenly_under_honest_scores_is_caught() -> None:
    """With all rows opened for certain; a few are enough: an even draw hits its stratum in one row of some hundred."""
    error = caught(make_federation(DrawCommitted=evenly), COMMITTED, "drew row .* it did not draw by its scores")
    assert "Do not use the coreset" in str(error)
    federation = make_federation(DrawCommitted=evenly)
    run = federation.coreset(cn.Regression(), COMMITTED, seed=3)
    with pytest.raises(cn.RemoteProtocolError) as few:
        federation.spot_check(run, rows=3, seed=0)
    assert few.value.party == CHEAT


def test_one_row_in_ten_drawn_otherwise_is_caught_when_all_are_opened() -> None:
    def a_few(reply: CommittedRows, data: Any) -> Message:
        rows = reply.rows.copy()
        rows[::10] = np.minimum(rows[::10] + 1, data.table.n_rows - 1)
        return with_rows(reply, np.sort(rows))

    caught(make_federation(DrawCommitted=a_few), COMMITTED, f"'{CHEAT}' drew row")


def test_scores_changed_after_the_commitment_are_caught() -> None:
    federation = make_federation(AskScores=lambda reply, _: Scores(sendable_floats(reply.scores * 2)))
    caught(federation, COMMITTED, "told another score of row .* than it had committed to")


def test_a_single_changed_score_is_caught_when_its_row_is_opened() -> None:
    def one(reply: Scores, _: Any) -> Scores:
        scores = reply.scores.copy()
        scores[7] += 2.0**-40
        return Scores(sendable_floats(scores))

    caught(make_federation(AskScores=one), COMMITTED, "told another score of row")


def test_scores_that_are_no_whole_steps_are_caught_at_once() -> None:
    federation = make_federation(AskScores=lambda reply, _: Scores(sendable_floats(reply.scores * (1 + 1e-16) / 3)))
    caught_at_once(federation, COMMITTED, "a score that is not a number of steps of 2")


def test_scores_changed_under_the_mask_are_noticed_though_not_whose() -> None:
    federation = make_federation()
    sampler = cn.ImportanceSampling(SIZE, draws="committed", scores="secure")
    session = sessions_of(federation)[CHEAT]
    honest = session._handlers[AskMaskedScores].answer

    def other_scores(state: Any, asked: Any, data: Any) -> Any:
        kept = data._scores[state.rule]
        data._scores[state.rule] = kept.changed(lambda _, scores: scores * 1.1)
        try:
            return honest(state, asked, data)
        finally:
            data._scores[state.rule] = kept

    object.__setattr__(session._handlers[AskMaskedScores], "answer", other_scores)
    try:
        run = federation.coreset(cn.Regression(), sampler, seed=3)
    finally:
        object.__setattr__(session._handlers[AskMaskedScores], "answer", honest)
    with pytest.raises(cn.RemoteProtocolError, match="One of them masked something else") as error:
        federation.spot_check(run)
    assert error.value.party is None


@pytest.mark.parametrize("where", [-1, N])
@pytest.mark.parametrize(("draws", "totals"), [("stratified", "checked"), ("stratified", "set"), ("committed", "set")])
def test_row_ids_out_of_range_are_caught(draws: Any, totals: Any, where: int) -> None:
    def beyond(reply: DrawnRows | CommittedRows, _: Any) -> Message:
        rows = reply.rows.copy()
        rows[-1 if where > 0 else 0] = where
        return with_rows(reply, rows)

    cheats = {kind.__name__: beyond for kind in (DrawRows, OpenDraw, DrawCommitted)}
    sampler = cn.ImportanceSampling(SIZE, draws=draws, totals=totals)
    caught_at_once(make_federation(**cheats), sampler, f"row ids that do not ascend within 0..{N - 1}")


@pytest.mark.parametrize("scores", ["plain", "secure"])
@pytest.mark.parametrize("totals", ["checked", "set"])
@pytest.mark.parametrize(("draws", "size"), [("stratified", SIZE), ("independent", 3000)])
def test_duplicates_beyond_the_law_of_draws_are_caught(totals: Any, scores: Any, draws: Any, size: int) -> None:
    """Independent draws of few rows have no such law: any row can come again."""
    federation = make_federation(DrawRows=one_row, OpenDraw=one_row)
    sampler = cn.ImportanceSampling(size, draws=draws, totals=totals, scores=scores)
    caught_at_once(federation, sampler, r"'party2' drew row \d+ \d+ times among .* at most")


def test_duplicates_beyond_the_law_of_committed_draws_are_caught() -> None:
    caught_at_once(
        make_federation(DrawCommitted=one_row), COMMITTED, r"too low a score of row \d+ to draw it \d+ times"
    )
    sampler = cn.ImportanceSampling(SIZE, draws="committed", scores="secure")
    caught(make_federation(DrawCommitted=one_row), sampler, f"'{CHEAT}' drew row")


def test_another_contribution_than_was_committed_to_is_caught() -> None:
    federation = make_federation(AskContribution=lambda _reply, _: Contribution(b"!" * 32))
    caught_at_once(federation, COMMITTED, "another contribution to the joint seed than it had committed to")


def test_openings_of_something_else_are_caught() -> None:
    def another(reply: Openings, _: Any) -> Openings:
        return Openings(sendable_rows(reply.scores + 1), reply.sums, reply.salts, reply.hashes)

    caught(make_federation(AskOpenings=another), COMMITTED, "opened row .* to something that it had not committed to")
    short = make_federation(AskOpenings=lambda r, _: Openings(r.scores, r.sums, r.salts[:-16], r.hashes))
    caught(short, COMMITTED, "something else than .* openings of 9 levels")


# A server that cheats: its run is audited by somebody else.


def tampered(**changes: Any) -> cn.Run[None]:
    federation = make_federation()
    run = federation.spot_check(federation.coreset(cn.Regression(), COMMITTED, seed=3), rows=2)
    evidence = run.coreset.evidence
    assert isinstance(evidence, Evidence)
    party = msgspec.structs.replace(evidence.parties["party1"], **changes.pop("party1", {}))
    parties = {**evidence.parties, "party1": party}
    evidence = msgspec.structs.replace(evidence, parties=parties, **changes.pop("evidence", {}))
    return replace(run, coreset=replace(run.coreset, evidence=evidence, **changes))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"evidence": {"contribution": bytes(32)}}, "'server' contributed something else"),
        ({"evidence": {"exponent": 50}}, r"'server' has evidence of party1, party2, party3 in steps of 2\^-50, not of"),
        ({"evidence": {"counts": (2.0,) * SIZE}}, "'server' lets rows count otherwise than the split says"),
        ({"total_weight": 2.0 * N}, "'server' lets rows count otherwise than the split says"),
        ({"party1": {"contribution": bytes(32)}}, "'party1' contributed something else"),
        ({"party1": {"total": 2**63}}, "'party1' committed to a total"),
        ({"party1": {"total": -5}}, "'party1' committed to a total"),
        ({"party1": {"root": b""}}, "'party1' committed to a total"),
        ({"party1": {"root": bytes(32)}}, "'party1' opened row"),
        ({"party1": {"rows": (1, 2)}}, "'party1' drew 2 rows where the joint seed says"),
        ({"party1": {"scores": (1, 2)}}, "'party1' told 2 scores of 60 rows"),
        ({"weights": np.ones(SIZE)}, "'server' weighted rows otherwise"),
        ({"rows": np.arange(SIZE)}, "'server' has other rows in the coreset than were drawn"),
    ],
)
def test_a_run_that_was_changed_afterwards_is_caught(changes: Any, match: str) -> None:
    with pytest.raises(cn.RemoteProtocolError, match=match):
        tampered(**changes).spot_check()


def test_an_audit_says_what_it_is_worth() -> None:
    federation = make_federation()
    run = federation.coreset(cn.Regression(), COMMITTED, seed=3)
    assert "not checked" in run.spot_check().findings[-1]
    some = federation.spot_check(run, rows=3).spot_check()
    assert "with probability 0." in some.findings[-1]
    assert min(some.opened.values()) >= 3
    every = federation.spot_check(run, rows=None).spot_check()
    assert every.findings[-1].startswith("All draws were compared")
    assert sum(every.opened.values()) == SIZE
    assert str(every).startswith("Nothing was found wrong.\n- The server and all parties contributed")
    even = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE, 1.0, "committed"))
    found = federation.spot_check(even, rows=2).spot_check()
    assert sum(found.opened.values()) == 0, "the joint seed drew all of them"
    assert found.opened_evenly >= 2


def test_even_rows_are_opened_like_the_rest() -> None:
    federation = make_federation()
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE, 0.3, "committed"), seed=3)
    unopened = run.spot_check()
    assert (unopened.opened_evenly, "none of the even ones" in unopened.findings[-1]) == (0, True)
    some, every = (federation.spot_check(run, rows=rows).spot_check() for rows in (3, None))
    assert 3 <= some.opened_evenly < every.opened_evenly
    assert sum(every.opened.values()) + every.opened_evenly == SIZE
    assert f"{every.opened_evenly} of {every.opened_evenly} drawn evenly." in every.findings[-2]
    assert "Rows drawn evenly are those that the joint seed says." in every.findings


# Rows whose weights are a party's column, which the run does not keep.


def signed_federation(folder: Path, weight: Any = None) -> tuple[cn.Federation, Path]:
    """Let parties meet that have identities of their own, and write the pins of all."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(N, 3))
    parties = cn.split_columns(X, X.sum(axis=1) + rng.normal(size=N), [1, 1, 1], weight=weight)
    seeds = {party.name: rng.bytes(32) for party in parties}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    for party in parties:
        party.identity = PinnedIdentity(party.name, seeds[party.name], pins, rng.bytes)
    (folder / "pins.toml").write_text("".join(f'{name} = "{pin.hex()}"\n' for name, pin in pins.items()))
    return cn.Federation(parties), folder / "pins.toml"


def test_even_rows_by_a_column_of_weights_are_checked_by_signatures(tmp_path: Path) -> None:
    federation, pins = signed_federation(tmp_path, np.random.default_rng(1).uniform(size=N))
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE, 0.3, "committed"), seed=3)
    assert any(finding.startswith("Whether rows drawn evenly are") for finding in run.spot_check().findings)
    assert any(finding.endswith("as all parties signed.") for finding in run.spot_check(pins).findings)
    rows, evidence = run.coreset.rows.copy(), run.coreset.evidence
    assert evidence is not None
    drawn = {row for each in evidence.parties.values() for row in each.rows}
    at = next(at for at in range(SIZE - 1) if rows[at] not in drawn and rows[at] + 1 < rows[at + 1])
    rows[at] += 1
    bent = replace(run, coreset=replace(run.coreset, rows=rows))
    bent.spot_check()
    with pytest.raises(cn.RemoteProtocolError, match="even rows, that 'party1' did not sign") as error:
        bent.spot_check(pins)
    assert error.value.party == "server"


def test_a_run_of_an_earlier_version_has_no_signatures(tmp_path: Path) -> None:
    federation, pins = signed_federation(tmp_path)
    saved = federation.coreset(cn.Regression(), COMMITTED, seed=3).save(tmp_path / "run")
    evidence = json.loads((saved / "evidence.json").read_text())
    for each in evidence["parties"].values():
        del each["signature"], each["draw_signature"]
    (saved / "evidence.json").write_text(json.dumps(evidence))
    run = cn.Run.load(saved)
    assert any(finding.startswith("Signatures were not compared") for finding in run.spot_check().findings)
    with pytest.raises(cn.RemoteProtocolError, match="a commitment of 'party1' that 'party1' did not sign"):
        run.spot_check(pins)


def test_a_run_that_was_not_committed_cannot_be_audited() -> None:
    federation = make_federation()
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE))
    for audit in (run.spot_check, lambda: federation.spot_check(run)):
        with pytest.raises(cn.UnsupportedError, match=r'not committed.*draws="committed"'):
            audit()


def test_a_run_is_audited_by_its_own_parties() -> None:
    run = make_federation().coreset(cn.Regression(), COMMITTED)
    others = cn.Federation(cn.split_columns(np.random.default_rng(0).normal(size=(N, 4)), np.ones(N), [2, 2]))
    with pytest.raises(cn.AlignmentError, match="Check it with the parties it came from"):
        others.spot_check(run)


def test_a_federation_made_anew_has_other_salts_and_cannot_open_the_old_commitment() -> None:
    """In one process identities live as long as the federation; between machines they are files."""
    run = make_federation().coreset(cn.Regression(), COMMITTED)
    with pytest.raises(cn.RemoteProtocolError, match="had not committed to"):
        make_federation().spot_check(run)


def test_an_owner_who_keeps_scores_does_not_open_them() -> None:
    rng = np.random.default_rng(0)
    parties = cn.split_columns(rng.normal(size=(50, 3)), rng.normal(size=50), [1, 1, 1])
    parties[0].policy = cn.Policy(level="open", never=["scores"])
    federation = cn.Federation(parties)
    run = federation.coreset(cn.Regression(), cn.ImportanceSampling(20, draws="committed", scores="secure"))
    with pytest.raises(cn.PolicyRefusedError, match="never reveals scores"):
        federation.spot_check(run)


# Distinct draws.

DISTINCT = cn.ImportanceSampling(200, draws="distinct")  # some rows are certain
WAYS = (DISTINCT, cn.ImportanceSampling(200, 0.3, "distinct", totals="set"))


def twice(reply: DrawnRows, _: Any) -> Message:
    return with_rows(reply, [reply.rows[1], *reply.rows[1:]])


def without_the_heaviest(reply: DrawnRows, data: Any) -> Message:
    """Leave out a row that is certain, so that it weighs more where somebody else drew it."""
    scores = data.scores(cn.Regression().score_rule())
    heaviest = reply.rows[np.argmax(scores[reply.rows])]
    other = np.setdiff1d(np.arange(N), reply.rows)[0]
    return with_rows(reply, np.sort(np.append(reply.rows[reply.rows != heaviest], other)))


def times(factor: float) -> Change:
    return lambda reply, _: msgspec.structs.replace(reply, factor=reply.factor * factor)


@pytest.mark.parametrize("sampler", WAYS, ids=str)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (twice, "'party2' drew a row twice"),
        (lambda reply, _: with_rows(reply, reply.rows[1:]), "an array of shape"),
        (lambda reply, _: with_rows(reply, reply.rows[::-1]), "ascend within"),
    ],
    ids=["twice", "too few", "descending"],
)
def test_distinct_rows_are_distinct_and_as_many_as_are_due(sampler: Any, change: Change, match: str) -> None:
    caught_at_once(make_federation(DrawRows=change, OpenDraw=change), sampler, match)


@pytest.mark.parametrize("sampler", [DISTINCT, cn.ImportanceSampling(200, draws="distinct", round_scores=True)])
def test_a_certain_row_that_was_not_drawn_is_caught(sampler: Any) -> None:
    """Half the rows are drawn by somebody; the one that was left out is among them for some seed."""
    federation = make_federation(DrawRows=without_the_heaviest)

    def until_it_is_drawn() -> None:
        for seed in range(20):
            federation.coreset(cn.Regression(), sampler, seed=seed)

    with pytest.raises(cn.RemoteProtocolError, match=r"a score that makes row .* certain, which it did not") as error:
        until_it_is_drawn()
    assert error.value.party == CHEAT


@pytest.mark.parametrize("sampler", [*WAYS, cn.ImportanceSampling(200, draws="distinct", round_scores=0.5)], ids=str)
@pytest.mark.parametrize(
    ("factor", "match"),
    [
        (0.5, "a factor of .* or more"),
        (-1.0, "a factor of .* or more"),
        (np.nan, "a factor of nan"),
        (np.inf, "a factor of inf"),
        (1e6, "chances that add up to .*, where it drew"),
    ],
)
def test_a_factor_that_no_draw_has_is_caught(sampler: Any, factor: float, match: str) -> None:
    lie = times(factor)
    caught_at_once(make_federation(AskDistinctScores=lie, AskDistinctCodes=lie), sampler, match)


def test_scores_of_distinct_rows_keep_to_the_limits() -> None:
    lie: Change = lambda reply, _: msgspec.structs.replace(reply, scores=sendable_floats(reply.scores * 100))  # noqa: E731
    caught_at_once(make_federation(AskDistinctScores=lie), DISTINCT, "a score of .* outside")
