"""Saga by a server that makes residuals up: coefficients are then rows, and products what rows make of each other.

Within any sheet, as residuals cannot be checked: so products count as features. Before, 100 of 100 rows were read.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.kernels.saga import shuffled
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


def opened(server: HostileServer) -> list[int]:
    """Open a run of one row a block, in the columns' own units; give each row's block."""
    solver = cn.Saga(batch=1, scale=False)
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=solver, seed=0)
    server.told(TARGET, UseAllRows(), Ready)
    seed = int(np.random.default_rng(shared_seed(0)).integers(2**63))  # what follows from the sheet
    server.told(TARGET, OpenSaga(N_ROWS, seed, *TASK.penalties(), False, False), SquaredNorms)
    blocks: list[int] = np.argsort(shuffled(N_ROWS, seed)).tolist()
    return blocks


def row_by_coefficients(server: HostileServer, row: int) -> Floats:
    """One step of length 1 from 0 along one row: the coefficients are that row. A run a row."""
    block = opened(server)[row]
    server.told(TARGET, SagaStep(NO_CHANGE, block, 1.0), PartialProducts)
    server.told(TARGET, AskProgress(sendable_floats([-1.0])), Progress)
    return server.told(TARGET, AskCoefficients(), Coefficients).coef


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
        (by_opening_again, "SagaStep would be next in this job, not OpenSaga"),
    ],
)
def test_steps_are_as_the_sheet_says(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.SCORES}, "squared norms"


def test_products_count_as_features(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), FOR_SAGA) as server:
        turned_away(lambda: row_by_coefficients(server, 0), "never reveals features, which a PartialProducts would")
        assert server.disclosed() == set()


def test_where_scores_are_kept_saga_does_not_open(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "scores"]}) as server:
        turned_away(lambda: opened(server), "never reveals scores, which a SquaredNorms would")
        assert server.disclosed() == set()


def test_at_the_usual_level_rows_told_by_steps_are_counted(tmp_path: Path) -> None:
    """A run a row: norms of 100 rows, and a product. Saga may show rows there, as `Central` does, so many a day."""
    parties, found = made_parties(), list[Floats]()
    with hostile_server(tmp_path, parties, {"rows_a_day": 350}) as server:

        def attack() -> None:
            found.extend(row_by_coefficients(server, row) for row in range(N_ROWS))

        turned_away(attack, "limits replies to 350 rows a day; 303 were sent today")
    np.testing.assert_allclose(found, features_of(parties[0])[:3], rtol=1e-12)
