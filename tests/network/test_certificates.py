"""Certificates that are another's, of another authority, expired or open to all: said in words."""

import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import msgspec
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

import colonnade as cn
from colonnade.node.certificates import new_certificates, renew_certificate
from colonnade.node.files import read_federation_file
from colonnade.node.identity_files import read_identity
from colonnade.transports.endpoints import Tls
from colonnade.transports.envelopes import Goodbye
from colonnade.transports.grpc import wire
from colonnade.transports.grpc.certified import read_credentials
from network_trial import (
    PartyThread,
    events,
    federation_in_threads,
    free_port,
    identity_file,
    sign,
    tls,
    until,
    write_federation_file,
)
from small_federation import PARTIES, check_unharmed, dial, make_parties

VARIABLE = "WHERE_ITS_PASSPHRASE_IS"


def test_a_party_with_anothers_certificate_takes_no_seat(tmp_path: Path) -> None:
    with federation_in_threads(tmp_path, make_parties()) as federation:
        theirs, listen = tls(tmp_path, "shop"), read_federation_file(tmp_path / "federation.toml").listen
        rng = np.random.default_rng(1)
        (tmp_path / "again").mkdir()
        shutil.copytree(tmp_path / "certs", tmp_path / "again" / "certs")
        wrong = PartyThread(
            tmp_path / "again", cn.Party("bank", rng.normal(size=(60, 2))), int(listen[10:]), tls=theirs
        )
        outcome = wrong.join()
        assert isinstance(outcome, cn.InputError)
        assert "shop.pem is of 'shop', and this party is 'bank'" in str(outcome)
        assert dial(tmp_path, theirs, (wire.CLAIMED_NAME, "bank")) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "its party.toml says bank, and its certificate is of shop",
        )
        check_unharmed(federation)


@pytest.mark.parametrize("kind", [x509.RFC822Name, x509.UniformResourceIdentifier])
def test_an_address_is_no_name(tmp_path: Path, kind: type[x509.RFC822Name]) -> None:
    new_certificates(tmp_path / "certs", [*PARTIES, "stranger"])
    pins = tmp_path / "certs/pins.toml"
    pins.write_text("".join(line for line in pins.read_text().splitlines(keepends=True) if "stranger" not in line))
    with federation_in_threads(tmp_path, make_parties()) as federation:
        code, details = dial(tmp_path, sign(tmp_path, "stranger", "stranger", [kind("shop")]))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert details == "the certificate names ['stranger']: no party here"
        check_unharmed(federation)


def connect_late(folder: Path, **changes: Any) -> tuple[PartyThread, Path]:
    port = free_port()
    path = write_federation_file(folder, ["bank"], port, wait_seconds=2.0)
    return PartyThread(folder, make_parties()[0], port, wait_seconds=1.0, **changes), path


def test_a_server_of_another_authority_is_named(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    new_certificates(tmp_path / "elsewhere/certs", ["bank"])
    ours = tls(tmp_path, "bank")
    bank, path = connect_late(tmp_path, tls=Tls(str(tmp_path / "elsewhere/certs/ca.pem"), ours.certificate, ours.key))
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    outcome = str(bank.join())
    assert "the server's certificate was not signed by ca.pem" in outcome
    assert outcome.endswith("Put that right, then start this party.")
    assert any("was not signed by ca.pem" in words for words in bank.said)


def test_a_party_of_another_authority_is_told_that_the_server_hung_up(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    new_certificates(tmp_path / "elsewhere/certs", ["bank"])
    theirs = tls(tmp_path / "elsewhere", "bank")
    bank, path = connect_late(tmp_path, tls=Tls(str(tmp_path / "certs/ca.pem"), theirs.certificate, theirs.key))
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    assert "the server hung up when it saw this party's certificate: it was not signed by" in str(bank.join())


def test_a_certificate_that_expired_is_named_with_its_day_at_each_end(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    shutil.copytree(tmp_path / "certs", tmp_path / "valid")
    sign(tmp_path, "bank", "bank", [], timedelta(days=-9), timedelta(days=-3))
    bank, path = connect_late(tmp_path)
    assert f"bank.pem expired on {day}" in str(bank.join())
    for kind in ("pem", "key"):
        shutil.copy(tmp_path / f"valid/bank.{kind}", tmp_path / f"certs/bank.{kind}")
    sign(tmp_path, "server", "server", [x509.DNSName("server")], timedelta(days=-9), timedelta(days=-3))
    with pytest.raises(cn.InputError, match=rf"server\.pem expired on {day}"):
        cn.Federation.connect(path)


def test_a_server_whose_certificate_expires_while_it_runs(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    sign(tmp_path, "server", "server", [x509.DNSName("server")], ends=timedelta(seconds=4))
    port = free_port()
    path = write_federation_file(tmp_path, ["bank"], port, wait_seconds=12.0)

    def connect() -> None:
        with pytest.raises(cn.PartyUnreachableError):
            cn.Federation.connect(path)

    server = threading.Thread(target=connect)
    server.start()
    time.sleep(5.2)
    bank = PartyThread(tmp_path, make_parties()[0], port, wait_seconds=2.0)
    outcome = str(bank.join())
    server.join()
    assert f"the server's certificate expired on {datetime.now(UTC):%Y-%m-%d}" in outcome


def test_who_looks_ahead_is_warned_thirty_days_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_certificates(tmp_path / "certs", PARTIES, days=20)
    with federation_in_threads(tmp_path, make_parties()) as federation:
        check_unharmed(federation)
    said = capsys.readouterr().err
    assert "server.pem expires on" in said
    assert "the certificate of bank expires on" in said


def test_a_name_that_is_not_the_servers(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    bank, path = connect_late(tmp_path, server_name="hub")
    with pytest.raises(cn.PartyUnreachableError):
        cn.Federation.connect(path)
    assert "the server's certificate is of 'server', not of 'hub'" in str(bank.join())


def test_nobody_listens(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    bank, _ = connect_late(tmp_path)
    assert "nobody answers there (Connection refused). Start the server" in str(bank.join())


def test_files_that_are_being_changed_stop_nobody(tmp_path: Path) -> None:
    """A key without its certificate, half a file, an open one, none: the party says so, and dials until it is right."""
    new_certificates(tmp_path / "certs", PARTIES)
    port = free_port()
    path = write_federation_file(tmp_path, PARTIES, port)
    parties = [PartyThread(tmp_path, party, port) for party in make_parties()]
    until(lambda: all(events(party.log_path) for party in parties))  # both have dialled
    certificate, key = tmp_path / "certs/shop.pem", tmp_path / "certs/shop.key"
    old, (bank, shop) = certificate.read_bytes(), parties
    renew_certificate(tmp_path / "certs", "shop", new_key=True)
    new = certificate.read_bytes()

    def said(words: str) -> None:
        until(lambda: any(words in each for each in shop.said))

    def change() -> None:
        said("is not that of its key")
        certificate.write_bytes(new[:100])
        n_lines = len(events(shop.log_path))
        until(lambda: len(events(shop.log_path)) > n_lines)
        key.chmod(0o644)
        said(f"run chmod 600 {key}")
        key.chmod(0o600)
        certificate.unlink()
        said("No such file")
        certificate.write_bytes(new)

    certificate.write_bytes(old)
    changing = threading.Thread(target=change)
    changing.start()
    with cn.Federation.connect(path) as federation:
        check_unharmed(federation)
    changing.join()
    assert not any(str(tmp_path) in each.get("reason", "") for each in events(shop.log_path)), "no paths are told"
    assert isinstance(bank.join(), Goodbye)
    assert isinstance(shop.join(), Goodbye)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604])
@pytest.mark.parametrize("name", ["bank.key", "bank.identity"])
def test_secrets_that_others_can_read_are_refused_with_the_remedy(tmp_path: Path, name: str, mode: int) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    (tmp_path / "certs" / name).chmod(mode)
    read: dict[str, Callable[[], object]] = {
        "bank.key": lambda: read_credentials(tls(tmp_path, "bank")),
        "bank.identity": lambda: read_identity("bank", identity_file(tmp_path, "bank")),
    }
    with pytest.raises(cn.InputError, match=rf"others can read or change it \(mode {mode:o}\): run chmod 600 .*{name}"):
        read[name]()


def test_encrypted_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_certificates(tmp_path / "certs", PARTIES)
    for name in (*PARTIES, "server"):
        file = tmp_path / f"certs/{name}.key"
        key: Any = serialization.load_pem_private_key(file.read_bytes(), None)
        secret = serialization.BestAvailableEncryption(b"open sesame")
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret))
    port, secret_file = free_port(), tmp_path / "passphrase"
    secret_file.write_text("open sesame\n")
    secret_file.chmod(0o600)
    monkeypatch.setenv(VARIABLE, "open sesame")
    theirs = tls(tmp_path, "server")
    table = {"authority": theirs.authority, "certificate": theirs.certificate, "key": theirs.key}
    path = write_federation_file(tmp_path, PARTIES, port, tls={**table, "passphrase_file": "passphrase"})
    parties = [
        PartyThread(
            tmp_path,
            party,
            port,
            tls=msgspec.structs.replace(tls(tmp_path, party.name), passphrase_env=VARIABLE),
        )
        for party in make_parties()
    ]
    with cn.Federation.connect(path) as federation:
        check_unharmed(federation)
    for party in parties:
        party.join()
    assert "open sesame" not in "".join(file.read_text() for file in tmp_path.rglob("*.jsonl"))
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(cn.InputError, match=f"{VARIABLE}, which is not set"):
        parties[0].line.serve(once=True)
    monkeypatch.setenv(VARIABLE, "open barley")
    with pytest.raises(cn.InputError, match=r"The passphrase of .*bank\.key is wrong") as caught:
        parties[0].line.serve(once=True)
    assert "barley" not in str(caught.value) + repr(caught.value.__context__)
    with pytest.raises(
        cn.InputError, match=r"bank\.key is encrypted\. Name its passphrase_env or passphrase_file in \[tls\]"
    ):
        read_credentials(tls(tmp_path, "bank"))
    secret_file.chmod(0o640)
    with pytest.raises(cn.InputError, match=r"passphrase_file of \[tls\].*others can read or change it.*chmod 600"):
        cn.Federation.connect(path)
