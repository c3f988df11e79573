"""DistDim: each party clusters its own columns, the server the combinations of their centres."""

from colonnade.paper.design import Draw
from colonnade.paper.methods.method import Method, Outcome, through_federation
from colonnade.paper.problem import Problem
from colonnade.paper.variants import Variant
from colonnade.solvers import DistDim


def _learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    return through_federation(problem, variant, draw, seed, DistDim())


METHOD = Method("DistDim", _learn, quick_repeats=5, repeats_on_all_rows=True)
