"""Scores of one row by many splits: each is a quadratic form of the row's values, and Gram matrices tell which one.

As many sums of scores as rows have products of values are equations enough to work these out, at `strict` too.
"""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels import draws
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Reveals
from colonnade.sampling.plain.messages import Scores
from colonnade.solvers.central import Columns
from colonnade.solvers.gram.shares.messages import GramShares
from colonnade.tasks.jobs import draw, learn
from hostile_trial import HostileServer, columns_of, hostile_server, made_parties, turned_away

N_ROWS, SIZE = 1000, 800
TASK, GRAM = cn.Regression(fit_intercept=False), cn.SecureGram()
# Of parties of one column each, the last with a label: 1 + 1 + 3 products.
SPLITS = [cn.HoldOut(fraction, seed) for seed, fraction in enumerate((0.2, 0.4, 0.5, 0.6, 0.7))]
SECURE = cn.ImportanceSampling(SIZE, scores="secure")


def forms(server: HostileServer, split: cn.HoldOut) -> list[Floats]:
    """Learn by which quadratic forms parties score rows: the inverse Gram matrix of each."""
    all_rows = cn.AllRows()
    script = learn(TASK, all_rows, GRAM, split, server.roster, 0)
    server.honestly(script, "fit", task=TASK, sampler=all_rows, solver=GRAM, split=split)
    told = {party: reply for party, reply in server.received if isinstance(reply, GramShares)}
    counted = N_ROWS - int(np.count_nonzero(np.asarray(draws.held_out(N_ROWS, split.fraction, split.seed), bool)))
    return [form_of(reply, counted) for _, reply in sorted(told.items())]


def form_of(reply: GramShares, counted: int) -> Floats:
    """Invert the Gram matrix of a party's columns, about zero."""
    mean = reply.means[0]
    return np.asarray(np.linalg.inv(reply.factors.T @ reply.factors + counted * np.outer(mean, mean)), np.float64)


def sums_of_scores(server: HostileServer, split: cn.HoldOut) -> Floats:
    """Learn sums of the parties' leverages; nan for rows that were not drawn."""
    script = draw(TASK, SECURE, split, server.roster, 0)
    coreset = server.honestly(script, "coreset", task=TASK, sampler=SECURE, split=split).coreset
    sums = np.full(N_ROWS, np.nan)
    assert coreset.total is not None
    sums[coreset.rows] = coreset.total / (SIZE * coreset.weights) - len(server.roster.names) / coreset.total_weight
    return sums


def squares(server: HostileServer) -> tuple[Rows, Floats]:
    """Work out squares of the target's values, of the rows that were drawn for every split."""
    equations, right = [], []
    for split in SPLITS:
        right.append(sums_of_scores(server, split))
        first, second, third = forms(server, split)
        equations.append([first[0, 0], second[0, 0], third[0, 0], 2 * third[0, 1], third[1, 1]])
    rows = np.flatnonzero(np.isfinite(right).all(axis=0))
    return rows, np.linalg.solve(np.array(equations), np.array(right)[:, rows])[0]


def test_sums_of_scores_by_many_splits_do_not_tell_rows(tmp_path: Path) -> None:
    """Before, at `strict`: values, but for their signs, to 2e-5 of the column's spread."""
    with hostile_server(tmp_path, made_parties(N_ROWS, (1, 1, 1)), {"level": "strict"}) as server:
        turned_away(lambda: squares(server), "scores 1,000 rows for 1 different splits, for all time")
        assert server.disclosed() <= {Reveals.TOTALS, Reveals.ROW_IDS, Reveals.SCORE_SUMS, Reveals.MOMENTS}


def test_attacks_that_find_no_resistance_read_values(tmp_path: Path) -> None:
    """What the test above refuses is worth refusing."""
    parties = made_parties(N_ROWS, (1, 1, 1))
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        rows, found = squares(server)
    values = columns_of(parties[0])[:, 0]
    assert len(rows)
    assert (np.abs(np.sqrt(found) - np.abs(values[rows])) < 1e-3 * values.std()).all()


@pytest.mark.parametrize("scores", ["plain", "secure"])
def test_attacks_that_find_no_resistance_read_labels(tmp_path: Path, scores: str) -> None:
    parties = made_parties(N_ROWS, (2, 2, 2))
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        rows, roots = labels_of_drawn_rows(server, scores)
    labels = columns_of(parties[2])[:, -1]
    assert (np.abs(roots - labels[rows]).min(axis=0) < 1e-3 * labels.std()).all()


def test_other_rules_and_units_are_other_equations(tmp_path: Path) -> None:
    """The same rows count each time, by clusters, by leverage, in deviations."""
    tasks = (cn.Regression(), cn.Regression(fit_intercept=False), cn.Regression(standardize=True), cn.KMeans(2))

    def attack(server: HostileServer) -> None:
        for task in tasks:
            script = draw(task, SECURE, None, server.roster, 0)
            server.honestly(script, "coreset", task=task, sampler=SECURE)

    with hostile_server(tmp_path, made_parties(N_ROWS), {"level": "strict"}) as server:
        turned_away(lambda: attack(server), "scores 1,000 rows for 3 different splits.* by other rules and in other")


@pytest.mark.parametrize("never", [["features"], ["features", "moments"]])
def test_plain_scores_of_a_single_column_are_its_values(tmp_path: Path, never: list[str]) -> None:
    plain = cn.ImportanceSampling(SIZE, scores="plain")
    with hostile_server(tmp_path, made_parties(N_ROWS, (1, 1, 1)), {"never": never}) as server:
        attack = lambda: server.new_run("coreset", task=TASK, sampler=plain)  # noqa: E731
        turned_away(attack, "party1 .* never reveals features, which a Scores would")
        assert server.disclosed() == set()


def labels_of_drawn_rows(server: HostileServer, scores: str) -> tuple[Rows, Floats]:
    """Work out labels from scores of rows whose features are shown: two roots of a quadratic each, shape (2, m)."""
    sampler, kmeans = cn.ImportanceSampling(SIZE, scores=scores), cn.KMeans(2)  # type: ignore[arg-type]
    drawn = server.honestly(draw(TASK, sampler, None, server.roster, 0), "coreset", task=TASK, sampler=sampler).coreset
    clustered = learn(kmeans, drawn, cn.Central(), None, server.roster, 0)
    server.honestly(clustered, "fit", task=kmeans, coreset=drawn, solver=cn.Central())
    all_rows = cn.AllRows()
    learned = learn(TASK, all_rows, GRAM, None, server.roster, 0)
    server.honestly(learned, "fit", task=TASK, sampler=all_rows, solver=GRAM)
    inverses = {party: form_of(reply, N_ROWS) for party, reply in server.received if isinstance(reply, GramShares)}
    shown = {party: reply.features for party, reply in server.received if isinstance(reply, Columns)}
    if scores == "plain":
        told = {party: reply.scores for party, reply in server.received if isinstance(reply, Scores)}
        own = told["party3"] - 1 / N_ROWS
    else:
        assert drawn.total is not None
        own = drawn.total / (SIZE * drawn.weights) - 3 / N_ROWS
        for party in ("party1", "party2"):
            own = own - np.einsum("ij,jk,ik->i", shown[party], inverses[party], shown[party])
    x, form = shown["party3"], inverses["party3"]
    a, b = form[-1, -1], 2 * x @ form[:-1, -1]
    c = np.einsum("ij,jk,ik->i", x, form[:-1, :-1], x) - own
    root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
    return drawn.rows, np.asarray(np.stack([-b - root, -b + root]) / (2 * a))


@pytest.mark.parametrize(
    "scores",
    [
        "plain",
        pytest.param("secure", marks=pytest.mark.xfail(strict=True, reason="the others' features tell their scores")),
    ],
)
def test_scores_do_not_tell_labels_of_rows_whose_features_are_shown(tmp_path: Path, scores: str) -> None:
    """Under `never = ["labels"]` alone: a score is a quadratic form, in which only the label is not known."""
    with hostile_server(tmp_path, made_parties(N_ROWS, (2, 2, 2)), {"never": ["labels"]}) as server:
        turned_away(
            lambda: labels_of_drawn_rows(server, scores), "party3 .* never reveals labels, which a Scores would"
        )
        assert server.disclosed("party3") == set()
