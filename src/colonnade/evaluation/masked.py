"""Predictions that only one party learns: the others' parts reach it in sum, and the server sees them under masks.

Every party masks its part so that all masks cancel in the sum of all. The one that is to learn the predictions keeps
its own masked part; without it, what the server holds is uniform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import MAX_EXPONENT, Ring, pack, ring_of_magnitude, unpack
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.privacy.pair_keys import Lost, compare, exchange_keys, until_kept
from colonnade.privacy.pairwise import Seal, SignedKey, transcript_of
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks

# 56 bits: a float64 has 53.
WIDTH = 7


class Magnitude(Message, frozen=True):
    """The smallest e such that no number of the party's part exceeds 2^e."""

    phase: ClassVar[str] = "predicting"

    exponent: Annotated[int, Reveals.TOTALS]


class AskMagnitude(Message, frozen=True):
    """The party's part of the model: coefficients, or centres and the units of distances."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Magnitude

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]


class MaskedPredictions(Message, frozen=True):
    """The party's part of the predictions under masks; empty from the one that learns them, none where a key is lost.

    They reveal nothing to the server, which lacks the masked part of the one that learns them. That one learns the sum,
    of coefficients that the server chose: to an owner's policy they are predictions.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.NOTHING]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, although it tells the server nothing."""
        return len(self.masked or b"") // WIDTH

    def passes_on(self) -> tuple[Reveals, ...]:
        """Say what the one that learns them does."""
        return (Reveals.PREDICTIONS,) if self.masked else ()

    def coded_rows(self) -> int:
        """Count the numbers; of a clustering each row counts once a centre."""
        return self.units()


class AskMaskedPredictions(Message, frozen=True):
    """The party's part of the model again, the common magnitude, who learns the predictions, and all parties' keys."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedPredictions

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    magnitude: Annotated[int, Reveals.TOTALS]
    to: Annotated[str, Reveals.NOTHING]
    keys: Annotated[tuple[SignedKey, ...], Reveals.NOTHING]


class MaskedReceived(Message, frozen=True):
    """The party has them; a digest of what it got, empty where it lost its own part."""

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    digest: Annotated[bytes, Reveals.NOTHING]


class DeliverMasked(Message, frozen=True):
    """The sum of the others' masked parts, for the party that holds the last one; and the intercept."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedReceived

    total: Annotated[bytes, Reveals.PREDICTIONS]
    intercept: Annotated[float, Reveals.MODEL]
    magnitude: Annotated[int, Reveals.NOTHING]
    n_centers: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each number, and the intercept."""
        return len(self.total) // WIDTH + 1


@dataclass(frozen=True, eq=False)
class Applied:
    """A linear model, or centres; one of the two.

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
    """

    coef: Floats | None
    centers: Floats | None
    scale: Floats | None
    intercept: float

    @property
    def n_centers(self) -> int:
        """How many centres, 0 of a linear model."""
        return 0 if self.centers is None else len(self.centers)

    def part(self, columns: slice) -> tuple[Floats | None, Floats | None, Floats | None]:
        """Give a party's part."""
        return (
            None if self.coef is None else sendable_floats(self.coef[columns]),
            None if self.centers is None else sendable_floats(self.centers[:, columns]),
            None if self.scale is None else sendable_floats(self.scale[columns]),
        )


def deliver_masked(roster: Roster, rows: Rows, model: Applied, to: str) -> Script[None]:
    """Let one party learn predictions of the selected rows, and nobody else.

    Parameters
    ----------
    roster : Roster
        The parties; each knows which rows are selected.
    rows : ndarray of int64, shape (m,)
        These.
    model : Applied
        What predicts.
    to : str
        The party that learns them.
    """
    inbox = yield {party: AskMagnitude(*model.part(part)) for party, part in roster.parts.items()}
    told = checks.replies(inbox, Magnitude)
    for party, reply in told.items():
        if abs(reply.exponent) > MAX_EXPONENT:
            raise checks.wrong(party, reply, f"a magnitude of 2^{reply.exponent}")
    magnitude = max(reply.exponent for reply in told.values())
    yield from until_kept(lambda: _attempt(roster, rows, model, to, magnitude))


def _attempt(roster: Roster, rows: Rows, model: Applied, to: str, magnitude: int) -> Script[Lost | None]:
    keys = yield from exchange_keys(roster, rows)
    inbox = yield {
        party: AskMaskedPredictions(*model.part(part), magnitude, to, keys.signed)
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, MaskedPredictions)
    for party, reply in replies.items():
        if reply.masked is None:
            return Lost(party)
    count = len(rows) * max(model.n_centers, 1)
    transcript = transcript_of_parts(keys.parties, keys.signed, keys.frame, to, magnitude, count)
    seals = {}
    for party, part in roster.parts.items():
        due = 0 if party == to else count
        seals[party] = _read_seal(party, replies[party], due, transcript, part_digest(*model.part(part)))
    total = _added(replies, to, count)
    inbox = yield {to: DeliverMasked(total, model.intercept, magnitude, model.n_centers)}
    for party, received in checks.replies(inbox, MaskedReceived).items():
        if not received.digest:
            return Lost(party)
        if received.digest != digest(total):
            raise checks.wrong(party, received, "a digest of another sum than it was sent")
    yield from compare(roster, transcript, seals)
    return None


def _read_seal(party: str, reply: MaskedPredictions, count: int, transcript: bytes, part: bytes) -> Seal:
    masked = reply.masked or b""
    if len(masked) != count * WIDTH:
        raise checks.wrong(party, reply, f"{len(masked)} bytes where {count} x {WIDTH} are due")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return Seal(digest(part, masked), reply.signature)


def _added(replies: Mapping[str, MaskedPredictions], to: str, count: int) -> bytes:
    total = np.zeros(count, np.uint64)
    for party, reply in replies.items():
        if party != to:
            total += unpack(reply.masked or b"", WIDTH)
    return pack(total, WIDTH)


def transcript_of_parts(
    parties: Sequence[str], signed: Sequence[SignedKey], frame: bytes, to: str, magnitude: int, count: int
) -> bytes:
    """Hash what parties and server must agree on before parts are masked."""
    asked = digest(to.encode(), str(magnitude).encode(), str(count).encode())
    return transcript_of("predictions", parties, signed, frame, asked, ring_of_parts(magnitude, len(parties)))


def part_digest(*part: Floats | None) -> bytes:
    """Hash a party's part of a model: what it signs says which one it applied."""
    return digest(*(b"" if each is None else np.ascontiguousarray(each, "<f8").tobytes() for each in part))


def ring_of_parts(magnitude: int, n_parties: int) -> Ring:
    """Give the ring in which parts of this magnitude are added."""
    return ring_of_magnitude(magnitude + 1, n_parties, WIDTH)  # twice as large once all are made positive
