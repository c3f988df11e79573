"""What travels where a model is applied under masks, and what server and parties hash of it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from colonnade.contracts import ModelPart
from colonnade.evaluation.masked.ring import WIDTH, ring_of_parts
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.selections import Window
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import CircleKeys, SignedDigest, transcript_of
from colonnade.signing import digest


class Magnitude(Message, frozen=True):
    """The smallest e such that no number of the party's part exceeds 2^e."""

    phase: ClassVar[str] = "predicting"

    exponent: Annotated[int, Reveals.TOTALS]


class AskMagnitude(Message, frozen=True):
    """The party's part of the model: coefficients, or centres and the units of distances; whether it is evaluated."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Magnitude

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    evaluating: Annotated[bool, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, self.centers, self.scale


class MaskedPredictions(Message, frozen=True):
    """The party's part of a window's predictions under masks; empty from who learns them, none where a key is lost.

    Each number has 7 bytes. They reveal nothing to the server, which lacks the masked part of the one that learns
    them. That one learns the sum, of coefficients that the server chose: to an owner's policy they are predictions.
    Where labels go off them, the label party says how much labels vary, in all rows together, with the first window.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.NOTHING]
    label_spread: Annotated[float | None, Reveals.MOMENTS]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, although it tells the server nothing, and the spread."""
        return self.coded_rows() + (self.label_spread is not None)

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, to the one that learns the sum."""
        return (Reveals.PREDICTIONS,) if self.masked else ()

    def coded_rows(self) -> int:
        """Count the numbers; of a clustering each row counts once a centre."""
        return len(self.masked or b"") // WIDTH


class AskMaskedPredictions(Message, frozen=True):
    """The party's part of the model again, a window, the common magnitude, and who learns the predictions.

    Whether that one evaluates the model, and whether rows then count by their weights. All parties' keys come with the
    first window.
    """

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedPredictions

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    evaluating: Annotated[bool, Reveals.NOTHING]
    by_weight: Annotated[bool, Reveals.NOTHING]
    magnitude: Annotated[int, Reveals.TOTALS]
    to: Annotated[str, Reveals.NOTHING]
    keys: Annotated[CircleKeys | None, Reveals.NOTHING]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, self.centers, self.scale

    @property
    def window(self) -> Window:
        """Which rows, and how many numbers of each."""
        models = self.coef if self.centers is None else self.centers
        return Window(self.first, self.stop, 1 if models is None or models.ndim < 2 else len(models))


class SignedPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party's masked part, a digest of what else it signed, and its signature on both."""

    masked: bytes
    other: bytes
    signature: bytes

    @property
    def signed_digest(self) -> SignedDigest:
        """What the party signed, and its signature."""
        return SignedDigest(part_digest(self.other, self.masked), self.signature)


class OthersParts(Message, frozen=True):
    """The others' masked parts of a window, in the order of names, for who holds the last one; the intercept."""

    phase: ClassVar[str] = "predicting"

    parts: Annotated[tuple[SignedPart, ...], Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return sum(len(part.masked) for part in self.parts) // WIDTH + 1

    def fingerprint(self) -> bytes:
        """Hash all of it: by that the party says what it received."""
        numbers = np.array([self.intercept, self.first, self.stop], "<f8").tobytes()
        return digest(numbers, *(part.signed_digest.digest for part in self.parts))


class MaskedReceived(Message, frozen=True):
    """The party has them; a digest of what it got, empty where it lost its own part."""

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    digest: Annotated[bytes, Reveals.NOTHING]


class BringMasked(OthersParts, frozen=True):
    """The others' masked parts of a window that others follow, by name, and the intercept. Keep what comes of it."""

    reply: ClassVar[type[Message]] = MaskedReceived


class DeliverMasked(OthersParts, frozen=True):
    """The others' masked parts of the last window, by name, and the intercept. Learn the sum: these are predictions."""

    reply: ClassVar[type[Message]] = MaskedReceived


class SummedLosses(Message, frozen=True):
    """The cost, the absolute residuals' sum and, of drawn rows, the losses' deviation; sizes of clusters, if any.

    Nothing where the party lost its own part. The server chose the model: costs are second moments of its columns.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    sums: Annotated[Floats, Reveals.MOMENTS]
    sizes: Annotated[Rows, Reveals.TOTALS]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskLosses(OthersParts, frozen=True):
    """The others' masked parts of the last window, and the intercept. Learn residuals or distances, and add all up."""

    reply: ClassVar[type[Message]] = SummedLosses


def question_digest(to: str, magnitude: int, count: int, evaluating: bool, by_weight: bool) -> bytes:
    """Hash what is asked of every party alike."""
    return digest(*(str(each).encode() for each in (to, magnitude, count, evaluating, by_weight)))


def transcript_of_parts(
    parties: Sequence[str], keys: bytes, view: bytes, magnitude: int, question: bytes, before: bytes, window: Window
) -> bytes:
    """Hash what parties and server must agree on before a window's parts are masked.

    That of the window before is in it: who compares the last compares all, and no two windows have the same masks.
    """
    asked = digest(question, before, *(place.to_bytes(8, "little") for place in window[:2]))
    return transcript_of("predictions", parties, keys, view, asked, ring_of_parts(magnitude, len(parties)))


def other_digest(part: ModelPart, label_spread: float | None) -> bytes:
    """Hash a party's part of a model, and its label's spread: what it signs says which model it applied."""
    spread = b"" if label_spread is None else np.array(label_spread, "<f8").tobytes()
    return digest(*(b"" if each is None else np.ascontiguousarray(each, "<f8").tobytes() for each in part), spread)


def part_digest(other: bytes, masked: bytes) -> bytes:
    """Hash what a party signs."""
    return digest(other, masked)


def losses_digest(other: bytes, question: AskLosses, sums: Floats, sizes: Rows) -> bytes:
    """Hash which model the party applied, what it was sent, and what it made of it."""
    return digest(other, question.fingerprint(), sums.astype("<f8").tobytes(), sizes.astype("<i8").tobytes())
