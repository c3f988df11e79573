"""Sharpened scores: leverage in the features, and at the label's party residuals, whose total is no whole number.

Of sums of both ways of scoring the difference is the label party's own, where all other parties score alike. And a
total that is a rank tells only whether all rows of a category are held out; one with residuals tells of single rows.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import held_out
from colonnade.messages import Reveals
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.plain.messages import AskTotal, DrawnRows, Draws, OpenDraw, Total
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.sharpened import SharpenedScores, sharpened_rule
from colonnade.sampling.seeds import Seeds
from colonnade.tasks.jobs import draw
from hostile_trial import N_ROWS, HostileServer, columns_of, hostile_server, made_parties, turned_away

RULE = LeverageScores(fit_intercept=True)
HIDDEN = ["scores", "features", "labels", "predictions", "moments", "model"]
TARGET, OUTLIER = "party3", 50
POLICIES: tuple[dict[str, Any], ...] = (
    {"level": "open", "never": ["scores"]},
    {"level": "open", "never": ["features"]},
    {"never": HIDDEN, "row_ids_a_day": 10_000},
)


def sums(server: HostileServer, *, sharpened: bool, **options: Any) -> dict[int, float]:
    """Play an honest job, and give the sum of all parties' scores for each row of its coreset."""
    task = cn.Regression(standardize=options.pop("standardize", False))
    sampler = cn.ImportanceSampling(300, scores="secure", sharpened=sharpened, **{"totals": "set"} | options)
    script = draw(task, sampler, None, server.roster, 0)
    found = server.honestly(script, "coreset", task=task, sampler=sampler).coreset
    assert found.total is not None
    return dict(zip(found.rows.tolist(), (found.total / (300 * found.weights)).tolist(), strict=True))


def test_sums_of_both_ways_of_scoring_tell_the_label_partys_scores(tmp_path: Path) -> None:
    """What the test below refuses. Standardized, leverages of all parties are about means, sharpened or not."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        told = {"totals": "checked", "standardize": True}
        plain, sharp = (sums(server, sharpened=sharpened, **told) for sharpened in (False, True))
        sharpened, leverages = (rule.scores(parties[2].table) for rule in (sharpened_rule(RULE, server.roster), RULE))
        own = np.asarray(sharpened) - np.asarray(leverages)
    rows = sorted(plain.keys() & sharp.keys())
    assert len(rows) > 50
    found = np.array([sharp[row] - plain[row] for row in rows])
    assert np.median(np.abs(found / own[rows] - 1)) < 1e-4


@pytest.mark.parametrize("policy", POLICIES, ids=["scores", "features", "all"])
@pytest.mark.parametrize("first", [False, True])
def test_scores_are_summed_sharpened_or_not(tmp_path: Path, policy: dict[str, Any], first: bool) -> None:
    with hostile_server(tmp_path, made_parties(), policy) as server:
        sums(server, sharpened=first)
        sums(server, sharpened=first)  # as often as it likes
        turned_away(lambda: sums(server, sharpened=not first), "summed in one way, for all time")


def totals_by_splits(server: HostileServer, rule: SharpenedScores | LeverageScores, seeds: range) -> Floats:
    """Ask for the label party's total over honest splits."""
    sampler = cn.ImportanceSampling(40, scores="secure", sharpened=isinstance(rule, SharpenedScores))
    found = []
    for seed in seeds:
        split = cn.HoldOut(0.5, seed)
        what = {"task": cn.Regression(), "sampler": sampler, "split": split}
        server.open_each({TARGET: sheet_of("coreset", what, server.roster, None)})
        server.told(TARGET, UseFrame("train", "own", split, None, None), Moments)
        found.append(server.told(TARGET, AskTotal(rule), Total).total)
    return np.array(found)


def with_an_outlier() -> list[cn.Party]:
    """Give the label of one row a value that its party's features say nothing of."""
    parties = made_parties()
    values = columns_of(parties[2])
    values[OUTLIER, -1] += 40 * values[:, -1].std()
    return [*parties[:2], cn.Party(TARGET, values[:, :-1], label=values[:, -1])]


def test_sharpened_totals_tell_in_which_splits_a_row_counts(tmp_path: Path) -> None:
    """What the test below refuses: a few splits, and the row is known. Totals of leverage are the same in all."""
    seeds = range(30)
    counts = np.array([not np.asarray(held_out(N_ROWS, 0.5, seed))[OUTLIER] for seed in seeds])
    with hostile_server(tmp_path, with_an_outlier(), {"level": "open"}) as server:
        rule = sharpened_rule(RULE, server.roster)
        sharp, plain = totals_by_splits(server, rule, seeds), totals_by_splits(server, RULE, seeds)
    assert np.ptp(plain) < 1e-6
    assert 5 < counts.sum() < 25
    assert sharp[counts].max() < sharp[~counts].min()


def test_sharpened_totals_are_not_told_beside_a_label(tmp_path: Path) -> None:
    with hostile_server(tmp_path, with_an_outlier(), {"never": HIDDEN, "row_ids_a_day": 10_000}) as server:
        rule = sharpened_rule(RULE, server.roster)
        turned_away(lambda: totals_by_splits(server, rule, range(1)), "tells no total of sharpened scores.*totals=.set")
        assert server.disclosed() == set()
        sums(server, sharpened=True, totals="set")
        assert Reveals.TOTALS not in server.disclosed()


def test_sharpened_is_another_way_of_scoring(tmp_path: Path) -> None:
    """100 rows are scored in three ways: a third split is one too many after sharpened scores."""
    policy = {"never": HIDDEN, "row_ids_a_day": 10_000}
    with hostile_server(tmp_path, made_parties(), policy) as server:
        totals_by_splits(server, RULE, range(2))
        sampler = cn.ImportanceSampling(40, scores="secure", sharpened=True, totals="set")
        server.new_run("coreset", task=cn.Regression(), sampler=sampler)
        rule, own = FilledScores(sharpened_rule(RULE, server.roster)), Seeds.of(np.random.default_rng([0, 0]), 3).own[2]
        server.told(TARGET, OpenDraw(rule, 10, own, Draws.STRATIFIED), DrawnRows)
        turned_away(lambda: totals_by_splits(server, RULE, range(2, 3)), "3 different splits, for all time")
