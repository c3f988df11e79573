"""A model applied so that only one party learns what comes of it: the server adds up the others' parts under masks.

Every party masks its part so that all masks cancel in the sum of all. The one that is to learn the sum keeps its own
masked part; without it, what the server holds is uniform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.evaluation.linear import read_spread
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import MAX_EXPONENT, Ring, pack, ring_of_magnitude, unpack
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.privacy.pair_keys import Lost, exchange_keys
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
    """The party's part of the model: coefficients, or centres and the units of distances; whether labels go off it."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Magnitude

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]


class MaskedPredictions(Message, frozen=True):
    """The party's part of the predictions under masks; empty from the one that learns them, none where a key is lost.

    They reveal nothing to the server, which lacks the masked part of the one that learns them. That one learns the sum,
    of coefficients that the server chose: to an owner's policy they are predictions. Where labels go off them, the
    label party says how much labels vary, in all rows together.
    """

    phase: ClassVar[str] = "predicting"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.NOTHING]
    label_spread: Annotated[float | None, Reveals.LABELS]
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
    """The party's part of the model again, the common magnitude, who learns the predictions, and all parties' keys.

    Whether labels go off them, and whether rows count by their weights in what is then summed up.
    """

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = MaskedPredictions

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]
    less_label: Annotated[bool, Reveals.NOTHING]
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
    less_label, by_weight : bool
        Whether labels go off predictions; whether rows count by their weights in what is then summed up.
    """

    coef: Floats | None
    centers: Floats | None
    scale: Floats | None
    intercept: float
    to: str
    less_label: bool = False
    by_weight: bool = False

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


@dataclass(frozen=True, eq=False)
class MaskedSum:
    """The sum of all masked parts but one, with which masks would cancel; and what all sides saw of it."""

    total: bytes
    label_spread: float
    transcript: bytes
    seals: dict[str, Seal]


def common_magnitude(roster: Roster, model: Applied) -> Script[int]:
    """Find the smallest e such that no number of any party's part exceeds 2^e."""
    inbox = yield {party: AskMagnitude(*model.part(part), model.less_label) for party, part in roster.parts.items()}
    told = checks.replies(inbox, Magnitude)
    for party, reply in told.items():
        if abs(reply.exponent) > MAX_EXPONENT:
            raise checks.wrong(party, reply, f"a magnitude of 2^{reply.exponent}")
    return max(reply.exponent for reply in told.values())


def masked_sum(roster: Roster, rows: Rows, model: Applied, magnitude: int) -> Script[MaskedSum | Lost]:
    """Add up masked parts of the selected rows, but for that of the party that is to learn the sum.

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
    MaskedSum or Lost
        What the party is sent, or who lost its key.
    """
    keys = yield from exchange_keys(roster, rows)
    inbox = yield {
        party: AskMaskedPredictions(
            *model.part(part), model.less_label, model.by_weight, magnitude, model.to, keys.signed
        )
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, MaskedPredictions)
    for party, reply in replies.items():
        if reply.masked is None:
            return Lost(party)
    count = len(rows) * max(model.n_centers, 1)
    asked = asked_digest(model.to, magnitude, count, less_label=model.less_label, by_weight=model.by_weight)
    transcript = transcript_of_parts(keys.parties, keys.signed, keys.frame, magnitude, asked)
    seals = {}
    for party, part in roster.parts.items():
        due = 0 if party == model.to else count
        seals[party] = _read_seal(party, replies[party], due, transcript, part_digest(*model.part(part)))
    spread = read_spread(
        replies,
        {party: reply.label_spread for party, reply in replies.items()},
        roster.label_party if model.less_label else None,
    )
    return MaskedSum(_added(replies, model.to, count), spread, transcript, seals)


def _read_seal(party: str, reply: MaskedPredictions, count: int, transcript: bytes, part: bytes) -> Seal:
    masked = reply.masked or b""
    if len(masked) != count * WIDTH:
        raise checks.wrong(party, reply, f"{len(masked)} bytes where {count} x {WIDTH} are due")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return Seal(sealed_digest(part, masked, reply.label_spread), reply.signature)


def _added(replies: Mapping[str, MaskedPredictions], to: str, count: int) -> bytes:
    total = np.zeros(count, np.uint64)
    for party, reply in replies.items():
        if party != to:
            total += unpack(reply.masked or b"", WIDTH)
    return pack(total, WIDTH)


def asked_digest(to: str, magnitude: int, count: int, *, less_label: bool, by_weight: bool) -> bytes:
    """Hash what is asked of every party alike."""
    asked = (to, magnitude, count, less_label, by_weight)
    return digest(*(str(each).encode() for each in asked))


def transcript_of_parts(
    parties: Sequence[str], signed: Sequence[SignedKey], frame: bytes, magnitude: int, asked: bytes
) -> bytes:
    """Hash what parties and server must agree on before parts are masked."""
    return transcript_of("predictions", parties, signed, frame, asked, ring_of_parts(magnitude, len(parties)))


def part_digest(*part: Floats | None) -> bytes:
    """Hash a party's part of a model: what it signs says which one it applied."""
    return digest(*(b"" if each is None else np.ascontiguousarray(each, "<f8").tobytes() for each in part))


def sealed_digest(part: bytes, masked: bytes, label_spread: float | None) -> bytes:
    """Hash what a party sends, with the part of the model it is made of."""
    spread = b"" if label_spread is None else np.array(label_spread, "<f8").tobytes()
    return digest(part, masked, spread)


def ring_of_parts(magnitude: int, n_parties: int) -> Ring:
    """Give the ring in which parts of this magnitude are added."""
    return ring_of_magnitude(magnitude + 1, n_parties, WIDTH)  # twice as large once all are made positive
