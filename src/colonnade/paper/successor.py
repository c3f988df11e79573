"""Scores for logistic regression of the ICML 2025 successor to the paper, beside ours, and what its weights decide.

"Improved Coresets for Vertical Federated Learning: Regularized Linear and Logistic Regressions" compares draws by one
penalty for all, but its scripts do not weigh them alike: a uniform draw's rows have weight 1, those of the 2022 coreset
10 each on average, and only those of its own scores add up to about n. A penalty then counts n / m, n / (10 m) and 1
times. Each draw is made here as coded, and with weights that are right on average. Written anew from what the scripts
do; they also add a row of each class, and draw without replacement.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import msgspec
import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.leverage import leverage
from colonnade.kernels.logistic import solve_logistic
from colonnade.kernels.logits import log_loss
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.ledger import aligned
from colonnade.sampling.rules.classes import CLASS_PART

# The ridge of its leverages, whatever the penalty is, and the iterations of its Lewis weights.
RIDGE, LEWIS_ITERATIONS = 10.0, 3
Weighing = Literal["as coded", "correct"]
WEIGHINGS: tuple[Weighing, ...] = ("as coded", "correct")


class SuccessorResult(msgspec.Struct, frozen=True):
    """One model: scikit-learn's C, how rows were scored, weighed and drawn, its log-loss above that of all rows."""

    c: float
    scores: str
    weights: Weighing
    size: int
    repeat: int
    excess: float


@dataclass(frozen=True)
class SuccessorPlan:
    """How much to run."""

    cs: tuple[float, ...] = (1e-4, 0.1)
    sizes: tuple[int, ...] = (500, 2000)
    repeats: int = 20


@dataclass(frozen=True, eq=False)
class Split:
    """Each party's columns, (n, d_j), and the labels, -1 or 1, which the last one has."""

    blocks: Sequence[Floats]
    labels: Floats


def _uniform(split: Split) -> Floats:
    return np.ones(len(split.labels))


def _paper(split: Split) -> Floats:
    """Score as for linear regression: leverages, the label among the last party's columns."""
    *others, last = split.blocks
    blocks = [*others, np.column_stack([last, split.labels])]
    return _by_party(blocks, lambda X: np.asarray(leverage(ArrayBlocks(X)))) + 1 / len(split.labels)


def _ridge_leverage(X: Floats, ridge: float) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", X @ np.linalg.inv(X.T @ X + ridge * np.eye(X.shape[1])), X))


def _root(split: Split) -> Floats:
    """Score as the scripts do under the name of squared leverage: by the root of ridge leverage."""
    roots = _by_party(split.blocks, lambda X: np.sqrt(_ridge_leverage(X, RIDGE)))
    return roots + len(split.blocks) / len(split.labels)


def _squared(split: Split) -> Floats:
    return _by_party(split.blocks, lambda X: _ridge_leverage(X, RIDGE) ** 2) + 1 / len(split.labels) ** 2


def _lewis_weights(X: Floats) -> Floats:
    """Iterate towards l1 Lewis weights; signs of rows, which the scripts turn by the label, do not matter to them."""
    found = np.ones(len(X))
    for _ in range(LEWIS_ITERATIONS):
        inverse = np.linalg.pinv((X / found[:, np.newaxis]).T @ X)
        found = np.sqrt(np.maximum(np.einsum("ij,ij->i", X @ inverse, X), np.finfo(np.float64).tiny))
    return found


def _lewis(split: Split) -> Floats:
    return _by_party(split.blocks, _lewis_weights)


def _lewis_squared(split: Split) -> Floats:
    """Score as the scripts do under the name of Lewis weights."""
    return _by_party(split.blocks, lambda X: _lewis_weights(X) ** 2)


def _classes(split: Split) -> Floats:
    """Score as the library does: leverages, and each class its part."""
    part = CLASS_PART * sum(X.shape[1] for X in split.blocks)
    positive = split.labels > 0
    by_class: Floats = part / 2 / np.where(positive, positive.sum(), (~positive).sum())
    return _by_party(split.blocks, lambda X: np.asarray(leverage(ArrayBlocks(X), constant=True))) + by_class


def _by_party(blocks: Sequence[Floats], scores: Callable[[Floats], Floats]) -> Floats:
    return np.asarray(np.sum([scores(X) for X in blocks], axis=0))


SCORES: dict[str, Callable[[Split], Floats]] = {
    "uniform": _uniform,
    "2022": _paper,
    "root of ridge leverage": _root,
    "squared ridge leverage": _squared,
    "Lewis": _lewis,
    "squared Lewis": _lewis_squared,
    "leverage and classes": _classes,
}


def successor(
    features: Floats, labels: Floats, widths: Sequence[int], plan: SuccessorPlan, seed: int
) -> Iterator[SuccessorResult]:
    """Draw by each kind of scores, weigh as coded and correctly, fit, and compare with all rows.

    Parameters
    ----------
    features : array, shape (n, d)
        At mean 0 and deviation 1, as the scripts scale them.
    labels : array, shape (n,)
        0 or 1.
    widths : sequence of int
        Each party's number of columns; the last also has the label.
    """
    codes = labels.astype(np.int64)
    split = Split(np.split(features, np.cumsum(widths)[:-1], axis=1), 2.0 * labels - 1)
    scores = {name: rule(split) for name, rule in SCORES.items()}
    for c in plan.cs:
        least = _loss(features, codes, np.arange(len(codes)), np.ones(len(codes)), c)
        for (name, own), size, repeat in product(scores.items(), plan.sizes, range(plan.repeats)):
            for weighing in WEIGHINGS:
                rng = np.random.default_rng([seed, size, repeat])
                draw = _as_coded if weighing == "as coded" else _correct
                rows, weights = draw(name, own, codes, size, rng)
                excess = _loss(features, codes, rows, weights, c) / least - 1
                yield SuccessorResult(c, name, weighing, size, repeat, excess)


def _as_coded(name: str, scores: Floats, codes: Rows, size: int, rng: np.random.Generator) -> tuple[Rows, Floats]:
    """Draw different rows, and one more of each class."""
    chances = scores / scores.sum()
    drawn = rng.choice(len(scores), size, replace=False, p=chances)
    rows = np.concatenate([drawn, *(rng.choice(np.flatnonzero(codes == code), 1) for code in (0, 1))])
    if name == "uniform":
        return rows, np.ones(len(rows))
    weights = 1 / (size * chances[rows])
    return rows, weights * (10 * size / weights.sum() if name == "2022" else 1.0)


def _correct(_: str, scores: Floats, codes: Rows, size: int, rng: np.random.Generator) -> tuple[Rows, Floats]:
    """Draw independently, again where a class has no row: there is nothing to fit then."""
    chances = scores / scores.sum()
    rows = rng.choice(len(scores), size, p=chances)
    while len(np.unique(codes[rows])) < 2:
        rows = rng.choice(len(scores), size, p=chances)
    return rows, 1 / (size * chances[rows])


def _loss(features: Floats, codes: Rows, rows: Rows, weights: Floats, c: float) -> float:
    """Fit C sum_i w_i loss_i + |theta|^2 / 2, and give the mean loss on all rows, without the penalty."""
    coef, intercept = solve_logistic(features[rows], codes[rows], weights, 2, 0.5 / c, 0.0, fit_intercept=True)
    return float(log_loss(features @ coef[0] + intercept[0], codes).mean())


def table(results: Sequence[SuccessorResult]) -> str:
    """Lay out mean excess by C and scores, a column for each size and way to weigh."""
    places = sorted({(result.size, result.weights) for result in results})
    lines: list[tuple[str, ...]] = [("C", "scores", *(f"{size:,} {weights}" for size, weights in places))]
    for c, name in product(sorted({result.c for result in results}), SCORES):
        found = [
            np.mean([r.excess for r in results if (r.c, r.scores, r.size, r.weights) == (c, name, *place)])
            for place in places
        ]
        lines.append((f"{c:g}", name, *(f"{mean:.2%}" for mean in found)))
    return aligned(lines, numbers=range(2, 2 + len(places)))
