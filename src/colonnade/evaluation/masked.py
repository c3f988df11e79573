"""A model applied so that only one party learns what comes of it: the server adds up the others' parts under masks.

Every party masks its part so that all masks cancel in the sum of all. The one that is to learn the sum keeps its own
masked part; without it, what the server holds is uniform.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.errors import InputError
from colonnade.evaluation.linear import read_spread
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import MAX_EXPONENT, Ring, ring_of_magnitude
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.privacy.pair_keys import Lost, exchange_keys
from colonnade.privacy.pairwise import Seal, SignedKey, transcript_of
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks

# Coefficients, or centres and the units of distances.
Part = tuple[Floats | None, Floats | None, Floats | None]

# 56 bits: a float64 has 53.
WIDTH = 7


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


class MaskedPredictions(Message, frozen=True):
    """The party's part of the predictions under masks; empty from the one that learns them, none where a key is lost.

    Each number has 7 bytes. They reveal nothing to the server, which lacks the masked part of the one that learns
    them. That one learns the sum, of coefficients that the server chose: to an owner's policy they are predictions.
    Where labels go off them, the label party says how much labels vary, in all rows together.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.NOTHING]
    label_spread: Annotated[float | None, Reveals.LABELS]
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
    """The party's part of the model again, the common magnitude, who learns the predictions, and all parties' keys.

    Whether that one evaluates the model, and whether rows then count by their weights.
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
    keys: Annotated[tuple[SignedKey, ...], Reveals.NOTHING]


@dataclass(frozen=True, eq=False)
class Applied:
    """A linear model, or centres; one of the two; and for whom it is applied, and what for.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,), or None
        Coefficients.
    centers : ndarray of float64, shape (k, n_features), or None
        Centres.
    scale : ndarray of float64, shape (n_features,), or None
        The units distances are measured in.
    intercept : float
        Of the linear model.
    to : str
        The party that learns what it gives.
    evaluating, by_weight : bool
        Whether that party evaluates the model; whether rows then count by their weights.
    """

    coef: Floats | None
    centers: Floats | None
    scale: Floats | None
    intercept: float
    to: str
    evaluating: bool = False
    by_weight: bool = False

    @property
    def n_centers(self) -> int:
        """How many centres, 0 of a linear model."""
        return 0 if self.centers is None else len(self.centers)

    def part(self, columns: slice) -> Part:
        """Give a party's part."""
        return (
            None if self.coef is None else sendable_floats(self.coef[columns]),
            None if self.centers is None else sendable_floats(self.centers[:, columns]),
            None if self.scale is None else sendable_floats(self.scale[columns]),
        )


class SealedPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party's masked part, a digest of what else it sealed, and its signature on both."""

    masked: bytes
    other: bytes
    signature: bytes

    @property
    def seal(self) -> Seal:
        """What the party signed, and its signature."""
        return Seal(sealed_digest(self.other, self.masked), self.signature)


class PassedOn(Message, frozen=True):
    """The others' masked parts, in the order of their names, for the party that holds the last one; the intercept."""

    phase: ClassVar[str] = "predicting"

    parts: Annotated[tuple[SealedPart, ...], Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return sum(len(part.masked) for part in self.parts) // WIDTH + 1

    def fingerprint(self) -> bytes:
        """Hash all of it: by that the party says what it received."""
        return digest(np.array(self.intercept, "<f8").tobytes(), *(part.seal.digest for part in self.parts))


@dataclass(frozen=True, eq=False)
class MaskedParts:
    """All parties' sealed parts; with that of the one that learns their sum, which it keeps, masks cancel."""

    sealed: dict[str, SealedPart]
    label_spread: float
    transcript: bytes

    def of_others(self, to: str) -> tuple[SealedPart, ...]:
        """Give what the one that learns the sum lacks, in the order of the names."""
        return tuple(part for party, part in sorted(self.sealed.items()) if party != to)

    @property
    def seals(self) -> dict[str, Seal]:
        """What every party signed."""
        return {party: part.seal for party, part in self.sealed.items()}


def common_magnitude(roster: Roster, model: Applied) -> Script[int]:
    """Find the smallest e such that no number of any party's part exceeds 2^e."""
    inbox = yield {party: AskMagnitude(*model.part(part), model.evaluating) for party, part in roster.parts.items()}
    told = checks.replies(inbox, Magnitude)
    for party, reply in told.items():
        if abs(reply.exponent) > MAX_EXPONENT:
            raise checks.wrong(party, reply, f"a magnitude of 2^{reply.exponent}")
    return max(reply.exponent for reply in told.values())


def masked_parts(roster: Roster, rows: Rows, model: Applied, magnitude: int) -> Script[MaskedParts | Lost]:
    """Ask for masked parts of the selected rows; the party that is to learn their sum keeps its own.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    rows : ndarray of int64, shape (m,)
        These.
    model : Applied
        What is applied, and for whom.
    magnitude : int
        No number of any part exceeds 2^magnitude.

    Returns
    -------
    MaskedParts or Lost
        To be passed on, or who lost its key.
    """
    keys = yield from exchange_keys(roster, rows)
    flags = (model.evaluating, model.by_weight)
    inbox = yield {
        party: AskMaskedPredictions(*model.part(part), *flags, magnitude, model.to, keys.signed)
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, MaskedPredictions)
    for party, reply in replies.items():
        if reply.masked is None:
            return Lost(party)
    count = len(rows) * max(model.n_centers, 1)
    asked = asked_digest(model.to, magnitude, count, *flags)
    transcript = transcript_of_parts(keys.parties, keys.signed, keys.frame, magnitude, asked)
    sealed = {}
    for party, part in roster.parts.items():
        due = 0 if party == model.to else count
        sealed[party] = _read_part(party, replies[party], due, transcript, model.part(part))
    spreads = {party: reply.label_spread for party, reply in replies.items()}
    label_party = roster.label_party if model.evaluating and model.coef is not None else None
    return MaskedParts(sealed, read_spread(replies, spreads, label_party), transcript)


def _read_part(party: str, reply: MaskedPredictions, count: int, transcript: bytes, part: Part) -> SealedPart:
    masked = reply.masked or b""
    if len(masked) != count * WIDTH:
        raise checks.wrong(party, reply, f"{len(masked)} bytes where {count} x {WIDTH} are due")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return SealedPart(masked, other_digest(part, reply.label_spread), reply.signature)


def asked_digest(to: str, magnitude: int, count: int, evaluating: bool, by_weight: bool) -> bytes:
    """Hash what is asked of every party alike."""
    return digest(*(str(each).encode() for each in (to, magnitude, count, evaluating, by_weight)))


def transcript_of_parts(
    parties: Sequence[str], signed: Sequence[SignedKey], frame: bytes, magnitude: int, asked: bytes
) -> bytes:
    """Hash what parties and server must agree on before parts are masked."""
    return transcript_of("predictions", parties, signed, frame, asked, ring_of_parts(magnitude, len(parties)))


def other_digest(part: Part, label_spread: float | None) -> bytes:
    """Hash a party's part of a model, and its label's spread: what it signs says which model it applied."""
    spread = b"" if label_spread is None else np.array(label_spread, "<f8").tobytes()
    return digest(*(b"" if each is None else np.ascontiguousarray(each, "<f8").tobytes() for each in part), spread)


def sealed_digest(other: bytes, masked: bytes) -> bytes:
    """Hash what a party signs."""
    return digest(other, masked)


def ring_of_parts(magnitude: int, n_parties: int) -> Ring:
    """Give the ring in which parts of this magnitude are added."""
    return ring_of_magnitude(magnitude + 1, n_parties, WIDTH)  # twice as large once all are made positive


def rounded_by(magnitude: int, n_parties: int) -> float:
    """Bound how far a sum of parts is off: by half a step of the ring for each of them."""
    return math.ldexp(n_parties / 2, -ring_of_parts(magnitude, n_parties).exponent)


def too_few_digits(error: float) -> InputError:
    """Build the error for sums of which too little is left."""
    return InputError(
        f"Parts under masks are off by up to {error:.2g} here, too much: a column is large against its own spread, or "
        "one of its values stands far out. Subtract a constant from the column, or do without masks."
    )
