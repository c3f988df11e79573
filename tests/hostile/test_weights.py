"""Sums whose rows are as agreed on, and whose weights are the server's choice: of a coreset that is used again, any.

Sets of rows that are ten rows apart are no farther apart than weights make them: where those ten weigh next to nothing,
two sums differ by the row whose weight differs.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Reveals, sendable_floats
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.tasks.jobs import draw, learn
from hostile_trial import HostileServer, columns_of, hostile_server, made_parties, turned_away

TARGET, ROW, LITTLE = "party3", 11, 1e-9
# Coresets of the server's choice: where they must be known, their weights are, too.
STRICT = {"level": "strict", "known_only": False}
TASK, GRAM = cn.Regression(), cn.SecureGram()


def drawn(server: HostileServer, size: int, seed: int) -> Rows:
    """Let parties agree on an even draw, so that this coreset can be used again."""
    sampler = cn.UniformSampling(size, draws="independent")
    script = draw(TASK, sampler, None, server.roster, seed)
    job = server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=seed)
    return np.asarray(job.coreset.rows)


def mean_of(server: HostileServer, rows: Rows, by_row: Floats) -> Floats:
    """Learn the target's mean over a coreset that it knows, by a weight for each row of the table."""
    weights = by_row[rows] / np.bincount(rows)[rows]
    weights /= weights.max()
    coreset = Coreset(rows, weights, server.roster.n_rows, float(server.roster.n_rows), "given")
    server.new_run("fit", task=TASK, coreset=coreset, solver=GRAM, seed=0)
    asked = server.play_until(learn(TASK, coreset, GRAM, None, server.roster, 0), AskGramShares)
    changed = {}
    for party, request in asked.items():
        assert isinstance(request, AskGramShares)
        changed[party] = replace(request, weights=sendable_floats(weights))
    return np.asarray(server.told_by_each(changed, GramShares)[TARGET].means[0])


def by_one_heavy_row(server: HostileServer) -> Floats:
    """A row has a tenth of the weight, and the others together so little spread that their mean is another sum's."""
    rows, n_rows = drawn(server, 10 * server.roster.n_rows, 0), server.roster.n_rows
    heavy = np.ones(n_rows)
    heavy[ROW] = (len(np.unique(rows)) - 1) / 9.0001
    mean = mean_of(server, rows, heavy)
    others = mean_of(server, drawn(server, n_rows, 1), np.ones(n_rows))
    return 10 * mean - 9 * others


def by_two_sums(server: HostileServer) -> Floats:
    """Two coresets, of which only the rows that are in both weigh anything; in the second, one weighs nothing."""
    n_rows = server.roster.n_rows
    first, second = (drawn(server, 2 * n_rows, seed) for seed in (0, 1))
    both = np.intersect1d(first, second)
    weights = np.where(np.isin(np.arange(n_rows), both), 1.0, LITTLE)
    mean = mean_of(server, first, weights)
    weights[ROW] = LITTLE
    return len(both) * mean - (len(both) - 1) * mean_of(server, second, weights)


def by_four_sums(server: HostileServer) -> Floats:
    """A + B + C + row, less A + B, less A + C, and A: any two are a tenth of all rows apart."""
    n_rows = server.roster.n_rows
    sets = [drawn(server, 3 * n_rows, seed) for seed in range(4)]
    known = np.flatnonzero(np.all([np.isin(np.arange(n_rows), rows) for rows in sets], axis=0))
    known = known[known != ROW]
    half, tenth = len(known) // 2, n_rows // 5
    parts = known[:half], known[half : half + tenth], known[half + tenth : half + 2 * tenth]
    total, asked = np.zeros(4), (("ABCr", 1), ("AB", -1), ("AC", -1), ("A", 1))
    for rows, (names, sign) in zip(sets, asked, strict=True):
        weights = np.full(n_rows, LITTLE)
        for name, part in zip("ABCr", (*parts, [ROW]), strict=True):
            weights[part] = 1.0 if name in names else LITTLE
        total += sign * weights[np.unique(rows)].sum() * mean_of(server, rows, weights)
    return total


@pytest.mark.parametrize(
    ("attack", "n_rows", "why"),
    [
        (by_one_heavy_row, 1000, "would tell 0.9.* of a single row"),
        (by_two_sums, 200, "added and subtracted, would tell 1 of a single row"),
        (by_four_sums, 400, "added and subtracted, would tell 1 of a single row"),
    ],
)
def test_weights_of_the_servers_choice_single_no_row_out(
    tmp_path: Path, attack: Callable[[HostileServer], Floats], n_rows: int, why: str
) -> None:
    """Before, at `strict`: to an eighth of the columns' spreads (of 3,000 rows), to 5e-9 and to 4e-8."""
    parties = made_parties(n_rows)
    with hostile_server(tmp_path, parties, STRICT) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.MOMENTS}


def test_attacks_that_find_no_resistance_read_a_row(tmp_path: Path) -> None:
    """What the tests above refuse is worth refusing."""
    parties = made_parties(400)
    columns = columns_of(parties[2])
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        for attack in (by_two_sums, by_four_sums):
            assert (np.abs(attack(server) - columns[ROW]) < 1e-6 * columns.std(axis=0)).all()
