"""What travels where a classification is applied."""

from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart
from colonnade.evaluation.delivery import Received
from colonnade.evaluation.masked.messages import MaskedReceived, SignedPart
from colonnade.evaluation.masked.ring import WIDTH
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import Window
from colonnade.messages import Message, Reveals
from colonnade.signing import digest


class DeliverClasses(Message, frozen=True):
    """Chances of classes of the selected rows of a window, and the classes: numbers, or their names."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Received

    probabilities: Annotated[Floats, Reveals.PREDICTIONS]
    values: Annotated[Floats, Reveals.MODEL]
    names: Annotated[tuple[str, ...] | None, Reveals.MODEL]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, _n_numbers(self.probabilities))


class ClassLosses(Message, frozen=True):
    """Sums over the selected rows: losses, squares of errors, a table of classes, areas under curves, calibration.

    Nothing before the last window. The server brings the others' part of every row's logit. It could bring another, and
    read labels from losses: to an owner's policy these are labels.
    """

    phase: ClassVar[str] = "predicting"
    steered: ClassVar[tuple[Reveals, ...]] = (Reveals.LABELS,)

    sums: Annotated[Floats, Reveals.MOMENTS]
    confusion: Annotated[Floats, Reveals.TOTALS]
    areas: Annotated[Floats, Reveals.MOMENTS]
    calibration: Annotated[Floats, Reveals.MOMENTS]


class AskClassLosses(Message, frozen=True):
    """The label party's part of the coefficients, the others' logits of a window in sum, intercepts and classes.

    Whether rows count by their weights. All but the logits is the same in all windows.
    """

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = ClassLosses

    coef: Annotated[Floats, Reveals.MODEL]
    others: Annotated[Floats, Reveals.PREDICTIONS]
    intercepts: Annotated[Floats, Reveals.MODEL]
    values: Annotated[Floats, Reveals.MODEL]
    names: Annotated[tuple[str, ...] | None, Reveals.MODEL]
    by_weight: Annotated[bool, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        return Window(self.first, self.stop, _n_numbers(self.others))


def _n_numbers(logits: Floats) -> int:
    return 1 if logits.ndim == 1 else logits.shape[1]


class OthersLogits(Message, frozen=True):
    """The others' masked parts of a window, in the order of their names, for the party that holds the last one.

    With the intercepts and the classes: numbers, or their names.
    """

    phase: ClassVar[str] = "predicting"

    parts: Annotated[tuple[SignedPart, ...], Reveals.PREDICTIONS]
    intercepts: Annotated[Floats, Reveals.MODEL]
    values: Annotated[Floats, Reveals.MODEL]
    names: Annotated[tuple[str, ...] | None, Reveals.MODEL]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number."""
        return sum(len(part.masked) for part in self.parts) // WIDTH + len(self.intercepts) + len(self.values)

    def fingerprint(self) -> bytes:
        """Hash all of it: by that the party says what it received."""
        named = classes_digest(self.intercepts, self.values, self.names)
        places = (place.to_bytes(8, "little") for place in (self.first, self.stop))
        return digest(named, *places, *(part.signed_digest.digest for part in self.parts))


class BringMaskedClasses(OthersLogits, frozen=True):
    """The others' masked parts of a window that others follow, by name. Compare chances with labels, and keep sums."""

    reply: ClassVar[type[Message]] = MaskedReceived


class DeliverMaskedClasses(OthersLogits, frozen=True):
    """The others' masked parts of the last window, by name. Learn the sum: chances of classes follow from it."""

    reply: ClassVar[type[Message]] = MaskedReceived


class MaskedClassLosses(Message, frozen=True):
    """As `ClassLosses`, of logits that no server chose: the others signed their parts.

    Nothing where the party lost its own part.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    sums: Annotated[Floats, Reveals.MOMENTS]
    confusion: Annotated[Floats, Reveals.TOTALS]
    areas: Annotated[Floats, Reveals.MOMENTS]
    calibration: Annotated[Floats, Reveals.MOMENTS]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskMaskedClassLosses(OthersLogits, frozen=True):
    """The others' masked parts of the last window, by name. Learn the sum, compare chances with labels, and add up."""

    reply: ClassVar[type[Message]] = MaskedClassLosses


def classes_digest(intercepts: Floats, values: Floats, names: tuple[str, ...] | None) -> bytes:
    """Hash what of a classification is in no party's part."""
    numbers = (np.ascontiguousarray(each, "<f8").tobytes() for each in (intercepts, values))
    return digest(*numbers, *(name.encode() for name in names or ()))


def class_losses_digest(other: bytes, question: AskMaskedClassLosses, *told: Floats) -> bytes:
    """Hash which model the party applied, what it was sent, and what it made of it."""
    return digest(other, question.fingerprint(), *(np.ascontiguousarray(each, "<f8").tobytes() for each in told))


def told_of(reply: ClassLosses | MaskedClassLosses) -> tuple[Floats, Floats, Floats, Floats]:
    """Give the numbers of a reply, all of them."""
    return reply.sums, reply.confusion, reply.areas, reply.calibration
