"""SecureLloyd: k-means by rounds in which the server sees distances summed over the parties, and no party's own.

Squared distances add over parties. Each party keeps its columns, and its part of the centres until the end; the server
draws the starts (k-means++) and assigns rows by the sums, which reach it under masks that cancel.
"""

from collections.abc import Mapping
from typing import ClassVar, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, ClusteringTask, PartyCard, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, RemoteProtocolError, UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.lloyd import draw_centers, single_clusters
from colonnade.kernels.masks import MAX_EXPONENT, Ring, ring_of_magnitude, to_numbers, unpack
from colonnade.messages import MAX_NUMBERS, Reveals, sendable_floats, sendable_rows
from colonnade.options import flag
from colonnade.privacy.pair_keys import (
    LostKey,
    RelayedKeys,
    check_enough_parties,
    compare,
    exchange_keys,
    secure_route,
    until_kept,
)
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks
from colonnade.protocol.codec import wire_bytes
from colonnade.routes import Ask, Route, some
from colonnade.signing import digest
from colonnade.solvers.lloyd.messages import (
    MAX_ROUNDS,
    WIDTH,
    AskLloydCenters,
    LloydCenters,
    LloydOpened,
    MaskedDistances,
    MoveCenters,
    OpenLloyd,
    TryCenters,
    opening_transcript,
)

M = TypeVar("M")
# Rounds end where the cost falls by less than this part of itself.
TOLERANCE = 1e-6


class SecureLloyd(msgspec.Struct, frozen=True, tag_field="kind", tag="lloyd", forbid_unknown_fields=True):
    """Cluster by Lloyd's rounds on summed distances: no party's own distances and no columns reach the server.

    For k-means. The server sees how far each row of the coreset is from each centre, in all columns together, round by
    round, and in the end the centres. From as many centres as there are columns in all it could work the rows out, so
    clusters must be fewer. The parties see labels and weights. There is one start, by greedy k-means++: the task's
    `n_starts` says how many rows are tried for each centre. Costs can be some per cent above those of `Central`, which
    keeps the best of several starts; another seed is another start, and ``run.facts["cost"]`` tells. Needs the extra
    ``colonnade[secure]`` and three parties or more.

    Parameters
    ----------
    allow_two_parties : bool
        Whether it is good enough with two parties: they are told the rows' weights, from which each can work out the
        other's scores.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.repeat([[1.0, 1.0, 5.0], [9.0, 4.0, 2.0]], 50, axis=0)
    >>> federation = cn.Federation(cn.split_columns(X, None, [1, 1, 1]))
    >>> run = federation.fit(cn.KMeans(n_clusters=2), sampler=cn.ImportanceSampling(size=90), solver=cn.SecureLloyd())
    >>> sorted(run.model.cluster_centers_.round(9).tolist())
    [[1.0, 1.0, 5.0], [9.0, 4.0, 2.0]]
    """

    allow_two_parties: bool = False

    shows: ClassVar[tuple[Reveals, ...]] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:  # noqa: ARG002  # any server
        """Take clusterings of enough parties for the distances of one to be hidden, into fewer clusters than columns.

        Differences of squared distances to two centres are linear in the row: to d + 1 centres they are d equations for
        its d columns; to d centres they leave two places for it.
        """
        n_clusters = _clustering(task).n_clusters
        check_enough_parties(roster, "SecureLloyd", allow_two_parties=self.allow_two_parties)
        if n_clusters >= n_columns(roster):
            raise InputError(
                f"{n_clusters} clusters of {n_columns(roster)} columns: SecureLloyd tells the server the centres and "
                "how far each drawn row is from each, and from as many centres as columns it could work the rows out. "
                "Ask for fewer clusters than columns, or use DistDim(), or Central() if rows may be shown."
            )

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Play the rounds, again from the first where a party lost its key."""
        self.check(task, roster, None)
        clustering = _clustering(task)
        most = MAX_NUMBERS // max(clustering.n_clusters, clustering.n_starts)
        if len(coreset) > most:
            raise InputError(
                f"SecureLloyd takes {most:,} rows at most, of so many clusters and starts, and these are "
                f"{len(coreset):,}: distances of more do not fit one message. Draw a coreset."
            )
        seed = int(rng.integers(2**63))  # of every attempt: a retry must not change the result
        centers, facts = yield from until_kept(
            lambda: Rounds(roster, coreset, clustering.n_clusters, clustering.n_starts).play(seed)
        )
        return Solution(clustering.clustering_model(centers, roster), facts)

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect as many tries as centres, moves within their number, and the end; again where a key is lost."""
        clustering = _clustering(task)
        k, tries = clustering.n_clusters, clustering.n_starts
        return secure_route(
            Ask(OpenLloyd, n_tries=tries, n_clusters=k, n_columns=n_columns(agreed.roster)),
            some(Ask(TryCenters), most=k),
            some(Ask(MoveCenters), most=MAX_ROUNDS),
            Ask(AskLloydCenters),
        )


def n_columns(roster: Roster) -> int:
    """Count all parties' features."""
    return sum(card.n_features for card in roster.cards)


def _clustering(task: Task[M]) -> ClusteringTask[M]:
    if not isinstance(task, ClusteringTask):
        raise UnsupportedError(f"SecureLloyd clusters; it cannot do {type(task).__name__}. Use SecureGram().")
    return task


class Rounds:
    """One attempt: the rounds, and what the server keeps of them; `n_tries` rows are tried for each centre."""

    def __init__(self, roster: Roster, coreset: Coreset, n_clusters: int, n_tries: int) -> None:
        self._roster, self._coreset = roster, coreset
        self._n_clusters, self._n_tries = n_clusters, n_tries
        self._weights = coreset.weights / coreset.weights.max()
        self._ring, self._magnitude = Ring(WIDTH, 0), 0
        self._magnitudes: dict[str, int] = {}
        self._transcript, self._labels, self._distances = b"", np.empty(0, np.int64), np.empty((0, 0))
        self._sent: dict[str, bytes] = dict.fromkeys(roster.names, b"")

    def play(self, seed: int) -> Script[tuple[Floats, Mapping[str, float]] | LostKey]:
        """Open, draw starts, refine the best, gather the centres, compare."""
        rng = np.random.default_rng(seed)
        keys = yield from exchange_keys(self._roster, self._coreset.rows)
        lost = yield from self._open(keys)
        if lost is not None:
            return lost
        started = yield from self._draw_starts(rng)
        if isinstance(started, LostKey):
            return started
        refined = yield from self._refine(*started)
        if isinstance(refined, LostKey):
            return refined
        centers = yield from self._gather()
        return centers if isinstance(centers, LostKey) else (centers, refined)

    def _open(self, keys: RelayedKeys) -> Script[LostKey | None]:
        equal = bool((self._weights == 1).all())
        sent = None if equal else sendable_floats(self._weights)
        asked = (sent, self._n_tries, self._n_clusters, n_columns(self._roster))
        requests = {party: OpenLloyd(*asked, keys.to(party)) for party in self._roster.names}
        inbox = yield dict(requests)
        self._transcript = opening_transcript(keys.parties, keys.view, requests[keys.parties[0]])
        replies = checks.replies(inbox, LloydOpened)
        self._magnitude = -MAX_EXPONENT
        for party, reply in replies.items():
            if reply.magnitude is None:
                return LostKey(party)
            if abs(reply.magnitude) > MAX_EXPONENT:
                raise checks.wrong(party, reply, f"distances of 2^{reply.magnitude}")
            self._magnitude = max(self._magnitude, reply.magnitude)
            self._magnitudes[party] = reply.magnitude
        self._ring = ring_of_magnitude(self._magnitude, len(keys.parties), WIDTH)
        return None

    def _draw_starts(self, rng: np.random.Generator) -> Script[tuple[Rows, Rows] | LostKey]:
        """Draw centres by greedy k-means++: of some rows that are tried, the one that lowers the cost most.

        Gives the places of the rows that are the first centres, and each row's label.
        """
        nearest, labels = np.ones(len(self._coreset)), np.zeros(len(self._coreset), np.int64)
        starts: list[int] = []
        for number in range(self._n_clusters):
            if not self._weights @ nearest > 0:
                farthest = max(self._magnitudes, key=self._magnitudes.__getitem__)
                raise InputError(
                    f"{self._n_clusters} clusters need as many distinct rows, but only {number} distinct rows have a "
                    f"positive weight, or all others are nearer than {self._rounding:.3g}, to which distances are "
                    f"rounded since rows of {farthest!r} are so far apart. Use a larger size, or at most {number} "
                    "clusters; or look for extreme values."
                )
            places = draw_centers(nearest, self._weights, self._n_tries, rng)
            distances = yield from self._ask(TryCenters(sendable_rows(places), self._magnitude), self._n_tries)
            if isinstance(distances, LostKey):
                return distances
            if (distances[places, np.arange(self._n_tries)] > self._rounding).any():
                raise self._senseless("a row is not at a distance of zero from itself")
            lowered = np.minimum(distances, nearest[:, None]) if number else distances
            best = int(np.argmin(self._weights @ lowered))
            labels[lowered[:, best] < nearest if number else slice(None)] = number
            nearest = lowered[:, best]
            starts.append(int(places[best]))
        return np.array(starts), labels

    def _refine(self, starts: Rows, labels: Rows) -> Script[Mapping[str, float] | LostKey]:
        """Move centres and assign rows until that changes little."""
        cost, n_rounds = np.inf, 0
        while n_rounds < MAX_ROUNDS:
            first = None if n_rounds else sendable_rows(starts)
            distances = yield from self._ask(MoveCenters(sendable_rows(labels), first), self._n_clusters)
            if isinstance(distances, LostKey):
                return distances
            n_rounds, self._labels, self._distances = n_rounds + 1, labels, distances
            before, cost = cost, float(self._weights @ distances.min(axis=1))
            assigned = distances.argmin(axis=1)
            if (assigned == labels).all() or cost >= before * (1 - TOLERANCE):
                break
            labels = assigned
        return {"cost": cost * float(self._coreset.weights.max()), "rounds": n_rounds}

    def _ask(self, request: TryCenters | MoveCenters, n_centers: int) -> Script[Floats | LostKey]:
        """Add up the parties' masked distances; shape (m, n_centers)."""
        inbox = yield dict.fromkeys(self._roster.names, request)
        self._transcript = digest(self._transcript, wire_bytes(request))
        size, total = len(self._coreset), np.zeros(len(self._coreset) * n_centers, np.uint64)
        for party, reply in checks.replies(inbox, MaskedDistances).items():
            if reply.masked is None:
                return LostKey(party)
            if len(reply.masked) != size * n_centers * WIDTH or reply.n_centers != n_centers:
                raise checks.wrong(
                    party, reply, f"{len(reply.masked)} bytes where {size} x {n_centers} x {WIDTH} are due"
                )
            self._sent[party] = digest(self._sent[party], reply.masked)
            total += unpack(reply.masked, WIDTH)
        distances = to_numbers(total, self._ring).reshape(size, n_centers)
        if (distances > sum(2.0**magnitude for magnitude in self._magnitudes.values()) + self._rounding).any():
            raise self._senseless("some are larger than all of them said that theirs are")
        return distances

    @property
    def _rounding(self) -> float:
        """How far off a sum of distances can be."""
        return len(self._roster.cards) * 2.0**-self._ring.exponent

    def _senseless(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"The summed distances of {', '.join(self._roster.names)} are not those of any rows: {what}. One of them "
            "told something else, and a sum does not show which. Nothing of it was used; see that all run the same "
            "version."
        )

    def _gather(self) -> Script[Floats | LostKey]:
        inbox = yield {party: AskLloydCenters() for party in self._roster.names}
        self._transcript = digest(self._transcript, wire_bytes(AskLloydCenters()))
        replies = checks.replies(inbox, LloydCenters)
        parts, signed = [], {}
        for card in self._roster.cards:
            reply = replies[card.name]
            if reply.centers is None:
                return LostKey(card.name)
            parts.append(self._read_centers(card, reply, reply.centers))
            sent = digest(self._sent[card.name], np.ascontiguousarray(parts[-1], "<f8").tobytes())
            signed[card.name] = SignedDigest(sent, reply.signature)
        yield from compare(self._roster, self._transcript, signed)
        centers = np.hstack(parts)
        self._check_apart(centers)
        return centers

    def _check_apart(self, centers: Floats) -> None:
        """Require centres that are as far apart as the distances of rows say.

        On average a cluster's rows are by |c_a - c_b|^2 farther from another centre than from their mean.
        """
        for label in range(self._n_clusters):
            weights = self._weights * (self._labels == label)
            if not weights.any():
                continue  # it has not moved
            farther = np.average(self._distances - self._distances[:, [label]], axis=0, weights=weights)
            apart = np.square(centers - centers[label]).sum(axis=1)
            slack = 2 * self._rounding + checks.SLACK * (farther + self._distances.max())
            if (np.abs(farther - apart) > slack + checks.SLACK * np.square(centers).max()).any():
                raise self._senseless("the centres are not where the rows are")

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
