"""A server that asks twice in one run, for Gram matrices that differ in one row: the second is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.sampling.selecting import use_rows
from colonnade.solvers.gram.ckks.server import gram_by_ckks
from colonnade.solvers.gram.shares.messages import GramShares
from colonnade.solvers.gram.shares.server import gram_by_shares
from harness import play
from secure_trial import Recording, made_parties
from whole_tables import held

WEIGHTS = np.linspace(1.0, 2.0, 60)
CORESET = cn.Coreset(np.arange(60), WEIGHTS, 300, 300.0)
HEAVIER = replace(CORESET, weights=np.where(np.arange(60) == 7, 1.5, 1.0) * WEIGHTS)
SHORTER = replace(CORESET, rows=CORESET.rows[1:], weights=WEIGHTS[1:])


def shares(coreset: cn.Coreset, fold_seed: int | None = None) -> Any:
    def script(roster: Any) -> Any:
        yield from use_rows(roster, coreset.rows)
        return (yield from gram_by_shares(roster, coreset, fold_seed))

    return script


def ckks(coreset: cn.Coreset) -> Any:
    def script(roster: Any) -> Any:
        yield from use_rows(roster, coreset.rows)
        return (yield from gram_by_ckks(roster, coreset))

    return script


def in_one_run(federation: cn.Federation, *scripts: Any) -> list[Any]:
    def cheating() -> Any:
        found: list[Any] = []
        for script in scripts:
            found += [(yield from script(federation.roster))]
        return found

    return play(federation, cheating())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (shares(CORESET), shares(HEAVIER)),
        (shares(CORESET), shares(SHORTER)),
        (shares(CORESET), shares(CORESET, 1)),
        (shares(CORESET, 1), shares(CORESET, 2)),
        (shares(CORESET), ckks(HEAVIER)),
        (ckks(CORESET), ckks(HEAVIER)),
        (ckks(CORESET), ckks(SHORTER)),
    ],
    ids=["weights", "rows", "folds", "other folds", "both ways", "weights, ckks", "rows, ckks"],
)
def test_a_second_gram_matrix_that_differs_is_refused(first: Any, second: Any) -> None:
    federation = cn.Federation(made_parties())
    with pytest.raises(cn.LocalProtocolError, match=r"differs from what it asked before in this run.*another run"):
        in_one_run(federation, first, second)
    in_one_run(federation, second)


def test_the_same_may_be_asked_again() -> None:
    """As after a lost key; and units of columns count among what is the same."""
    once, again = in_one_run(cn.Federation(made_parties()), shares(CORESET), shares(CORESET))
    for one, other in zip(once, again, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))


def test_another_run_may_ask_something_else_and_learns_the_row() -> None:
    """What docs/explanation/privacy.md says is not hidden: means of two runs that differ in the weight of one row."""
    wire = Recording()
    federation = cn.Federation(made_parties(), transport=wire)
    for coreset in (CORESET, HEAVIER):
        federation.fit(cn.Regression(l2=0.1), coreset=coreset, solver=cn.SecureGram())
    told = [reply.means[0] for reply in wire.replies() if isinstance(reply, GramShares)]
    before, after = told[0] * WEIGHTS.sum(), told[3] * HEAVIER.weights.sum()
    row = (after - before) / (HEAVIER.weights[7] - WEIGHTS[7])
    np.testing.assert_allclose(row, held(made_parties()[0].table)[7], rtol=1e-9)
