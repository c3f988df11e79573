"""SecureLloyd: k-means by rounds in which the server sees distances summed over the parties, and no party's own.

Squared distances add over parties. Each party keeps its columns, and its part of the centres until the end; the server
draws the starts (k-means++) and assigns rows by the sums, which reach it under masks that cancel.
"""

from typing import ClassVar, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import ClusteringTask, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, UnsupportedError
from colonnade.messages import MAX_NUMBERS, Reveals
from colonnade.options import flag
from colonnade.privacy.pair_keys import check_enough_parties, until_kept
from colonnade.solvers.lloyd_rounds import Rounds

M = TypeVar("M")


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
        n_clusters, n_columns = _clustering(task).n_clusters, sum(card.n_features for card in roster.cards)
        check_enough_parties(roster, "SecureLloyd", allow_two_parties=self.allow_two_parties)
        if n_clusters >= n_columns:
            raise InputError(
                f"{n_clusters} clusters of {n_columns} columns in all: SecureLloyd tells the server the centres and "
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
        size = len(coreset) * max(clustering.n_clusters, clustering.n_starts)
        if size > MAX_NUMBERS:
            raise InputError(f"Distances of {len(coreset):,} rows do not fit one message. Use a smaller size.")
        seed = int(rng.integers(2**63))  # of every attempt: a retry must not change the result
        centers, facts = yield from until_kept(
            lambda: Rounds(roster, coreset, clustering.n_clusters, clustering.n_starts).play(seed)
        )
        return Solution(clustering.clustering_model(centers, roster), facts)


def _clustering(task: Task[M]) -> ClusteringTask[M]:
    if not isinstance(task, ClusteringTask):
        raise UnsupportedError(f"SecureLloyd clusters; it cannot do {type(task).__name__}. Use SecureGram().")
    return task
