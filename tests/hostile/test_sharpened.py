"""Sharpened scores: another function of what leverage is a function of, whose totals are no whole numbers.

h + 1 of a party's columns in one sum and its power 3/4 in another: two sums for two parties' h, where the third joins
forces with the server. And a total that is a rank only tells whether all rows of a rare category are held out; that of
sharpened scores tells how many.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import hold_out
from colonnade.messages import Reveals
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.plain.messages import AskTotal, DrawnRows, OpenDraw, Total
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.rules.sharpened import SharpenedScores, sharpened_rule
from colonnade.sampling.seeds import Seeds
from colonnade.tasks.jobs import draw
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, turned_away

RULE = LeverageScores(fit_intercept=True)
HIDDEN = ["scores", "features", "labels", "predictions", "moments", "model"]
TARGET, RARE = "party1", [5, 50, 77]
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


def parts_of(features: Floats) -> Floats:
    """Compute h / n by a formula of its own."""
    centred = features - features.mean(axis=0)
    return np.asarray((np.linalg.qr(centred)[0] ** 2).sum(axis=1) + 1 / N_ROWS)


def test_sums_of_both_ways_of_scoring_tell_two_parties_scores(tmp_path: Path) -> None:
    """What the test below refuses: party3 knows its own scores, and with the server both others'."""
    parties = made_parties()
    truth = parts_of(features_of(parties[0]))
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        # Standardized, leverages of all parties are about means.
        told = {"totals": "checked", "standardize": True}
        plain, sharp = (sums(server, sharpened=sharpened, **told) for sharpened in (False, True))
        known, known_sharp = (rule.scores(parties[2].table) for rule in (RULE, sharpened_rule(RULE, server.roster)))
    errors = []
    for row in plain.keys() & sharp.keys():
        both, powers = plain[row] - known[row], (sharp[row] - known_sharp[row]) * N_ROWS**0.25
        less = brentq(lambda part: part**0.75 + (both - part) ** 0.75 - powers, 1e-9, both / 2)  # noqa: B023
        errors.append(min(abs(less - truth[row]), abs(both - less - truth[row])) / truth[row])
    assert len(errors) > 50
    assert np.median(errors) < 1e-4


@pytest.mark.parametrize("policy", POLICIES, ids=["scores", "features", "all"])
@pytest.mark.parametrize("first", [False, True])
def test_scores_are_summed_sharpened_or_not(tmp_path: Path, policy: dict[str, Any], first: bool) -> None:
    with hostile_server(tmp_path, made_parties(), policy) as server:
        sums(server, sharpened=first)
        sums(server, sharpened=first)  # as often as it likes
        turned_away(lambda: sums(server, sharpened=not first), "summed in one way, for all time")


def totals_by_splits(server: HostileServer, rule: SharpenedScores | LeverageScores, seeds: range) -> Floats:
    """Ask for the target's total over honest splits."""
    sampler = cn.ImportanceSampling(40, scores="secure", sharpened=isinstance(rule, SharpenedScores))
    found = []
    for seed in seeds:
        split = cn.HoldOut(0.5, seed)
        what = {"task": cn.Regression(), "sampler": sampler, "split": split}
        server.open_each({TARGET: sheet_of("coreset", what, server.roster, None)})
        server.told(TARGET, UseFrame("train", "own", split, None, None), Moments)
        found.append(server.told(TARGET, AskTotal(rule), Total).total)
    return np.array(found)


def with_a_rare_category() -> list[cn.Party]:
    categories = np.where(np.isin(np.arange(N_ROWS), RARE), 3, np.arange(N_ROWS) % 3)
    return [cn.Party(TARGET, np.eye(4)[categories]), *made_parties()[1:]]


def test_sharpened_totals_tell_how_many_rows_of_a_rare_category_count(tmp_path: Path) -> None:
    """What the test below refuses: totals of leverage are the same as long as one of them does."""
    seeds = range(40)
    counted = np.array([(~hold_out(N_ROWS, 0.5, np.random.default_rng(seed)))[RARE].sum() for seed in seeds])
    with hostile_server(tmp_path, with_a_rare_category(), {"level": "open"}) as server:
        rule = sharpened_rule(RULE, server.roster)
        sharp, plain = totals_by_splits(server, rule, seeds), totals_by_splits(server, RULE, seeds)
    some = counted > 0
    assert np.ptp(plain[some]) < 1e-6
    assert np.corrcoef(sharp[some], counted[some])[0, 1] > 0.95


def test_sharpened_totals_are_not_told_where_columns_are_never_shown(tmp_path: Path) -> None:
    with hostile_server(tmp_path, with_a_rare_category(), {"never": HIDDEN, "row_ids_a_day": 10_000}) as server:
        rule = sharpened_rule(RULE, server.roster)
        turned_away(
            lambda: totals_by_splits(server, rule, range(1)), "tells no totals of sharpened scores.*totals=.set"
        )
        assert server.disclosed() == set()
        sums(server, sharpened=True, totals="set")
        assert Reveals.TOTALS not in server.disclosed()


def test_sharpened_is_another_way_of_scoring(tmp_path: Path) -> None:
    """Of four columns, 100 rows are scored in three ways; the third split is one too many after sharpened scores."""
    policy = {"never": HIDDEN, "row_ids_a_day": 10_000}
    with hostile_server(tmp_path, with_a_rare_category(), policy) as server:
        totals_by_splits(server, RULE, range(2))
        sampler = cn.ImportanceSampling(40, scores="secure", sharpened=True, totals="set")
        server.new_run("coreset", task=cn.Regression(), sampler=sampler)
        rule, own = FilledScores(sharpened_rule(RULE, server.roster)), Seeds.of(np.random.default_rng([0, 0]), 3).own[0]
        server.told(TARGET, OpenDraw(rule, 10, own, "stratified"), DrawnRows)
        turned_away(lambda: totals_by_splits(server, RULE, range(2, 3)), "3 different splits, for all time")
