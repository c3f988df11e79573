"""SAGA: columns stay with the parties. The library's, fused; or the authors', scikit-learn's on raw columns."""

import warnings
from typing import Any

import numpy as np

from colonnade.catalogue import codec
from colonnade.coreset import Coreset
from colonnade.errors import ConvergenceWarning
from colonnade.ledger import Totals
from colonnade.messages import Message
from colonnade.paper.design import Draw
from colonnade.paper.drawing import drawn
from colonnade.paper.methods.method import Method, Outcome
from colonnade.paper.methods.saga_fused import saga_fused
from colonnade.paper.problem import Problem
from colonnade.paper.variants import Variant
from colonnade.planning.wire_sizes import sheet_messages, telling_messages
from colonnade.solvers import Saga
from colonnade.solvers.saga.server import linear_task
from colonnade.tasks.jobs import shared_seed


def _learn(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    if variant.saga_tolerances is None:
        return _library(problem, variant, draw, seed)
    after_coreset, after_uniform = variant.saga_tolerances
    return _authors(problem, variant, draw, seed, after_coreset if draw.prefix == "C-" else after_uniform)


def _library(problem: Problem, variant: Variant, draw: Draw, seed: int) -> Outcome:
    """Do what ``federation.fit(task, sampler, solver=Saga())`` does, bit for bit, without passing its messages."""
    task, sampler, solver, federation = problem.task(variant), draw.sampler(), Saga(), problem.federation
    run = federation.coreset(task, sampler, seed=seed)
    model, sent = _fused(problem, solver, run.coreset, seed)
    n_blocks, n_parties = -(-len(run.coreset) // solver.batch), len(problem.tables)
    # Each epoch asks every party once a block and once for its progress; opening and closing are two questions more.
    epochs = (sent.messages // (2 * n_parties) - 2) // (n_blocks + 1)
    # The sheet of a fit takes the place of that of a coreset, and parties are told the model.
    roster = federation.roster
    framing = [*sheet_messages(task, roster, None, sampler, solver, seed), *telling_messages(task, roster)]
    drawing = run.ledger.bytes - run.ledger.by_phase()["opening"].bytes
    framed = round(sum(message.bytes for message in framing))
    return Outcome(model, run.ledger.units + sent.units, drawing + sent.bytes + framed, epochs)


def _authors(problem: Problem, variant: Variant, draw: Draw, seed: int, tolerance: float) -> Outcome:
    from sklearn.exceptions import ConvergenceWarning as NotConverged
    from sklearn.linear_model import Ridge

    coreset, task = drawn(problem, variant, draw, seed), linear_task(problem.part.learn)
    joined = np.column_stack([table.take(coreset.rows) for table in problem.tables.values()])  # the label is last
    penalty, epochs = problem.n_rows * task.penalties()[0], problem.part.saga_epochs
    solver = Ridge(penalty, solver="saga", tol=tolerance, max_iter=epochs, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the epochs are stored
        solver.fit(joined[:, :-1], joined[:, -1], sample_weight=coreset.weights)
    model = task.linear_model(solver.coef_, float(solver.intercept_), problem.federation.roster)
    epochs = int(np.max(solver.n_iter_))
    drawing, solving = problem.drawing_sent(draw), _sent_in(problem, coreset, epochs)
    return Outcome(model, drawing.units + solving.units, drawing.bytes + solving.bytes, epochs)


def _sent_in(problem: Problem, coreset: Coreset, epochs: int) -> Totals:
    """Weigh the messages of one epoch and of two, a row a round, for what so many send."""
    one, two = (_fused(problem, Saga(batch=1, tolerance=0.0, max_epochs=n), coreset, 0)[1] for n in (1, 2))
    more = epochs - 1
    return Totals(
        one.messages + more * (two.messages - one.messages),
        one.units + more * (two.units - one.units),
        one.bytes + more * (two.bytes - one.bytes),
    )


def _fused(problem: Problem, solver: Saga, coreset: Coreset, seed: int) -> tuple[Any, Totals]:
    encoder = codec()

    def weigh(message: Message) -> int:
        return len(encoder.encode(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are stored
        # The stream that the federation gives a solver.
        rng, roster = np.random.default_rng(shared_seed(seed)), problem.federation.roster
        return saga_fused(solver, problem.part.learn, problem.tables, roster, coreset, rng, weigh)


# On raw columns and all rows it does not come to an end: the paper prints N/A.
METHOD = Method("SAGA", _learn, quick_repeats=2, is_slow=True, fits_all_rows=lambda v: v.saga_tolerances is None)
