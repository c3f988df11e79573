"""Columns of two values: sums whose weights are all different tell which rows have which, as a knapsack's weight does.

A number of 52 bits is told about values of one bit each: that there are half as many numbers as values does not help.
"""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.solvers.gram.shares.messages import GramShares
from colonnade.tasks.jobs import learn
from hostile_trial import HostileServer, hostile_server, made_parties

N_ROWS, SIZE, TARGET = 1000, 30, "party1"


def knapsack(weights: Floats, total: float) -> Flags:
    """Find the items whose weights add up to this: sums of one half of them, each with the nearest of the other's."""
    half = len(weights) // 2
    first, second = (_subsets(len(part)) for part in (weights[:half], weights[half:]))
    ours, others = first @ weights[:half], second @ weights[half:]
    order = np.argsort(others)
    above = np.clip(np.searchsorted(others[order], total - ours), 1, len(others) - 1)
    pairs = [(np.abs(ours + others[order[near]] - total), order[near]) for near in (above - 1, above)]
    errors, partners = (np.concatenate(each) for each in zip(*pairs, strict=True))
    best = int(errors.argmin())
    return np.concatenate([first[best % len(first)], second[partners[best]]]).astype(bool)


def _subsets(count: int) -> Floats:
    return (np.arange(1 << count)[:, np.newaxis] >> np.arange(count) & 1).astype(np.float64)


def categories(server: HostileServer) -> tuple[Rows, Flags]:
    """Fit a model honestly on a few rows drawn by scores, and take the target's mean apart."""
    task, sampler, solver = cn.Regression(), cn.ImportanceSampling(SIZE, scores="secure"), cn.SecureGram()
    script = learn(task, sampler, solver, None, server.roster, 0)
    coreset = server.honestly(script, "fit", task=task, sampler=sampler, solver=solver).coreset
    told = {party: reply for party, reply in server.received if isinstance(reply, GramShares)}
    by_row = np.asarray(np.bincount(coreset.rows, weights=coreset.weights), np.float64)
    rows = np.flatnonzero(by_row)
    return rows, knapsack(by_row[rows], float(told[TARGET].means[0, 0] * by_row.sum()))


@pytest.mark.xfail(strict=True, reason="open: by different weights, a sum of few rows tells a column of two values")
def test_sums_of_few_rows_do_not_tell_a_column_of_two_values(tmp_path: Path) -> None:
    """At `strict`, by an honest job: 30 rows, all of them right."""
    parties = made_parties(N_ROWS, (1, 1, 1))
    column = np.random.default_rng(1).random(N_ROWS) < 0.4
    parties[0] = cn.Party(TARGET, column[:, np.newaxis].astype(np.float64))
    with hostile_server(tmp_path, parties, {"level": "strict"}) as server:
        rows, found = categories(server)
    assert (found != column[rows]).any()
