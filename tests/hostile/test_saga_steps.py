"""Saga by a server that makes residuals up: coefficients are then rows, and products what rows make of each other."""

from pathlib import Path

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.saga import shuffled
from colonnade.messages import Reveals, sendable_floats, sendable_rows
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows
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
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties

TARGET = "party1"
FOR_SAGA = {"never": ["features", "labels", "moments", "row ids"], "solvers": ["saga"]}
NO_CHANGE = sendable_floats([])


def rows_by_coefficients(server: HostileServer) -> Floats:
    """One step of length 1 from 0 along one row, in the columns' own units: the coefficients are that row.

    All 100 rows are in the coreset. Four requests a row, any number of times in one run: 100 of 100 rows exact.
    """
    server.told(TARGET, UseAllRows(), Ready)
    block = {row: place for place, row in enumerate(shuffled(N_ROWS, 0).tolist())}
    found = []
    for row in range(N_ROWS):
        server.told(TARGET, OpenSaga(N_ROWS, 0, 0.0, 0.0, False, False), SquaredNorms)
        server.told(TARGET, SagaStep(NO_CHANGE, block[row], 1.0), PartialProducts)
        server.told(TARGET, AskProgress(sendable_floats([-1.0])), Progress)
        found.append(server.told(TARGET, AskCoefficients(), Coefficients).coef)
    return np.stack(found)


def rows_by_sums(server: HostileServer) -> Floats:
    """As above, but all rows are one block, each row has a run, and residuals single it out: ten rows to 1e-8."""
    place = np.argsort(shuffled(N_ROWS, 0))
    found = []
    for row in range(10):
        server.new_run(solver="saga")
        server.told(TARGET, UseRows(sendable_rows(np.arange(N_ROWS))), Ready)
        server.told(TARGET, OpenSaga(1, 0, 0.0, 0.0, True, True), SquaredNorms)
        server.told(TARGET, SagaStep(NO_CHANGE, 0, 1.0), PartialProducts)
        changes = np.zeros(N_ROWS)
        changes[place[row]] = -1.0
        server.told(TARGET, AskProgress(sendable_floats(changes)), Progress)
        found.append(server.told(TARGET, AskCoefficients(), Coefficients).coef)
    return np.stack(found)


def test_a_step_along_one_row_makes_it_the_model(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, FOR_SAGA) as server:
        found = rows_by_coefficients(server)
        assert server.disclosed() == {Reveals.SCORES, Reveals.PREDICTIONS, Reveals.MODEL}
    np.testing.assert_allclose(found, features_of(parties[0]), rtol=1e-12)


def test_residuals_of_one_row_make_it_the_model(tmp_path: Path) -> None:
    """Scaled and centred by all rows: (x - mean) / variance, which two known values a column would undo."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, FOR_SAGA) as server:
        found = rows_by_sums(server)
    X = features_of(parties[0])
    np.testing.assert_allclose(found, ((X - X.mean(axis=0)) / X.var(axis=0))[:10], rtol=1e-8)
