"""A desk whose owner is asked for each job: it answers nothing before, each job is decided once, and nothing stays."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.contracts import PartyCard, Roster
from colonnade.job_sheets import sheet_of
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.node.allowance import Allowance, DayLimits
from colonnade.node.approval_words import words_of
from colonnade.node.approvals import (
    APPROVALS,
    ApprovalRules,
    Approvals,
    decide,
    decide_for_owner,
    decision_on,
    forget_all,
    pending_jobs,
)
from colonnade.node.desk import PartyDesk
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder
from colonnade.privacy.identities import identities_here
from colonnade.protocol.memory import KeptHere
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, OpenJob
from colonnade.signing import sheet_statement
from colonnade.transports.envelopes import Ask, RunEnd
from power_loss import killed, power_loss

CODEC = codec()
TABLE = np.random.default_rng(0).normal(size=(40, 2))
BANK = cn.Party("bank", TABLE, label=TABLE[:, 0], policy=cn.Policy(level="open")).table
ROSTER = Roster(
    (PartyCard("bank", 40, ("bank_0", "bank_1"), "bank_label"), PartyCard("shop", 40, ("a", "b", "c"), None))
)
IDENTITIES = identities_here(["bank", "shop"], os.urandom)


def job(**what: Any) -> OpenJob:
    options = {"task": cn.Regression(), "sampler": cn.AllRows(), "solver": cn.Central(), "seed": 1, **what}
    sheet = msgspec.msgpack.encode(sheet_of("fit", options, ROSTER, None))
    return OpenJob(sheet, IDENTITIES[SERVER].sign(sheet_statement(sheet)))


class Asking:
    """A desk whose owner is asked, that can be closed and opened again."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        self.path, self.said = folder, list[str]()
        self.rules = ApprovalRules(rules.get("within_seconds", 60.0), rules.get("hook", ()))
        self.open()

    def open(self) -> None:
        self.state, memory, policy = StateFolder(self.path), KeptHere(), cn.Policy(level="open")
        approvals = Approvals(
            self.path,
            self.rules,
            SERVER,
            lambda request, route: words_of(request.read(), route, "bank", BANK, policy, memory),
            self.said.append,
        )
        self.desk = PartyDesk(
            party_session(BANK, policy, IDENTITIES["bank"], memory),
            CODEC,
            allowance=Allowance(self.path / "spent.json", SERVER, DayLimits(), None),
            folder=self.state,
            log=EventLog(None),
            approvals=approvals,
            max_runs=2,
        )

    def die_and_return(self) -> None:
        self.state.release()
        self.open()

    def ask(self, request: Message, run: str = "fit-1") -> Message | None:
        answer = self.desk.answer(Ask(run, 1, CODEC.encode(request)))
        return None if answer is None else CODEC.decode(answer.payload)

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in (self.path / APPROVALS).iterdir())


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


def test_it_answers_when_the_owner_said_yes_also_after_a_restart(asking: Asking) -> None:
    assert asking.ask(job()) is None
    assert (asking.desk.is_waiting("fit-1"), asking.desk.open_runs) == (True, ("fit-1",))
    asking.die_and_return()
    assert (asking.desk.is_waiting("fit-1"), asking.desk.open_runs) == (True, ("fit-1",))
    assert asking.ask(job()) is None
    assert decide_for_owner(asking.path, "fit-1", is_approved=True).is_approved
    asking.die_and_return()
    assert not asking.desk.is_waiting("fit-1")
    assert isinstance(asking.ask(job()), JobAccepted)
    asking.desk.end(RunEnd("fit-1", "done", ""))
    assert asking.files == []
    assert asking.desk.open_runs == ()
    assert asking.ask(job()) is None, "the next run of the same job is another"


def test_a_no_is_the_owners_policy_and_stands(asking: Asking) -> None:
    asking.ask(job())
    decide_for_owner(asking.path, "fit-1", is_approved=False, reason="too many rows.")
    for _ in range(2):
        reply = asking.ask(job())
        assert isinstance(reply, Refused)
        assert (reply.cause, reply.reason) == ("policy", "its owner said no: too many rows. Ask its owner.")
    with pytest.raises(cn.InputError, match="is decided on already"):
        decide_for_owner(asking.path, "fit-1", is_approved=True)
    with pytest.raises(cn.InputError, match="No run 'fit-2' waits for its owner; those that wait: fit-1"):
        decide_for_owner(asking.path, "fit-2", is_approved=True)


def test_a_run_that_was_opened_again_with_another_sheet_is_looked_at_again(asking: Asking) -> None:
    asking.ask(job())
    (seen,) = pending_jobs(asking.path)
    asking.desk.end(RunEnd("fit-1", "failed", ""))
    asking.ask(job(solver=cn.Saga()))
    (now,) = pending_jobs(asking.path)
    assert seen.digest != now.digest
    with pytest.raises(cn.InputError, match=r"changed since you looked at it: run 'fit-1'\. Look again\."):
        decide_for_owner(asking.path, "fit-1", is_approved=True, digest=seen.digest)
    assert asking.desk.is_waiting("fit-1")
    assert decide_for_owner(asking.path, "fit-1", is_approved=True, digest=now.digest).is_approved


def test_the_owner_decides_on_the_sheet_that_was_shown(asking: Asking) -> None:
    asking.ask(job())
    other = asking.ask(job(solver=cn.Saga()))
    assert isinstance(other, Refused)
    assert "another job sheet of this run is with its owner" in other.reason
    decide_for_owner(asking.path, "fit-1", is_approved=True)
    assert isinstance(asking.ask(job(solver=cn.Saga())), Refused)
    assert isinstance(asking.ask(job()), JobAccepted)


def test_a_decision_that_was_left_behind_is_for_no_later_run(asking: Asking) -> None:
    """A command that decides in the moment in which the run ends leaves a file."""
    asking.ask(job())
    (waiting,) = pending_jobs(asking.path)
    asking.desk.end(RunEnd("fit-1", "failed", "the server gave up"))
    decide(asking.path / APPROVALS, waiting, is_approved=True, by="the owner's command", reason="")
    assert asking.ask(job()) is None
    assert asking.desk.is_waiting("fit-1")
    asking.desk.end(RunEnd("fit-1", "failed", "the server gave up"))
    decide(asking.path / APPROVALS, waiting, is_approved=True, by="the owner's command", reason="")
    asking.die_and_return()
    assert asking.files == []


@pytest.mark.parametrize("is_without_power", [False, True])
def test_killed_at_any_step_of_a_decision_there_is_a_whole_one_or_none(tmp_path: Path, is_without_power: bool) -> None:
    step, finished = 0, False
    while not finished:
        asking = Asking(tmp_path / f"{step}")
        asking.ask(job())
        with power_loss(asking.path) if is_without_power else killed(asking.path) as power:
            finished = power.cut_after(step, partial(decide_for_owner, asking.path, "fit-1", is_approved=True))
        asking.die_and_return()
        assert not any("draft" in name or "fresh" in name for name in asking.files)
        decided = not asking.desk.is_waiting("fit-1")
        assert decided or not finished
        if not decided:
            assert asking.ask(job()) is None
            decide_for_owner(asking.path, "fit-1", is_approved=False, reason="too late")
        assert isinstance(asking.ask(job()), JobAccepted if decided else Refused)
        step += 1
    assert step > 8


def test_the_first_decision_stands(asking: Asking) -> None:
    asking.ask(job())
    (waiting,) = pending_jobs(asking.path)

    def say(number: int) -> bool:
        word = {"is_approved": bool(number % 2), "reason": f"{number}"}
        return decide(asking.path / APPROVALS, waiting, by="the owner", **word).is_approved  # type: ignore[arg-type]

    with ThreadPoolExecutor(8) as threads:
        heard = set(threads.map(say, range(40)))
    stands = decision_on(asking.path, waiting)
    assert stands is not None
    assert heard == {stands.is_approved}
    assert sorted(name.rpartition(".")[2] for name in asking.files) == ["decision", "job"]


def test_time_that_runs_out_is_a_no_and_too_late_is_too_late(tmp_path: Path) -> None:
    asking = Asking(tmp_path, within_seconds=1e-3)
    asking.ask(job())
    (waiting,) = pending_jobs(tmp_path)
    while datetime.now(UTC) < waiting.until:
        pass
    with pytest.raises(cn.InputError, match="its time is over"):
        decide_for_owner(tmp_path, "fit-1", is_approved=True)
    reply = asking.ask(job())
    assert isinstance(reply, Refused)
    assert reply.reason == "its owner did not approve: nobody decided in 2.78e-07 hours. Ask its owner."


def test_runs_that_wait_count_as_open(asking: Asking) -> None:
    for run in ("fit-1", "fit-2"):
        assert asking.ask(job(), run) is None
    reply = asking.ask(job(), "fit-3")
    assert isinstance(reply, Refused)
    assert "limits it to 2 open runs" in reply.reason
    asking.desk.give_up("the server stayed away")
    assert (asking.files, asking.desk.open_runs) == ([], ())


def test_what_cannot_be_read_is_asked_again_and_never_a_yes(asking: Asking) -> None:
    asking.ask(job())
    (waiting,) = pending_jobs(asking.path)
    decide_for_owner(asking.path, "fit-1", is_approved=True)
    (kept,) = (asking.path / APPROVALS).glob("*.decision")
    kept.write_bytes(b"{")
    found = decision_on(asking.path, waiting)
    assert found is not None
    assert not found.is_approved
    (asking.path / APPROVALS / "fit-1.job").write_bytes(b"{")
    assert pending_jobs(asking.path) == []
    asking.die_and_return()
    assert asking.files == []
    assert asking.ask(job()) is None


def test_where_the_owner_is_asked_no_longer_nothing_waits(asking: Asking) -> None:
    asking.ask(job())
    forget_all(asking.path)
    assert asking.files == []
