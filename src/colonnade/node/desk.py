"""A party's desk: takes numbered requests of runs, answers each once, and remembers what it answered.

Every run has a session of its own. A request of this phase that comes again is answered from the journal, not anew;
after a restart a run's state is rebuilt by replaying its journaled requests through a fresh session.
"""

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from colonnade.contracts import Alignment
from colonnade.errors import ColonnadeError, EngineError, RemoteProtocolError
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.node.allowance import Allowance
from colonnade.node.approvals import Approvals
from colonnade.node.desk_records import (
    AnswerRecord,
    OpeningRecord,
    checksum_record,
    compacted_records,
    earlier_reply,
    is_same_reply,
    read_records,
    request_digest,
    write_record,
)
from colonnade.node.desk_words import reply_words, sheet_words
from colonnade.node.journal import Journal
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.codec import Codec
from colonnade.protocol.policy import amounts
from colonnade.protocol.refusal import Refused, failed, refused
from colonnade.protocol.session import Delivery, PartySession
from colonnade.protocol.sheet import JobAccepted, OpenJob
from colonnade.protocol.windows import windows_due
from colonnade.transports.envelopes import LARGE, Answer, Ask, RunEnd

NONCE_BYTES = 32
# Of so many runs that it left it can still say why.
KEPT_REASONS = 100


@dataclass
class _OpenRun:
    journal: Journal
    session: PartySession
    number: int = 0
    phase: str = ""
    phase_ended: bool = False
    request: bytes = b""
    reply: bytes = b""
    is_fresh: bool = False
    refused: int = 0  # the number of the request that it refused last
    opening: OpenJob | None = None
    # The size of each reply that the journal has, by its number.
    kept: dict[int, int] = field(default_factory=dict)

    def first_needed(self) -> int | None:
        """Tell which replies a server whose machine loses its power may ask for again; None if all that are kept.

        It has forced all of an earlier phase to its disk, and of this one all but the last megabyte.
        """
        if self.phase_ended:
            return self.number
        if sum(self.kept.values()) < 2 * LARGE:
            return None
        later = 0
        for number, size in reversed(self.kept.items()):
            later += size
            if later >= LARGE:
                return number
        return None

    def reply_to(self, ask: Ask) -> bytes | None:
        """Find what was answered to exactly this."""
        if ask.number == self.number and ask.payload == self.request:
            return self.reply
        return earlier_reply(self.journal, ask.number, ask.payload) if ask.number < self.number else None


class PartyDesk:
    """Answers for one party.

    Each run gets a session like `session`. `server` is the name in the server's certificate. `approvals` ask the owner
    for each job, where they are given. `is_signed` tells whether the signature that opened a run still counts.
    `deliver` is given predictions that were delivered to this party; `keep` an alignment of its rows, by which all
    later runs go; `show` the traceback of what failed inside, which can quote data and is for the owner's eyes only.
    """

    def __init__(
        self,
        session: PartySession,
        codec: Codec,
        *,
        allowance: Allowance,
        folder: StateFolder,
        log: EventLog,
        server: str = SERVER,
        max_runs: int = 4,
        approvals: Approvals | None = None,
        is_signed: Callable[[OpenJob], bool] = lambda _: True,
        deliver: Callable[[Delivery], None] = lambda _: None,
        keep: Callable[[Alignment], Alignment] = lambda alignment: alignment,
        show: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._codec = codec
        self._allowance = allowance
        self._folder = folder
        self._log = log
        self._server = server
        self._max_runs = max_runs
        self._approvals = approvals
        self._is_signed = is_signed
        self._deliver = deliver
        self._keep = keep
        self._show = show
        self._lost_runs: dict[str, str] = {}  # why, by run
        self._runs: dict[str, _OpenRun] = {}
        self._run_to_tidy: _OpenRun | None = None
        for path in folder.journals():
            self._rebuild(path.stem)

    @property
    def open_runs(self) -> tuple[str, ...]:
        """The runs it is in the middle of, or that wait for its owner."""
        waiting = () if self._approvals is None else self._approvals.runs
        return tuple(dict.fromkeys((*self._runs, *waiting)))

    def is_waiting(self, run: str) -> bool:
        """Tell whether a run waits for the owner."""
        approvals = self._approvals
        return approvals is not None and run in approvals.runs and approvals.decision(run) is None

    def answer(self, ask: Ask) -> Answer | None:
        """Answer a request, or repeat the answer it gave; None is: ask again when it no longer waits for the owner."""
        run = self._runs.get(ask.run)
        if run is not None and run.opening is not None and not self._is_signed(run.opening):
            self._drop(ask.run, "the pin under which the server signed its job sheet no longer counts")
            run = None
        if run is not None and (earlier := run.reply_to(ask)) is not None:
            self._log.write("repeated", run=ask.run, number=ask.number, server=self._server, bytes=len(earlier))
            return Answer(ask.run, ask.number, earlier)
        try:
            request = self._codec.decode(ask.payload, party=SERVER)
        except RemoteProtocolError as error:
            return self._refuse(ask, None, refused(error))
        reply = self._objection(ask, run, request) or self._reply(ask, run, request)
        if reply is None:
            return None
        if isinstance(reply, Refused):
            return self._refuse(ask, request, reply)
        return Answer(ask.run, ask.number, reply)

    def after_sending(self) -> None:
        """Do what an answer need not wait for: keep the journal small, note a large reply's checksum."""
        run, self._run_to_tidy = self._run_to_tidy, None
        if run is None:
            return
        try:
            if (first := run.first_needed()) is not None:
                run.journal.compact(compacted_records(run.journal, first))
                run.kept = {number: size for number, size in run.kept.items() if number >= first}
            if len(run.reply) >= LARGE:
                write_record(run.journal, checksum_record(run.number, run.reply))
        except OSError as error:  # a full disk: the journal is as it was, only longer
            self._log.write("not compacted", error=type(error).__name__)

    def end(self, end: RunEnd) -> None:
        """Forget a run that is over."""
        run = self._runs.pop(end.run, None)
        self._lost_runs.pop(end.run, None)
        was_asked = self._approvals is not None and self._approvals.forget(end.run)
        if run is not None:
            run.journal.remove()
        if run is not None or was_asked:
            facts = {"status": end.status, "reason": end.reason, "left": self._allowance.left()}
            self._log.write("run ended", run=end.run, server=self._server, **facts)

    def give_up(self, reason: str) -> None:
        """Forget every run, because the server stayed away."""
        for name in self.open_runs:
            self._drop(name, reason)

    def _drop(self, name: str, reason: str) -> None:
        """Be in a run no longer, whatever the server may think."""
        self.end(RunEnd(name, "failed", reason))
        self._lose(name, reason)

    def _lose(self, name: str, reason: str) -> None:
        self._lost_runs[name] = reason
        if len(self._lost_runs) > KEPT_REASONS:
            del self._lost_runs[next(iter(self._lost_runs))]

    def close(self) -> None:
        """Close the journals; they stay for the next process."""
        for run in self._runs.values():
            run.journal.close()
        if self._approvals is not None:
            self._approvals.close()

    def _objection(self, ask: Ask, run: _OpenRun | None, request: Message) -> Refused | None:
        """Say why this request is not the next one of its run."""
        if run is None and ask.run in self._lost_runs:
            return Refused("order", f"it is no longer in this run: {self._lost_runs[ask.run]}. Start the run again.")
        if run is None and ask.number != 1:
            return Refused("order", f"it does not know this run, and got request {ask.number}. Start the run again.")
        if run is not None and ask.number != run.number + 1:
            return Refused("order", f"request {ask.number} does not follow request {run.number}, or differs from it.")
        if run is None and ask.run not in self.open_runs and len(self.open_runs) >= self._max_runs:
            return Refused("policy", f"its owner's policy limits it to {self._max_runs:,} open runs. End one first.")
        if run is not None and request.goes_on and run.refused != ask.number and run.session.expects(request):
            return None  # the job sheet says how many windows follow the first, which was counted; each is asked once
        objection = self._allowance.objection_to_request()
        return Refused("policy", f"{objection}.") if objection else None

    def _reply(self, ask: Ask, run: _OpenRun | None, request: Message) -> bytes | Refused | None:
        session = self._session.greeted(os.urandom(NONCE_BYTES)) if run is None else run.session
        before = session.state
        try:
            reply = self._answer_within_limits(session, request, request_digest(before.run_nonce, ask))
            if isinstance(reply, Refused):
                if reply.cause == "request" and run is not None:
                    self._drop(ask.run, f"the server broke its rules: {reply.reason.removesuffix('.')}")
                else:
                    session.state = before
                return reply
            if self._approvals is not None and isinstance(request, OpenJob):
                verdict = self._owners_word(self._approvals, ask.run, request, session)
                if verdict != "yes":
                    return verdict
            encoded = self._record(ask, run, session, request, reply)
        except Exception as error:  # whatever a table, a kernel or the disk raises: the party stays for its other runs
            session.state = before
            return self._failure(ask.run, error)
        told = reply_words(request, reply, encoded)
        self._log.write("answered", run=ask.run, number=ask.number, server=self._server, **told)
        return encoded

    def _owners_word(
        self, approvals: Approvals, run: str, request: OpenJob, session: PartySession
    ) -> Literal["yes"] | Refused | None:
        """Ask the owner for a job that the policy has nothing against; None is: no word yet."""
        if approvals.is_other_sheet(run, request):
            return Refused("order", "another job sheet of this run is with its owner. Start the run again.")
        if session.state.route is not None and (job := approvals.ask(run, request, session.state.route)):
            self._log.write(
                "waiting for the owner",
                run=run,
                server=self._server,
                **sheet_words(request),
                until=job.until.isoformat(),
            )
        decision = approvals.decision(run)
        if decision is None:
            return None
        self._log.write("owner decided", run=run, approved=decision.is_approved, by=decision.by, reason=decision.reason)
        return "yes" if decision.is_approved else Refused("policy", decision.in_words())

    def _answer_within_limits(self, session: PartySession, request: Message, digest: str) -> Message:
        """Let the session answer, within the owner's amounts, and hand on what was delivered."""
        before = session.state
        reply = session.answer(request)
        if isinstance(reply, Refused):
            if session.why_refused not in ("", reply.reason):  # the server is told of no path
                self._show(f"Refused: {session.why_refused}")
            return reply
        if objection := self._allowance.objection_to_reply(request, reply, digest, windows_due(session, request)):
            return Refused("policy", f"{objection}.")
        received, aligned = session.state.received, session.state.aligned
        if received is not None and received is not before.received:
            self._deliver(received)
        if aligned is not None and aligned is not before.aligned:
            self._session = self._session.aligned(self._keep(aligned))
        return reply

    def _record(self, ask: Ask, run: _OpenRun | None, session: PartySession, request: Message, reply: Message) -> bytes:
        """Put an answer into the journal, and give it as it is sent."""
        encoded = self._codec.encode(reply)
        if run is None:
            run = _OpenRun(Journal(self._folder.journal(ask.run)), session)
            write_record(run.journal, OpeningRecord(session.state.run_nonce))
            self._folder.sync()
            self._runs[ask.run] = run
            left = self._allowance.left()
            table = {"table": (reply.fingerprint or b"").hex()} if isinstance(reply, JobAccepted) else {}
            self._log.write("run opened", run=ask.run, server=self._server, **sheet_words(request), **table, left=left)
        run.opening = request if isinstance(request, OpenJob) else run.opening
        is_large = len(encoded) >= LARGE
        record = AnswerRecord(ask.number, ask.payload, None if is_large else encoded)
        # If it says anything: a party without its memory could be asked for something else instead.
        write_record(run.journal, record, durable=bool(reply.__struct_fields__))
        run.phase_ended = request.phase != run.phase and ask.number > 1
        run.number, run.phase, run.request, run.reply = ask.number, request.phase, ask.payload, encoded
        if not is_large:
            run.kept[run.number] = len(encoded)
        self._run_to_tidy = run
        return encoded

    def _refuse(self, ask: Ask, request: Message | None, why: Refused) -> Answer:
        if ask.run in self._runs:
            self._runs[ask.run].refused = ask.number
        kind, why_not = None if request is None else request.kind, {"cause": why.cause, "reason": why.reason}
        self._log.write("refused", run=ask.run, number=ask.number, server=self._server, request=kind, **why_not)
        return Answer(ask.run, ask.number, self._codec.encode(why))

    def _failure(self, run: str, error: Exception) -> Refused:
        """Put an error into words for the server; those of its own machines, or unforeseen, are for the owner only."""
        if isinstance(error, ColonnadeError) and not isinstance(error, EngineError):
            return refused(error)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        self._log.write("failed", run=run, error=type(error).__name__, where=where)
        self._show("".join(traceback.format_exception(error)))
        return failed()

    def _rebuild(self, name: str) -> None:
        try:
            run = self._replayed(Journal(self._folder.journal(name)))
        except Exception as error:
            reason = self._failure(name, error).reason
            self._lose(name, reason.removesuffix("."))
            self._folder.journal(name).unlink(missing_ok=True)
            self._log.write("run lost", run=name, reason=reason)
            return
        if run is not None:
            self._runs[name] = run
            # With what it told last: it may have died before it could log that.
            told = amounts(*(self._codec.decode(each, party=SERVER) for each in (run.request, run.reply)))
            self._log.write("run rebuilt", run=name, number=run.number, server=self._server, **told)

    def _replayed(self, journal: Journal) -> _OpenRun | None:
        run, run_nonce = None, b""
        last = max((each.number for each in read_records(journal) if isinstance(each, AnswerRecord)), default=0)
        for record in read_records(journal):
            if isinstance(record, OpeningRecord):
                run_nonce = record.run_nonce
            if isinstance(record, AnswerRecord):
                run = run or _OpenRun(journal, self._session.greeted(run_nonce))
                request = self._codec.decode(record.request, party=SERVER)
                if record.reply is not None:
                    run.kept[record.number] = len(record.reply)
                if record.number < last and run.session.pass_over(request):
                    run.is_fresh = True  # the server has it: nothing is computed again, or compared
                    continue
                reply = run.session.answer(request)
                run.opening = request if isinstance(request, OpenJob) else run.opening
                # Fresh secrets went with the old process. What it had answered stays its answer, where that was kept.
                run.is_fresh = reply.fresh
                encoded = record.reply if reply.fresh and record.reply is not None else self._codec.encode(reply)
                run.number, run.phase, run.request, run.reply = record.number, request.phase, record.request, encoded
            if run is not None and not run.is_fresh and not is_same_reply(run.reply, record):
                raise RemoteProtocolError(
                    f"after a restart its reply to request {run.number} differs: its data, policy or key has changed."
                )
        if run is None:
            journal.remove()  # it died before its first answer
        return run
