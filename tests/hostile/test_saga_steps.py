"""Saga by a server that makes residuals up: coefficients are then rows, and products what rows make of each other.

Within any sheet, as residuals cannot be checked: so products count as features. Before, 100 of 100 rows were read.
"""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.saga import epoch_blocks, shuffled
from colonnade.messages import Reveals, sendable_floats
from colonnade.sampling.selecting import Ready, UseAllRows
from colonnade.solvers.saga.messages import (
    AskCoefficients,
    AskProgress,
    Coefficients,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)
from colonnade.tasks.jobs import shared_seed
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, turned_away

TARGET = "party1"
FOR_SAGA = {"never": ["features", "labels", "moments", "row ids"], "solvers": ["saga"]}
NO_CHANGE = sendable_floats([])
TASK = cn.Regression(fit_intercept=False)


def opened(server: HostileServer, seed: int = 0, max_epochs: int = 1000) -> tuple[Rows, Rows]:
    """Open a run of one row a block, in the columns' own units; give the row of each block, and the blocks in turn."""
    solver = cn.Saga(batch=1, scale=False, max_epochs=max_epochs)
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=solver, seed=seed)
    server.told(TARGET, UseAllRows(), Ready)
    rng = np.random.default_rng(shared_seed(seed))  # what follows from the sheet
    shuffle = int(rng.integers(2**63))
    server.told(TARGET, OpenSaga(N_ROWS, shuffle, *TASK.penalties(), False, False), SquaredNorms)
    return shuffled(N_ROWS, shuffle), epoch_blocks(0, N_ROWS, rng)


def an_epoch(server: HostileServer, blocks: Rows, last: float = 0.0) -> None:
    """Visit blocks in turn, of which nothing changes but the last one's residual."""
    changes, step = NO_CHANGE, cast(float | None, 1.0)
    for block in blocks.tolist():
        server.told(TARGET, SagaStep(changes, block, step), PartialProducts)
        changes, step = sendable_floats([0.0]), None
    server.told(TARGET, AskProgress(sendable_floats([last])), Progress)


def row_by_coefficients(server: HostileServer, seed: int) -> tuple[int, Floats]:
    """One step of length 1 from 0 along one row: the coefficients are that row. A run a row, by chance the last one."""
    rows, blocks = opened(server, seed)
    an_epoch(server, blocks, last=-1.0)
    return int(rows[blocks[-1]]), server.told(TARGET, AskCoefficients(), Coefficients).coef


def by_a_block_of_its_choice(server: HostileServer) -> None:
    """Another block than the sheet's seed draws: the row that it would know."""
    _, blocks = opened(server)
    server.told(TARGET, SagaStep(NO_CHANGE, int(blocks[1]), 1.0), PartialProducts)


def by_fewer_steps(server: HostileServer) -> None:
    """One step, and the coefficients are one row."""
    _, blocks = opened(server)
    an_epoch(server, blocks[:1])


def by_another_block_in_a_later_epoch(server: HostileServer) -> None:
    """An honest epoch, and the same blocks again, where these are drawn anew."""
    _, blocks = opened(server)
    an_epoch(server, blocks)
    server.told(TARGET, SagaStep(sendable_floats([]), int(blocks[0]), None), PartialProducts)


def by_more_epochs(server: HostileServer) -> None:
    """One epoch more than the sheet says."""
    _, blocks = opened(server, max_epochs=1)
    an_epoch(server, blocks)
    server.told(TARGET, SagaStep(sendable_floats([]), 0, None), PartialProducts)


def by_fewer_blocks(server: HostileServer) -> None:
    """Larger blocks than the sheet says: sums of products would be those of other rows."""
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=cn.Saga(batch=1), seed=0)
    server.told(TARGET, UseAllRows(), Ready)
    seed = int(np.random.default_rng(shared_seed(0)).integers(2**63))
    server.told(TARGET, OpenSaga(N_ROWS - 1, seed, *TASK.penalties(), False, True), SquaredNorms)


def by_another_shuffle(server: HostileServer) -> None:
    """Blocks dealt by another seed than follows from the sheet."""
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=cn.Saga(), seed=0)
    server.told(TARGET, UseAllRows(), Ready)
    server.told(TARGET, OpenSaga(13, 0, *TASK.penalties(), False, True), SquaredNorms)


def by_opening_again(server: HostileServer) -> None:
    """A second opening in one run, with which coefficients would begin at 0 again."""
    opened(server)
    server.told(TARGET, OpenSaga(N_ROWS, 0, *TASK.penalties(), False, False), SquaredNorms)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_another_shuffle, "where this OpenSaga has seed = 0"),
        (by_fewer_blocks, "the job sheet says 100 where this OpenSaga has n_blocks = 99"),
        (by_a_block_of_its_choice, r"the job sheet says \d+ where this SagaStep has block = "),
        (by_fewer_steps, "SagaStep would be next in this job, not AskProgress"),
        (by_another_block_in_a_later_epoch, r"the job sheet says \d+ where this SagaStep has block = "),
        (by_more_epochs, "AskCoefficients would be next in this job, not SagaStep"),
        (by_opening_again, "SagaStep would be next in this job, not OpenSaga"),
    ],
)
def test_steps_are_as_the_sheet_says(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.SCORES, Reveals.PREDICTIONS, Reveals.MODEL}, "what an honest one is told"
        assert server.rows_disclosed() <= 2 * N_ROWS, "squared norms, and products of an honest epoch"


def test_products_count_as_features(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), FOR_SAGA) as server:
        turned_away(lambda: row_by_coefficients(server, 0), "never reveals features, which a PartialProducts would")
        assert server.disclosed() == set()


def test_where_scores_are_kept_saga_does_not_open(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "scores"]}) as server:
        turned_away(lambda: opened(server), "never reveals scores, which a SquaredNorms would")
        assert server.disclosed() == set()


def test_at_the_usual_level_rows_told_by_steps_are_counted(tmp_path: Path) -> None:
    """A run a row: norms, and products, of 100. Saga may show rows there, as `Central` does, so many a day."""
    parties, found = made_parties(), list[tuple[int, Floats]]()
    with hostile_server(tmp_path, parties, {"rows_a_day": 450}) as server:

        def attack() -> None:
            found.extend(row_by_coefficients(server, seed) for seed in range(N_ROWS))

        turned_away(attack, "limits replies to 450 rows a day; 400 were sent today")
    rows = [row for row, _ in found]
    assert len(rows) == 2
    np.testing.assert_allclose([coef for _, coef in found], features_of(parties[0])[rows], rtol=1e-12)
