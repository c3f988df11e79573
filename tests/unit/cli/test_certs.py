"""`colonnade certs renew` and `certs show`, as people run them."""

import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from colonnade.node.certificates import new_certificates
from colonnade.transports.revoked import Revoked
from command import run


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())


def test_a_certificate_is_renewed_for_its_key_or_a_new_one(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"], days=20)
    folder = tmp_path / "certs"
    old, old_key = certificate(folder, "bank"), (folder / "bank.key").read_bytes()
    assert "bank.pem: bank, serial" in (before := run("certs", "show", str(folder)).stdout)
    assert before.count(", in 19 days.") == 2, "the bank's and the server's, and not the authority's"
    done = run("certs", "renew", str(folder), "bank", "--days", "60")
    assert (done.returncode, done.stdout.split()) == (0, [str(folder / "bank.pem")])
    renewed = certificate(folder, "bank")
    assert (renewed.public_key(), renewed.subject) == (old.public_key(), old.subject)
    assert renewed.serial_number != old.serial_number
    renewed.verify_directly_issued_by(certificate(folder, "ca"))
    done = run("certs", "renew", str(folder), "server", "--new-key", "--json")
    assert json.loads(done.stdout) == {
        "certificate": str(folder / "server.pem"),
        "key": str(folder / "server.key"),
    }
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), None)
    assert certificate(folder, "server").public_key() == key.public_key()
    assert (folder / "bank.key").read_bytes() == old_key
    assert ((folder / "server.key").stat().st_mode & 0o777, (folder / "server.pem").stat().st_mode & 0o777) == (
        0o600,
        0o644,
    )
    assert ", in " not in run("certs", "show", str(folder)).stdout


def test_what_cannot_be_renewed_is_named(tmp_path: Path) -> None:
    new_certificates(tmp_path / "certs", ["bank"])
    before = (tmp_path / "certs/bank.pem").read_bytes()
    for arguments, words in [
        (["certs", "ca"], "cannot be made for 'ca'"),
        (["certs", "../bank"], "cannot be made for '../bank'"),
        (["certs", "nobody"], "does not have ca.pem, ca.key and nobody.pem"),
        (["nowhere", "bank"], "does not have ca.pem"),
        (["certs", "bank", "--days", "9999"], "Pass fewer --days than 9999"),
    ]:
        done = run("certs", "renew", str(tmp_path / arguments[0]), *arguments[1:])
        assert (done.returncode, words in done.stderr) == (3, True), done.stderr
    (tmp_path / "certs/ca.key").chmod(0o644)
    assert "chmod 600" in run("certs", "renew", str(tmp_path / "certs"), "bank").stderr
    assert (tmp_path / "certs/bank.pem").read_bytes() == before


def test_what_is_shown_can_be_revoked(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    new_certificates(folder, ["bank"])
    told = json.loads(run("certs", "show", str(folder), "--json").stdout)
    (serial,) = [each["serial"] for each in told["certificates"] if each["file"] == "bank.pem"]
    (tmp_path / "revoked.toml").write_text(f"serials = {[serial]}\npins = {told['pins']['bank']}\n")
    revoked = Revoked(str(tmp_path / "revoked.toml"))
    assert revoked.serials() == {certificate(folder, "bank").serial_number}
    assert revoked.pins() == {bytes.fromhex(told["pins"]["bank"][0])}
    (folder / "other.pem").write_text("no certificate")
    done = run("certs", "show", str(folder))
    assert (done.returncode, "other.pem is no certificate in PEM" in done.stderr) == (3, True)
    done = run("certs", "show", str(tmp_path / "nowhere"))
    assert (done.returncode, "has no .pem file and no pins.toml" in done.stderr) == (3, True)


def test_an_identity_is_made_encrypted(tmp_path: Path) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    done = run("certs", "identity", str(tmp_path), "--party", "bank", "--passphrase-file", str(secret))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bank.identity").read_text().startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert "sesame" not in done.stdout + done.stderr
    done = run("certs", "identity", str(tmp_path), "--party", "shop", "--passphrase-env", "NOT_SET")
    assert (done.returncode, "NOT_SET, which is not set" in done.stderr) == (3, True)
    assert not (tmp_path / "shop.identity").exists()
