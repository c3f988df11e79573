"""Where a party keeps how it prepared its columns: by name, as JSON, with its part of the models that came of it."""

import warnings
from collections.abc import Iterable
from typing import Protocol

from colonnade.contracts import ModelPart
from colonnade.errors import AssumptionWarning, InputError


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
