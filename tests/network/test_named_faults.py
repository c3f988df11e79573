"""The wrong certificate, or none, named at both ends, by real processes, and nothing of gRPC's own words."""

import re
import shutil
import socket
import ssl
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from colonnade.node.certificates import new_certificates
from network_trial import BANK_FIT, Trial, events, sign, until, write_party_file

NOISE = re.compile(r"SSL_ERROR|OPENSSL|\.cc:\d|absl|ipv4:|failed to connect to all addresses|Traceback")


@pytest.fixture
def trial(tmp_path: Path) -> Any:
    (tmp_path / "elsewhere").mkdir()
    new_certificates(tmp_path / "elsewhere/certs", Trial.names)
    with Trial(tmp_path, [BANK_FIT], wait_seconds=60.0) as trial:
        yield trial


def tls(trial: Trial, authority: str, certificate: str) -> dict[str, str]:
    own = trial.folder / certificate
    return {"authority": str(trial.folder / authority), "certificate": str(own), "key": str(own.with_suffix(".key"))}


def both_ends(trial: Trial, **changes: Any) -> tuple[str, str, list[dict[str, Any]]]:
    """Let a party dial until it gives up; give what it said, what the server said by then, and the server's log."""
    server = trial.start_server()
    log = trial.folder / "server-state/log.jsonl"
    until(lambda: log.exists() and any(line["event"] == "listening" for line in events(log)))
    trial.party_files["bank"] = write_party_file(trial.folder, "bank", trial.port, wait_seconds=2.0, **changes)
    party = trial.start_party("bank")
    said = party.communicate(timeout=60)[0]
    assert party.returncode == 5, said
    server.kill()
    heard = server.communicate()[0]
    assert not NOISE.search(said), said
    assert not NOISE.search(heard), heard
    return said, heard, [line for line in events(log) if line["event"] == "refused"]


def test_a_party_that_trusts_another_authority(trial: Trial) -> None:
    said, heard, refused = both_ends(trial, tls=tls(trial, "elsewhere/certs/ca.pem", "certs/bank.pem"))
    assert said.count("No line to") == 1
    assert "the server's certificate was not signed by ca.pem" in said
    assert "Put that right, then start this party." in said
    assert "it hung up when it saw this server's certificate: it trusts another authority" in heard
    assert "missing: bank, telephone, shop" in heard
    assert refused[0]["connections"] == 1


def test_a_party_of_another_authority(trial: Trial) -> None:
    said, heard, _ = both_ends(trial, tls=tls(trial, "certs/ca.pem", "elsewhere/certs/bank.pem"))
    assert "the server hung up when it saw this party's certificate: it was not signed by" in said
    assert "a connection was refused: it showed a certificate that this server's authority did not sign" in heard


def test_a_server_of_another_name(trial: Trial) -> None:
    said, *_ = both_ends(trial, server_name="hub")
    assert "No line to 127.0.0.1" in said
    assert "the server's certificate is of 'server', not of 'hub'" in said


def test_a_party_in_plaintext(trial: Trial) -> None:
    said, heard, refused = both_ends(trial, tls=None, insecure_plaintext_on_loopback=True)
    assert "the server speaks TLS, and this party plaintext: its party.toml needs a [tls]" in said
    assert "a connection was refused: it spoke plaintext, and this server speaks TLS" in heard
    assert "it spoke plaintext, and this server speaks TLS" in [line["reason"] for line in refused]


def test_a_server_in_plaintext(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"tls": None, "insecure_plaintext_on_loopback": True}
    with Trial(tmp_path, [BANK_FIT], wait_seconds=60.0, **changes) as trial:
        said, *_ = both_ends(trial)
        assert "what answers there speaks plaintext, and this party TLS: the server has no [tls]" in said


def test_a_certificate_that_has_expired_shown_by_who_does_not_look(trial: Trial) -> None:
    """A party of ours does not dial with one; another's program does."""
    shutil.copytree(trial.folder / "certs", trial.folder / "valid")
    shown = sign(trial.folder, "shop", "shop", [x509.DNSName("shop")], timedelta(days=-9), timedelta(days=-3))
    context = ssl.create_default_context(cafile=shown.authority)
    context.check_hostname = False
    context.load_cert_chain(shown.certificate, shown.key)
    context.set_alpn_protocols(["h2"])
    server = trial.start_server()
    log = trial.folder / "server-state/log.jsonl"
    until(lambda: log.exists() and any(line["event"] == "listening" for line in events(log)))
    with context.wrap_socket(socket.create_connection(("127.0.0.1", trial.port)), server_hostname="server") as line:
        line.settimeout(10)
        with suppress(OSError):
            line.recv(1)
    until(lambda: any(each["event"] == "refused" for each in events(log)))
    server.kill()
    assert "it showed a certificate that has expired" in server.communicate()[0]
