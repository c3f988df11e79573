"""The transport of a server whose parties are on other machines: numbered rounds, journaled, whatever carries them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox, Transport
from colonnade.errors import ColonnadeError, LocalProtocolError
from colonnade.ledger import SERVER
from colonnade.node.cancelling import forget_cancelling, stop_if_cancelled
from colonnade.node.files import FederationFile
from colonnade.node.identity_files import read_identity
from colonnade.node.log import LOG, EventLog
from colonnade.node.runs import RunBook, ServerRun
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.refusal import without_paths
from colonnade.protocol.run_purpose import RunPurpose
from colonnade.transports.carriers import MakeCarrier
from colonnade.transports.envelopes import Ask, Goodbye, RunEnd, Status
from colonnade.transports.revoked import Revoked

MAX_REASON = 1000


class NetworkServer:
    """Waits for the parties, and carries rounds to them; unfinished runs are found again in the state folder."""

    def __init__(self, file: FederationFile, carrier: MakeCarrier) -> None:
        self.file = file
        self.identity = read_identity(SERVER, file.identity, Revoked(file.revoked))
        self._codec = codec(file.max_message_bytes)
        self._folder = StateFolder(Path(file.state))
        self._log = EventLog(self._folder.path / LOG)
        self._book = RunBook(self._folder, self._log)
        self._run: ServerRun | None = None
        try:
            self._carrier = carrier(
                file, self._log.write, outcome=self._outcome, on_change=self._came_or_went, look=self._look
            )
        except ColonnadeError:
            self._folder.release()
            raise

    def wait_for_all(self) -> None:
        """Wait until every party is there."""
        self._came_or_went()
        self._carrier.wait_for_all()

    @contextmanager
    def run(self, purpose: RunPurpose, rounds: int = 0) -> Iterator[Transport]:
        """Give the rounds of a script a run: a new one, or an unfinished one that is for exactly this.

        An error of ours ends the run, for all sides, with its text. Whatever else stops it leaves it to be resumed.
        What a done run's result was made of stays until `forget_done`. `rounds` says how many there are, if known.
        """
        run = self._run = self._book.open(purpose)
        run.status.rounds = rounds
        for name in self._book.abandon(run):
            self._carrier.tell_all(RunEnd(name, *self._book.outcome(name)))
        try:
            yield self
        except ColonnadeError as error:
            self._end(run, "failed", without_paths(str(error))[:MAX_REASON])
            raise
        else:
            self._end(run, "done", "")
        finally:
            self._run = None
            run.close()

    def exchange(self, outbox: Outbox) -> Inbox:
        """Carry one round, or give back what the journal has of it."""
        run = self._run
        if run is None:
            raise LocalProtocolError("A round needs a run. Play scripts through the federation.")
        requests = {party: self._codec.encode(message) for party, message in outbox.items()}
        phase = next(iter(outbox.values())).phase
        if phase != run.status.phase:
            self._log.write("phase", run=run.status.run, phase=phase, round=run.number + 1)
            if run.number:
                run.sync()
        run.status.phase, run.status.round = phase, run.number + 1
        replies = run.recorded(requests)
        if replies is None:
            stop_if_cancelled(self._folder.path, run.status.run)
            replies = self._ask(run, requests)
            run.record(requests, replies)
        for party in outbox:
            _add(run.status.bytes_sent, party, len(requests[party]))
            _add(run.status.bytes_received, party, len(replies[party]))
        self._book.write_status()
        return {party: self._codec.decode(reply, party=party) for party, reply in replies.items()}

    def forget_done(self, saved: str | None = None) -> None:
        """Remove the journals of runs that are done: their results are kept, and saved there, if that is said."""
        self._book.forget_done(saved)

    def close(self, status: Status = "done", reason: str = "", code: int = 0) -> None:
        """Say goodbye to the parties, with the status that they shall report, and stop listening."""
        if status == "done":
            self.forget_done()
        self._carrier.tell_all(Goodbye(status, without_paths(reason)[:MAX_REASON], code))
        self._carrier.close()
        self._book.status.connected = []
        self._book.close()
        self._log.write("closed", status=status, reason=reason)
        self._log.close()
        self._folder.release()

    def _ask(self, run: ServerRun, requests: dict[str, bytes]) -> dict[str, bytes]:
        name = run.status.run
        try:
            return self._carrier.ask({party: Ask(name, run.numbers[party], each) for party, each in requests.items()})
        finally:
            self._book.status.owners_asked, self._book.status.awaited = [], []

    def _end(self, run: ServerRun, status: Status, reason: str) -> None:
        self._book.end(run, status, reason)
        self._carrier.tell_all(RunEnd(run.status.run, status, reason))
        self._book.tidy(run)
        forget_cancelling(self._folder.path, run.status.run)

    def _look(self, wanted: Sequence[str]) -> None:
        """While parties are waited for, stop where the run was cancelled, and say who they are."""
        if self._run is not None:
            stop_if_cancelled(self._folder.path, self._run.status.run)
            self._book.status.awaited = list(wanted)
            self._book.write_status()

    def _outcome(self, name: str) -> tuple[Status, str] | None:
        return None if self._book.knows(name) else self._book.outcome(name)

    def _came_or_went(self) -> None:
        missing = dict.fromkeys(self._carrier.missing)
        self._book.status.missing = list(missing)
        self._book.status.connected = [party for party in self.file.parties if party not in missing]
        self._book.status.owners_asked = self._carrier.owners_asked
        self._book.write_status(now=True)


def _add(counts: dict[str, int], party: str, number: int) -> None:
    counts[party] = counts.get(party, 0) + number
