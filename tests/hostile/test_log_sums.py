"""Sums of logarithms of chances, of distinct draws: with another size they are another function of the same scores.

-log prod_j (1 - c g_ij) for as many factors c as there are parties gives all g_ij: power sums. Two are enough where the
server knows what the others' are, or has a sum of the scores themselves.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.optimize import least_squares

import colonnade as cn
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.sampling.distinct.server import Distinct
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure.server import SecureLogs
from colonnade.sampling.seeds import Seeds
from colonnade.sampling.weights import Design
from colonnade.tasks.jobs import draw
from hostile_trial import HostileServer, hostile_server, made_parties, turned_away

TASK, RULE = cn.Regression(), LeverageScores(fit_intercept=True)
TOTALS = np.array([4.0, 5.0, 6.0])  # ranks: every total is known
SIZES, SEEDS = (10, 14, 20, 30, 40, 50, 61), range(6)
HIDDEN = ["scores", "features", "labels", "predictions", "moments", "model"]
# Owners whose scores, or whose columns, are nobody's business; and who answer many runs.
POLICIES: tuple[dict[str, Any], ...] = (
    {"level": "open", "never": ["scores"]},
    {"level": "open", "never": ["features"]},
    {"never": HIDDEN, "row_ids_a_day": 10_000},
)
Draws = Literal["stratified", "distinct"]


def coreset(server: HostileServer, size: int, draws: Draws = "distinct", seed: int = 0) -> Coreset:
    """Play an honest job: what the server makes of it is its own business."""
    sampler = cn.ImportanceSampling(size, draws=draws, scores="secure")
    script = draw(TASK, sampler, None, server.roster, seed)
    return server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=seed).coreset


def factors(server: HostileServer, size: int) -> Floats:
    """Give c_j, which follow from the size and the totals, as long as no row is certain."""
    way, design = Distinct(SecureLogs(None)), Design(server.roster, None, size, 0.0)
    counts = way.quotas(design, TOTALS, Seeds(0, (0, 0, 0)), np.random.default_rng(0)).counts
    return np.asarray(counts / TOTALS)


def scores_by_sizes(server: HostileServer) -> dict[int, Floats]:
    """Solve for all parties' scores of each row that was drawn with five sizes or more."""
    seen: dict[int, dict[int, float]] = {}
    for size in SIZES:
        for seed in SEEDS:
            found = coreset(server, size, seed=seed)
            for row, weight in zip(found.rows.tolist(), found.weights.tolist(), strict=True):
                if weight > 1:  # else somebody is certain
                    seen.setdefault(row, {})[size] = -np.log1p(-1 / weight)
    return {row: solved(server, sums) for row, sums in seen.items() if len(sums) >= 5}


def solved(server: HostileServer, sums: dict[int, float]) -> Floats:
    of_each, logs = np.array([factors(server, size) for size in sums]), np.array(list(sums.values()))

    def errors(scores: Floats) -> Floats:
        return np.asarray(-np.log1p(-np.minimum(of_each * scores, 1 - 1e-9)).sum(axis=1) / logs - 1)

    starts = np.random.default_rng(0).uniform(0.01, 0.1, size=(6, 3))
    fits = [least_squares(errors, start, bounds=(0.01, 1), xtol=1e-15, ftol=1e-15, gtol=1e-15) for start in starts]
    return np.asarray(min(fits, key=lambda fit: float(fit.cost)).x)


def test_the_attack_reads_scores(tmp_path: Path) -> None:
    """What the tests below refuse is worth refusing: a party's own score to 1e-3, where there are three parties."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        found = scores_by_sizes(server)
    truth = np.asarray(RULE.scores(parties[0].table))
    errors = np.array([abs(scores[0] / truth[row] - 1) for row, scores in found.items()])
    assert len(errors) > 30
    assert errors.min() < 1e-4
    assert (errors < 1e-3).sum() >= 3
    assert np.median(errors) < 0.05


@pytest.mark.parametrize("policy", POLICIES, ids=["scores", "features", "all"])
def test_logarithms_are_summed_for_one_size(tmp_path: Path, policy: dict[str, Any]) -> None:
    with hostile_server(tmp_path, made_parties(), policy) as server:
        coreset(server, 40)
        for size in (39, 44, 80):
            turned_away(lambda size=size: coreset(server, size), "summed in one way, for all time.*another size")  # type: ignore[misc]
        coreset(server, 40, seed=1), coreset(server, 40)  # as often as it likes
        turned_away(lambda: coreset(server, 40, "stratified"), "the earlier size, with draws=.distinct")


def test_scores_are_not_summed_in_both_ways(tmp_path: Path) -> None:
    """A server that knows one of three parties' scores has the other two from a sum and a sum of logarithms."""
    with hostile_server(tmp_path, made_parties(), POLICIES[0]) as server:
        coreset(server, 40, "stratified")
        coreset(server, 70, "stratified", seed=3)
        turned_away(lambda: coreset(server, 40), "they were, as they are.*Use draws=.stratified., as before")


def test_a_sum_and_a_sum_of_logarithms_tell_two_scores(tmp_path: Path) -> None:
    """The attack that is refused above: party3 joins forces with the server."""
    parties = made_parties()
    known, truth = (np.asarray(RULE.scores(parties[party].table)) for party in (2, 0))
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        plain, distinct, c = coreset(server, 200, "stratified"), coreset(server, 40), factors(server, 40)
    rows, at = np.unique(plain.rows, return_index=True)
    sums = dict(zip(rows.tolist(), (TOTALS.sum() / (200 * plain.weights[at])).tolist(), strict=True))
    errors = []
    for row, weight in zip(distinct.rows.tolist(), distinct.weights.tolist(), strict=True):
        if row not in sums or weight == 1:
            continue
        both, product = sums[row] - known[row], (1 - 1 / weight) / (1 - c[2] * known[row])
        # (1 - c1 g)(1 - c2 (both - g)) = product
        roots = np.roots([-c[0] * c[1], c[0] * c[1] * both - c[0] + c[1], 1 - c[1] * both - product])
        errors.append(np.abs(roots.real / truth[row] - 1).min())
    assert np.median(errors) < 1e-3
