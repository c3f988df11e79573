"""What a message is: a frozen typed struct whose every field says what it reveals.

The kinds themselves live with their phase; this module holds what they share.
"""

from collections.abc import Container
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Flags, Floats, Rows

# The largest message either side will encode or decode, and so the most numbers one can carry beside its header.
MAX_MESSAGE_BYTES = 1 << 30
MAX_NUMBERS = (MAX_MESSAGE_BYTES - (1 << 16)) // 8
# Larger magnitudes, or smaller ones, leave float64's range when squared: no honest side sends them.
MAX_MAGNITUDE, MIN_MAGNITUDE = 1e100, 1e-100


class Reveals(StrEnum):
    """What the receiver of a field learns about the sender's data."""

    NOTHING = "nothing"
    SCHEMA = "schema"
    TOTALS = "totals"
    ROW_IDS = "row ids"
    SCORES = "scores"
    SCORE_SUMS = "sums of scores"
    FEATURES = "features"
    LABELS = "labels"
    PREDICTIONS = "predictions"
    MOMENTS = "moments"
    ROW_WEIGHTS = "row weights"
    MODEL = "model"
    KEYS = "keys"
    MATCHES = "matches"
    LEVELS = "levels"


# What holds numbers in another form than an array.
CODED = (bytes, tuple, msgspec.Struct)
# Seeds, options, hello and control fields cost bytes but none of the paper's units.
UNCOUNTED = frozenset({Reveals.NOTHING, Reveals.SCHEMA})


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True, eq=False):
    """Base of every kind of message.

    A kind annotates each field with exactly one `Reveals`, names its `phase`, and, if it is a request,
    the kind that answers it in `reply`. One that is made of fresh secrets, and so differs each time, is `fresh`.
    """

    phase: ClassVar[str]
    reply: ClassVar[type["Message"] | None] = None
    fresh: ClassVar[bool] = False
    # What a server that makes up the numbers of its requests can work out from such replies.
    steered: ClassVar[tuple[Reveals, ...]] = ()
    # What such replies leave out where the server says that it was told before: a job is judged as if it were not.
    known_before: ClassVar[tuple[Reveals, ...]] = ()

    @property
    def goes_on(self) -> bool:
        """Whether a request goes on with what an earlier one of the job began: it is about a later window of rows."""
        return bool(getattr(self, "first", 0)) and "stop" in self.__struct_fields__

    @property
    def kind(self) -> str:
        """The kind's name, as on the wire and in the ledger."""
        return type(self).__name__

    def facts(self) -> tuple[str, int, tuple[str, ...], tuple[int, ...]]:
        """Give what the ledger writes of it: its kind, its units, what it reveals, and in how many numbers each."""
        units = self.units()
        told = self.numbers_told(units) if _telling(type(self)) else {}
        return type(self).__name__, units, tuple(map(str, told)), tuple(told.values())

    def units(self) -> int:
        """Count the numbers carried: the paper's measure of communication (section 2)."""
        return sum([_numbers(getattr(self, name)) for name, _ in _counted(type(self))])

    def reveals(self) -> tuple[Reveals, ...]:
        """Name what the fields that are present disclose, each once, in the order of the fields."""
        return tuple(dict.fromkeys([tells for name, tells in _telling(type(self)) if getattr(self, name) is not None]))

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count the numbers of the fields that disclose each thing, at most; the things are those of `reveals`.

        Where a field is coded, they are what all others leave of the message's units, or the rows that it is of.
        """
        plain: dict[Reveals, int] = {}
        coded: list[Reveals] = []
        for name, reveals in _telling(type(self)):
            if (value := getattr(self, name)) is None:
                continue
            if reveals in UNCOUNTED:
                plain[reveals] = 0
                continue
            plain[reveals] = plain.get(reveals, 0) + _numbers(value)
            if isinstance(value, CODED):
                coded.append(reveals)
        if not coded:
            return plain
        total = sum(plain.values())
        return plain | {each: max(units - total + plain[each], self.coded_rows()) for each in coded}

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name what another than the receiver learns with the help of this message; an owner's policy counts it too."""
        return ()

    def tells(self) -> set[Reveals]:
        """Collect what the receiver, or another with the help of this message, learns, or could by its questions."""
        return {*self.reveals(), *self.passes_on(), *self.steered}

    def rows_of(self, kinds: Container[Reveals]) -> int:
        """Count the rows of the longest field that reveals one of these, be it an array or coded."""
        values = [getattr(self, name) for name, reveals in _telling(type(self)) if reveals in kinds]
        coded = [self.coded_rows() for value in values if isinstance(value, bytes)]
        return max([*coded, *(len(value) for value in values if isinstance(value, np.ndarray))], default=0)

    def coded_rows(self) -> int:
        """Count the rows that fields of bytes are of; a kind with such fields says so in `size`, or here."""
        return int(getattr(self, "size", 0))


@cache
def disclosures(kind: type[Message]) -> dict[str, Reveals]:
    """Map each field of a kind to what it reveals; a field that declares nothing, or two things, is a `TypeError`."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _declared(kind, name, hints[name]) for name in kind.__struct_fields__}


@cache
def _telling(kind: type[Message]) -> list[tuple[str, Reveals]]:
    """List the fields that disclose something."""
    return [(name, reveals) for name, reveals in disclosures(kind).items() if reveals is not Reveals.NOTHING]


@cache
def _counted(kind: type[Message]) -> list[tuple[str, Reveals]]:
    """List those whose numbers count."""
    return [(name, reveals) for name, reveals in _telling(kind) if reveals not in UNCOUNTED]


def _declared(kind: type[Message], name: str, hint: object) -> Reveals:
    marks = [m for m in get_args(hint)[1:] if isinstance(m, Reveals)] if get_origin(hint) is Annotated else []
    if len(marks) != 1:
        raise TypeError(f"{kind.__name__}.{name} must be annotated with exactly one Reveals, found {marks}")
    return marks[0]


def _numbers(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, (int, float)):
        return 1
    if isinstance(value, msgspec.Struct):  # a signed column
        return sum(each.size for each in msgspec.structs.astuple(value) if isinstance(each, np.ndarray))
    return 0


def sendable_floats(values: npt.ArrayLike) -> Floats:
    """Give numbers the form a decoder gives them, C-contiguous and read-only.

    No transport can then change a bit of what follows.
    """
    return _frozen(np.ascontiguousarray(values, dtype=np.float64))


def sendable_columns(values: Floats) -> Floats:
    """Give a matrix as it is made, column by column, read-only.

    For those whose numbers are read one by one: a decoder gives them row by row, and sums of many may differ in bits.
    """
    return _frozen(values)


def sendable_rows(rows: npt.ArrayLike) -> Rows:
    """Give row ids the form a decoder gives them."""
    return _frozen(np.ascontiguousarray(rows, dtype=np.int64))


def sendable_flags(flags: npt.ArrayLike) -> Flags:
    """Give marks the form a decoder gives them; they travel as bits."""
    return _frozen(np.ascontiguousarray(flags, dtype=np.bool_))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
