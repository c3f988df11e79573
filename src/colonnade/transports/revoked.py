"""What an owner no longer trusts: serials of certificates and pins, in a file that is read again while an end runs."""

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from colonnade.transports.reread import Reread, Tell

PIN_BYTES = 32
REMEDY = 'Write serials = ["..."] and pins = ["..."], as `colonnade certs show` prints them.'


class RevokedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """revoked.toml: serials and pins, in hexadecimal digits."""

    serials: list[str] = []
    pins: list[str] = []


class _Lists(NamedTuple):
    serials: frozenset[int]
    pins: frozenset[bytes]


class Revoked:
    """The lists as they are now; nothing is revoked where no file is named.

    What was revoked once stays so while the process runs: a file that is emptied to be written anew opens no door.
    """

    def __init__(self, path: str | None = None, tell: Tell = lambda _: None) -> None:
        self._file = None if path is None else Reread(Path(path), _understood, tell, REMEDY)

    def serials(self) -> frozenset[int]:
        """Give the serials of certificates that are refused."""
        return frozenset() if self._file is None else self._file.now().serials

    def pins(self) -> frozenset[bytes]:
        """Give the pins that nobody's signature counts under."""
        return frozenset() if self._file is None else self._file.now().pins


def _understood(content: bytes, before: _Lists | None) -> _Lists:
    found = msgspec.toml.decode(content, type=RevokedFile)
    serials, pins = frozenset(map(_serial, found.serials)), frozenset(map(_pin, found.pins))
    return _Lists(serials, pins) if before is None else _Lists(serials | before.serials, pins | before.pins)


def _serial(text: str) -> int:
    """Read a serial as people copy it: `serial=0A1B` and `0a:1b` are OpenSSL's, `a1b` is ours."""
    digits = re.sub(r"^serial=|^0x|[:\s]", "", text.strip().lower())
    if not re.fullmatch("[0-9a-f]{1,64}", digits):
        raise ValueError(f"{text[:80]!r} is no serial in hexadecimal digits")
    return int(digits, 16)


def _pin(text: str) -> bytes:
    try:
        pin = bytes.fromhex(text)
    except ValueError:
        pin = b""
    if len(pin) != PIN_BYTES:
        raise ValueError(f"{text[:80]!r} is no pin of {2 * PIN_BYTES} hexadecimal digits")
    return pin
