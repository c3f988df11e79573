"""A table's problem: the parties and their federation, and a referee who, unlike anyone in it, sees everything."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np

from colonnade.contracts import Table
from colonnade.data.parties import split_columns
from colonnade.federation import Federation
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import values_of
from colonnade.kernels.kmeans import nearest_centers
from colonnade.kernels.leverage import leverage
from colonnade.kernels.linear import weighted_triangle
from colonnade.kernels.local_kmeans import local_kmeans
from colonnade.ledger import Ledger
from colonnade.paper.data_sets.data_set import DataSet
from colonnade.paper.design import Draw, Part
from colonnade.paper.variants import Variant
from colonnade.sampling.rules.clustering import LOCAL_SEED
from colonnade.tasks import KMeans, LinearModel, Regression


class Problem:
    """What all trials of a table share: parties are made once, so their scores are computed once."""

    def __init__(self, part: Part, data: DataSet) -> None:
        self.part = part
        if isinstance(part.learn, KMeans):
            features = data.standardised()
            parties = split_columns(features, None, part.widths)
            self.cost: Callable[[Any], float] = _clustering_cost(features)
        else:
            parties = split_columns(*data.train, part.widths)
            self.cost = _regression_cost(part, data)
        self.federation = Federation(parties)
        self.tables: Mapping[str, Table] = {party.name: party.table for party in parties}
        self.drawing_sent = cache(self._drawing_sent)
        self.scores = cache(self._scores)

    @property
    def n_rows(self) -> int:
        """How many rows there are to learn from."""
        return self.federation.roster.n_rows

    def task(self, variant: Variant) -> Regression | KMeans:
        """Give the task, with the variant's number of starts."""
        learn = self.part.learn
        return msgspec.structs.replace(learn, n_starts=variant.n_starts) if isinstance(learn, KMeans) else learn

    def _drawing_sent(self, draw: Draw) -> Ledger:
        """Play the protocol that draws so many rows, for what it sends."""
        return self.federation.coreset(self.part.learn, draw.sampler()).ledger

    def _scores(self, variant: Variant) -> Floats:
        """Sum the parties' scores in one place, as the variant computes them."""
        if isinstance(self.part.learn, KMeans):
            return _sum(
                _three_terms(table, centers, variant.clustering_terms) for table, centers in self._local_centers
            )
        tables = self.tables.values()
        shares = len(tables) if variant.share_each else 1
        ones = variant.intercept_scored and self.part.learn.fit_intercept
        own = _sum(np.asarray(leverage(t, constant=ones and t.label_name is not None)) for t in tables)
        return own + shares / self.n_rows

    @cached_property
    def _local_centers(self) -> list[tuple[Table, Floats]]:
        """Cluster each party's columns as the library's own rule does."""
        k = self.part.learn.n_clusters if isinstance(self.part.learn, KMeans) else 0
        return [(t, local_kmeans(t, k, np.random.default_rng(LOCAL_SEED))) for t in self.tables.values()]


def _sum(scores: Iterable[Floats]) -> Floats:
    total: Floats = np.sum(list(scores), axis=0)
    return total


def _three_terms(table: Table, centers: Floats, factors: tuple[float, float, float]) -> Floats:
    """Score rows by the three terms of Algorithm 3, line 10, with factors of one's own; the kernel's are (1, 1, 2)."""
    own, of_cluster, of_size = factors
    assigned = [nearest_centers(block, centers) for block in table.map(values_of)]
    labels = np.concatenate([labels for labels, _ in assigned])
    distances = np.concatenate([squares for _, squares in assigned])
    sizes = np.maximum(np.bincount(labels, minlength=len(centers)), 1)
    cluster_costs = np.bincount(labels, distances, minlength=len(centers))
    cost = float(distances.sum())
    shared = (of_cluster * cluster_costs / cost + of_size) / sizes
    scores: Floats = own * distances / cost + shared[labels]
    return scores


def _regression_cost(part: Part, data: DataSet) -> Callable[[Any], float]:
    features, labels = data.test if part.cost == "test" else data.train
    l2, l1 = part.learn.penalties() if isinstance(part.learn, Regression) and part.cost == "train" else (0.0, 0.0)
    n = len(features)
    joined = np.column_stack([features, np.ones(n), -labels])
    triangle = weighted_triangle(joined, np.ones(n), np.zeros(joined.shape[1]))

    def cost(model: LinearModel) -> float:
        squares = float(np.sum((triangle @ [*model.coef_, model.intercept_, 1.0]) ** 2)) / n
        return squares + l2 * float(np.sum(model.coef_**2)) + l1 * float(np.abs(model.coef_).sum())

    return cost


def _clustering_cost(features: Floats) -> Callable[[Any], float]:
    return lambda model: float(nearest_centers(features, model.cluster_centers_)[1].mean())
