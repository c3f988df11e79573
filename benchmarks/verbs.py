"""Every verb on rows in memory, three parties, one core, beside its bare arithmetic and scikit-learn's fit of all rows.

The bare arithmetic is what no way of doing it can avoid: for regression scores a Gram matrix and one product, for a
draw a cumulative sum, for predictions of a regression X @ w, for those of classes the logistic function of it, for
their evaluation every row's loss and an order of all rows, for predictions of clusters and for their scores one pass in
which every row finds its nearest centre. It is made of plain NumPy calls on column-major blocks, as tables hold them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import made_up
import numpy as np
from side_by_side import Line, Store, one_core, time_in_turns
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss, roc_auc_score

import colonnade as cn
from colonnade.kernels.arrays import Flags, Floats

SHAPES = [(100_000, 10), (1_000_000, 10), (100_000, 30), (100_000, 100), (100_000, 300)]
LARGE_SHAPES = [(1_000_000, 30), (1_000_000, 100), (1_000_000, 300), (10_000_000, 10), (10_000_000, 30)]
SIZE, K, BLOCK_ROWS = 2000, 10, 16_384
REGRESSION, CLASSES = cn.Regression(), cn.Classification()
CLUSTERS = cn.KMeans(n_clusters=K, n_starts=1)
SAMPLER = cn.ImportanceSampling(size=SIZE)
Contenders = dict[str, Callable[[], object]]


def blocks(X: Floats) -> Iterator[Floats]:
    """Cut rows into blocks."""
    return (X[start : start + BLOCK_ROWS] for start in range(0, len(X), BLOCK_ROWS))


def gram_and_product(parts: Sequence[Floats]) -> None:
    """Do the arithmetic of regression scores."""
    for X in parts:
        W, gram = np.eye(X.shape[1]) + 0.1, np.zeros((X.shape[1], X.shape[1]))
        for B in blocks(X):
            gram += B.T @ B
        for B in blocks(X):
            B @ W


def qr(parts: Sequence[Floats]) -> None:
    """Score by a QR decomposition, as the paper says."""
    for X in parts:
        Q = np.linalg.qr(X).Q
        np.einsum("ij,ij->i", Q, Q)


def cumulative_sums(scores: Sequence[Floats]) -> None:
    """Do the arithmetic of a draw."""
    rng = np.random.default_rng(0)
    for each in scores:
        running = np.cumsum(each)
        np.searchsorted(running, running[-1] * np.sort(rng.random(SIZE)))


def assign(parts: Sequence[Floats], centres: Sequence[Floats]) -> None:
    """Find every row's nearest centre, in a product a block."""
    for X, C in zip(parts, centres, strict=True):
        halves = 0.5 * np.einsum("ij,ij->i", C, C)
        for B in blocks(X):
            np.argmax(B @ C.T - halves, axis=1)


def score(task: Any, parties: Sequence[cn.Party]) -> list[float]:
    """Score every party's rows, as a job of this task does."""
    return [task.score_rule().scores(party.table).kept().sum() for party in parties]


class Work:
    """Rows of a shape, `whole` as a table holds them, and parties that hold their columns."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.rows = made_up.rows(n_rows, n_columns)
        self.whole = np.asfortranarray(self.rows.features)
        self.widths = made_up.widths(n_columns)

    @cached_property
    def parts(self) -> list[Floats]:
        """Each party's columns, the label among the last one's."""
        return np.split(np.asfortranarray(np.column_stack(self.rows)), np.cumsum(self.widths)[:-1], axis=1)

    @cached_property
    def parties(self) -> list[cn.Party]:
        """Parties of a regression, or of clusters."""
        return cn.split_columns(self.rows.features, self.rows.label, self.widths)

    @cached_property
    def class_parties(self) -> list[cn.Party]:
        """Parties of a classification."""
        return cn.split_columns(self.rows.features, self.rows.positive, self.widths)

    @cached_property
    def met(self) -> cn.Federation:
        """A federation whose parties have scored their rows for a regression."""
        federation = cn.Federation(self.parties)
        federation.coreset(REGRESSION, SAMPLER)
        return federation

    @cached_property
    def class_met(self) -> cn.Federation:
        """One of parties with classes."""
        return cn.Federation(self.class_parties)

    @cached_property
    def positive(self) -> Flags:
        """Which rows are of the last class."""
        return self.rows.positive > 0

    def product(self) -> Floats:
        """Do the arithmetic of linear predictions."""
        product: Floats = self.whole @ np.ones(self.whole.shape[1])
        return product

    def chances(self) -> None:
        """Do that of chances of classes."""
        1.0 / (1.0 + np.exp(-self.product()))

    def report(self) -> None:
        """Do that of their evaluation: losses, and for the area under the curve an order of both classes' rows."""
        logits, positive = self.product(), self.positive
        np.logaddexp(0.0, np.where(positive, -logits, logits)).sum()
        for own in (positive, ~positive):
            np.sort(logits[own])

    def assigned(self) -> None:
        """Do the arithmetic of predicted clusters, some rows being the centres."""
        assign([self.whole], [self.whole[:K]])

    def assigned_apart(self) -> None:
        """Do that of clusters of each party's own columns."""
        parts = np.split(self.whole, np.cumsum(self.widths)[:-1], axis=1)
        assign(parts, [part[:K] for part in parts])


def regression_scores(work: Work) -> Contenders:
    """Score rows by Algorithm 2."""
    parties, parts = work.parties, work.parts
    return {
        "ours": lambda: score(REGRESSION, parties),
        "bare": lambda: gram_and_product(parts),
        "QR": lambda: qr(parts),
    }


def regression_fit(work: Work) -> Contenders:
    """Fit on a coreset, from nothing."""
    (X, y), parties, parts = work.rows, work.parties, work.parts
    return {
        "ours": lambda: cn.Federation(parties).fit(REGRESSION, sampler=SAMPLER),
        "bare": lambda: gram_and_product(parts),
        "LinearRegression": lambda: LinearRegression().fit(X, y),
        "Ridge": lambda: Ridge().fit(X, y),
    }


def regression_draw(work: Work) -> Contenders:
    """Agree on one more coreset with parties that have their scores: all of a fit but the scores and the solver."""
    federation = work.met
    return {"ours": lambda: federation.coreset(REGRESSION, SAMPLER)} | beside_draws(work)


def committed_draw(work: Work) -> Contenders:
    """Agree on one likewise, so that nobody can bend it: every score is hashed."""
    federation, committed = work.met, cn.ImportanceSampling(size=SIZE, draws="committed")
    return {
        "ours": lambda: federation.coreset(REGRESSION, committed),
        "plain": lambda: federation.coreset(REGRESSION, SAMPLER),
    }


def regression_fit_again(work: Work) -> Contenders:
    """Fit likewise: the draw, and the solver on what was drawn."""
    federation = work.met
    return {"ours": lambda: federation.fit(REGRESSION, sampler=SAMPLER)} | beside_draws(work)


def beside_draws(work: Work) -> Contenders:
    """Do the arithmetic of a draw, and compute the scores that it goes by."""
    parties = work.parties
    scores = [np.asarray(REGRESSION.score_rule().scores(party.table)) for party in parties]
    return {"bare": lambda: cumulative_sums(scores), "scores": lambda: score(REGRESSION, parties)}


def compact_fit(work: Work) -> Contenders:
    """Fit likewise on rounded rows."""
    federation = work.met
    return {
        "ours": lambda: federation.fit(REGRESSION, sampler=SAMPLER, solver=cn.CompactCentral()),
        "Central": lambda: federation.fit(REGRESSION, sampler=SAMPLER),
    }


def classification_fit(work: Work) -> Contenders:
    """Fit classes on a coreset, from nothing."""
    X, y, parties, parts = work.rows.features, work.rows.positive, work.class_parties, work.parts
    return {
        "ours": lambda: cn.Federation(parties).fit(CLASSES, sampler=SAMPLER),
        "bare": lambda: gram_and_product(parts),
        "LogisticRegression": lambda: LogisticRegression().fit(X, y),
    }


def kmeans_scores(work: Work) -> Contenders:
    """Score rows by Algorithm 3."""
    parties = work.parties
    return {"ours": lambda: score(CLUSTERS, parties), "bare": work.assigned_apart}


def kmeans_fit(work: Work) -> Contenders:
    """Fit clusters on a coreset, from nothing, by ten starts, as it is unless one says else; and by one."""
    X, parties = work.rows.features, work.parties
    return {
        "ours": lambda: cn.Federation(parties).fit(cn.KMeans(n_clusters=K), sampler=SAMPLER),
        "ours, one start": lambda: cn.Federation(parties).fit(CLUSTERS, sampler=SAMPLER),
        "bare": work.assigned_apart,
        "KMeans, 1 start": lambda: KMeans(K, n_init=1, random_state=0).fit(X),
    }


def applied(verb: str, task: Any) -> Callable[[Work], Contenders]:
    """Predict all rows, or evaluate a model on them."""

    def contenders(work: Work) -> Contenders:
        federation = work.class_met if task is CLASSES else work.met
        model = federation.fit(task, sampler=SAMPLER).model
        bare = work.assigned if task is CLUSTERS else work.product
        return {"ours": lambda: getattr(federation, verb)(model), "bare": bare}

    return contenders


def classification_predict(work: Work) -> Contenders:
    """Give chances of classes of all rows; beside it the product alone, too."""
    return applied("predict", CLASSES)(work) | {"bare chances": work.chances}


def classification_evaluate(work: Work) -> Contenders:
    """Evaluate a model of classes; beside it, what scikit-learn takes for its loss and area, of chances that are there.

    A product is no arithmetic of an area, rows must be ordered for that; but it is beside it, too.
    """
    model, y = work.class_met.fit(CLASSES, sampler=SAMPLER).model, np.asarray(work.rows.positive)
    chances = work.class_met.predict(model).probabilities[:, -1].copy()
    return applied("evaluate", CLASSES)(work) | {
        "bare report": work.report,
        "log_loss, roc_auc_score": lambda: (log_loss(y, chances), roc_auc_score(y, chances)),
    }


VERBS: dict[str, Callable[[Work], Contenders]] = {
    "regression scores": regression_scores,
    "regression fit": regression_fit,
    "regression draw, scores cached": regression_draw,
    "committed draw, scores cached": committed_draw,
    "regression fit, scores cached": regression_fit_again,
    "compact fit, scores cached": compact_fit,
    "regression predict": applied("predict", REGRESSION),
    "regression evaluate": applied("evaluate", REGRESSION),
    "classification fit": classification_fit,
    "classification predict": classification_predict,
    "classification evaluate": classification_evaluate,
    "k-means scores": kmeans_scores,
    "k-means fit": kmeans_fit,
    "k-means predict": applied("predict", CLUSTERS),
    "k-means evaluate": applied("evaluate", CLUSTERS),
}


def measure(store: Store, *, large: bool) -> None:
    """Time every verb on every shape."""
    for n_rows, n_columns in SHAPES + LARGE_SHAPES * large:
        cases = {verb: {"bench": "verbs", "work": verb, "rows": n_rows, "columns": n_columns} for verb in VERBS}
        if any(store.lacks(case) for case in cases.values()):
            with one_core():
                work = Work(n_rows, n_columns)
                for verb, case in cases.items():
                    store.fill(case, partial(timed, VERBS[verb], work))


def timed(verb: Callable[[Work], Contenders], work: Work) -> Line:
    """Prepare the contenders, and time them."""
    return time_in_turns(verb(work))
