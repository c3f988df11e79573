"""Where passphrases come from, and what is said when they are not there."""

from pathlib import Path

import pytest

import colonnade as cn
from colonnade.transports.endpoints import Tls
from colonnade.transports.passphrases import needed_passphrase, passphrase

VARIABLE = "WHERE_A_PASSPHRASE_IS"


def tls(env: str | None = None, file: Path | None = None) -> Tls:
    return Tls("ca.pem", "bank.pem", "bank.key", env, None if file is None else str(file))


def secret_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "passphrase"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_it_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "öffne dich")
    assert passphrase(tls(VARIABLE), "[tls]") == "öffne dich".encode()
    assert passphrase(tls(file=secret_file(tmp_path, b" two words \r\n")), "[tls]") == b" two words "
    assert passphrase(tls(), "[tls]") is None


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(cn.InputError, match=rf"\[tls\] names the environment variable {VARIABLE}, which is not set"):
        passphrase(tls(VARIABLE), "[tls]")
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(cn.InputError, match="which is not set"):
        passphrase(tls(VARIABLE), "[tls]")
    with pytest.raises(cn.InputError, match=r"Cannot read the passphrase_file of \[identity\]"):
        passphrase(tls(file=tmp_path / "nowhere"), "[identity]")
    with pytest.raises(cn.InputError, match="is empty"):
        passphrase(tls(file=secret_file(tmp_path, b"\n")), "[tls]")
    with pytest.raises(cn.InputError, match=r"Leave out one of them"):
        passphrase(tls(VARIABLE, tmp_path / "nowhere"), "[tls]")
    with pytest.raises(cn.InputError, match=r"bank\.key is encrypted\. Name its passphrase_env or passphrase_file"):
        needed_passphrase(tls(), "[tls]", "bank.key")


def test_a_file_that_others_can_read_is_refused_and_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(cn.InputError, match=r"others can read or change it \(mode 644\): run chmod 600") as caught:
        passphrase(tls(file=secret_file(tmp_path, b"open sesame", 0o644)), "[tls]")
    assert "sesame" not in str(caught.value)
