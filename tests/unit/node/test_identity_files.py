"""Pins in files: one, or two while a key is changed; read again while an end runs."""

from pathlib import Path

import pytest

import colonnade as cn
from colonnade.node.files import IdentityFile
from colonnade.node.identity_files import new_identity, read_identity, read_pins
from colonnade.privacy.identities import PinnedIdentity
from colonnade.transports.revoked import Revoked

NAMES = ("bank", "shop", "server")
STATEMENT = b"a sheet"


class Owners:
    """Identities in a folder, an old and a new one of each, and pins.toml as it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pin: dict[tuple[str, str], str] = {}
        for age in ("old", "new"):
            for name in NAMES:
                line = new_identity(folder / age, name)
                self.pin[age, name] = line.partition(" = ")[2].strip('"')
        self.pins, self.revoked = folder / "pins.toml", folder / "revoked.toml"
        self.revoked.write_text("")
        self.said: list[str] = []
        self.write()

    def write(self, **ages: list[str]) -> None:
        """Write everybody's pins: the old one, unless told otherwise."""
        lines = [f'"{name}" = {[self.pin[age, name] for age in ages.get(name, ["old"])]!r}\n' for name in NAMES]
        self.pins.write_text("".join(lines))

    def identity(self, name: str, age: str = "old") -> PinnedIdentity:
        file = IdentityFile(str(self.folder / age / f"{name}.identity"), str(self.pins))
        return read_identity(name, file, Revoked(str(self.revoked)), self.said.append)


@pytest.fixture
def owners(tmp_path: Path) -> Owners:
    return Owners(tmp_path)


def test_two_pins_count_while_a_key_is_changed(owners: Owners) -> None:
    bank, old = owners.identity("bank"), owners.identity("server")
    owners.write(server=["old", "new"])
    new = owners.identity("server", "new")
    assert [bank.is_signed("server", STATEMENT, each.sign(STATEMENT)) for each in (old, new)] == [True, True]
    assert not bank.is_signed("shop", STATEMENT, new.sign(STATEMENT)), "under its own name only"
    owners.write(server=["new"])
    assert [bank.is_signed("server", STATEMENT, each.sign(STATEMENT)) for each in (old, new)] == [False, True]
    assert owners.said.count("pins.toml was read again: it has changed.") >= 2


def test_a_revoked_pin_signs_nothing_any_more(owners: Owners) -> None:
    owners.write(server=["old", "new"])
    bank, old, new = owners.identity("bank"), owners.identity("server"), owners.identity("server", "new")
    assert bank.is_signed("server", STATEMENT, old.sign(STATEMENT))
    owners.revoked.write_text(f'pins = ["{owners.pin["old", "server"].upper()}"]')
    assert [bank.is_signed("server", STATEMENT, each.sign(STATEMENT)) for each in (old, new)] == [False, True]
    with pytest.raises(cn.InputError, match=r"The pin of .*server\.identity is revoked"):
        owners.identity("server")


def test_a_party_whose_only_pin_is_revoked_is_nobody_to_take_part_with(owners: Owners) -> None:
    bank = owners.identity("bank")
    assert "shop" in bank.parties
    owners.revoked.write_text(f'pins = ["{owners.pin["old", "shop"]}"]')
    assert bank.parties == ("bank",)


@pytest.mark.parametrize("content", ["", '"bank" = "', '"bank" = 5', '"bank" = "abcd"', '"bank" = []', None])
def test_pins_that_break_while_an_end_runs_are_as_before(owners: Owners, content: str | None) -> None:
    bank, server = owners.identity("bank"), owners.identity("server")
    whole = owners.pins.read_text()
    if content is None:
        owners.pins.unlink()
    else:
        owners.pins.write_text(content)
    assert bank.parties == ("bank", "shop")
    assert bank.is_signed("server", STATEMENT, server.sign(STATEMENT))
    assert len(owners.said) == 1, "the bank's owner is told once"
    assert "pins.toml cannot be read" in owners.said[0]
    with pytest.raises(cn.InputError):
        owners.identity("bank")
    owners.pins.write_text(whole)
    assert owners.identity("bank").parties == ("bank", "shop")


def test_names_do_not_change_while_an_end_runs(owners: Owners) -> None:
    """Half a file can be whole TOML: without a line, or without its last lines."""
    bank = owners.identity("bank")
    lines = owners.pins.read_text().splitlines(keepends=True)
    for content in ("".join(lines[:2]), "".join(lines) + f'"thief" = "{"ab" * 32}"\n'):
        owners.pins.write_text(content)
        assert bank.parties == ("bank", "shop")
        assert "where bank, server, shop were" in owners.said[-1]


def test_an_end_does_not_lose_its_own_pin_while_it_runs(owners: Owners) -> None:
    bank = owners.identity("bank")
    owners.write(bank=["new"], shop=["new"])
    assert not bank.is_signed("shop", STATEMENT, b""), "it goes on"
    assert "the pin of bank that this process signs with is not in it" in owners.said[-1]
    owners.write(bank=["old", "new"], shop=["new"])
    assert bank.parties == ("bank", "shop")
    assert owners.said[-1] == "pins.toml was read again: it has changed."


def test_a_third_pin_is_refused_where_it_would_sign(owners: Owners) -> None:
    three = [owners.pin["old", "bank"], owners.pin["new", "bank"], "ab" * 32]
    lines = owners.pins.read_text().splitlines(keepends=True)
    owners.pins.write_text("".join([f'"bank" = {three!r}\n', *lines[1:]]))
    with pytest.raises(cn.InputError, match="'bank' has 3 pins, and 2 are the most: the old one and the new one"):
        owners.identity("bank")
    assert [pin.hex() for pin in read_pins(owners.pins)["bank"]] == three, "for logs and evidence of old"


@pytest.mark.parametrize(
    "lines", ['bank = "{a}"\nshop = "{A}"', 'bank = ["{a}", "{b}"]\nshop = "{b}"', 'bank = ["{a}", "{a}"]']
)
def test_a_pin_is_of_one_party_only(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "pins.toml"
    path.write_text(lines.format(a="ab" * 32, A="AB" * 32, b="cd" * 32))
    with pytest.raises(cn.InputError, match="stands there twice, and must be of one party only"):
        read_pins(path)


def test_a_secret_may_be_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [new_identity(tmp_path, "bank", b"open sesame"), new_identity(tmp_path, "server")]
    (tmp_path / "pins.toml").write_text("\n".join(lines))
    key, pins = str(tmp_path / "bank.identity"), str(tmp_path / "pins.toml")
    monkeypatch.setenv("SESAME", "open sesame")
    bank = read_identity("bank", IdentityFile(key, pins, "SESAME"))
    assert bank.is_signed("bank", STATEMENT, bank.sign(STATEMENT))
    with pytest.raises(cn.InputError, match=r"bank\.identity is encrypted\. Name its passphrase_env .* \[identity\]"):
        read_identity("bank", IdentityFile(key, pins))
    monkeypatch.setenv("SESAME", "open barley")
    with pytest.raises(cn.InputError, match=r"The passphrase of .*bank\.identity is wrong") as caught:
        read_identity("bank", IdentityFile(key, pins, "SESAME"))
    assert "barley" not in str(caught.value) + repr(caught.value.__context__)
    with pytest.raises(cn.InputError, match="which is not set"):
        read_identity("bank", IdentityFile(key, pins, "NOT_SET"))
