"""A party's side of the stream: it dials out, joins, answers, and dials again when the line breaks."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from colonnade.errors import InputError, PartyUnreachableError, RemoteProtocolError, TransportError
from colonnade.ledger import SERVER
from colonnade.protocol.refusal import without_paths
from colonnade.transports.carriers import Desk, Log
from colonnade.transports.endpoints import PartyEndpoint, Tls
from colonnade.transports.envelopes import (
    ENVELOPE_VERSION,
    Ask,
    EncodedEnvelope,
    Goodbye,
    Join,
    OwnerAsked,
    RunEnd,
    encode,
    from_server,
)
from colonnade.transports.grpc import wire
from colonnade.transports.grpc.certified import NOBODY, check_own, shown_serial, warnings_of_own, why_no_line
from colonnade.transports.grpc.links import sent_from
from colonnade.transports.revoked import Revoked
from colonnade.transports.terminal import SCREEN, Waiting

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
# How often it looks whether the owner has decided.
OWNER_SECONDS = 0.25
# Answers that dialling again does not change.
FINAL = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)


class GrpcParty:
    """Keeps a party on the line; `say` is told what a person at the party should see."""

    def __init__(
        self,
        endpoint: PartyEndpoint,
        desk: Desk,
        log: Log,
        say: Callable[[str], None],
        revoked: Revoked | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._desk = desk
        self._log = log
        self._say = say
        self._waiting = Waiting(lambda words: say(f"{words}."), SCREEN if say == SCREEN.say else None)
        self._warned: set[str] = set()
        self._revoked = revoked or Revoked()
        self._serial: int | None = None  # of the server's certificate, where it was looked at
        self._stopping = threading.Event()
        self._at_work = threading.RLock()  # what waits for the owner is answered from another thread
        self._call: Any = None
        self._failure: Exception | None = None
        self._last_heard, self._is_up, self._was_replaced = time.monotonic(), False, False
        self._was_up, self._said, self._logged = False, "", ""  # in this conversation; why there is no line

    def stop(self) -> None:
        """Make `serve` return soon; for another thread, or a signal."""
        self._stopping.set()
        if self._call is not None:
            self._call.cancel()

    def serve(self, *, once: bool) -> Goodbye | None:
        """Answer until stopped, and then give None.

        With `once`, give the server's goodbye when it says that, and raise when it stays away; else wait for the next
        server.
        """
        if self._endpoint.tls is not None:
            check_own(self._endpoint.tls, self._endpoint.name)
            self._warn(self._endpoint.tls)
        pause, self._last_heard = FIRST_PAUSE, time.monotonic()
        while not self._stopping.is_set():
            before = self._last_heard
            goodbye, trouble = self._talk()
            if goodbye is not None:
                self._say(f"The server closed: {goodbye.status}. {goodbye.reason}".strip())
                if once:
                    return goodbye
            if self._stopping.is_set():
                return None
            was_up = self._last_heard > before and not self._was_replaced
            if not was_up:
                self._waiting.tell(f"Waiting for the server at {self._endpoint.server}")
            pause = FIRST_PAUSE if was_up else min(2 * pause, LONGEST_PAUSE)
            if time.monotonic() - self._last_heard > self._endpoint.wait_seconds:
                self._give_up(trouble, once=once)
            self._stopping.wait(pause)
        return None

    def _warn(self, tls: Tls) -> None:
        """Say that a certificate expires soon, once a day."""
        for warning in warnings_of_own(tls):
            if warning not in self._warned:
                self._warned.add(warning)
                self._say(warning)

    def _give_up(self, trouble: str, *, once: bool) -> None:
        endpoint = self._endpoint
        reason = f"The server at {endpoint.server} stayed away for more than {endpoint.wait_seconds:g} s: {trouble}"
        if self._desk.open_runs:
            self._say(f"{reason}. It gives up {', '.join(self._desk.open_runs)}.")
            with self._at_work:
                self._desk.give_up(reason)
        if once:
            remedy = "Put that right" if self._said and not trouble.startswith(NOBODY) else "Start the server"
            raise PartyUnreachableError(f"{reason}. {remedy}, then start this party.", party=SERVER)

    def _talk(self) -> tuple[Goodbye | None, str]:
        """Hold one conversation: give the server's goodbye, if it said one, and what ended it."""
        if why := self._why_not_dial():
            return None, self._complained(why)
        outgoing: queue.SimpleQueue[EncodedEnvelope | None] = queue.SimpleQueue()
        outgoing.put(encode(Join(ENVELOPE_VERSION, self._desk.open_runs)))
        self._was_up = False
        try:
            channel = self._channel()
        except InputError as error:  # somebody is changing the files, or has made a mistake: others are under way
            return None, self._complained(f"this party's own certificate cannot be used: {error}".removesuffix("."))
        try:
            method = channel.stream_stream(f"/{wire.SERVICE}/{wire.METHOD}")
            self._call = method(sent_from(outgoing), metadata=((wire.CLAIMED_NAME, self._endpoint.name),))
            return self._listen(self._call, outgoing), "it ended the stream"
        except grpc.RpcError as error:
            if self._failure is not None:
                raise self._failure from error
            code, details = error.code(), str(error.details())
            if self._was_up or f"{code.name} {details}" != self._logged:  # not again and again while it waits
                self._log("line broke", code=code.name, details=details)
                self._logged = f"{code.name} {details}"
            self._was_replaced = code is grpc.StatusCode.ABORTED
            if self._was_replaced:
                self._say("Another process with this party's certificate has joined. Stop one of them.")
            if code in FINAL:
                raise TransportError(
                    f"The server at {self._endpoint.server} refuses {self._endpoint.name!r}: {details}. "
                    "Ask whoever runs the server which names are in its federation.toml, and what in its revoked.toml."
                ) from error
            return None, self._in_words(code, details)
        finally:
            self._call = None
            outgoing.put(None)
            channel.close()

    def _in_words(self, code: Any, details: str) -> str:
        """Say why the line could not be made: gRPC's own words do not tell one certificate's fault from another's."""
        why = None
        if not self._was_up and code is grpc.StatusCode.UNAVAILABLE:
            why = why_no_line(self._endpoint)
        return details if why is None else self._complained(why)

    def _why_not_dial(self) -> str | None:
        """Look at the server's certificate before anything is told, where some were revoked: gRPC does not show it."""
        self._serial = None
        tls, serials = self._endpoint.tls, self._revoked.serials()
        if tls is None or not serials:
            return None
        try:
            self._serial = shown_serial(self._endpoint, tls)
        except (OSError, ValueError, InputError) as error:
            return why_no_line(self._endpoint) or str(error)
        return f"the server's certificate, {self._serial:x}, was revoked" if self._serial in serials else None

    def _is_distrusted(self) -> bool:
        """Tell whether the server's certificate was revoked since, or may have been and was not looked at."""
        serials = self._revoked.serials() if self._endpoint.tls is not None else frozenset()
        return bool(serials) and (self._serial is None or self._serial in serials)

    def _complained(self, why: str) -> str:
        """Say it once; give it without paths, because a server hears why a run was given up."""
        told = without_paths(why)
        if not why.startswith(NOBODY) and why != self._said:
            self._said = why
            self._log("no line", reason=told)
            self._say(f"No line to {self._endpoint.server}: {why}.")
        return told

    def _listen(self, call: Iterator[bytes], outgoing: "queue.SimpleQueue[EncodedEnvelope | None]") -> Goodbye | None:
        goodbye, hung_up = None, threading.Event()
        try:
            for envelope in from_server(call, self._endpoint.max_message_bytes):
                self._is_up = self._was_up = True
                if self._is_distrusted():
                    self._log("hung up", reason="the server's certificate is looked at again: some were revoked")
                    break
                if isinstance(envelope, Ask):
                    if not self._answer(envelope, outgoing):
                        outgoing.put(encode(OwnerAsked(envelope.run, envelope.number)))
                        later = threading.Thread(target=self._wait, args=(envelope, outgoing, hung_up), daemon=True)
                        later.start()
                elif isinstance(envelope, RunEnd):
                    self._end(envelope)
                elif isinstance(envelope, Goodbye):
                    goodbye = envelope
                else:
                    self._waiting.over()
                    self._said, self._logged = "", ""
                    self._log("line up", server=self._endpoint.server)
                    self._say(f"Connected to {self._endpoint.server} as {envelope.name!r}.")
                    if self._endpoint.tls is not None:
                        self._warn(self._endpoint.tls)
        except RemoteProtocolError as error:
            self._log("stray bytes", reason=str(error))
        finally:
            hung_up.set()
            if self._is_up:
                self._last_heard, self._is_up = time.monotonic(), False
        return goodbye

    def _answer(self, ask: Ask, outgoing: "queue.SimpleQueue[EncodedEnvelope | None]") -> bool:
        """Answer, and tell whether it did: a run may wait for the owner."""
        with self._at_work:
            answer = self._desk.answer(ask)
            if answer is not None:
                outgoing.put(encode(answer))
                self._desk.after_sending()
        return answer is not None

    def _wait(self, ask: Ask, outgoing: "queue.SimpleQueue[EncodedEnvelope | None]", hung_up: threading.Event) -> None:
        """Answer when the owner has decided, unless the run or the conversation ends before."""
        try:
            while not hung_up.wait(OWNER_SECONDS):
                with self._at_work:
                    is_over = ask.run not in self._desk.open_runs
                    if is_over or (not self._desk.is_waiting(ask.run) and self._answer(ask, outgoing)):
                        return
        except Exception as error:  # a full disk, for one: the party ends with it, as where it answers at once
            self._failure = error
            self._call.cancel()

    def _end(self, end: RunEnd) -> None:
        with self._at_work:
            if end.run in self._desk.open_runs:
                self._say(f"Run {end.run}: {end.status}. {end.reason}".strip())
            self._desk.end(end)

    def _channel(self) -> Any:
        endpoint = self._endpoint
        options = wire.options(endpoint.keepalive_seconds)
        if endpoint.tls is None:
            return grpc.insecure_channel(endpoint.server, options)
        options.append(("grpc.ssl_target_name_override", endpoint.server_name))  # type: ignore[arg-type]  # a text option
        return grpc.secure_channel(endpoint.server, wire.dialling_credentials(endpoint.tls), options)
