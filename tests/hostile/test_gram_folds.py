"""Attack 2: Gram matrices of the same rows under many weights, which differ by single rows.

Before there were job sheets, 100 folds of the same rows told all of them with labels, to 1e-10, in one run of 0.3 s.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.contracts import Outbox
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_evenly_distinct
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol.refusal import Refused
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.tasks.jobs import draw, learn
from hostile_trial import (
    N_ROWS,
    HostileServer,
    columns_of,
    hostile_server,
    made_parties,
    turned_away,
)

TARGET = "party3"  # with the label
# All that SecureGram on a given coreset needs.
FOR_GRAM = {
    "never": ["totals", "row ids", "scores", "sums of scores", "features", "labels", "predictions", "row weights"],
    "solvers": ["gram"],
    "rows_a_day": 1,
}
TASK, GRAM = cn.Regression(), cn.SecureGram()
Draws = Literal["stratified", "distinct"]
DRAWS: tuple[Draws, ...] = ("stratified", "distinct")
ALL = np.arange(N_ROWS)


def about(outbox: Outbox, weights: Floats | None, fold_seed: int | None = None) -> dict[str, Message]:
    """Ask about other weights and folds."""
    changed: dict[str, Message] = {}
    for party, request in outbox.items():
        assert isinstance(request, AskGramShares)
        told = None if weights is None else sendable_floats(weights)
        changed[party] = replace(request, weights=told, fold_seed=fold_seed)
    return changed


def gram_of(server: HostileServer, rows: Rows, weights: Floats | None, fold_seed: int | None = None) -> GramShares:
    """Play an honest job on a coreset up to its question, which is then about these weights and folds."""
    coreset = Coreset(rows, np.ones(len(rows)), N_ROWS, float(N_ROWS), "given")
    server.new_run("fit", task=TASK, coreset=coreset, solver=GRAM, seed=0)
    asked = server.play_until(learn(TASK, coreset, GRAM, None, server.roster, 0), AskGramShares)
    return server.told_by_each(about(asked, weights, fold_seed), GramShares)[TARGET]


def know_all_rows(server: HostileServer) -> None:
    """Let parties agree on all rows, so that this coreset can be used again."""
    sampler = cn.AllRows()
    server.honestly(draw(TASK, sampler, None, server.roster, 0), "coreset", task=TASK, sampler=sampler, seed=0)


def by_copies(server: HostileServer) -> None:
    """100 copies of each row, for 100 folds: a coreset that nobody drew."""
    gram_of(server, np.repeat(ALL, N_ROWS), None)


def by_folds(server: HostileServer) -> None:
    """Folds where the job has none."""
    know_all_rows(server)
    gram_of(server, ALL, None, fold_seed=1)


def by_other_rows(server: HostileServer) -> None:
    """A coreset of all rows but one, beside all of them."""
    know_all_rows(server)
    gram_of(server, ALL, None)
    gram_of(server, np.delete(ALL, 7), None)


def by_other_weights(server: HostileServer) -> None:
    """The same 100 rows in two runs, in the second of which one row weighs double."""
    know_all_rows(server)
    gram_of(server, ALL, None)
    gram_of(server, ALL, np.where(ALL == 7, 1.0, 0.5))


def by_one_weight(server: HostileServer) -> None:
    """All weight on one row."""
    know_all_rows(server)
    gram_of(server, ALL, np.where(ALL == 7, 1.0, 1e-9))


def by_weights_of_a_draw(server: HostileServer) -> None:
    """Rows drawn evenly in this run, that weigh something else than the same."""
    sampler = cn.UniformSampling(60)
    server.new_run("fit", task=TASK, sampler=sampler, solver=GRAM, seed=0)
    asked = server.play_until(learn(TASK, sampler, GRAM, None, server.roster, 0), AskGramShares)
    server.told_by_each(about(asked, np.linspace(0.5, 1, 60)), GramShares)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_copies, "uses only coresets again that it agreed on"),
        (by_folds, "the job sheet says None where this AskGramShares has fold_seed = 1"),
        (by_other_rows, "uses only coresets again that it agreed on"),
        (by_other_weights, "weights that rows drawn as agreed, by this party's scores, cannot have"),
        (by_one_weight, "weights that rows drawn as agreed, by this party's scores, cannot have"),
        (by_weights_of_a_draw, "weights that rows drawn as agreed"),
    ],
)
def test_a_gram_matrix_is_of_rows_and_weights_that_were_agreed_on(
    tmp_path: Path, attack: Callable[[HostileServer], None], why: str
) -> None:
    with hostile_server(tmp_path, made_parties(), FOR_GRAM) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.MOMENTS}
        assert server.rows_disclosed() == 0
        told = [reply for party, reply in server.received if party == TARGET and isinstance(reply, GramShares)]
        assert len(told) <= 1


def test_honest_fits_on_even_draws_end_before_there_are_equations_enough(tmp_path: Path) -> None:
    """70 means of draws of 50 of 60 rows told all rows: now half as many numbers as there are values are told."""
    parties, n_rows = made_parties(60), 60
    means, shares = [], []

    def attack(server: HostileServer) -> None:
        for seed in range(n_rows + 10):
            sampler = cn.UniformSampling(50)
            server.new_run("fit", task=TASK, sampler=sampler, solver=GRAM, seed=seed)
            asked = server.play_until(learn(TASK, sampler, GRAM, None, server.roster, seed), AskGramShares)
            means.append(server.told_by_each(asked, GramShares)[TARGET].means[0])
            shared = int(np.random.default_rng([seed, 0]).integers(2**63))  # what the sheet tells all
            _, drawn = draw_evenly_distinct(n_rows, 50, np.random.default_rng(shared))
            shares.append(np.bincount(drawn, minlength=n_rows) / 50)

    with hostile_server(tmp_path, parties, FOR_GRAM) as server:
        turned_away(lambda: attack(server), "for each of its values")
    # The party with the label tells 4 + 10 + 4 x 6 / 2 numbers a run, of 60 x 4.
    assert len(means) == 60 * 4 // 2 // 26, "a mean, a triangle, and half of the products with the others' columns"
    found = np.linalg.lstsq(np.stack(shares), np.stack(means), rcond=None)[0]
    error = np.abs(found - columns_of(parties[2])) / columns_of(parties[2]).std(axis=0)
    assert np.median(error) > 0.3, "4 equations leave rows as far off as their spread"


@pytest.mark.parametrize("draws", DRAWS)
def test_weights_are_not_tried_until_some_fit(tmp_path: Path, draws: Draws) -> None:
    """A refusal of weights depends on the party's own scores: by bisection in one run, each to six digits."""
    sampler = cn.ImportanceSampling(60, draws=draws, scores="secure")
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "labels", "scores"]}) as server:
        server.new_run("fit", task=TASK, sampler=sampler, solver=GRAM, seed=0)
        asked = server.play_until(learn(TASK, sampler, GRAM, None, server.roster, 0), AskGramShares)
        heavy = about(asked, np.where(np.arange(n_rows_of(asked)) == 7, 1e9, 1.0))
        turned_away(lambda: server.told_by_each(heavy, GramShares), "cannot have")
        for party, request in asked.items():
            gone = "it is no longer in this run: the server broke its rules"
            turned_away(lambda party=party, request=request: server.told(party, request, GramShares), gone)  # type: ignore[misc]


def n_rows_of(outbox: Outbox) -> int:
    """Count the rows that a question is about."""
    (request, *_) = outbox.values()
    assert isinstance(request, AskGramShares)
    assert request.weights is not None
    return len(request.weights)


@pytest.mark.parametrize("draws", DRAWS)
def test_a_coreset_weighs_the_same_when_it_is_used_again(tmp_path: Path, draws: Draws) -> None:
    """Rows drawn by scores, in a run that learned nothing: their weights were never told to a party."""
    sampler = cn.ImportanceSampling(60, draws=draws, scores="secure")
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "labels", "scores"]}) as server:
        script = draw(TASK, sampler, None, server.roster, 0)
        coreset = server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=0).coreset
        heavy = np.where(np.arange(len(coreset)) == 7, 1e5, 1.0)
        gram_of(server, coreset.rows, coreset.weights)
        turned_away(lambda: gram_of(server, coreset.rows, heavy), "cannot have")


def scores_by_bisection(server: HostileServer, places: Sequence[int]) -> Floats:
    """Find what the target scores drawn rows, up to one factor, by how heavy each may be: a run is a try."""
    sampler = cn.ImportanceSampling(N_ROWS, scores="secure")
    script = draw(TASK, sampler, None, server.roster, 0)
    coreset = server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=0).coreset

    def fits(place: int, factor: float) -> bool:
        heavier = coreset.weights * np.where(coreset.rows == coreset.rows[place], factor, 1.0)
        server.new_run("fit", task=TASK, coreset=coreset, solver=GRAM, seed=0)
        asked = server.play_until(learn(TASK, coreset, GRAM, None, server.roster, 0), AskGramShares)
        reply = server.ask(TARGET, about(asked, heavier)[TARGET])
        return not isinstance(reply, Refused) or "cannot have" not in reply.reason

    found = []
    for place in places:
        low, high = 0.0, 12.0
        while high - low > 0.05:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(place, 2.0**middle) else (low, middle)
        # The most it may weigh is 1 over the target's score and a little: what it weighs is 1 over all parties' scores.
        found.append(1 / (coreset.weights[place] * 2.0**low))
    return np.array(found)


def test_weights_are_not_tried_run_after_run(tmp_path: Path) -> None:
    """Before, at `strict`: each run on the same coreset told whether a score is above the server's guess.

    Scores to a few hundredths, as finely as limits of weights are remembered. Now such a coreset is used no more.
    """
    with hostile_server(tmp_path, made_parties(), {"level": "strict"}) as server:
        turned_away(lambda: scores_by_bisection(server, [3, 30]), "uses only coresets again that it agreed on")
        assert server.disclosed() <= {Reveals.TOTALS, Reveals.ROW_IDS, Reveals.SCORE_SUMS, Reveals.MOMENTS}
