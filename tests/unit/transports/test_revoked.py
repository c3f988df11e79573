"""Serials and pins that no longer count: as people copy them, and never counted again by an accident."""

from pathlib import Path

import pytest

import colonnade as cn
from colonnade.transports.revoked import Revoked

SERIAL = 0x0A1B2C3D4E
PIN = "ab" * 32


@pytest.mark.parametrize(
    "written",
    [
        "a1b2c3d4e",
        "0A1B2C3D4E",
        "0a:1b:2c:3d:4e",
        "serial=0A1B2C3D4E",
        "0x0a1b2c3d4e",
        " 000A1B2C3D4E\\n",
        "0A 1B 2C 3D 4E",
    ],
)
def test_a_serial_is_known_however_it_is_written(tmp_path: Path, written: str) -> None:
    path = tmp_path / "revoked.toml"
    path.write_text(f'serials = ["{written}"]\npins = ["{PIN.upper()}"]\n')
    revoked = Revoked(str(path))
    assert revoked.serials() == {SERIAL}
    assert revoked.pins() == {bytes.fromhex(PIN)}


@pytest.mark.parametrize(
    "content",
    [
        'serials = ["no serial"]',
        'serials = [""]',
        'serials = ["-5"]',
        'serials = ["1_0"]',
        "serials = [12]",
        'serials = "12"',
        'pins = ["abcd"]',
        f'pins = ["{PIN[:-1]}"]',
        'serial = ["12"]',
        'serials = ["12"',
        "\0",
    ],
)
def test_a_list_that_does_not_say_what_it_should_is_an_error_at_the_start_and_changes_nothing_later(
    tmp_path: Path, content: str
) -> None:
    path, said = tmp_path / "revoked.toml", list[str]()
    path.write_text(content)
    with pytest.raises(cn.InputError, match=r"Cannot read .*revoked\.toml.* as `colonnade certs show` prints them"):
        Revoked(str(path))
    path.write_text('serials = ["a1b2c3d4e"]')
    revoked = Revoked(str(path), said.append)
    path.write_text(content)
    assert revoked.serials() == {SERIAL}
    assert len(said) == 1


def test_what_was_revoked_stays_so_while_the_process_runs(tmp_path: Path) -> None:
    """A list that is written anew is empty for a moment, and a valid list then."""
    path = tmp_path / "revoked.toml"
    path.write_text(f'serials = ["a1b2c3d4e"]\npins = ["{PIN}"]\n')
    revoked = Revoked(str(path))
    path.write_text("")
    assert revoked.serials() == {SERIAL}
    assert revoked.pins() == {bytes.fromhex(PIN)}
    path.write_text('serials = ["1"]')
    assert revoked.serials() == {SERIAL, 1}
    assert Revoked(str(path)).serials() == {1}, "only a new process begins anew"


def test_without_a_file_nothing_is_revoked() -> None:
    assert (Revoked().serials(), Revoked().pins()) == (frozenset(), frozenset())
