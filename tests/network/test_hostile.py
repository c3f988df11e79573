"""Garbage, strangers, impostors and slow peers at the port: they are refused, and the others do not notice."""

import os
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import colonnade as cn
import colonnade.transports.grpc.hub as hub
from colonnade.node.certificates import new_certificates
from colonnade.node.files import read_federation_file
from colonnade.node.identity_files import PINS, new_identities
from colonnade.node.server import NetworkServer
from colonnade.transports import terminal
from colonnade.transports.endpoints import Tls
from colonnade.transports.envelopes import ENVELOPE_VERSION, MAX_PIECE_BYTES, Answer, Goodbye, Join, encode
from colonnade.transports.grpc import wire
from network_trial import PartyThread, events, federation_in_threads, free_port, tls, write_federation_file

# Parties' columns are random; what matters here is who gets in.
PARTIES = ("bank", "shop")


def make_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    return [
        cn.Party("bank", rng.normal(size=(60, 2)), label=rng.normal(size=60)),
        cn.Party("shop", rng.normal(size=(60, 2))),
    ]


class Meeting:
    """A federation under way, and what a stranger needs to dial in."""

    def __init__(self, folder: Path, federation: cn.Federation) -> None:
        self.folder, self.federation = folder, federation
        listen = read_federation_file(folder / "federation.toml").listen
        self.address, self.port = listen, int(listen.rpartition(":")[2])

    def check_unharmed(self) -> None:
        """Run a job: it gives what it gives in one process."""
        job = {"sampler": cn.ImportanceSampling(size=20), "seed": 4}
        here = cn.Federation(make_parties()).fit(cn.Regression(), **job)  # type: ignore[arg-type]
        found = self.federation.fit(cn.Regression(), **job)  # type: ignore[arg-type]
        assert found.model.coef_.tobytes() == here.model.coef_.tobytes()

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in events(self.folder / "server-state" / "log.jsonl") if line["event"] == event]

    def dial(
        self, credentials: Tls, incoming: Iterator[bytes], metadata: tuple[tuple[str, str], ...] = ()
    ) -> tuple[Any, str, list[bytes]]:
        """Dial in with any certificate, send anything, and tell how it ended."""
        options: list[tuple[str, Any]] = [
            *wire.options(5.0),
            ("grpc.ssl_target_name_override", "server"),
        ]
        heard = []
        with grpc.secure_channel(self.address, wire.dialling_credentials(credentials), options) as channel:
            call = channel.stream_stream(f"/{wire.SERVICE}/{wire.METHOD}")(incoming, metadata=metadata, timeout=10)
            try:
                heard.extend(call)
            except grpc.RpcError as error:
                return error.code(), str(error.details()), heard
            return grpc.StatusCode.OK, "", heard


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    new_certificates(tmp_path / "certs", [*PARTIES, "stranger"])
    pins = tmp_path / "certs" / PINS
    pins.write_text("".join(line for line in pins.read_text().splitlines(keepends=True) if "stranger" not in line))
    with federation_in_threads(tmp_path, make_parties()) as federation:
        yield Meeting(tmp_path, federation)


def soon(condition: Callable[[], object]) -> bool:
    """Wait a little for what another thread does."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def test_garbage_on_the_port(meeting: Meeting) -> None:
    rng = np.random.default_rng(0)
    pieces = [rng.bytes(size) for size in (1, 100, 10_000, 200_000)]
    pieces += [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.bytes(500), b"GET / HTTP/1.1\r\n\r\n"]
    pieces += [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.bytes(508)]  # a broken TLS greeting
    for piece in pieces:
        with socket.create_connection(("127.0.0.1", meeting.port), timeout=5) as line, suppress(OSError):
            line.sendall(piece)
            line.shutdown(socket.SHUT_WR)
            line.recv(1000)
    meeting.check_unharmed()


def test_many_peers_that_never_say_a_word(meeting: Meeting) -> None:
    lines = [socket.create_connection(("127.0.0.1", meeting.port), timeout=5) for _ in range(100)]
    for line in lines[:50]:
        line.sendall(b"\x16\x03\x01")  # half a TLS record
    try:
        meeting.check_unharmed()
    finally:
        for line in lines:
            line.close()


def test_a_silent_peer_is_dropped_before_its_handshake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HANDSHAKE_SECONDS", 1)
    with federation_in_threads(tmp_path, make_parties()) as federation:
        meeting = Meeting(tmp_path, federation)
        with socket.create_connection(("127.0.0.1", meeting.port), timeout=9) as line:
            line.sendall(b"\x16\x03\x01")
            started = time.monotonic()
            with suppress(ConnectionResetError):
                assert line.recv(1) == b""
            assert time.monotonic() - started < 8
        meeting.check_unharmed()


def test_a_certificate_of_another_authority_is_refused(meeting: Meeting, tmp_path: Path) -> None:
    new_certificates(tmp_path / "elsewhere" / "certs", PARTIES)
    theirs, ours = tls(tmp_path / "elsewhere", "shop"), tls(tmp_path, "shop")
    forged = Tls(ours.authority, theirs.certificate, theirs.key)
    code, _, heard = meeting.dial(forged, encode(Join(ENVELOPE_VERSION, ())).pieces())
    assert (code, heard) == (grpc.StatusCode.UNAVAILABLE, [])
    meeting.check_unharmed()


def test_without_a_certificate_nobody_is_heard(meeting: Meeting, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(tmp_path / "certs/ca.pem"))
    context.set_alpn_protocols(["h2"])
    heard = b""
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", meeting.port), timeout=5) as line,
        context.wrap_socket(line, server_hostname="server") as secure,
    ):
        secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        heard = secure.recv(1000)
    assert heard == b"", "not even the settings of HTTP/2"
    meeting.check_unharmed()


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_1])
def test_tls_1_3_is_taken_and_nothing_below(meeting: Meeting, tmp_path: Path, newest: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(tmp_path / "certs/ca.pem"))
    context.set_alpn_protocols(["h2"])
    context.set_ciphers("ALL:@SECLEVEL=0")
    is_too_old, is_deprecated = newest < ssl.TLSVersion.TLSv1_3, newest < ssl.TLSVersion.TLSv1_2
    with pytest.warns(DeprecationWarning, match="TLSv1") if is_deprecated else nullcontext():
        context.minimum_version = newest
        context.maximum_version = newest
    context.load_cert_chain(str(tmp_path / "certs/shop.pem"), str(tmp_path / "certs/shop.key"))
    with socket.create_connection(("127.0.0.1", meeting.port), timeout=5) as line:
        if is_too_old:
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                context.wrap_socket(line, server_hostname="server")
            return
        with context.wrap_socket(line, server_hostname="server") as secure:
            assert secure.version() == newest.name.replace("_", ".")


def test_a_stranger_with_a_certificate_is_no_party_whatever_it_claims(meeting: Meeting, tmp_path: Path) -> None:
    claim = ((wire.CLAIMED_NAME, "shop"),)
    code, details, heard = meeting.dial(tls(tmp_path, "stranger"), encode(Join(ENVELOPE_VERSION, ())).pieces(), claim)
    assert (code, heard) == (grpc.StatusCode.PERMISSION_DENIED, [])
    assert "stranger" in details
    assert any("stranger" in line.get("names", []) for line in meeting.logged("refused"))
    meeting.check_unharmed()


@pytest.mark.parametrize(
    "words",
    [
        [b""],
        [b"\xc1"],
        [os.urandom(1000)],
        [encode(Answer("fit-1", 1, b"x")).head],
        [encode(Join(99, ())).head],
        [encode(Join(ENVELOPE_VERSION, ())).head, b"\x00" * 50],
        [encode(Join(ENVELOPE_VERSION, ())).head] + [encode(Answer("fit-1", 1, b"x")).head] * (hub.MAX_STRAYS + 1),
        [encode(Join(ENVELOPE_VERSION, ("../../etc/passwd",))).head],
        [encode(Join(ENVELOPE_VERSION, ())).head, bytes(MAX_PIECE_BYTES + 1)],
        [encode(Join(ENVELOPE_VERSION, ())).head, encode(Answer("fit-1", 1, bytes(2 << 20))).head],
        [encode(Join(ENVELOPE_VERSION, ())).head, encode(Answer("fit-1", 1, b"", follows=1000)).head, b"x" * 1001],
        [encode(Join(ENVELOPE_VERSION, ())).head, encode(Answer("fit-1", 1, b"", follows=1000)).head, b""],
    ],
    ids=[
        "nothing",
        "no msgpack",
        "noise",
        "no join",
        "version",
        "zeros",
        "strays",
        "a path",
        "too large a piece",
        "too much announced",
        "more than announced",
        "less than announced",
    ],
)
def test_a_party_that_talks_nonsense_is_cut_off_and_may_come_back(tmp_path: Path, words: list[bytes]) -> None:
    with federation_in_threads(tmp_path, make_parties(), max_message_bytes=1 << 20) as federation:
        meeting = Meeting(tmp_path, federation)
        held = threading.Event()

        def speak() -> Iterator[bytes]:
            yield from words
            held.wait(8)

        code, _, _ = meeting.dial(tls(tmp_path, "shop"), speak())
        held.set()
        assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNKNOWN)
        # A piece too large for gRPC itself may end the stream before the hub hears of it: then the party has left.
        assert soon(lambda: any(map(meeting.logged, ("refused", "stream broke", "left"))))
        meeting.check_unharmed()  # the real shop was replaced for a moment, dialled again, and answers


def test_who_joins_and_says_nothing_is_dropped(meeting: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "JOIN_SECONDS", 0.3)
    held = threading.Event()
    code, details, _ = meeting.dial(tls(meeting.folder, "shop"), (b"" for _ in iter(held.wait, True)))
    held.set()
    assert (code, details) == (grpc.StatusCode.DEADLINE_EXCEEDED, "nothing was said")
    meeting.check_unharmed()


def test_one_party_cannot_open_streams_without_end(meeting: Meeting) -> None:
    held, codes = threading.Event(), []

    def one() -> None:
        codes.append(meeting.dial(tls(meeting.folder, "shop"), (b"" for _ in iter(held.wait, True)))[0])

    threads = [threading.Thread(target=one) for _ in range(hub.MAX_STREAMS_A_PARTY + 4)]
    for thread in threads:
        thread.start()
    assert soon(lambda: codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) >= 4)
    held.set()
    for thread in threads:
        thread.join(15)
    meeting.check_unharmed()


def test_a_party_does_not_talk_to_an_impostor(tmp_path: Path) -> None:
    """A party of the same authority listens in the server's place: its certificate is not the server's."""
    new_certificates(tmp_path / "certs", PARTIES)
    port = free_port()
    path = write_federation_file(tmp_path, PARTIES, port)
    for kind in ("pem", "key"):
        shutil.copy(tmp_path / f"certs/shop.{kind}", tmp_path / f"certs/server.{kind}")
    bank = PartyThread(tmp_path, make_parties()[0], port, wait_seconds=1.0)
    impostor = NetworkServer(read_federation_file(path), partial(hub.Hub, on_waiting=lambda _: None))
    outcome = bank.join()
    impostor.close()
    assert isinstance(outcome, cn.PartyUnreachableError)
    assert not any("Connected" in words for words in bank.said), "it never took the line for up"


def test_a_server_that_is_not_the_pinned_one_opens_no_job(tmp_path: Path) -> None:
    """Whoever has the server's certificate, or the authority's key, still cannot sign a job sheet."""
    new_certificates(tmp_path / "certs", PARTIES)
    new_identities(tmp_path / "elsewhere", PARTIES)
    theirs = {"key": "elsewhere/server.identity", "pins": "elsewhere/pins.toml"}
    with federation_in_threads(tmp_path, make_parties(), identity=theirs) as federation:
        assert federation.roster.names == PARTIES, "who the parties are, and their columns' names, it may ask"
        for job in (federation.fit, federation.coreset):
            with pytest.raises(cn.InputError, match="the server its owner pinned did not sign"):
                job(cn.Regression(), sampler=cn.ImportanceSampling(size=20))
    log = events(tmp_path / "shop-state" / "log.jsonl")
    assert [line["request"] for line in log if line["event"] == "answered"] == ["Hello"]


def test_a_job_is_done_with_the_pinned_parties_or_not_at_all(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", [*PARTIES, "third"])
    with (
        federation_in_threads(tmp_path, make_parties()) as federation,
        pytest.raises(cn.LocalProtocolError, match="of bank, shop, where its owner pinned bank, shop, third"),
    ):
        federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=20))


def test_after_the_limit_all_sides_report_the_same(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", PARTIES)
    port = free_port()
    path = write_federation_file(tmp_path, PARTIES, port, wait_seconds=3.0)  # parties have to come within it, too
    bank, shop = (PartyThread(tmp_path, party, port) for party in make_parties())
    with pytest.raises(cn.PartyUnreachableError) as caught, cn.Federation.connect(path) as federation:  # noqa: PT012
        shop.stop()
        started = time.monotonic()
        federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=20))
    assert 2.9 < time.monotonic() - started < 60
    assert caught.value.party == "shop"
    reason = str(caught.value)
    assert reason == "Party 'shop' stayed away for more than 3 s. Start it again, then the run."
    assert bank.join() == Goodbye("failed", reason, 5)
    ended = next(line for line in events(bank.log_path) if line["event"] == "run ended" and line["status"] == "failed")
    assert ended["reason"] == reason
    assert not list((tmp_path / "server-state").glob("*.journal"))
    assert not list((tmp_path / "bank-state").glob("*.journal"))


def test_a_party_that_comes_back_too_late_is_told_what_became_of_the_run(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", PARTIES)
    port = free_port()
    path = write_federation_file(tmp_path, PARTIES, port, wait_seconds=3.0)  # parties have to come within it, too
    bank, shop = (PartyThread(tmp_path, party, port) for party in make_parties())
    slow = shop.desk.answer

    def answer_once_and_break(ask: Any) -> Any:
        answer = slow(ask)
        if ask.number == 2:  # answered, journaled, and the line cut before it is sent
            shop.line.stop()
        return answer

    shop.desk.answer = answer_once_and_break  # type: ignore[method-assign]
    with cn.Federation.connect(path) as federation:
        with pytest.raises(cn.PartyUnreachableError):
            federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=20))
        shop.join()
        assert list((tmp_path / "shop-state").glob("fit-*.journal"))
        again = PartyThread(tmp_path, make_parties()[1], port)
        assert soon(lambda: any("stayed away for more than 3 s" in words for words in again.said))
        assert len(federation.coreset(cn.Regression(), cn.ImportanceSampling(size=20)).coreset) == 20
    again.join()
    bank.join()
    assert not list(tmp_path.rglob("*.journal"))


def test_nobody_comes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_certificates(tmp_path / "certs", PARTIES)
    path = write_federation_file(tmp_path, PARTIES, free_port(), wait_seconds=0.5)
    with pytest.raises(cn.PartyUnreachableError, match=r"stayed away for more than 0\.5 s"):
        cn.Federation.connect(path)
    assert "waiting for bank, shop" in capsys.readouterr().err


def test_whoever_waits_says_so_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that died of its own table leaves a server that says nothing else."""
    monkeypatch.setattr(terminal, "FIRST_PAUSE", 0.2)
    monkeypatch.setattr(hub, "TICK_SECONDS", 0.1)
    new_certificates(tmp_path / "certs", PARTIES)
    path = write_federation_file(tmp_path, PARTIES, free_port(), wait_seconds=1.5)
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    assert 2 <= capsys.readouterr().err.count("waiting for bank, shop") <= 4, "each time after twice as long"
    port = free_port()
    lonely = PartyThread(tmp_path, make_parties()[0], port, wait_seconds=1.5)
    lonely.join()
    assert 2 <= sum(f"Waiting for the server at 127.0.0.1:{port}" in words for words in lonely.said) <= 4
    assert len([line for line in events(lonely.log_path) if line["event"] == "line broke"]) == 1, "once while it waits"


def test_plaintext_is_for_loopback_only(tmp_path: Path) -> None:
    port = free_port()
    path = write_federation_file(tmp_path, PARTIES, port, tls=None)
    with pytest.raises(cn.InputError, match="insecure_plaintext_on_loopback = true"):
        cn.Federation.connect(path)
    path = write_federation_file(
        tmp_path, PARTIES, port, tls=None, insecure_plaintext_on_loopback=True, listen="0.0.0.0:7143"
    )
    with pytest.raises(cn.InputError, match=r"plaintext is refused at 0.0.0.0:7143"):
        cn.Federation.connect(path)
    path = write_federation_file(tmp_path, PARTIES, port, tls=None, insecure_plaintext_on_loopback=True)
    new_identities(tmp_path / "certs", PARTIES)
    options: dict[str, Any] = {"tls": None, "insecure_plaintext_on_loopback": True}
    threads = [PartyThread(tmp_path, party, port, **options) for party in make_parties()]
    with cn.Federation.connect(path) as federation:
        Meeting(tmp_path, federation).check_unharmed()
    for thread in threads:
        assert thread.join() == Goodbye("done", "", 0)
