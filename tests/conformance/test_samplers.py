"""Laws that every registered sampler passes; a new one is covered by being registered."""

from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.sampling import AnySampler
from colonnade.transports.loopback import Loopback

SIZE = 90
SAMPLERS = [kind(SIZE) if "size" in kind.__struct_fields__ else kind() for kind in get_args(AnySampler)]
SAMPLERS.append(cn.ImportanceSampling(SIZE, uniform_share=0.3))
SAMPLERS.append(cn.ImportanceSampling(SIZE, totals="set"))
SAMPLERS.append(cn.ImportanceSampling(SIZE, uniform_share=0.3, draws="committed"))
SAMPLERS.append(cn.ImportanceSampling(SIZE, draws="distinct"))
SAMPLERS.append(cn.ImportanceSampling(SIZE, uniform_share=0.3, draws="distinct", totals="set"))
SAMPLERS.append(cn.ImportanceSampling(SIZE, uniform_share=0.5, draws="distinct", round_scores=1.0))
SAMPLERS.append(cn.ImportanceSampling(SIZE, 0.1, "distinct", scores="secure", allow_two_parties=True))
SAMPLERS.append(cn.UniformSampling(SIZE, draws="independent"))
SAMPLERS.append(cn.ImportanceSampling(SIZE, sharpened=True))
SAMPLERS.append(cn.ImportanceSampling(SIZE, 0.3, "distinct", round_scores=0.2, sharpened=True))
SAMPLERS.append(cn.ImportanceSampling(SIZE, 0.1, "distinct", scores="secure", allow_two_parties=True, sharpened=True))
SAMPLERS.append(cn.ImportanceSampling(SIZE, draws="committed", totals="set", sharpened=True))
SAMPLERS.append(cn.ImportanceSampling(SIZE, class_blind=True))
TASKS = [cn.Regression(), cn.Classification(l2=0.01), cn.KMeans(n_clusters=3)]
ROSTER = Roster((PartyCard("a", 120, ("x",), "y"), PartyCard("b", 120, ("z",), None)))


def draws_for(sampler: Any, task: Any) -> bool:
    try:
        sampler.check(task, ROSTER, None)
    except cn.UnsupportedError:
        return False
    return True


CASES = [
    pytest.param(sampler, task, id=f"{type(task).__name__}-{sampler}")
    for task in TASKS
    for sampler in SAMPLERS
    if draws_for(sampler, task)
]

pytestmark = pytest.mark.parametrize(("sampler", "task"), CASES)


def make_federation(n_rows: int = 120, **options: Any) -> cn.Federation:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, 5)), labels_of(rng, n_rows)
    return cn.Federation(cn.split_columns(X, y, [2, 2, 1]), **options)


def labels_of(rng: np.random.Generator, n_rows: int) -> Any:
    """Draw labels that are numbers, and classes too: one of them is rare."""
    return np.where(rng.normal(size=n_rows) > 1.0, 2.5, -1.0)


def test_a_coreset_of_the_size_asked_for(sampler: Any, task: Any) -> None:
    coreset = make_federation().coreset(task, sampler).coreset
    if coreset.distinct:
        assert len(np.unique(coreset.rows)) == len(coreset) <= SIZE
        assert coreset.weights.min() >= 1 - 1e-6, "1 over a chance"
    else:
        assert len(coreset) == getattr(sampler, "size", 120)
    assert coreset.distinct == (getattr(sampler, "draws", None) == "distinct")
    assert coreset.n_rows == coreset.total_weight == 120
    assert type(sampler).__name__ in coreset.sampler


def test_weights_sum_to_n_on_average(sampler: Any, task: Any) -> None:
    """Mean over 400 seeds within 4 standard errors (and rounding); false alarm below 1e-4."""
    federation = make_federation()
    sums = [federation.coreset(task, sampler, seed=seed).coreset.weights.sum() for seed in range(400)]
    assert abs(np.mean(sums) - 120) <= 4 * np.std(sums) / np.sqrt(len(sums)) + 1e-9


def test_afterwards_every_party_knows_the_rows(sampler: Any, task: Any) -> None:
    federation = make_federation()
    if getattr(sampler, "scores", None) == "secure":
        with pytest.warns(cn.DisclosureWarning, match="Scores are summed in secret, but Central shows"):
            run = federation.fit(task, sampler=sampler, seed=1)
    else:
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
    if getattr(sampler, "scores", None) == "secure":
        pytest.skip("of one party, a sum of scores is its scores")
    if isinstance(task, cn.Classification):
        pytest.skip("one row has one class")
    if isinstance(task, cn.KMeans):
        task = cn.KMeans(n_clusters=1)
    federation = cn.Federation(cn.split_columns(np.ones((1, 2)), np.ones(1), [2]))
    coreset = federation.coreset(task, sampler).coreset
    assert set(coreset.rows.tolist()) == {0}
    assert coreset.weights.sum() == pytest.approx(1.0)


# Rows with weights of their own: weight k equals k copies.

COPIES = np.random.default_rng(1).integers(0, 4, size=120)


def weighted_federation(weights: Any, **options: Any) -> cn.Federation:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 5)), labels_of(rng, 120)
    parties = [cn.Party("a", X[:, :3], label=y), cn.Party("b", X[:, 3:], weight=weights)]
    return cn.Federation(parties, **options)


@cache
def weighted_coresets(sampler: Any, task: Any, n_seeds: int) -> list[cn.Coreset]:
    federation = weighted_federation(COPIES)
    return [federation.coreset(task, sampler, seed=seed).coreset for seed in range(n_seeds)]


def test_row_weights_sum_to_their_total_on_average(sampler: Any, task: Any) -> None:
    """Mean over 400 seeds within 4 standard errors (and rounding); false alarm below 1e-4."""
    coresets = weighted_coresets(sampler, task, 400)
    sums = [coreset.weights.sum() for coreset in coresets]
    assert {coreset.total_weight for coreset in coresets} == {COPIES.sum()}
    assert abs(np.mean(sums) - COPIES.sum()) <= 4 * np.std(sums) / np.sqrt(len(sums)) + 1e-9
    drawn = np.concatenate([coreset.rows for coreset in coresets])
    assert set(np.unique(drawn)) == set(np.flatnonzero(COPIES)), "what weighs nothing is never drawn, all else is"


@pytest.mark.parametrize("n_seeds", [400, pytest.param(3_000, marks=pytest.mark.slow(sampled=False))])
def test_a_row_of_weight_k_is_drawn_as_its_k_copies(sampler: Any, task: Any, n_seeds: int) -> None:
    """Each row's summed weight is k on average, as that of k copies together; so is the cost of any model.

    For all rows that is exact. Else means over the seeds of at most 120 rows and five functions of them: the largest
    deviation is below 4.9 standard errors. False alarm over 3,000 seeds: 125 * 1e-6, about 1e-4; over 400, whose counts
    are less normal, 1e-3. A third of the error that 400 find is found by 3,000.
    """
    if isinstance(sampler, cn.AllRows):
        coreset = weighted_federation(COPIES).coreset(task, sampler).coreset
        np.testing.assert_array_equal(np.repeat(coreset.rows, coreset.weights.astype(int)), copied_rows())
        return
    kept, seen = np.flatnonzero(COPIES), np.zeros((n_seeds, 120))
    for coreset, found in zip(weighted_coresets(sampler, task, n_seeds), seen, strict=True):
        np.add.at(found, coreset.rows, coreset.weights)
    deviations, spread = np.abs(seen.mean(axis=0) - COPIES)[kept], seen.std(axis=0)[kept]
    if getattr(sampler, "draws", None) == "distinct":  # a row that is nearly certain was there each time
        spread = np.maximum(spread, np.sqrt(np.maximum(COPIES * (seen.max(axis=0) - COPIES), 0.0))[kept])
    assert (deviations < 4.9 * spread / np.sqrt(len(seen)) + 1e-6 * COPIES[kept]).all()
    losses = np.random.default_rng(2).lognormal(size=(120, 5))
    estimates = seen @ losses
    errors = (estimates.mean(axis=0) - COPIES @ losses) / (estimates.std(axis=0) / np.sqrt(len(seen)))
    assert np.abs(errors).max() < 4.9


def copied_rows() -> Any:
    return np.repeat(np.arange(120), COPIES)


def test_weights_survive_the_wire(sampler: Any, task: Any) -> None:
    ours = weighted_federation(COPIES).coreset(task, sampler, split=cn.HoldOut(0.3), seed=3)
    wired = weighted_federation(COPIES, transport=Loopback).coreset(task, sampler, split=cn.HoldOut(0.3), seed=3)
    np.testing.assert_array_equal(ours.coreset.rows, wired.coreset.rows)
    np.testing.assert_array_equal(ours.coreset.weights, wired.coreset.weights)
    assert ours.ledger == wired.ledger


def test_the_scale_of_weights_scales_the_coreset(sampler: Any, task: Any) -> None:
    ones, thousands = (
        weighted_federation(scale * COPIES).coreset(task, sampler, seed=3).coreset for scale in (1.0, 1024.0)
    )
    np.testing.assert_array_equal(ones.rows, thousands.rows)
    np.testing.assert_allclose(1024.0 * ones.weights, thousands.weights, rtol=1e-9)


def test_held_out_rows_are_never_drawn(sampler: Any, task: Any) -> None:
    split = cn.HoldOut(0.5, seed=9)
    federation = make_federation()
    train = federation.coreset(task, cn.AllRows(), split=split).coreset
    for seed in range(20):
        coreset = federation.coreset(task, sampler, split=split, seed=seed).coreset
        assert np.isin(coreset.rows, train.rows).all()
        assert coreset.total_weight == len(train) == 60
