"""Where a party keeps how it prepared its columns: by name, as JSON, with its part of the models that came of it."""

import hmac
import re
import warnings
from collections.abc import Iterable
from typing import Protocol

from colonnade.contracts import ModelPart
from colonnade.errors import AssumptionWarning, InputError

# Of a preparation's name: so many for the rows that counted, and as many for what was learned of them.
HALF_BYTES = 8
NAME = re.compile(r"[0-9a-f]{32}")


def preparation_name(key: bytes, rows: bytes, fitted: bytes) -> str:
    """Name a preparation, by 32 hexadecimal digits: by other rows another, so that names do not tell which two agree.

    Whoever has the party's key can tell from its name what it is of.
    """
    return _name(key, hmac.digest(key, b"rows" + rows, "sha256")[:HALF_BYTES], fitted)


def is_named(name: str, key: bytes, fitted: bytes) -> bool:
    """Tell whether a preparation is the one of this name, as it was."""
    try:
        return _name(key, bytes.fromhex(name)[:HALF_BYTES], fitted) == name
    except ValueError:
        return False


def _name(key: bytes, rows: bytes, fitted: bytes) -> str:
    return (rows + hmac.digest(key, rows + fitted, "sha256")[:HALF_BYTES]).hex()


class Preparations(Protocol):
    """What a party keeps of its preparations."""

    def keep(self, name: str, fitted: bytes) -> None:
        """Keep one, before anything is told of it."""

    def find(self, name: str) -> bytes | None:
        """Give the one of this name."""

    def keep_part(self, name: str, part: ModelPart) -> None:
        """Keep the party's part of a model that was learned from columns so prepared."""

    def tell(self, notes: Iterable[str]) -> None:
        """Tell the owner how it went."""

    def failed(self, error: InputError) -> InputError:
        """Tell the owner why it did not go at all, and give what others may know of that."""


class PreparationsHere:
    """Preparations that end with the process, but for those that a model takes with it."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def keep(self, name: str, fitted: bytes) -> None:
        """Keep one."""
        self._kept[name] = fitted

    def find(self, name: str) -> bytes | None:
        """Give the one of this name."""
        return self._kept.get(name)

    def keep_part(self, name: str, part: ModelPart) -> None:
        """Keep nothing: whoever asked has the whole model."""

    def tell(self, notes: Iterable[str]) -> None:
        """Warn of what the owner should know."""
        for note in notes:
            warnings.warn(note, AssumptionWarning, stacklevel=2)

    def failed(self, error: InputError) -> InputError:
        """Give all of it: the owner is the one who asked."""
        return error
