"""How a party prepared its columns, in its state folder: a JSON file each, and its part of the last model of these."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from colonnade.contracts import ModelPart
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.ledger import in_a_line
from colonnade.node.state_folder import write_private
from colonnade.options import listed
from colonnade.preparation.preparation import MAX_JSON_BYTES, Preparation
from colonnade.protocol.preparations import NAME
from colonnade.storage import read_file

SHOWN = 12


class PreparationFiles:
    """Preparations of a party's columns, each in a file; `say` tells the owner."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say

    def keep(self, name: str, fitted: bytes) -> None:
        """Write one down, unless it is there; what is there instead goes."""
        path = self._path("prepared", name)
        with suppress(InputError):
            if self.find(name) == fitted:
                return
        write_private(path, fitted)
        preparation = Preparation.from_json(fitted)
        columns, references = preparation.own_names, preparation.references
        compared = f" Levels compare to {_shown(references)}." if references else ""
        self._say(f"{len(columns):,} columns prepared, {path.name}: {_shown(columns)}.{compared}")

    def find(self, name: str) -> bytes | None:
        """Read the one of this name: the server says it, and it is no path."""
        if NAME.fullmatch(name) is None:
            return None
        try:
            return read_file(self._path("prepared", name), MAX_JSON_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(
                f"a preparation in its state folder cannot be read: {why}. Restore it from a copy, or learn the model "
                "again."
            ) from None

    def keep_part(self, name: str, part: ModelPart) -> None:
        """Write down the party's part of a model, by its own names."""
        if (fitted := self.find(name)) is None:
            raise InputError(f"the preparation {name[:8]} of its columns is gone from its state folder. Learn again.")
        columns = Preparation.from_json(fitted).own_names
        coef, centers, scale = (None if numbers is None else numbers.tolist() for numbers in part)
        words = {"prepared": name, "columns": columns, "coef": coef, "centers": centers, "scale": scale}
        path = self._path("part", name)
        write_private(path, msgspec.json.format(msgspec.json.encode(words)))
        self._say(f"Its part of the model, {path.name}.{_coefficients(columns, part[0])}")

    def tell(self, notes: Iterable[str]) -> None:
        """Tell the owner how it went."""
        for note in notes:
            self._say(f"Note: {note}.")

    def failed(self, error: InputError) -> InputError:
        """Tell the owner why it did not go at all; others only that."""
        self._say(f"Columns cannot be prepared. {error}")
        return InputError("its columns cannot be prepared by its owner's rules. Its owner was told why; ask there.")

    def _path(self, what: str, name: str) -> Path:
        return self._folder / f"{what}-{name}.json"


def _coefficients(columns: Iterable[str], coef: Floats | None) -> str:
    """List coefficients that are large first; of several classes, the largest of each column."""
    if coef is None:
        return ""
    lines = np.atleast_2d(coef)
    largest = lines[np.abs(lines).argmax(axis=0), np.arange(lines.shape[1])]
    named = sorted(zip(columns, largest.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    return f" Largest coefficients: {_shown([f'{name} {value:.4g}' for name, value in named])}."


def _shown(words: Iterable[str]) -> str:
    return listed([in_a_line(word) for word in words], SHOWN)
