"""The desk without a network: numbers, repeats, restarts, limits."""

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade import routes
from colonnade.catalogue import HANDLERS, OPENING, codec, party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.errors import EngineError, InputError
from colonnade.evaluation.applying import predicted_route
from colonnade.evaluation.clustering import AskPartialDistances
from colonnade.evaluation.delivery import Deliver, Received
from colonnade.evaluation.linear import AskPartialPredictions, PartialPredictions, _products
from colonnade.evaluation.telling import model_digest
from colonnade.job_sheets import sheet_of
from colonnade.kernels import selections
from colonnade.kernels.arrays import Rows
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats
from colonnade.node import desk
from colonnade.node.allowance import Allowance, DayLimits
from colonnade.node.desk import PartyDesk
from colonnade.node.desk_records import AnswerRecord, read_records
from colonnade.node.journal import Journal
from colonnade.node.log import EventLog
from colonnade.node.memory_file import MEMORY, KeptInFile
from colonnade.node.state_folder import StateFolder
from colonnade.privacy.identities import PinnedIdentity, identities_here, signing_key
from colonnade.privacy.pair_keys import relayed_keys
from colonnade.privacy.statements import CircleKeys
from colonnade.protocol.hello import WIRE_VERSION, Card, Hello
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import SumNote, TableKey
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import Delivery, PartySession
from colonnade.protocol.sheet import JobAccepted, OpenJob
from colonnade.protocol.splits import counted
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.routes import then
from colonnade.sampling.committed.joint_seed import contribution_digest, joint_draw_statement, joint_key
from colonnade.sampling.committed.messages import (
    AskCommitment,
    AskContribution,
    Commitment,
    CommittedRows,
    Contribution,
    DrawCommitted,
    PartyCommitment,
    commitment_of,
    commitment_statement,
)
from colonnade.sampling.plain.messages import AskScores, AskTotal, DrawnRows, DrawRows, Draws, Scores, Total
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure.messages import AskMaskedScores, AskPublicKey, MaskedScores, PublicKey
from colonnade.sampling.selecting import Ready, UseAllRows
from colonnade.signing import SignedRows, sheet_statement
from colonnade.solvers.central import AskColumns, Columns
from colonnade.transports.envelopes import Ask, RunEnd
from power_loss import power_loss

CODEC = codec()
TABLE = np.random.default_rng(0).normal(size=(40, 2))

IDENTITIES: dict[str, Identity] = {**identities_here(["bank", "shop"], os.urandom)}


class Office:
    """A desk that can be closed and opened again on the same folder.

    Its runs answer whatever a handler does: no sheet says what is due, unless `opening` is how they begin.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.options = folder, options
        self.delivered: list[Delivery] = []
        self.now, self.tick = datetime(2026, 1, 1, 12, tzinfo=UTC), 0.0
        self.data = TABLE
        self.open()

    def open(self) -> None:
        options = dict(self.options)
        policy, opening = options.pop("policy", cn.Policy(level="open")), options.pop("opening", None)
        self.state = StateFolder(self.folder)
        self.memory = KeptInFile(self.folder / MEMORY)
        self.allowance = Allowance(
            self.folder / "spent.json",
            options.get("server", SERVER),
            options.pop("a_day", DayLimits()),
            options.pop("requests_a_minute", None),
            now=lambda: self.now,
            ticks=lambda: self.tick,
        )
        table = cn.Party("bank", self.data, label=self.data[:, 0]).table
        self.desk = PartyDesk(
            PartySession(table, HANDLERS, policy, IDENTITIES["bank"], self.memory, opening),
            CODEC,
            allowance=self.allowance,
            folder=self.state,
            log=EventLog(self.folder / "log.jsonl"),
            deliver=self.delivered.append,
            **options,
        )

    def die_and_return(self) -> None:
        self.state.release()  # the operating system does that when a process dies
        self.open()

    def ask(self, number: int, message: Message, run: str = "fit-1") -> Message:
        answer = self.desk.answer(Ask(run, number, CODEC.encode(message)))
        self.desk.after_sending()
        assert answer is not None
        assert (answer.run, answer.number) == (run, number)
        return CODEC.decode(answer.payload)

    def log(self, event: str) -> list[dict[str, Any]]:
        lines = map(json.loads, (self.folder / "log.jsonl").read_text().splitlines())
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


TOTAL, DRAW = AskTotal(LeverageScores(fit_intercept=True)), DrawRows(5, 7, Draws.STRATIFIED)


def test_a_journal_keeps_the_last_replies_of_a_long_phase(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a server without power may have lost, and it has forced the others to its disk."""
    monkeypatch.setattr(desk, "LARGE", 300)
    sizes = []
    for number in range(1, 100):
        office.ask(number, TOTAL)
        records = list(read_records(Journal(office.state.journal("fit-1"))))
        sizes.append(sum(len(each.reply) for each in records if isinstance(each, AnswerRecord) and each.reply))
    assert max(sizes) < 700
    assert sum(1 for each in records if isinstance(each, AnswerRecord)) == 99, "requests rebuild the state"
    for _ in range(2):
        assert isinstance(office.ask(95, TOTAL), Total)
        assert isinstance(office.ask(5, TOTAL), Refused)
        office.die_and_return()
    assert isinstance(office.ask(100, TOTAL), Total)


def test_what_was_counted_before_a_kill_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The party dies between counting and answering; the same in another run of this name is counted again."""
    office = Office(tmp_path, a_day=DayLimits(row_ids=10))
    office.ask(1, TOTAL)
    with monkeypatch.context() as dying:
        dying.setattr(PartyDesk, "_record", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            office.ask(2, DRAW)
    office.die_and_return()
    assert isinstance(office.ask(2, DRAW), DrawnRows)
    office.desk.end(RunEnd("fit-1", "done", ""))
    office.ask(1, TOTAL)
    assert isinstance(office.ask(2, DRAW), DrawnRows)
    office.desk.end(RunEnd("fit-1", "done", ""))
    office.ask(1, TOTAL)
    assert isinstance(office.ask(2, DRAW), Refused), "ten were told"


def test_without_power_at_any_step_what_was_told_is_counted_and_nothing_else_is_told_instead(tmp_path: Path) -> None:
    """A server that gets an answer, and then the party without its memory, could ask as often as it likes."""
    requests = (TOTAL, DRAW, UseAllRows(), AskColumns(with_label=True))
    step, finished = 0, False
    while not finished:
        home = tmp_path / f"{step}"
        home.mkdir()
        told: list[bytes] = []
        with power_loss(home) as power:
            office = Office(home, a_day=DayLimits(row_ids=10))

            def work(office: Office = office, told: list[bytes] = told) -> None:
                for number, request in enumerate(requests, start=1):
                    answer = office.desk.answer(Ask("fit-1", number, CODEC.encode(request)))
                    assert answer is not None
                    told.append(answer.payload)
                    office.desk.after_sending()

            finished = power.cut_after(step, work)
        office.die_and_return()
        last = len(told) if len(told) != 3 else 2  # the third reply tells nothing: it may be forgotten
        if told:
            again = office.ask(last, requests[last - 1])
            assert CODEC.encode(again) == told[last - 1], "it repeats itself"
            assert isinstance(office.ask(last, AskTotal(LeverageScores(fit_intercept=False))), Refused)
        if len(told) >= 2:
            assert office.allowance.left()["row_ids"] == 5
        step += 1
    assert step > 40


def test_a_disk_that_is_full_is_an_error_of_the_request_and_not_the_end_of_the_party(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.ask(1, TOTAL)
    with monkeypatch.context() as full:
        full.setattr(Journal, "append", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        assert isinstance(office.ask(2, DRAW), Refused)
    assert isinstance(office.ask(2, DRAW), DrawnRows)
    with monkeypatch.context() as full:
        full.setattr(Journal, "compact", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        office.ask(1, UseAllRows(), "fit-2")
        assert isinstance(office.ask(2, AskColumns(with_label=False), "fit-2"), Columns)
    assert office.log("not compacted")
    office.die_and_return()
    assert set(office.desk.open_runs) == {"fit-1", "fit-2"}


def test_the_owner_is_told_of_paths_that_the_server_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*_: object) -> NoReturn:
        raise InputError("its table changed: '/wards/ann.parquet' has another size now.")

    shown: list[str] = []
    office = Office(tmp_path, show=shown.append)
    refused = office.ask(1, DRAW)
    assert isinstance(refused, Refused)
    assert not shown, "it is in the log, whole"
    monkeypatch.setattr(LeverageScores, "scores", changed)
    refused = office.ask(1, TOTAL)
    assert isinstance(refused, Refused)
    assert refused.reason == "its table changed: '<path>' has another size now."
    assert shown == ["Refused: its table changed: '/wards/ann.parquet' has another size now."]


def test_a_repeated_number_is_answered_from_the_journal(office: Office) -> None:
    assert isinstance(office.ask(1, TOTAL), Total)
    first = office.ask(2, DRAW)
    again = office.ask(2, DRAW)
    assert isinstance(first, DrawnRows)
    assert isinstance(again, DrawnRows)
    assert first.rows.tolist() == again.rows.tolist()
    assert len(office.log("repeated")) == 1
    assert len(office.log("answered")) == 2


def test_earlier_requests_of_the_phase_are_answered_from_the_journal_too(office: Office) -> None:
    """A server whose machine lost its power asks again what it asked since the phase began."""
    requests: list[tuple[int, Message]] = [(1, TOTAL), (2, DRAW), (3, UseAllRows())]
    first = [CODEC.encode(office.ask(*request)) for request in requests]
    assert [CODEC.encode(office.ask(*request)) for request in requests] == first
    columns = office.ask(4, AskColumns(with_label=False))
    assert isinstance(columns, Columns)
    assert isinstance(office.ask(2, DRAW), Refused), "the phase is over: the server has those replies"
    assert [line["number"] for line in office.log("repeated")] == [1, 2, 3]


def test_a_party_that_died_goes_on_where_it_was(office: Office) -> None:
    office.ask(1, TOTAL)
    first = office.ask(2, DRAW)
    office.die_and_return()
    assert office.desk.open_runs == ("fit-1",)
    again = office.ask(2, DRAW)
    assert isinstance(first, DrawnRows)
    assert isinstance(again, DrawnRows)
    assert again.rows.tolist() == first.rows.tolist()
    office.ask(3, UseAllRows())
    office.die_and_return()
    assert isinstance(office.ask(4, AskColumns(with_label=True)), Columns)


def keys_of(*replies: Message) -> CircleKeys:
    keys = (each for each in replies if isinstance(each, PublicKey))
    return CircleKeys(*relayed_keys((each.key, each.exchanged, each.signature) for each in keys))


def the_shop() -> tuple[SignedRows, Message]:
    """Let the shop draw five rows, too; give what it signed, and its key."""
    shop = party_session(cn.Party("shop", TABLE).table, cn.Policy(level="open"), IDENTITIES["shop"])
    _, _, drawn = map(shop.answer, (Hello(WIRE_VERSION), TOTAL, DRAW))
    assert isinstance(drawn, DrawnRows)
    return SignedRows("shop", drawn.rows, drawn.signature), shop.answer(AskPublicKey())


def masked_scores(ours: Message) -> AskMaskedScores:
    """Ask for the scores of the ten rows that both drew, where the bank told this key."""
    drawn, theirs = the_shop()
    return AskMaskedScores(10, (drawn,), 0.0, 0, 6, 40, keys_of(ours, theirs))


def test_a_key_is_lost_with_the_process_and_the_run_is_not(office: Office) -> None:
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    key = office.ask(3, AskPublicKey())
    office.die_and_return()
    assert office.desk.open_runs == ("fit-1",)
    again = office.ask(3, AskPublicKey())
    assert isinstance(key, PublicKey)
    assert isinstance(again, PublicKey)
    assert again.key == key.key, "a request is answered once"
    masked = office.ask(4, masked_scores(key))
    assert isinstance(masked, MaskedScores)
    assert masked.masked is None, "it says that it has that key no longer"
    office.die_and_return()
    assert isinstance(office.ask(5, AskPublicKey()), PublicKey)


def test_masked_scores_are_told_once_over_a_restart(office: Office) -> None:
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    request = masked_scores(office.ask(3, AskPublicKey()))
    first = office.ask(4, request)
    office.die_and_return()
    again = office.ask(4, request)
    assert isinstance(first, MaskedScores)
    assert isinstance(again, MaskedScores)
    assert first.masked is not None
    assert again.masked == first.masked


def pinned(name: str) -> PinnedIdentity:
    pins = {each: signing_key(each.encode().ljust(32)) for each in ("bank", "shop")}
    return PinnedIdentity(name, name.encode().ljust(32), pins, os.urandom)


SHOPS_PART = b"c" * 32
COMMIT = AskCommitment(IntegerScores(LeverageScores(fit_intercept=False), 57), contribution_digest(SERVER, b"s" * 32))


def committed_by_the_bank(office: Office, monkeypatch: pytest.MonkeyPatch) -> AskContribution:
    """Let the bank, with an identity that is no rehearsal, commit; give the request for its contribution."""
    monkeypatch.setitem(IDENTITIES, "bank", pinned("bank"))
    office.die_and_return()
    commitment = office.ask(1, COMMIT)
    assert isinstance(commitment, Commitment)
    of_bank = PartyCommitment(commitment_of("bank", commitment), commitment.contribution_digest, commitment.signature)
    sealed = contribution_digest("shop", SHOPS_PART)
    of_shop = PartyCommitment(b"", sealed, pinned("shop").sign(commitment_statement("shop", b"", COMMIT, b"", sealed)))
    return AskContribution((of_bank, of_shop))


@pytest.mark.parametrize("dies_before", ["contribution", "draw", "scores"])
def test_a_contribution_is_the_same_after_a_restart(
    office: Office, monkeypatch: pytest.MonkeyPatch, dies_before: str
) -> None:
    told = committed_by_the_bank(office, monkeypatch)
    if dies_before == "contribution":
        office.die_and_return()
    contribution = office.ask(2, told)
    assert isinstance(contribution, Contribution)
    assert contribution_digest("bank", contribution.value) == told.parties[0].contribution_digest
    if dies_before == "draw":
        office.die_and_return()
        assert CODEC.encode(office.ask(2, told)) == CODEC.encode(contribution), "a request is answered once"
    draw = DrawCommitted(5, 0, b"s" * 32, (contribution.value, SHOPS_PART))
    drawn = office.ask(3, draw)
    assert isinstance(drawn, CommittedRows)
    if dies_before == "scores":
        office.die_and_return()
    again = office.ask(3, draw)
    assert isinstance(again, CommittedRows)
    assert again.rows.tolist() == drawn.rows.tolist()
    key, nobodys = joint_key(b"s" * 32, draw.parties), np.array([], np.int64)
    signature = pinned("shop").sign(joint_draw_statement("shop", b"", key, again.rows, nobodys))
    theirs = SignedRows("shop", again.rows, signature)
    assert isinstance(office.ask(4, AskScores(10, (theirs,), 0.0, 0)), Scores)


def test_another_run_has_another_contribution_to_the_same_request(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a server that plays a draw to its end would know all contributions of the next one."""
    told = committed_by_the_bank(office, monkeypatch)
    known = office.ask(2, told)
    assert isinstance(known, Contribution)
    office.desk.end(RunEnd("fit-1", "done", ""))
    again = office.ask(1, COMMIT)
    assert isinstance(again, Commitment)
    assert again.contribution_digest != told.parties[0].contribution_digest
    refused = office.ask(2, told)
    assert isinstance(refused, Refused)
    assert "another commitment of this party than it made in this run" in refused.reason


@pytest.mark.parametrize("number", [1, 3, 4, 1 << 39])
def test_numbers_out_of_order_are_refused_and_change_nothing(office: Office, number: int) -> None:
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    reply = office.ask(number, UseAllRows() if number != 3 else AskColumns(with_label=False))
    assert isinstance(reply, Refused)
    assert reply.cause == "order"
    assert isinstance(office.ask(3, UseAllRows()), Ready)


def test_the_same_number_with_another_request_is_refused(office: Office) -> None:
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    reply = office.ask(2, DrawRows(5, 8, Draws.STRATIFIED))
    assert isinstance(reply, Refused)
    assert "request 2 does not follow request 2, or differs from it" in reply.reason


def test_a_run_in_the_middle_is_not_begun(office: Office) -> None:
    reply = office.ask(2, DRAW)
    assert isinstance(reply, Refused)
    assert "it does not know this run" in reply.reason


def test_runs_do_not_see_each_other(office: Office) -> None:
    office.ask(1, TOTAL)
    assert isinstance(office.ask(1, TOTAL, run="fit-2"), Total)
    assert isinstance(office.ask(2, DRAW), DrawnRows)
    assert isinstance(office.ask(2, AskColumns(with_label=False), run="fit-2"), Refused)
    assert isinstance(office.ask(1, Hello(WIRE_VERSION), run="hello-1"), Card)


def test_ended_runs_leave_nothing(office: Office) -> None:
    office.ask(1, TOTAL)
    assert list(office.folder.glob("*.journal"))
    office.desk.end(RunEnd("fit-1", "done", ""))
    office.desk.end(RunEnd("unheard-of", "failed", "whatever"))
    assert not list(office.folder.glob("*.journal"))
    assert not office.desk.open_runs


def test_reasons_of_lost_runs_are_kept_for_some_only(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "KEPT_REASONS", 3)
    for number in range(5):
        office.ask(1, TOTAL, run=f"fit-{number}")
        office.desk.give_up("the server stayed away")
    reasons = [office.ask(2, DRAW, run=f"fit-{number}") for number in range(5)]
    kept = ["the server stayed away" in each.reason for each in reasons if isinstance(each, Refused)]
    assert kept == [False, False, True, True, True]


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    office = Office(tmp_path, max_runs=2)
    for name in ("fit-1", "fit-2"):
        assert isinstance(office.ask(1, TOTAL, run=name), Total)
    reply = office.ask(1, TOTAL, run="fit-3")
    assert isinstance(reply, Refused)
    assert reply.cause == "policy"
    office.desk.end(RunEnd("fit-1", "failed", ""))
    assert isinstance(office.ask(1, TOTAL, run="fit-3"), Total)


def test_bytes_that_are_no_message_are_refused_and_logged(office: Office) -> None:
    for payload in (b"", b"\xc1", b"x" * 100, CODEC.encode(UseAllRows())[:-1]):
        answer = office.desk.answer(Ask("fit-1", 1, payload))
        assert answer is not None
        reply = CODEC.decode(answer.payload)
        assert isinstance(reply, Refused)
        assert reply.cause == "request"
    assert len(office.log("refused")) == 4


def test_other_data_after_a_restart_loses_the_run_and_says_so(office: Office) -> None:
    office.ask(1, TOTAL)
    office.data = TABLE * [1.0, 0.0]  # of another rank, and so of another total
    office.die_and_return()
    reply = office.ask(2, DRAW)
    assert isinstance(reply, Refused)
    assert "its data, policy or key has changed" in reply.reason
    assert office.log("run lost")
    assert not list(office.folder.glob("*.journal"))


def test_the_journal_keeps_only_the_last_reply_after_a_phase(office: Office) -> None:
    office.ask(1, UseAllRows())
    office.ask(2, AskColumns(with_label=True))
    path = office.folder / "fit-1.journal"
    before = path.stat().st_size
    office.ask(3, UseAllRows())
    office.ask(4, AskColumns(with_label=True))
    assert path.stat().st_size < 1.3 * before, "the first columns were dropped when their phase was over"
    office.die_and_return()
    assert isinstance(office.ask(4, AskColumns(with_label=True)), Columns)


def test_rows_a_day_outlive_a_restart_and_end_with_the_day(tmp_path: Path) -> None:
    office = Office(tmp_path, a_day=DayLimits(rows=100))
    columns = AskColumns(with_label=False)
    office.ask(1, UseAllRows())
    assert isinstance(office.ask(2, columns), Columns)
    assert isinstance(office.ask(2, columns), Columns), "a repeat tells nothing new"
    office.die_and_return()
    assert isinstance(office.ask(3, columns), Columns)
    reply = office.ask(4, columns)
    assert isinstance(reply, Refused)
    assert reply.cause == "policy"
    assert "limits replies to 100 rows a day; 80 were sent today, and this reply has 40" in reply.reason
    office.now += timedelta(days=1)
    assert isinstance(office.ask(4, columns), Columns), "and the run goes on"


def test_a_question_of_many_windows_is_refused_before_the_first_is_told(tmp_path: Path) -> None:
    """Else a day would be spent on a part that is good for nothing."""
    office = Office(tmp_path, a_day=DayLimits(rows=30_000))
    office.data = np.random.default_rng(0).normal(size=(40_000, 2))
    office.die_and_return()
    office.ask(1, UseAllRows())
    centers = sendable_floats(np.zeros((20, 2)))
    reply = office.ask(2, AskPartialDistances(centers, None, 0, 16_384))
    assert isinstance(reply, Refused)
    assert "limits replies to 30,000 rows a day; 0 were sent today" in reply.reason
    assert "with those that follow it 40,000" in reply.reason


COEF = sendable_floats([1.0, 2.0])


def window(number: int) -> AskPartialPredictions:
    first = number * 16_384
    return AskPartialPredictions(COEF, False, False, first, min(first + 16_384, 40_000))


def windowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Office:
    """Open an office of three windows, in a job that asks for each once."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    part = model_digest((COEF, None, None))
    opening = then(routes.Ask(UseAllRows), predicted_route(part, 40_000, None, 0, delivered=False))
    office = Office(tmp_path, opening=opening, **options)
    office.data = np.random.default_rng(0).normal(size=(40_000, 2))
    office.die_and_return()
    return office


def test_windows_of_one_question_are_one_request_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table has many; the sheet says how many, and that each comes once."""
    office = windowed(tmp_path, monkeypatch, requests_a_minute=3)
    office.ask(1, UseAllRows())
    assert [type(office.ask(2 + each, window(each))) for each in range(3)] == [PartialPredictions] * 3
    assert isinstance(office.ask(1, UseAllRows(), run="fit-2"), Ready)
    reply = office.ask(2, window(0), run="fit-2")
    assert isinstance(reply, Refused)
    assert "limits requests to 3 a minute" in reply.reason


def test_windows_that_are_not_due_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server would ask without end for what it is refused."""
    office = windowed(tmp_path, monkeypatch, requests_a_minute=5)
    office.ask(1, UseAllRows())
    reasons = [office.ask(2, window(2)) for _ in range(8)]
    assert all(isinstance(each, Refused) for each in reasons)
    assert ["a minute" in each.reason for each in reasons if isinstance(each, Refused)] == [False] * 4 + [True] * 4


def test_a_window_that_is_refused_is_counted_when_it_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is due, and stays so: its owner's day is over, and it would be computed and refused without end."""
    office = windowed(tmp_path, monkeypatch, requests_a_minute=6, a_day=DayLimits(numbers=60_000))
    for run in ("A", "B"):
        office.ask(1, UseAllRows(), run=run)
        office.ask(2, window(0), run=run)
    for number in (3, 4):
        office.ask(number, window(number - 2), run="A")
    reasons = [reply.reason for _ in range(9) if isinstance(reply := office.ask(3, window(1), run="B"), Refused)]
    assert ["a minute" in each for each in reasons] == [False] * 3 + [True] * 6


def test_after_a_restart_no_window_but_the_last_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = windowed(tmp_path, monkeypatch)
    office.ask(1, UseAllRows())
    first, second = (office.ask(2 + each, window(each)) for each in range(2))
    computed: list[int] = []

    def counting(*what: Any) -> Any:
        computed.append(1)
        return _products(*what)

    monkeypatch.setattr("colonnade.evaluation.linear._products", counting)
    office.die_and_return()
    assert len(computed) == 1, "of the one block of the one that the server may ask for again"
    again = office.ask(3, window(1))
    assert isinstance(again, PartialPredictions)
    assert isinstance(second, PartialPredictions)
    np.testing.assert_array_equal(again.values, second.values)
    assert isinstance(office.ask(4, window(2)), PartialPredictions), "it goes on"
    assert isinstance(first, PartialPredictions)


def test_a_calendar_that_is_set_back_gives_no_second_day(tmp_path: Path) -> None:
    office = Office(tmp_path, a_day=DayLimits(rows=40))
    columns = AskColumns(with_label=False)
    office.ask(1, UseAllRows())
    assert isinstance(office.ask(2, columns), Columns)
    office.now -= timedelta(days=1)
    assert isinstance(office.ask(3, columns), Refused)
    office.now += timedelta(days=2)
    assert isinstance(office.ask(3, columns), Columns)


def test_a_calendar_that_jumps_to_and_fro_gives_no_day_twice(tmp_path: Path) -> None:
    office = Office(tmp_path, a_day=DayLimits(row_ids=5))
    answered = []
    for number, days in enumerate((0, 1, -1, 1, 0, -30, 1), start=1):
        office.now = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=days)
        run = f"fit-{number}"
        office.ask(1, TOTAL, run)
        answered.append(isinstance(office.ask(2, DRAW, run), DrawnRows))
        office.desk.end(RunEnd(run, "done", ""))
        office.die_and_return()
    assert answered == [True, True, False, False, False, False, False]


def test_requests_a_minute(tmp_path: Path) -> None:
    office = Office(tmp_path, requests_a_minute=2)
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    reply = office.ask(3, UseAllRows())
    assert isinstance(reply, Refused)
    assert "limits requests to 2 a minute" in reply.reason
    office.tick += 61
    assert isinstance(office.ask(3, UseAllRows()), Ready)


PARTIES = (PartyCard("bank", 40, ("a", "b"), "y"), PartyCard("shop", 40, ("c", "d"), None))


def job(**what: Any) -> OpenJob:
    """Open a fit of both parties, on all rows, by an honest server."""
    options = {"task": cn.Regression(), "sampler": cn.AllRows(), "solver": cn.Central(), "seed": 1, **what}
    sheet = msgspec.msgpack.encode(sheet_of("fit", options, Roster(PARTIES), None))
    return OpenJob(sheet, IDENTITIES[SERVER].sign(sheet_statement(sheet)))


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (cn.Policy(level="open", tasks=["kmeans"]), "allows the tasks kmeans, not 'regression'"),
        (cn.Policy(level="open", phases=["sampling"]), "allows the phases sampling, not 'solving'"),
        (cn.Policy(level="open", solvers=["saga"]), "allows the solvers saga, not 'central'"),
        (cn.Policy(level="open", rows_a_request=39), "limits a reply to 39 rows; this Columns has 40"),
        (cn.Policy(level="open", never=["features"]), "never reveals features"),
    ],
    ids=str,
)
def test_the_owners_policy_is_applied_and_logged(tmp_path: Path, policy: cn.Policy, reason: str) -> None:
    office = Office(tmp_path, policy=policy, opening=OPENING)
    assert isinstance(office.ask(1, Hello(WIRE_VERSION)), Card)
    requests = [job(), UseAllRows(), AskColumns(with_label=True)]
    replies = [office.ask(number, each, run="fit-2") for number, each in enumerate(requests, start=1)]
    refusal = next(reply for reply in replies if isinstance(reply, Refused))
    assert refusal.cause == "policy"
    assert reason in refusal.reason
    logged = office.log("refused")[0]
    assert logged["reason"] == refusal.reason
    assert (logged["run"], logged["server"]) == ("fit-2", "server")


def test_a_run_answers_only_what_its_sheet_entails_also_after_a_restart(tmp_path: Path) -> None:
    office = Office(tmp_path, opening=OPENING)
    assert isinstance(office.ask(1, UseAllRows()), Refused), "no sheet opened it"
    assert isinstance(office.ask(1, job()), JobAccepted)
    assert isinstance(office.ask(2, UseAllRows()), Ready)
    for _ in range(2):
        for request in (DRAW, TOTAL, UseAllRows(), AskColumns(with_label=False), job()):
            reply = office.ask(3, request)
            assert isinstance(reply, Refused)
            assert reply.cause == "order"
        office.die_and_return()
    assert isinstance(office.ask(3, AskColumns(with_label=True)), Columns)
    office.die_and_return()
    assert isinstance(office.ask(4, AskColumns(with_label=True)), Refused), "told once"


def test_the_log_says_what_a_run_is_for_as_its_sheet_does(tmp_path: Path) -> None:
    office = Office(tmp_path, opening=OPENING)
    office.ask(1, Hello(WIRE_VERSION), run="hello-1")
    office.ask(1, job())
    words = [
        {name: line.get(name) for name in ("run", "verb", "task", "sampler", "solver")}
        for line in office.log("run opened")
    ]
    assert words == [
        {"run": "hello-1", "verb": "hello", "task": None, "sampler": None, "solver": None},
        {"run": "fit-1", "verb": "fit", "task": "regression", "sampler": "all", "solver": "central"},
    ]


def moments_of(office: Office, seed: int, run: str) -> Message:
    """Open a fit of standardized columns, and ask for their moments on the half of the rows that is not held out."""
    split = cn.HoldOut(0.5, seed=seed)
    office.ask(1, job(task=cn.Regression(standardize=True), split=split), run=run)
    return office.ask(2, UseFrame("train", "standard", split, None, None), run=run)


def test_what_was_told_is_remembered_and_no_reason_to_refuse_a_run_that_goes_on(tmp_path: Path) -> None:
    office = Office(tmp_path, policy=cn.Policy(level="open", least_rows=20), opening=OPENING)
    moments = moments_of(office, 1, "fit-1")
    assert isinstance(moments, Moments)
    told = office.memory.notes()
    assert {type(note) for note in told} == {SumNote, TableKey}
    assert len(told) == 2
    office.die_and_return()
    assert office.memory.notes() == told, "the replay notes nothing anew"
    assert office.desk.open_runs == ("fit-1",)
    assert CODEC.encode(moments_of(office, 1, "fit-1")) == CODEC.encode(moments)
    assert isinstance(office.ask(3, UseAllRows()), Ready)
    assert CODEC.encode(moments_of(office, 1, "fit-2")) == CODEC.encode(moments), "the same sum tells nothing new"


def kept_by(seed: int) -> Rows:
    """Give the rows of a half that is not held out."""
    weights = counted(40, "train", cn.HoldOut(0.5, seed=seed), None, None)
    assert weights is not None
    return np.flatnonzero(weights)


def test_a_sum_of_nearly_the_rows_of_one_told_before_a_restart_is_refused(tmp_path: Path) -> None:
    ours = kept_by(1)
    near = next(seed for seed in range(2, 99) if len(np.setxor1d(ours, kept_by(seed))) < 20)
    office = Office(tmp_path, policy=cn.Policy(level="open", least_rows=20), opening=OPENING)
    assert isinstance(moments_of(office, 1, "fit-1"), Moments)
    office.desk.end(RunEnd("fit-1", "done", ""))
    office.die_and_return()
    refusal = moments_of(office, near, "fit-2")
    assert isinstance(refusal, Refused)
    assert refusal.cause == "policy"
    assert "rows apart from a sum that it has told before" in refusal.reason
    told = [note for note in office.memory.notes() if isinstance(note, SumNote)]
    assert len(told) == 1, "what is refused is not told"


def test_amounts_are_counted_by_kind_and_server_and_before_an_answer_leaves(tmp_path: Path) -> None:
    office = Office(tmp_path, a_day=DayLimits(row_ids=7))
    office.ask(1, TOTAL)
    office.ask(2, DRAW)
    spent = json.loads((tmp_path / "spent.json").read_text())
    assert spent["spent"] == {"server": {"moments": 1, "row_ids": 5}}
    office.ask(1, TOTAL, run="fit-2")
    reply = office.ask(2, DRAW, run="fit-2")
    assert isinstance(reply, Refused)
    assert "limits replies to 7 row ids a day; 5 were sent today, and this reply has 5" in reply.reason
    spent = json.loads((tmp_path / "spent.json").read_text())
    assert spent["spent"] == {"server": {"moments": 2, "row_ids": 5}}, "what is refused is not counted"
    office.options["server"] = "another"
    office.die_and_return()
    assert isinstance(office.ask(2, DRAW, run="fit-2"), DrawnRows), "another server has a day's amounts of its own"


def test_what_was_counted_stays_counted_where_the_party_dies_before_it_answers(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.ask(1, TOTAL)
    monkeypatch.setattr(desk, "write_record", lambda *_: [][1])
    assert isinstance(office.ask(2, DRAW), Refused)
    office.die_and_return()
    assert json.loads((office.folder / "spent.json").read_text())["spent"]["server"]["row_ids"] == 5


def test_predictions_are_handed_on_once_and_before_the_answer(office: Office) -> None:
    office.ask(1, UseAllRows())
    assert isinstance(office.ask(2, Deliver(sendable_floats(np.arange(40.0)), None, 0, 40)), Received)
    assert [delivery.predictions.tolist() for delivery in office.delivered] == [list(range(40))]
    office.die_and_return()
    assert len(office.delivered) == 1, "rebuilding the state delivers nothing anew"


def test_what_nobody_foresaw_leaves_the_run_as_it_was(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.ask(1, UseAllRows())
    request = Deliver(sendable_floats(np.arange(40.0)), None, 0, 40)
    shown: list[str] = []
    monkeypatch.setattr(office.desk, "_show", shown.append)
    monkeypatch.setattr(office.desk, "_deliver", lambda _: [][1])
    reply = office.ask(2, request)
    assert isinstance(reply, Refused)
    assert (reply.cause, "IndexError" in reply.reason, "out of range" in reply.reason) == ("failure", False, False)
    assert "IndexError: list index out of range" in shown[0]
    monkeypatch.undo()
    assert isinstance(office.ask(2, request), Received)


def test_what_is_wrong_with_a_cluster_is_for_its_owner_only(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def scores(*_: object) -> None:
        raise EngineError("The Dask cluster at tls://vault-7:8786 computes otherwise on vault-9 than here.")

    shown: list[str] = []
    monkeypatch.setattr(office.desk, "_show", shown.append)
    with monkeypatch.context() as patch:
        patch.setattr(LeverageScores, "scores", scores)
        reply = office.ask(1, TOTAL)
    assert isinstance(reply, Refused)
    assert reply.cause == "failure"
    assert "vault" not in reply.reason
    assert "vault-9" in shown[0]
    assert isinstance(office.ask(1, TOTAL), Total), "the next try may go well"


def test_a_run_that_cannot_be_rebuilt_is_lost_and_the_party_is_not(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.ask(1, TOTAL)
    monkeypatch.setattr(LeverageScores, "scores", lambda *_: np.linalg.inv(np.zeros((2, 2))))
    office.die_and_return()
    reply = office.ask(2, DRAW)
    assert isinstance(reply, Refused)
    assert "no longer in this run: it failed inside" in reply.reason
    assert "LinAlgError" not in reply.reason, "it can tell of the data"
    monkeypatch.undo()
    assert isinstance(office.ask(1, TOTAL, run="fit-2"), Total)


def test_the_log_holds_no_data_values(office: Office) -> None:
    office.ask(1, UseAllRows())
    office.ask(2, AskColumns(with_label=True))
    told = (office.folder / "log.jsonl").read_text()
    assert (
        '"reveals":["features","labels"],"rows":40,"row_ids":0,"keys":0,"numbers":120,"moments":0,"models":0,"units":120'
        in told
    )
    assert not any(f"{value:.4f}"[:6] in told for value in np.abs(TABLE.ravel()))
