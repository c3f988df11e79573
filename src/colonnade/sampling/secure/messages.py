"""What a secure sum of scores tells, and what server and parties hash of it."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from colonnade.kernels.arrays import Rows
from colonnade.kernels.masks import Ring
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import CircleKeys, SignedDigest, transcript_of
from colonnade.protocol.codec import wire_bytes
from colonnade.sampling.plain.messages import AskScores
from colonnade.signing import digest

# A chance above 1 - 2^-20 counts as certain; no other has a larger -log(1 - pi).
MOST_LOG = 20 * math.log(2)
# A certain row is any number of the ring, all alike. The ring is so many times wider than sums of other rows are, that
# one in a million of them looks like one of these; as most such sums are large, the row then weighs next to 1, too.
MARGIN = 2.0**20
# What is summed, unless it is logarithms of chances.
SCORES = "scores"


class PublicKey(Message, frozen=True):
    """A fresh key, signed; with digests of what was exchanged before, and of which rows count in which units."""

    phase: ClassVar[str] = "summing"
    fresh: ClassVar[bool] = True

    key: Annotated[bytes, Reveals.NOTHING]
    exchanged: Annotated[bytes, Reveals.NOTHING]
    view: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskPublicKey(Message, frozen=True):
    """Make a key for one sum of scores."""

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = PublicKey


class MaskedScores(Message, frozen=True):
    """The scores of the rows in S under masks, `width` bytes each, or none where the party no longer has its key.

    Or logarithms of the chances that follow from them. With what the party saw (a digest), and its signature on both.
    """

    phase: ClassVar[str] = "summing"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.SCORE_SUMS]
    width: Annotated[int, Reveals.NOTHING]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each score."""
        return 0 if self.masked is None else len(self.masked) // max(self.width, 1)

    def coded_rows(self) -> int:
        """Count one for each score."""
        return self.units()


class AskMaskedScores(AskScores, frozen=True):
    """S as in `AskScores`, the ring (the bytes of a number, its step's exponent), and all parties' keys."""

    reply: ClassVar[type[Message]] = MaskedScores

    width: Annotated[int, Reveals.NOTHING]
    exponent: Annotated[int, Reveals.NOTHING]
    keys: Annotated[CircleKeys, Reveals.NOTHING]


class AskMaskedLogs(AskScores, frozen=True):
    """S as in `AskDistinctScores`, and ring and keys as in `AskMaskedScores`: add -log(1 - pi_ij) of each row.

    `rate` is how many rows every party was to draw for one of its total, so that no party's logarithms are most of a
    sum.
    """

    reply: ClassVar[type[Message]] = MaskedScores

    n_draws: Annotated[int, Reveals.NOTHING]
    rate: Annotated[float, Reveals.NOTHING]
    width: Annotated[int, Reveals.NOTHING]
    exponent: Annotated[int, Reveals.NOTHING]
    keys: Annotated[CircleKeys, Reveals.NOTHING]


class Agreement(Message, frozen=True):
    """The digest of all that the party saw."""

    phase: ClassVar[str] = "summing"

    digest: Annotated[bytes, Reveals.NOTHING]


class AskAgreement(Message, frozen=True):
    """What the parties that it shares masks with, and itself, signed, in the order of names."""

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = Agreement

    signed: Annotated[tuple[SignedDigest, ...], Reveals.NOTHING]


def logs_at(rate: float) -> str:
    """Say what is summed where it is logarithms of chances: masks cancel where all parties were told one rate."""
    return f"logarithms of chances at {rate.hex()}"


def transcript_of_scores(
    purpose: str, parties: Sequence[str], rows: Rows, ring: Ring, keys: bytes, view: bytes
) -> bytes:
    """Hash what parties and server must agree on in the round of masked scores, or of masked logarithms."""
    asked = np.ascontiguousarray(rows, "<i8").tobytes()
    return transcript_of(purpose, parties, keys, view, asked, ring)


def digest_of(messages: Sequence[Message]) -> bytes:
    """Hash messages as they travel."""
    return digest(*map(wire_bytes, messages))
