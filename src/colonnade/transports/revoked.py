"""What an owner no longer trusts: serials of certificates and pins, in a file that is read again when it changes."""

from contextlib import suppress
from pathlib import Path

import msgspec

from colonnade.errors import InputError
from colonnade.storage import MAX_SECRET_BYTES, read_file


class RevokedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """revoked.toml: serials and pins, in hexadecimal digits."""

    serials: list[str] = []
    pins: list[str] = []


class Revoked:
    """The list as it is now; nothing is revoked where no file is named."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._stamp: tuple[int, int] | None = None
        self._serials: frozenset[int] = frozenset()
        self._pins: frozenset[bytes] = frozenset()
        self._read()

    def serials(self) -> frozenset[int]:
        """Give the serials of certificates that are refused."""
        self._refresh()
        return self._serials

    def pins(self) -> frozenset[bytes]:
        """Give the pins that nobody's signature counts under."""
        self._refresh()
        return self._pins

    def _refresh(self) -> None:
        with suppress(InputError):  # in the middle of a change, or gone: what was revoked stays so
            self._read()

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            found = msgspec.toml.decode(read_file(self._path.resolve(), MAX_SECRET_BYTES), type=RevokedFile)
            serials = frozenset(int(serial.replace(":", ""), 16) for serial in found.serials)
            pins = frozenset(map(bytes.fromhex, found.pins))
        except (OSError, ValueError) as error:
            raise InputError(
                f'Cannot read {self._path}: {error}. Write serials = ["..."] and pins = ["..."], in hexadecimal '
                "digits, as `colonnade certs show` prints them."
            ) from error
        self._stamp, self._serials, self._pins = stamp, serials, pins
