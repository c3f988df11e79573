"""Certificates and pins that are stolen, renewed and revoked while server and parties run."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.node.certificates import new_certificates, renew_certificate
from colonnade.node.desk import PartyDesk
from colonnade.node.identity_files import new_identity, read_pins
from colonnade.protocol.refusal import Refused
from colonnade.transports.envelopes import Answer, Ask
from colonnade.transports.grpc import party as dialling
from colonnade.transports.grpc import wire
from colonnade.transports.grpc.certified import Certified
from network_trial import PartyThread, events, federation_in_threads, free_port, tls, write_federation_file
from small_federation import PARTIES, check_unharmed, dial, make_parties


def serial(folder: Path, name: str) -> int:
    return Certified.read((folder / f"certs/{name}.pem").read_bytes()).serial


def openssl(number: int) -> str:
    """Write a serial as `openssl x509 -serial` does."""
    digits = f"{number:X}"
    return f"serial={'0' * (len(digits) % 2)}{digits}"


def openssl_text(number: int) -> str:
    """Write a serial as `openssl x509 -text` does."""
    return number.to_bytes((number.bit_length() + 7) // 8).hex(":")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Certificates, and copies of them that a thief has."""
    new_certificates(tmp_path / "certs", PARTIES)
    shutil.copytree(tmp_path / "certs", tmp_path / "stolen/certs")
    (tmp_path / "revoked.toml").write_text("")
    return tmp_path


@pytest.fixture(params=["renewed", "new key"])
def new_key(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "new key")


@pytest.mark.parametrize("half", ["key", "pem"])
def test_a_server_goes_on_with_the_old_pair_until_the_new_one_is_whole(folder: Path, half: str) -> None:
    with federation_in_threads(folder, make_parties()):
        renew_certificate(folder / "stolen/certs", "server", new_key=True)
        shutil.copy(folder / f"stolen/certs/server.{half}", folder / f"certs/server.{half}")
        assert dial(folder, tls(folder, "shop"), (wire.CLAIMED_NAME, "bank"))[0] is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("written", [openssl, openssl_text])
def test_a_stolen_certificate_of_a_party_is_refused_by_a_running_server(
    folder: Path, written: Callable[[int], str], new_key: bool
) -> None:
    revoked = folder / "revoked.toml"
    with federation_in_threads(folder, make_parties(), revoked="revoked.toml") as federation:
        check_unharmed(federation)
        for name in ("server", "shop"):
            renew_certificate(folder / "certs", name, new_key=new_key)
        stolen = serial(folder / "stolen", "shop")
        revoked.write_text(f'serials = ["{written(stolen)}"]\n')
        refused = (grpc.StatusCode.PERMISSION_DENIED, f"its certificate, {stolen:x}, was revoked")
        assert dial(folder, tls(folder / "stolen", "shop")) == refused
        for broken in ("", "no TOML", "serials = 5"):
            revoked.write_text(broken)
            assert dial(folder, tls(folder / "stolen", "shop")) == refused, "what was revoked stays so"
        revoked.unlink()
        assert dial(folder, tls(folder / "stolen", "shop")) == refused
        # The shop itself was connected with that certificate, and dials again with its new one.
        check_unharmed(federation)
    log = events(folder / "server-state/log.jsonl")
    assert [each["party"] for each in log if each["event"] == "shut out"] == ["shop"]
    assert any("No such file" in each["words"] for each in log if each["event"] == "read again")


def test_a_party_that_has_no_other_certificate_than_the_revoked_one_is_out(folder: Path) -> None:
    port = free_port()
    path = write_federation_file(folder, PARTIES, port, revoked="revoked.toml", wait_seconds=2.0)
    threads = [PartyThread(folder, party, port) for party in make_parties()]
    with cn.Federation.connect(path) as federation:
        check_unharmed(federation)
        asked = len(events(threads[1].log_path))
        (folder / "revoked.toml").write_text(f'serials = ["{serial(folder, "shop"):x}"]\n')
        with pytest.raises(cn.PartyUnreachableError, match="'shop' stayed away"):
            check_unharmed(federation)
    assert {each["event"] for each in events(threads[1].log_path)[asked:]} <= {"line broke", "run ended"}, "not asked"
    outcome = threads[1].join()
    assert isinstance(outcome, cn.TransportError)
    assert f"refuses 'shop': its certificate, {serial(folder, 'shop'):x}, was revoked" in str(outcome)
    threads[0].join()


def test_an_answer_on_a_line_whose_certificate_was_revoked_meanwhile_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shop's certificate is revoked while the shop has a request: it is asked again when it shows a new one."""
    answer, revoked = PartyDesk.answer, folder / "revoked.toml"

    def late(desk: PartyDesk, ask: Ask) -> Answer | None:
        reply = answer(desk, ask)
        if ask.number == 3 and "shop-state" in str(desk._folder.path) and not revoked.read_text():
            revoked.write_text(f'serials = ["{serial(folder, "shop"):x}"]\n')
            renew_certificate(folder / "certs", "shop")
        return reply

    with federation_in_threads(folder, make_parties(), revoked="revoked.toml") as federation:
        monkeypatch.setattr(PartyDesk, "answer", late)
        check_unharmed(federation)
    assert revoked.read_text()
    log = events(folder / "server-state/log.jsonl")
    assert [each["party"] for each in log if each["event"] == "shut out"] == ["shop"]
    assert any(each["event"] == "repeated" for each in events(folder / "shop-state/log.jsonl"))


def test_a_stolen_certificate_of_the_server_is_told_nothing(folder: Path) -> None:
    """The thief's server has the old certificate; a party that knows so does not say its name there."""
    (folder / "revoked.toml").write_text(f'serials = ["{openssl(serial(folder, "server"))}"]\n')
    port = free_port()
    path = write_federation_file(folder, ["bank"], port, wait_seconds=2.0)
    pins = folder / "certs/pins.toml"
    pins.write_text("".join(line for line in pins.read_text().splitlines(keepends=True) if "shop" not in line))
    bank = PartyThread(folder, make_parties()[0], port, wait_seconds=1.0, revoked=str(folder / "revoked.toml"))
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    words = f"the server's certificate, {serial(folder, 'server'):x}, was revoked"
    assert str(bank.join()).endswith(f"{words}. Put that right, then start this party.")
    assert f"No line to 127.0.0.1:{port}: {words}." in bank.said
    assert not any(each["event"] in ("joined", "refused") for each in events(folder / "server-state/log.jsonl"))


def test_parties_leave_a_server_whose_certificate_is_revoked_and_come_back_when_it_has_another(folder: Path) -> None:
    revoked = folder / "revoked.toml"
    changes = {"revoked": str(revoked)}
    with federation_in_threads(folder, make_parties(), party_changes=changes) as federation:
        check_unharmed(federation)
        old = serial(folder, "server")
        revoked.write_text(f'serials = ["{old:x}"]\n')
        mending = threading.Timer(1.5, lambda: renew_certificate(folder / "certs", "server"))
        mending.start()
        check_unharmed(federation)
        mending.join()
    for name in PARTIES:
        log = events(folder / f"{name}-state/log.jsonl")
        assert any(each["event"] == "hung up" for each in log)
        assert any(f"{old:x}, was revoked" in each.get("reason", "") for each in log)


def test_a_probe_that_is_answered_by_nobody_is_not_a_way_round_the_list(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thief between who drops the connection that looks at the certificate, and takes the next one."""

    def dropped(*_: object) -> int:
        raise ConnectionResetError("dropped")

    monkeypatch.setattr(dialling, "shown_serial", dropped)
    (folder / "revoked.toml").write_text('serials = ["1"]\n')
    port = free_port()
    path = write_federation_file(folder, PARTIES, port, wait_seconds=2.0)
    changes: dict[str, Any] = {"wait_seconds": 1.0, "revoked": str(folder / "revoked.toml")}
    threads = [PartyThread(folder, party, port, **changes) for party in make_parties()]
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    assert all(isinstance(each.join(), cn.PartyUnreachableError) for each in threads)
    assert not any(each["event"] == "joined" for each in events(folder / "server-state/log.jsonl"))


def test_a_sheet_under_a_revoked_pin_is_refused_by_running_parties(folder: Path) -> None:
    """A thief has the server's old identity, and all else that the server has."""
    pins, revoked = folder / "certs/pins.toml", folder / "revoked.toml"
    old = read_pins(pins)["server"][0].hex()
    new = new_identity(folder / "new", "server").partition(" = ")[2].strip('"')
    with federation_in_threads(folder, make_parties(), party_changes={"revoked": str(revoked)}) as federation:
        check_unharmed(federation)
        pins.write_text(pins.read_text().replace(f'"{old}"', f'["{old}", "{new}"]'))
        check_unharmed(federation)
        revoked.write_text(f'pins = ["{old}"]\n')
        for broken in (None, "", "pins = 5", "pins = ["):
            if broken is not None:
                revoked.write_text(broken)
            with pytest.raises(cn.ColonnadeError, match=r"a job sheet .* or whose pin its owner revoked"):
                check_unharmed(federation)


def test_a_run_that_a_revoked_pin_opened_ends_with_the_next_request(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thief had opened a run before anybody noticed; what it was told it is not even told again."""
    answer, revoked = PartyDesk.answer, folder / "revoked.toml"
    pin = read_pins(folder / "certs/pins.toml")["server"][0].hex()
    after: list[Answer | None] = []

    def revoke() -> None:
        revoked.write_text(f'pins = ["{pin}"]\n')

    told = threading.Barrier(len(PARTIES), action=revoke)

    def noticed(desk: PartyDesk, ask: Ask) -> Answer | None:
        reply = answer(desk, ask)
        if ask.number == 3:
            told.wait(timeout=60)
            after.append(answer(desk, ask))
        return reply

    with federation_in_threads(folder, make_parties(), party_changes={"revoked": str(revoked)}) as federation:
        monkeypatch.setattr(PartyDesk, "answer", noticed)
        with pytest.raises(cn.ColonnadeError, match="the pin under which the server signed its job sheet no longer"):
            check_unharmed(federation)
    assert len(after) == len(PARTIES)
    for again in after:
        assert again is not None
        assert isinstance(codec().decode(again.payload, party="bank"), Refused)
    for name in PARTIES:
        log = events(folder / f"{name}-state/log.jsonl")
        assert max(each["number"] for each in log if each["event"] == "answered") == 3


def test_nobody_takes_part_with_a_party_whose_pin_is_revoked(folder: Path) -> None:
    """Also in a job in which that party would sign nothing."""
    pin = read_pins(folder / "certs/pins.toml")["shop"][0].hex()
    with federation_in_threads(
        folder, make_parties(), party_changes={"revoked": str(folder / "revoked.toml")}
    ) as federation:
        (folder / "revoked.toml").write_text(f'pins = ["{pin}"]\n')
        with pytest.raises(cn.ColonnadeError, match=r"where its owner pinned bank.*pins that are not revoked"):
            federation.fit(cn.Regression(), sampler=cn.UniformSampling(size=20), seed=4)


def test_an_end_does_not_start_with_what_it_revoked_itself_or_with_a_broken_list(folder: Path) -> None:
    path = write_federation_file(folder, PARTIES, free_port(), revoked="revoked.toml")
    (folder / "revoked.toml").write_text(f'pins = ["{read_pins(folder / "certs/pins.toml")["server"][0].hex()}"]\n')
    with pytest.raises(cn.InputError, match=r"The pin of .*server\.identity is revoked"):
        cn.Federation.connect(path)
    (folder / "revoked.toml").write_text("serials = [")
    with pytest.raises(cn.InputError, match=r"Cannot read .*revoked\.toml"):
        cn.Federation.connect(path)
    (folder / "revoked.toml").unlink()
    with pytest.raises(cn.InputError, match=r"Cannot read .*revoked\.toml: No such file"):
        cn.Federation.connect(path)
