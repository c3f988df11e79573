"""Central: the rows go to the server, which solves the regression there."""

from colonnade.paper.design import Draw
from colonnade.paper.methods.method import Method, Outcome, through_federation
from colonnade.paper.problem import Problem
from colonnade.paper.variants import Variant
from colonnade.solvers import Central


def _learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    return through_federation(problem, variant, draw, seed, Central())


METHOD = Method("Central", _learn, quick_repeats=10)
