"""What SecureLloyd's server and parties tell each other, and what they hash before rounds begin."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import Ring
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import CircleKeys, transcript_of
from colonnade.protocol.codec import wire_bytes

# 48 bits: distances to one part in 2^45 of the largest.
WIDTH = 6
MAX_ROUNDS = 200


class LloydOpened(Message, frozen=True):
    """The smallest e such that no squared distance in the party's columns exceeds 2^e; none where its key is lost."""

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    magnitude: Annotated[int | None, Reveals.TOTALS]


class OpenLloyd(Message, frozen=True):
    """The rows' weights (none: all weigh the same), rows tried for each centre, k, all columns and keys.

    A coreset's weights are 1 over the parties' summed scores, up to one factor: that is what they reveal.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = LloydOpened

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    n_tries: Annotated[int, Reveals.NOTHING]
    n_clusters: Annotated[int, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.SCHEMA]
    keys: Annotated[CircleKeys, Reveals.NOTHING]

    def question(self) -> bytes:
        """Write what all parties are asked alike: keys apart."""
        return wire_bytes(msgspec.structs.replace(self, keys=CircleKeys(b"", ())))


class MaskedDistances(Message, frozen=True):
    """The party's part of squared distances, row by row, under masks; none where its key is lost.

    Each has 6 bytes. With those of all parties they tell how far each row is from each centre, in all columns together.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    masked: Annotated[bytes | None, Reveals.PREDICTIONS]
    n_centers: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count one for each distance."""
        return len(self.masked or b"") // WIDTH

    def coded_rows(self) -> int:
        """Count the rows these are distances of."""
        return self.units() // max(self.n_centers, 1)


class TryCenters(Message, frozen=True):
    """How far are rows from those at these places? And the magnitude of all parties' distances."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = MaskedDistances

    places: Annotated[Rows, Reveals.ROW_IDS]
    magnitude: Annotated[int, Reveals.TOTALS]


class MoveCenters(Message, frozen=True):
    """Move each centre to the mean of the rows that have its label; the first time, from the rows at these places."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = MaskedDistances

    labels: Annotated[Rows, Reveals.PREDICTIONS]
    starts: Annotated[Rows | None, Reveals.ROW_IDS]


class LloydCenters(Message, frozen=True):
    """The party's part of the centres that are means of several rows, and apart from them of those that are rows.

    Signed, with a digest of what the party saw. No centres where its key is lost.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    centers: Annotated[Floats | None, Reveals.MODEL]
    single: Annotated[Floats | None, Reveals.FEATURES]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskLloydCenters(Message, frozen=True):
    """Send your part of the centres."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = LloydCenters


def opening_transcript(parties: Sequence[str], view: bytes, request: OpenLloyd) -> bytes:
    """Hash what parties and server must agree on before rounds begin; each round adds its request."""
    return transcript_of("lloyd", parties, request.keys.keys, view, request.question(), Ring(WIDTH, 0))
