"""Kmeans++: the rows go to the server, which clusters them from several k-means++ starts."""

from colonnade.experiments.design import Draw
from colonnade.experiments.methods.outcome import Method, Outcome, through_federation
from colonnade.experiments.problem import Problem
from colonnade.experiments.variants import Variant
from colonnade.solvers import Central


def _learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    return through_federation(problem, variant, draw, seed, Central())


METHOD = Method("Kmeans++", _learn, quick_repeats=5)
