"""The server's side of the streams: who is connected, who is asked what, who answered.

Parties dial in, each with one stream. A party that comes back is asked again what it had not answered. The name of a
party is what its certificate says.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import grpc

from colonnade.errors import PartyUnreachableError, RemoteProtocolError, TransportError
from colonnade.transports.carriers import Log, Look, Outcome
from colonnade.transports.endpoints import ServerEndpoint
from colonnade.transports.envelopes import (
    ENVELOPE_VERSION,
    Answer,
    Ask,
    EncodedEnvelope,
    FromParty,
    Goodbye,
    Join,
    OwnerAsked,
    RunEnd,
    Welcome,
    encode,
    from_party,
)
from colonnade.transports.grpc import wire
from colonnade.transports.grpc.certified import check_own, warnings_of_own
from colonnade.transports.grpc.handshakes import FailedHandshakes
from colonnade.transports.grpc.links import DaemonThreads, Link, most_files
from colonnade.transports.grpc.talk import MissingParties, say, say_who_was_refused, say_whose_owner
from colonnade.transports.revoked import Revoked

JOIN_SECONDS = 10.0
MAX_STREAMS_A_PARTY = 4
# Strangers have so many connections, until TLS is done or their time is up, and leave so many files to runs.
STRANGERS, FILES_FOR_RUNS = 128, 128
# So often who watches is told who stays away, and it is looked whether to wait any longer.
TICK_SECONDS = 1.0
MAX_STRAYS = 100
# A party that disconnects so often on one request does not answer it.
MAX_REJOINS = 20
OnWaiting = Callable[[Sequence[str]], None]


class Hub:
    """Listens for parties and carries numbered requests to them.

    `on_change` is told when a party came or went; `on_waiting` who is missing, again and again while they are waited
    for, and at the end that nobody is; `look` is told about every second who is waited for, and may raise.
    """

    def __init__(
        self,
        endpoint: ServerEndpoint,
        log: Log,
        *,
        outcome: Outcome,
        on_change: Callable[[], None],
        on_waiting: OnWaiting | None = None,
        look: Look = lambda _wanted: None,
    ) -> None:
        self._endpoint = endpoint
        self._log = log
        self._revoked = Revoked(endpoint.revoked, self._tell)
        self._outcome = outcome
        self._on_waiting = on_waiting or MissingParties()
        self._on_change, self._look = on_change, look
        self._changed = threading.Condition()
        self._links: dict[str, Link] = {}
        self._gone_since: dict[str, float] = dict.fromkeys(endpoint.parties, time.monotonic())
        self._streams: Counter[str] = Counter()
        self._expected: dict[str, tuple[str, int]] = {}
        self._pending: dict[str, EncodedEnvelope] = {}
        self._replies: dict[str, bytes] = {}
        self._rejoins: Counter[str] = Counter()
        self._server, self.port = self._listen()
        self._failed = FailedHandshakes(self._refused_unseen)

    @property
    def missing(self) -> list[str]:
        """Parties that are not connected."""
        return [party for party in self._endpoint.parties if party not in self._links]

    @property
    def owners_asked(self) -> list[str]:
        """Parties that wait until their owners approve."""
        with self._changed:
            links, asks = self._links, self._expected
            return [party for party in self._pending if party in links and links[party].owner_asked == asks[party]]

    def wait_for_all(self) -> None:
        """Wait until every party is there, or one has stayed away too long."""
        with self._changed:
            self._wait(lambda: self.missing, time.monotonic())

    def ask(self, asks: Mapping[str, Ask]) -> dict[str, bytes]:
        """Send each party its request and wait for all answers."""
        encoded = {party: encode(ask) for party, ask in asks.items()}
        with self._changed:
            links = list(self._links.items())
        for party, link in links:
            self._shut_out_if_revoked(party, link)
        with self._changed:
            self._expected = {party: (ask.run, ask.number) for party, ask in asks.items()}
            self._pending, self._replies = encoded, {}
            self._rejoins.clear()
            for party, envelope in encoded.items():
                if party in self._links:
                    self._links[party].send(envelope)
            try:
                self._wait(lambda: list(self._pending), time.monotonic())
            finally:
                self._expected, self._pending = {}, {}
            return {party: self._replies[party] for party in asks}

    def tell_all(self, envelope: RunEnd | Goodbye) -> None:
        """Tell every connected party."""
        with self._changed:
            for link in self._links.values():
                link.send(encode(envelope))

    def close(self) -> None:
        """Let what was sent arrive, and stop listening."""
        with self._changed:
            for link in self._links.values():
                link.close()
        self._server.stop(2.0).wait()
        self._failed.close()

    def _listen(self) -> tuple[Any, int]:
        endpoint = self._endpoint
        streams = MAX_STREAMS_A_PARTY * len(endpoint.parties) + 8
        # gRPC closes what goes beyond as soon as it has accepted it.
        connections = max(len(endpoint.parties), min(streams + STRANGERS, most_files() - FILES_FOR_RUNS))
        server = grpc.server(
            DaemonThreads(),
            options=[*wire.options(endpoint.keepalive_seconds), (wire.MOST_CONNECTIONS, connections)],
            maximum_concurrent_rpcs=streams,
        )
        handler = grpc.stream_stream_rpc_method_handler(self._stream)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.SERVICE, {wire.METHOD: handler}),))
        try:
            if endpoint.tls is None:
                port = server.add_insecure_port(endpoint.listen)
            else:
                check_own(endpoint.tls)
                for warning in warnings_of_own(endpoint.tls):
                    say(warning)
                port = server.add_secure_port(endpoint.listen, wire.listening_credentials(endpoint.tls))
        except RuntimeError as error:
            raise TransportError(
                f"The server cannot listen at {endpoint.listen}: {error}. Check that the port is free and that the "
                "certificates belong together."
            ) from error
        server.start()
        self._log("listening", address=endpoint.listen, port=port, tls=endpoint.tls is not None)
        return server, port

    def _wait(self, missing: Callable[[], list[str]], started: float) -> None:
        was_away, looked = False, started
        while wanted := missing():
            away = [party for party in wanted if party not in self._links]
            if away or was_away:
                self._on_waiting(away)
            was_away = bool(away)
            left = min(self._patience(party, started) for party in wanted)
            self._changed.wait(max(0.0, min(left, TICK_SECONDS)) + 0.001)
            if time.monotonic() - looked >= TICK_SECONDS:
                self._look(missing())
                looked = time.monotonic()
        if was_away:
            self._on_waiting([])

    def _patience(self, party: str, started: float) -> float:
        """Tell how many seconds a party still has, or raise that it has none."""
        now = time.monotonic()
        if self._rejoins[party] > MAX_REJOINS:
            raise self._unreachable(party, f"disconnected {MAX_REJOINS} times without answering the same request")
        if party in self._links:
            left = started + self._endpoint.answer_seconds - now
            if left <= 0:
                asked = self._links[party].owner_asked
                owner = ", because its owner did not decide" if asked and asked == self._expected.get(party) else ""
                raise self._unreachable(
                    party, f"is connected and gave no answer for {self._endpoint.answer_seconds:g} s{owner}"
                )
            return left
        left = max(self._gone_since[party], started) + self._endpoint.wait_seconds - now
        if left <= 0:
            raise self._unreachable(party, f"stayed away for more than {self._endpoint.wait_seconds:g} s")
        return left

    def _unreachable(self, party: str, what: str) -> PartyUnreachableError:
        return PartyUnreachableError(f"Party {party!r} {what}. Start it again, then the run.", party=party)

    def _stream(self, incoming: Iterator[bytes], context: Any) -> Iterator[bytes]:
        party, serial = self._admitted(context)
        link = Link(serial)
        if not context.add_callback(lambda: self._left(party, link)):
            self._left(party, link)
        threading.Thread(target=self._read, args=(party, link, incoming), daemon=True).start()
        if not link.joined.wait(JOIN_SECONDS):
            self._log("dropped", party=party, reason="it said nothing")
            link.close((grpc.StatusCode.DEADLINE_EXCEEDED, "nothing was said"))
        yield from link.outgoing()
        if link.refusal is not None:
            context.abort(*link.refusal)

    def _admitted(self, context: Any) -> tuple[str, int | None]:
        claimed = {str(value) for key, value in context.invocation_metadata() if key == wire.CLAIMED_NAME}
        shown = None if self._endpoint.tls is None else wire.shown_by(context)
        names = claimed if shown is None else shown.names
        known = [party for party in self._endpoint.parties if party in names]
        if len(known) != 1:
            self._log("refused", peer=context.peer(), names=sorted(names), reason="not one of the parties")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"the certificate names {sorted(names)}: no party here")
        if shown is not None and shown.serial in self._revoked.serials():
            self._log("refused", party=known[0], serial=f"{shown.serial:x}", reason="revoked")
            say(f"a certificate of {known[0]} that was revoked, {shown.serial:x}, was refused")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"its certificate, {shown.serial:x}, was revoked")
        if claimed - {known[0]}:
            self._log("refused", party=known[0], claimed=sorted(claimed), reason="not the certificate's name")
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"its party.toml says {', '.join(sorted(claimed))}, and its certificate is of {known[0]}",
            )
        if shown is not None and (warning := shown.warning(datetime.now(UTC))):
            self._log("expires soon", party=known[0], ends=shown.ends.isoformat())
            say(f"the certificate of {known[0]} {warning}")
        with self._changed:
            if self._streams[known[0]] >= MAX_STREAMS_A_PARTY:
                self._log("refused", party=known[0], reason="too many streams")
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "this party has too many streams open")
            self._streams[known[0]] += 1
        return known[0], None if shown is None else shown.serial

    def _read(self, party: str, link: Link, incoming: Iterator[bytes]) -> None:
        try:
            envelopes = from_party(incoming, party, self._endpoint.max_message_bytes)
            first = next(envelopes)
            if not isinstance(first, Join) or first.version != ENVELOPE_VERSION:
                raise RemoteProtocolError(
                    f"Party {party!r} does not use envelope version {ENVELOPE_VERSION}. Upgrade the older end.",
                    party=party,
                )
            self._joined(party, link, first)
            for envelope in envelopes:
                if self._shut_out_if_revoked(party, link):
                    return
                self._received(party, link, envelope)
        except RemoteProtocolError as error:
            self._log("refused", party=party, reason=str(error))
            link.close((grpc.StatusCode.INVALID_ARGUMENT, str(error)))
        except Exception as error:  # the stream broke, in one of gRPC's many ways
            self._log("stream broke", party=party, reason=type(error).__name__)
        finally:
            link.close()

    def _joined(self, party: str, link: Link, join: Join) -> None:
        with self._changed:
            if earlier := self._links.get(party):
                self._log("replaced", party=party)
                earlier.close((grpc.StatusCode.ABORTED, "a newer stream of the same party took its place"))
            self._links[party] = link
            link.send(encode(Welcome(party)))
            link.joined.set()
            for run in join.runs:
                if outcome := self._outcome(run):
                    link.send(encode(RunEnd(run, *outcome)))
            if party in self._pending:
                self._rejoins[party] += 1
                link.send(self._pending[party])
            self._log("joined", party=party, runs=list(join.runs))
            self._changed.notify_all()
        self._on_change()

    def _received(self, party: str, link: Link, envelope: FromParty) -> None:
        with self._changed:
            is_current = party in self._pending and self._links.get(party) is link
            expected = self._expected[party] if is_current else None
            is_due = not isinstance(envelope, Join) and expected == (envelope.run, envelope.number)
            if isinstance(envelope, OwnerAsked) and is_due and link.owner_asked != expected:
                link.owner_asked = expected
                self._log("waiting for the owner", party=party, run=envelope.run)
                say_whose_owner(party)
                self._on_change()
                return
            if isinstance(envelope, Answer) and is_due:
                self._replies[party] = envelope.payload
                del self._pending[party]
                if not self._pending:
                    self._changed.notify_all()
                return
        link.strays += 1
        self._log("stray envelope", party=party, kind=type(envelope).__name__)
        if link.strays > MAX_STRAYS:
            raise RemoteProtocolError(f"Party {party!r} sent {link.strays} unexpected envelopes. Check its version.")

    def _shut_out_if_revoked(self, party: str, link: Link) -> bool:
        """End the stream of a certificate that was revoked since: a party that has a new one dials again with it."""
        if link.serial is None or link.serial not in self._revoked.serials():
            return False
        if not link.left:
            self._log("shut out", party=party, serial=f"{link.serial:x}", reason="revoked")
            say(f"{party} was shut out: its certificate, {link.serial:x}, was revoked")
        link.close((grpc.StatusCode.UNAUTHENTICATED, f"its certificate, {link.serial:x}, was revoked"))
        self._left(party, link)
        return True

    def _refused_unseen(self, why: str, count: int) -> None:
        """Say that somebody was not let in: TLS tells no name before it has believed the certificate."""
        self._log("refused", reason=why, connections=count)
        say_who_was_refused(why, count, self.missing)

    def _tell(self, words: str) -> None:
        self._log("read again", words=words)
        say(words)

    def _left(self, party: str, link: Link) -> None:
        link.close()
        with self._changed:
            self._streams[party] -= not link.left
            link.left = True
            if self._links.get(party) is not link:
                return
            del self._links[party]
            self._gone_since[party] = time.monotonic()
            self._log("left", party=party)
            self._changed.notify_all()
        self._on_change()
