"""DistDim: each party clusters its own columns, the server the combinations of their centres."""

from colonnade.experiments.design import Draw
from colonnade.experiments.methods.outcome import Method, Outcome, through_federation
from colonnade.experiments.problem import Problem
from colonnade.experiments.variants import Variant
from colonnade.solvers import DistDim


def _learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    return through_federation(problem, variant, draw, seed, DistDim())


METHOD = Method("DistDim", _learn, quick_repeats=5, repeats_on_all_rows=True)
