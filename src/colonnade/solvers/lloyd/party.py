"""A party's side of SecureLloyd: keeps its part of the centres, and masks its part of the distances."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError, LocalProtocolError, PolicyRefusedError, RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block
from colonnade.kernels.lloyd import largest_distance, means_by_label, single_clusters, squared_distances
from colonnade.kernels.masks import MAX_EXPONENT, magnitude_of, pack, ring_of_magnitude
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import (
    OPENED,
    PAIRED,
    SHARED,
    identity_of,
    phase_keys,
    view_digest,
    with_keys,
)
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.memory import DistancesNote
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.protocol.sums import HALF, Group, check_geometry, check_hidden, check_sums
from colonnade.protocol.weighing import check_weights
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

# What a centre is called in the party's memory.
CLUSTER = "cluster"


@dataclass(frozen=True, eq=False)
class LloydLearning:
    """One party's part of the rounds.

    Parameters
    ----------
    features : ndarray of float64, shape (m, d)
        The coreset's rows, which are read once.
    weights : ndarray of float64, shape (m,)
        The rows'.
    n_tries, n_clusters, n_columns : int
        How many rows are tried for each centre, k, and how many columns all parties have.
    magnitude : int
        Of the distances in all parties' columns.
    centers : ndarray of float64, shape (k, d), or None
        The party's part of the centres, once they have moved.
    labels : ndarray of int64, shape (m,), or None
        By which they moved last.
    tried : tuple of ndarray of int64, shape (n_tries,)
        The places of the rows that were tried for each centre.
    n_moves : int
        How often centres have moved.
    transcript, sent : bytes
        Digests of all that was asked, and of all that was answered.
    """

    features: Floats
    weights: Floats
    n_tries: int
    n_clusters: int
    n_columns: int
    magnitude: int
    transcript: bytes
    centers: Floats | None = None
    labels: Rows | None = None
    tried: tuple[Rows, ...] = ()
    n_moves: int = 0
    sent: bytes = b""

    @property
    def n_asked(self) -> int:
        """How many requests came, the opening among them."""
        return 1 + len(self.tried) + self.n_moves

    def __repr__(self) -> str:
        return "LloydLearning(not shown)"


def _answer_open(state: PartyState, request: OpenLloyd, data: PartyData) -> tuple[PartyState, Message]:
    kept, rows = with_keys(state, request.keys, data), state.selected()
    _check_opening(request, len(rows), len(data.table.feature_names))
    weights = np.ones(len(rows)) if request.weights is None else request.weights
    check_weights(state, request, request.weights, data)
    state = _with_distances(state, request, data)
    state = require_same_question(state, request, digest(seen_rows(state, data), request.question()))
    transcript = opening_transcript(identity_of(data).parties, view_digest(state, data), request)
    magnitude = magnitude_of(np.array([data.once(_largest_distance)]))
    sizes = request.n_tries, request.n_clusters, request.n_columns
    learning = LloydLearning(_features(state, data), weights, *sizes, magnitude, transcript)
    told = None if kept.secret is None else magnitude
    return replace(state, secret=kept, learning=learning), LloydOpened(told)


def _largest_distance(table: Table) -> float:
    """Bound squared distances between any rows: of the selected ones, two say, it would tell how far they are apart."""
    n_features = len(table.feature_names)
    corners = list(table.map(partial(_corners, n_features)))
    return largest_distance(np.concatenate(corners)) if corners else 0.0


def _corners(n_features: int, block: Block) -> Floats:
    features = block.values[:, :n_features]
    return np.stack([features.min(axis=0), features.max(axis=0)])


def _with_distances(state: PartyState, request: OpenLloyd, data: PartyData) -> PartyState:
    """Note that distances are told from now on, unless that is too much beside sums that were told before."""
    if Reveals.FEATURES in data.policy.never and request.n_clusters > HALF * request.n_columns:
        raise PolicyRefusedError(
            f"its owner's policy never reveals features, and from distances to {request.n_clusters} centres and these, "
            f"of {request.n_columns} columns in all, rows could be worked out: half as many is the most.",
            party=data.name,
        )
    if data.policy.least_rows == 1:
        return state
    notes = (*state.notes, DistancesNote(request.n_columns))
    check_geometry(notes, data)
    return replace(state, notes=notes)


def _check_opening(request: OpenLloyd, size: int, n_features: int) -> None:
    if request.n_tries < 1 or request.n_clusters < 1 or size < 1:
        raise checks.wrong(SERVER, request, f"{request.n_tries} rows tried for {request.n_clusters} clusters of {size}")
    # Centres are rows of columns: both products are made.
    if max(size, n_features) * max(request.n_tries, request.n_clusters) > MAX_NUMBERS:
        raise InputError(f"Distances of {size:,} rows do not fit one message. Use a coreset or a smaller size.")
    if request.weights is not None:
        checks.shape(SERVER, request, request.weights, (size,))
        checks.non_negative(SERVER, request, request.weights)
        if not request.weights.any():
            raise checks.wrong(SERVER, request, "weights that are all zero")


def _answer_try(state: PartyState, request: TryCenters, data: PartyData) -> tuple[PartyState, Message]:
    learning = _learning(state)
    checks.shape(SERVER, request, request.places, (learning.n_tries,))
    _check_places(request, request.places, learning)
    if len(learning.tried) == learning.n_clusters:
        raise checks.wrong(SERVER, request, f"rows to try for more than {learning.n_clusters} centres")
    is_settled = len(learning.tried) > 0
    if not learning.magnitude <= request.magnitude <= (learning.magnitude if is_settled else MAX_EXPONENT):
        raise checks.wrong(SERVER, request, f"the magnitude {request.magnitude}")
    state = require_same_question(state, request, wire_bytes(request), learning.n_asked)
    learning = replace(learning, magnitude=request.magnitude, tried=(*learning.tried, request.places))
    distances = squared_distances(learning.features, learning.features[request.places])
    return _masked(state, request, learning, distances, data)


def _check_places(request: Message, places: Rows, learning: LloydLearning) -> None:
    if places.min() < 0 or places.max() >= len(learning.weights):
        raise checks.wrong(SERVER, request, f"places outside 0..{len(learning.weights) - 1}")


def _answer_move(state: PartyState, request: MoveCenters, data: PartyData) -> tuple[PartyState, Message]:
    learning = _learning(state)
    checks.shape(SERVER, request, request.labels, learning.weights.shape)
    if request.labels.min() < 0 or request.labels.max() >= learning.n_clusters:
        raise checks.wrong(SERVER, request, f"labels outside 0..{learning.n_clusters - 1}")
    # A server that went on with labels of its choice would learn distances to ever new means of rows.
    if learning.n_moves == MAX_ROUNDS:
        raise checks.wrong(SERVER, request, f"a move of centres after {MAX_ROUNDS}, the most there can be")
    groups = _clusters(state, request.labels, learning)
    if data.policy.least_rows > 1:
        d = len(data.table.feature_names)
        check_hidden(data, CLUSTER, groups, d, d * len(groups), least=1)
    features = learning.features
    if (old := learning.centers) is None:
        old = features[_starts(request, learning)]
    elif request.starts is not None:
        raise checks.wrong(SERVER, request, "places to start from, where centres have moved already")
    centers = means_by_label(features, learning.weights, request.labels, old)
    state = require_same_question(state, request, wire_bytes(request), learning.n_asked)
    learning = replace(learning, centers=centers, labels=request.labels, n_moves=learning.n_moves + 1)
    return _masked(state, request, learning, squared_distances(features, centers), data)


def _clusters(state: PartyState, labels: Rows, learning: LloydLearning) -> list[Group]:
    """Give the rows and weights of each cluster that has any; copies of a row are in one, or means would tell it."""
    rows, weights = state.selected(), learning.weights
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    if (labels != labels[first][which]).any():
        raise RemoteProtocolError("the server put copies of one row into two clusters.", party=SERVER)
    places = (np.flatnonzero(labels == number) for number in range(learning.n_clusters))
    return [(rows[place], weights[place]) for place in places if len(place)]


def _starts(request: MoveCenters, learning: LloydLearning) -> Rows:
    if request.starts is None:
        raise checks.wrong(SERVER, request, "no places to start from")
    checks.shape(SERVER, request, request.starts, (learning.n_clusters,))
    if len(learning.tried) != learning.n_clusters:
        raise checks.wrong(SERVER, request, f"a start after rows were tried for {len(learning.tried)} centres only")
    if not all(start in tried for start, tried in zip(request.starts, learning.tried, strict=True)):
        raise checks.wrong(SERVER, request, "places to start from that were not tried")
    if (request.labels[request.starts] != np.arange(learning.n_clusters)).any():
        raise checks.wrong(SERVER, request, "rows to start from that do not have their own centre's label")
    return request.starts


def _masked(
    state: PartyState, request: Message, learning: LloydLearning, distances: Floats, data: PartyData
) -> tuple[PartyState, Message]:
    kept, n_centers = phase_keys(state), distances.shape[1]
    learning = replace(learning, transcript=digest(learning.transcript, wire_bytes(request)))
    if kept.secret is None:
        return replace(state, learning=learning), MaskedDistances(None, n_centers)
    ring = ring_of_magnitude(learning.magnitude, len(identity_of(data).parties), WIDTH)
    words = kept.secret.masked(distances.reshape(-1), ring, kept.keys, kept.circle, learning.transcript)
    packed = pack(words, WIDTH)
    learning = replace(learning, sent=digest(learning.sent, packed))
    return replace(state, learning=learning), MaskedDistances(packed, n_centers)


def _answer_centers(state: PartyState, request: AskLloydCenters, data: PartyData) -> tuple[PartyState, Message]:
    learning, identity = _learning(state), identity_of(data)
    if learning.centers is None or learning.labels is None:
        raise checks.wrong(SERVER, request, "a question for centres that have not moved yet: they are rows")
    state = require_same_question(state, request, wire_bytes(request), learning.n_asked)
    if data.policy.least_rows > 1:
        groups, d = _clusters(state, learning.labels, learning), len(data.table.feature_names)
        state = check_sums(state, data, CLUSTER, groups, d, d * len(groups), least=1)
    transcript = digest(learning.transcript, wire_bytes(request))
    kept = phase_keys(state)
    state = replace(state, learning=None, secret=kept.used(transcript))
    if kept.secret is None:
        return state, LloydCenters(None, None, transcript, b"")
    alone = single_clusters(learning.labels, learning.weights, state.selected(), learning.n_clusters)
    centers = sendable_floats(learning.centers[~alone])
    single = sendable_floats(learning.centers[alone]) if alone.any() else None
    sent = digest(learning.sent, np.ascontiguousarray(learning.centers, "<f8").tobytes())
    signature = identity.sign(sent_statement(identity.name, transcript, sent))
    return state, LloydCenters(centers, single, transcript, signature)


def _features(state: PartyState, data: PartyData) -> Floats:
    return data.table.take(state.selected())[:, : len(data.table.feature_names)]


def _learning(state: PartyState) -> LloydLearning:
    if not isinstance(state.learning, LloydLearning):
        raise LocalProtocolError("No clustering was opened: open it first.")
    return state.learning


HANDLERS = (
    Handler(OpenLloyd, _answer_open, after=frozenset({PAIRED}), then=OPENED, solver="lloyd"),
    Handler(TryCenters, _answer_try, after=frozenset({OPENED}), then=OPENED, solver="lloyd"),
    Handler(MoveCenters, _answer_move, after=frozenset({OPENED}), then=OPENED, solver="lloyd"),
    Handler(AskLloydCenters, _answer_centers, after=frozenset({OPENED}), then=SHARED, solver="lloyd"),
)
