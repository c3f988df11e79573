"""NVIDIA FLARE as the carrier: a round is one call of its Collab API to each party, with bytes in and bytes out.

FLARE provisions the sites, proves who they are, starts and ends their processes, and carries. A site is the party of
its name. Numbers, journals and the owner's policy are Colonnade's, as over gRPC.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from nvflare.collab import collab
from nvflare.collab.api.exceptions import RunAborted

from colonnade.errors import PartyUnreachableError, PolicyRefusedError, RemoteProtocolError
from colonnade.ledger import SERVER
from colonnade.transports.carriers import Desk, Log, Look, Outcome
from colonnade.transports.endpoints import PartyEndpoint, ServerEndpoint
from colonnade.transports.envelopes import (
    ENVELOPE_VERSION,
    MAX_PIECE_BYTES,
    Answer,
    Ask,
    FromParty,
    FromServer,
    Goodbye,
    Join,
    RunEnd,
    Welcome,
    encode_in_one_piece,
    from_party,
    from_server,
)

# The server's name among FLARE's callers, which FLARE proves.
CALLER = "server"
PAUSE, TELL_SECONDS = 0.5, 30.0


class FlareCarrier:
    """Calls the sites of a FLARE job; to be made and used inside the job's main function."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        log: Log,
        *,
        outcome: Outcome,
        on_change: Callable[[], None],
        look: Look = lambda _wanted: None,
    ) -> None:
        self._endpoint = endpoint
        self._log = log
        self._outcome = outcome
        self._on_change, self._look = on_change, look
        self._sites = {site.name for site in collab.clients}
        self._joined: set[str] = set()

    @property
    def missing(self) -> list[str]:
        """Parties that have not answered yet."""
        return [party for party in self._endpoint.parties if party not in self._joined]

    @property
    def owners_asked(self) -> list[str]:
        """Nobody: FLARE brings answers only."""
        return []

    def wait_for_all(self) -> None:
        """Require a site for each party, and let each forget runs that are over."""
        if absent := [party for party in self._endpoint.parties if party not in self._sites]:
            raise PartyUnreachableError(
                f"FLARE has no site {absent[0]!r} in this job; it has {', '.join(sorted(self._sites)) or 'none'}. "
                "Name parties as FLARE names its sites, and start them all before you submit.",
                party=absent[0],
            )
        for party, join in self._call({party: Welcome(party) for party in self._endpoint.parties}).items():
            if not isinstance(join, Join) or join.version != ENVELOPE_VERSION:
                raise RemoteProtocolError(
                    f"Party {party!r} does not use envelope version {ENVELOPE_VERSION}. Upgrade the older end.",
                    party=party,
                )
            for run in join.runs:
                if over := self._outcome(run):
                    self._tell(party, RunEnd(run, *over))
            self._joined.add(party)
            self._log("joined", party=party, runs=list(join.runs))
        self._on_change()

    def ask(self, asks: Mapping[str, Ask]) -> dict[str, bytes]:
        """Send each party its request, and nobody else's, and wait for all answers."""
        payloads = {}
        for party, answer in self._call(asks).items():
            if not isinstance(answer, Answer) or (answer.run, answer.number) != (asks[party].run, asks[party].number):
                raise RemoteProtocolError(f"Party {party!r} answered another request. See its log.", party=party)
            payloads[party] = answer.payload
        return payloads

    def tell_all(self, envelope: RunEnd | Goodbye) -> None:
        """Tell every party; who does not listen is told by the next job."""
        for party in self._joined:
            self._tell(party, envelope)

    def close(self) -> None:
        """Do nothing: FLARE ends what it started."""

    def _tell(self, party: str, envelope: RunEnd | Goodbye) -> None:
        call = _start(party, encode_in_one_piece(envelope), TELL_SECONDS)
        list(call)
        if call.failures:
            self._log("not told", party=party, kind=type(envelope).__name__)

    def _call(self, envelopes: Mapping[str, Ask | Welcome]) -> dict[str, FromParty]:
        """Call all at once, again where the call did not get through: a party repeats what it has answered."""
        waiting = {party: encode_in_one_piece(envelope) for party, envelope in envelopes.items()}
        replies: dict[str, bytes] = {}
        until = time.monotonic() + self._endpoint.wait_seconds
        while True:
            calls = {party: _start(party, data, self._endpoint.answer_seconds) for party, data in waiting.items()}
            for party, call in calls.items():
                replies.update(call)
                if party in call.failures:
                    self._check_hope(party, call.failures[party], until)
            waiting = {party: data for party, data in waiting.items() if party not in replies}
            if not waiting:
                return {party: self._read(party, replies[party]) for party in envelopes}
            self._look(list(waiting))
            time.sleep(PAUSE)

    def _check_hope(self, party: str, failure: Any, until: float) -> None:
        """Raise, unless calling again may help."""
        if collab.is_aborted:
            raise RunAborted("the job was aborted; submitted again it resumes the run")
        self._log("call failed", party=party, cause=str(failure.cause_type))
        if failure.remote_traceback is not None:
            raise RemoteProtocolError(f"Party {party!r} failed: {failure.cause}. See its log.", party=party)
        if failure.cause_type == TimeoutError.__name__:
            raise PartyUnreachableError(
                f"Party {party!r} gave no answer for {self._endpoint.answer_seconds:g} s. See its log, then run again.",
                party=party,
            )
        if time.monotonic() > until:
            raise PartyUnreachableError(
                f"Party {party!r} could not be reached for more than {self._endpoint.wait_seconds:g} s: "
                f"{failure.cause}. Start its site again, then submit the job again.",
                party=party,
            )

    def _read(self, party: str, reply: object) -> FromParty:
        if not isinstance(reply, bytes) or len(reply) > self._endpoint.max_message_bytes + MAX_PIECE_BYTES:
            raise RemoteProtocolError(f"Party {party!r} sent no envelope, or too large a one.", party=party)
        return next(from_party(iter([reply]), party, self._endpoint.max_message_bytes))


def _start(party: str, data: bytes, seconds: float) -> Any:
    """Start one call; iterating over it waits for the end."""
    return collab.get_clients([party])(blocking=False, timeout=seconds).take(data)


class FlareParty:
    """A party's side of the calls."""

    def __init__(self, endpoint: PartyEndpoint, desk: Desk) -> None:
        self._endpoint = endpoint
        self._desk = desk
        self._at_work = threading.Lock()  # FLARE calls from many threads, and again what it takes for lost

    def take(self, data: object, caller: str) -> bytes:
        """Answer one envelope of the server's. Sites can call each other; nobody else is answered."""
        if caller != CALLER:
            raise PolicyRefusedError(
                f"{self._endpoint.name!r} answers the server, not {caller!r}.", party=self._endpoint.name
            )
        limit = self._endpoint.max_message_bytes
        if not isinstance(data, bytes) or len(data) > limit + MAX_PIECE_BYTES:
            raise RemoteProtocolError("The server sent no envelope, or too large a one.", party=SERVER)
        envelope = next(from_server(iter([data]), limit))
        while (said := self._said(envelope)) is None:  # it waits for the owner
            time.sleep(PAUSE)
        return said

    def _said(self, envelope: FromServer) -> bytes | None:
        with self._at_work:
            self._desk.after_sending()
            if isinstance(envelope, Ask):
                answer = None if self._desk.is_waiting(envelope.run) else self._desk.answer(envelope)
                return None if answer is None else encode_in_one_piece(answer)
            if isinstance(envelope, Welcome):
                return encode_in_one_piece(Join(ENVELOPE_VERSION, self._desk.open_runs))
            if isinstance(envelope, RunEnd):
                self._desk.end(envelope)
            return b""

    def close(self) -> None:
        """Leave journals to the next job."""
        with self._at_work:
            self._desk.close()
