"""The server's side of SecureLloyd: keys, starts drawn by summed distances, rounds, centres, a comparison."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Script
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import draw_centers, single_clusters
from colonnade.kernels.masks import MAX_EXPONENT, Ring, ring_of_magnitude, to_numbers, unpack
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.privacy.pair_keys import Keys, Lost, compare, exchange_keys
from colonnade.privacy.pairwise import Seal, SignedKey, transcript_of
from colonnade.privacy.primitives import digest
from colonnade.protocol import checks
from colonnade.protocol.codec import wire_bytes

# 48 bits: distances to one part in 2^45 of the largest.
WIDTH = 6
MAX_ROUNDS = 200
# Rounds end where the cost falls by less than this part of itself.
TOLERANCE = 1e-6


class LloydOpened(Message, frozen=True):
    """The smallest e such that no squared distance in the party's columns exceeds 2^e; none where its key is lost."""

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    magnitude: Annotated[int | None, Reveals.TOTALS]


class OpenLloyd(Message, frozen=True):
    """The rows' weights (none: all weigh the same), how many rows are tried for each centre, k, and all parties' keys.

    A coreset's weights are 1 over the parties' summed scores, up to one factor: that is what they reveal.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = LloydOpened

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    n_tries: Annotated[int, Reveals.NOTHING]
    n_clusters: Annotated[int, Reveals.NOTHING]
    keys: Annotated[tuple[SignedKey, ...], Reveals.NOTHING]


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


class Rounds:
    """One attempt: the rounds, and what the server keeps of them.

    Parameters
    ----------
    roster : Roster
        The parties; each knows the coreset's rows.
    coreset : Coreset
        Rows and weights.
    n_clusters, n_tries : int
        k, and how many rows are tried for each centre.
    """

    def __init__(self, roster: Roster, coreset: Coreset, n_clusters: int, n_tries: int) -> None:
        self._roster, self._coreset = roster, coreset
        self._n_clusters, self._n_tries = n_clusters, n_tries
        self._weights = coreset.weights / coreset.weights.max()
        self._ring, self._magnitude = Ring(WIDTH, 0), 0
        self._transcript, self._labels = b"", np.empty(0, np.int64)
        self._sent: dict[str, bytes] = dict.fromkeys(roster.names, b"")

    def play(self, seed: int) -> Script[tuple[Floats, Mapping[str, float]] | Lost]:
        """Open, draw starts, refine the best, gather the centres, compare."""
        rng = np.random.default_rng(seed)
        keys = yield from exchange_keys(self._roster, self._coreset.rows)
        lost = yield from self._open(keys)
        if lost is not None:
            return lost
        started = yield from self._draw_starts(rng)
        if isinstance(started, Lost):
            return started
        refined = yield from self._refine(*started)
        if isinstance(refined, Lost):
            return refined
        centers = yield from self._gather()
        return centers if isinstance(centers, Lost) else (centers, refined)

    def _open(self, keys: Keys) -> Script[Lost | None]:
        equal = bool((self._weights == 1).all())
        sent = None if equal else sendable_floats(self._weights)
        request = OpenLloyd(sent, self._n_tries, self._n_clusters, keys.signed)
        inbox = yield dict.fromkeys(self._roster.names, request)
        self._transcript = opening_transcript(keys.parties, keys.frame, request)
        replies = checks.replies(inbox, LloydOpened)
        self._magnitude = -MAX_EXPONENT
        for party, reply in replies.items():
            if reply.magnitude is None:
                return Lost(party)
            if abs(reply.magnitude) > MAX_EXPONENT:
                raise checks.wrong(party, reply, f"distances of 2^{reply.magnitude}")
            self._magnitude = max(self._magnitude, reply.magnitude)
        self._ring = ring_of_magnitude(self._magnitude, len(keys.parties), WIDTH)
        return None

    def _draw_starts(self, rng: np.random.Generator) -> Script[tuple[Rows, Rows] | Lost]:
        """Draw centres by greedy k-means++: of some rows that are tried, the one that lowers the cost most.

        Gives the places of the rows that are the first centres, and each row's label.
        """
        nearest, labels = np.ones(len(self._coreset)), np.zeros(len(self._coreset), np.int64)
        starts: list[int] = []
        for number in range(self._n_clusters):
            if not self._weights @ nearest > 0:
                raise InputError(
                    f"{self._n_clusters} clusters need as many distinct rows, but only {number} distinct rows have a "
                    f"positive weight. Use a larger size, or at most {number} clusters."
                )
            places = draw_centers(nearest, self._weights, self._n_tries, rng)
            distances = yield from self._ask(TryCenters(sendable_rows(places), self._magnitude), self._n_tries)
            if isinstance(distances, Lost):
                return distances
            lowered = np.minimum(distances, nearest[:, None]) if number else distances
            best = int(np.argmin(self._weights @ lowered))
            labels[lowered[:, best] < nearest if number else slice(None)] = number
            nearest = lowered[:, best]
            starts.append(int(places[best]))
        return np.array(starts), labels

    def _refine(self, starts: Rows, labels: Rows) -> Script[Mapping[str, float] | Lost]:
        """Move centres and assign rows until that changes little."""
        cost, n_rounds = np.inf, 0
        while n_rounds < MAX_ROUNDS:
            first = None if n_rounds else sendable_rows(starts)
            distances = yield from self._ask(MoveCenters(sendable_rows(labels), first), self._n_clusters)
            if isinstance(distances, Lost):
                return distances
            n_rounds, self._labels = n_rounds + 1, labels
            before, cost = cost, float(self._weights @ distances.min(axis=1))
            assigned = distances.argmin(axis=1)
            if (assigned == labels).all() or cost >= before * (1 - TOLERANCE):
                break
            labels = assigned
        return {"cost": cost * float(self._coreset.weights.max()), "rounds": n_rounds}

    def _ask(self, request: TryCenters | MoveCenters, n_centers: int) -> Script[Floats | Lost]:
        """Add up the parties' masked distances; shape (m, n_centers)."""
        inbox = yield dict.fromkeys(self._roster.names, request)
        self._transcript = digest(self._transcript, wire_bytes(request))
        size, total = len(self._coreset), np.zeros(len(self._coreset) * n_centers, np.uint64)
        for party, reply in checks.replies(inbox, MaskedDistances).items():
            if reply.masked is None:
                return Lost(party)
            if len(reply.masked) != size * n_centers * WIDTH or reply.n_centers != n_centers:
                raise checks.wrong(
                    party, reply, f"{len(reply.masked)} bytes where {size} x {n_centers} x {WIDTH} are due"
                )
            self._sent[party] = digest(self._sent[party], reply.masked)
            total += unpack(reply.masked, WIDTH)
        return to_numbers(total, self._ring).reshape(size, n_centers)

    def _gather(self) -> Script[Floats | Lost]:
        inbox = yield {party: AskLloydCenters() for party in self._roster.names}
        self._transcript = digest(self._transcript, wire_bytes(AskLloydCenters()))
        replies = checks.replies(inbox, LloydCenters)
        parts, seals = [], {}
        for card in self._roster.cards:
            reply = replies[card.name]
            if reply.centers is None:
                return Lost(card.name)
            parts.append(self._read_centers(card, reply, reply.centers))
            sent = digest(self._sent[card.name], np.ascontiguousarray(parts[-1], "<f8").tobytes())
            seals[card.name] = Seal(sent, reply.signature)
        yield from compare(self._roster, self._transcript, seals)
        return np.hstack(parts)

    def _read_centers(self, card: PartyCard, reply: LloydCenters, several: Floats) -> Floats:
        if reply.transcript != self._transcript:
            raise checks.wrong(card.name, reply, "a digest of other requests than it was sent")
        alone = single_clusters(self._labels, self._weights, self._coreset.rows, self._n_clusters)
        single = np.empty((0, card.n_features)) if reply.single is None else reply.single
        checks.shape(card.name, reply, several, (int((~alone).sum()), card.n_features))
        checks.shape(card.name, reply, single, (int(alone.sum()), card.n_features))
        centers = np.empty((self._n_clusters, card.n_features))
        centers[~alone], centers[alone] = several, single
        checks.in_range(card.name, reply, centers)
        return centers


def opening_transcript(parties: Sequence[str], frame: bytes, request: OpenLloyd) -> bytes:
    """Hash what parties and server must agree on before rounds begin; each round adds its request."""
    return transcript_of("lloyd", parties, request.keys, frame, wire_bytes(request), Ring(WIDTH, 0))
