"""DistDim (Ding et al. 2016): each party clusters its own columns, the server the cells of their product grid."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from colonnade.contracts import Agreed, ClusteringTask, PartyCard, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.grid import occupied_cells
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.kmeans_search import weighted_kmeans
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.weighing import check_weights
from colonnade.routes import END, Ask, Route

M = TypeVar("M")
# Rows fetched at a time: all rows of a large table are never copied at once.
BLOCK_ROWS = 16_384


class LocalClusters(Message, frozen=True):
    """The party's own centres, and which of them is nearest to each of the coreset's rows.

    Centres are averages of features, but that of a single row is the row, and the server chooses how many there are:
    they count as features. With them, a row's number is a coarse copy of its features.
    """

    phase: ClassVar[str] = "solving"

    centers: Annotated[Floats, Reveals.FEATURES]
    nearest: Annotated[Rows, Reveals.PREDICTIONS]


class AskLocalClusters(Message, frozen=True):
    """Cluster your own columns of the rows agreed on, by these weights (none: all rows weigh the same).

    A coreset's rows stand for others only with their weights, and its weights are 1 over the parties' summed scores, up
    to one factor: that is what they reveal.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = LocalClusters

    n_clusters: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    weights: Annotated[Floats | None, Reveals.SCORES]


class DistDim(msgspec.Struct, frozen=True, tag_field="kind", tag="distdim", forbid_unknown_fields=True):
    """Let each party cluster its own columns, and cluster the combinations of their centres at the server.

    For k-means only. Each party sends at most k centres of its own columns, and for each row of the coreset which of
    them is nearest. The server gives every combination that occurs the weight of its rows and clusters these. That is m
    T + k d units, and the weights, m T more, unless they are all equal. Parties without feature columns are not asked.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.repeat([[1.0, 1.0], [9.0, 1.0], [1.0, 9.0]], 50, axis=0)
    >>> federation = cn.Federation(cn.split_columns(X, None, [1, 1]))
    >>> run = federation.fit(cn.KMeans(n_clusters=3), sampler=cn.AllRows(), solver=cn.DistDim())
    >>> sorted(run.model.cluster_centers_.tolist()), run.ledger.units  # n T + k d, but only two values a column
    ([[1.0, 1.0], [1.0, 9.0], [9.0, 1.0]], 304)
    """

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES,)

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:  # noqa: ARG002  # any parties
        """Take tasks whose model is a set of centres."""
        _clustering(task)

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Ask every party for its clusters, then cluster the cells of their grid.

        There are at least as many cells as distinct rows, or k: too few are the caller's error, as with `Central`.
        """
        clustering = _clustering(task)
        if len(coreset) > MAX_NUMBERS:
            raise InputError(
                f"DistDim takes {MAX_NUMBERS:,} rows at most, and these are {len(coreset):,}. Draw a coreset."
            )
        asked, weights, seeds = _with_features(roster), _weights_to_send(coreset), _local_seeds(rng, roster)
        inbox = yield {card.name: AskLocalClusters(clustering.n_clusters, seeds[card.name], weights) for card in asked}
        replies = checks.replies(inbox, LocalClusters)
        for card in asked:
            _check_clusters(card, replies[card.name], clustering.n_clusters, len(coreset))
        cells, cell_weights = _grid(replies, coreset)
        centers, _ = weighted_kmeans(cells, cell_weights, clustering.n_clusters, clustering.n_starts, rng)
        return Solution(clustering.clustering_model(centers, roster), {"cells": len(cells)})

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect one request, with the seed that follows from the sheet; none, where there are no features."""
        seed = _local_seeds(np.random.default_rng(agreed.seed), agreed.roster).get(agreed.party)
        return END if seed is None else Ask(AskLocalClusters, n_clusters=_clustering(task).n_clusters, seed=seed)


def _with_features(roster: Roster) -> list[PartyCard]:
    return [card for card in roster.cards if card.n_features]


def _local_seeds(rng: np.random.Generator, roster: Roster) -> dict[str, int]:
    return {card.name: int(rng.integers(2**63)) for card in _with_features(roster)}


def _clustering(task: Task[M]) -> ClusteringTask[M]:
    if not isinstance(task, ClusteringTask):
        raise UnsupportedError(f"DistDim clusters; it cannot do {type(task).__name__}. Use Central().")
    return task


def _weights_to_send(coreset: Coreset) -> Floats | None:
    weights = coreset.weights
    # Relative to the largest: their scale means nothing to a clustering, and might be more than a party takes.
    return None if (weights == weights[0]).all() else sendable_floats(weights / weights.max())


def _check_clusters(card: PartyCard, reply: LocalClusters, n_clusters: int, size: int) -> None:
    n_centers = len(reply.centers)
    checks.shape(card.name, reply, reply.centers, (n_centers, card.n_features))
    checks.in_range(card.name, reply, reply.centers)
    if not 1 <= n_centers <= n_clusters:
        raise checks.wrong(card.name, reply, f"{n_centers} centres where 1 to {n_clusters} were asked for")
    checks.shape(card.name, reply, reply.nearest, (size,))
    if reply.nearest.min() < 0 or reply.nearest.max() >= n_centers:
        raise checks.wrong(card.name, reply, f"rows nearest to centres that are not among its {n_centers}")


def _grid(replies: Mapping[str, LocalClusters], coreset: Coreset) -> tuple[Floats, Floats]:
    # In the order of the roster, as they were asked: so are the columns of the cells.
    centers = [reply.centers for reply in replies.values()]
    return occupied_cells(centers, [reply.nearest for reply in replies.values()], coreset.weights)


def _answer_clusters(state: PartyState, request: AskLocalClusters, data: PartyData) -> tuple[PartyState, Message]:
    _check_request(request, len(state.selection()), len(data.table.feature_names))
    rows = state.selected()
    check_weights(state, request, request.weights, data)
    rng = np.random.default_rng(request.seed)
    features = data.table.take(rows)[:, : len(data.table.feature_names)]
    centers = local_kmeans(ArrayBlocks(features, request.weights), request.n_clusters, rng)
    nearest, _ = nearest_centers(features, centers)
    return state, LocalClusters(sendable_floats(centers), sendable_rows(nearest))


def _check_request(request: AskLocalClusters, size: int, n_features: int) -> None:
    checks.seed(request, request.seed)
    if request.n_clusters < 1 or size < 1:
        raise checks.wrong(SERVER, request, f"{request.n_clusters} clusters of {size} rows; both must be positive")
    if size + min(size, request.n_clusters) * n_features > MAX_NUMBERS:
        raise InputError(f"Clusters of {size:,} rows do not fit one message. Use a coreset or a smaller size.")
    if request.weights is not None:
        checks.shape(SERVER, request, request.weights, (size,))
        checks.non_negative(SERVER, request, request.weights)
        if not request.weights.any():
            raise checks.wrong(SERVER, request, "weights that are all zero")


HANDLERS = (Handler(AskLocalClusters, _answer_clusters, after=frozenset({SELECTED}), then=SELECTED, solver="distdim"),)
