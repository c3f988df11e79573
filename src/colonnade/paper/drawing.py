"""Coresets drawn in one place, by any setting of the switches. As written, their law is that of the protocol."""

import numpy as np

from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.paper.design import Draw
from colonnade.paper.problem import Problem
from colonnade.paper.variants import Variant
from colonnade.tasks import Regression


def drawn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Coreset:
    """Draw rows, ascending, with the weights and the total weight that the variant's solver would see."""
    n, m = problem.n_rows, draw.size
    scores = problem.scores(variant) if draw.prefix == "C-" else np.ones(n)
    rng = np.random.default_rng([seed, 0])
    rows = np.sort(rng.choice(n, m, replace=variant.with_replacement, p=scores / scores.sum()))
    weights: Floats = scores.sum() / (m * scores[rows])
    mean = variant.coreset_weight if draw.prefix == "C-" else variant.uniform_weight
    if mean is not None:
        weights *= mean / weights.mean()
    learn = problem.part.learn
    relative = variant.penalty_by_weight and isinstance(learn, Regression) and learn.penalties()[1] > 0
    total = float(weights.sum()) if relative else float(n)
    return Coreset(rows, weights, n, total, f"{draw.prefix}{m}, {variant.name}")
