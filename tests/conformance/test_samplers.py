"""Laws that every registered sampler passes; a new one is covered by being registered."""

from typing import Any, get_args

import numpy as np
import pytest

import colonnade as cn
from colonnade.sampling import AnySampler
from colonnade.transports.loopback import Loopback

SIZE = 90
SAMPLERS = [kind(SIZE) if "size" in kind.__struct_fields__ else kind() for kind in get_args(AnySampler)]
SAMPLERS.append(cn.ImportanceSampling(SIZE, uniform_share=0.3))
TASKS = [cn.Regression(), cn.KMeans(n_clusters=3)]

pytestmark = [
    pytest.mark.parametrize("sampler", SAMPLERS, ids=str),
    pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__),
]


def make_federation(n_rows: int = 120, **options: Any) -> cn.Federation:
    rng = np.random.default_rng(0)
    return cn.Federation(cn.split_columns(rng.normal(size=(n_rows, 5)), rng.normal(size=n_rows), [2, 2, 1]), **options)


def test_a_coreset_of_the_size_asked_for(sampler: Any, task: Any) -> None:
    coreset = make_federation().coreset(task, sampler).coreset
    assert len(coreset) == getattr(sampler, "size", 120)
    assert coreset.n_rows == coreset.total_weight == 120
    assert type(sampler).__name__ in coreset.sampler


def test_weights_sum_to_n_on_average(sampler: Any, task: Any) -> None:
    """Mean over 400 seeds within 4 standard errors (and rounding); false alarm below 1e-4."""
    federation = make_federation()
    sums = [federation.coreset(task, sampler, seed=seed).coreset.weights.sum() for seed in range(400)]
    assert abs(np.mean(sums) - 120) <= 4 * np.std(sums) / np.sqrt(len(sums)) + 1e-9


def test_afterwards_every_party_knows_the_rows(sampler: Any, task: Any) -> None:
    federation = make_federation()
    run = federation.fit(task, sampler=sampler, seed=1)
    fetched = [entry for entry in run.ledger if entry.kind == "Columns"]
    assert [entry.units for entry in fetched] == [
        len(run.coreset) * (card.n_features + (task.needs_label and card.label_name is not None))
        for card in federation.roster.cards
    ]


def test_the_seed_decides_and_seeds_differ(sampler: Any, task: Any) -> None:
    federation = make_federation()
    first, again, other = (federation.coreset(task, sampler, seed=seed).coreset for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.weights, again.weights)
    if not isinstance(sampler, cn.AllRows):
        assert not np.array_equal(first.rows, other.rows)


def test_every_message_survives_the_wire(sampler: Any, task: Any) -> None:
    ours = make_federation().coreset(task, sampler, seed=3)
    wired = make_federation(transport=Loopback).coreset(task, sampler, seed=3)
    np.testing.assert_array_equal(ours.coreset.weights, wired.coreset.weights)
    assert ours.ledger == wired.ledger


def test_a_single_row_and_a_single_party(sampler: Any, task: Any) -> None:
    if isinstance(task, cn.KMeans):
        task = cn.KMeans(n_clusters=1)
    federation = cn.Federation(cn.split_columns(np.ones((1, 2)), np.ones(1), [2]))
    coreset = federation.coreset(task, sampler).coreset
    assert set(coreset.rows.tolist()) == {0}
    assert coreset.weights.sum() == pytest.approx(1.0)
