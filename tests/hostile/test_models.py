"""Attack 5: models of the server's choice, applied to single rows, plainly, rounded, audited, or under masks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Rounding
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, AuditedPredictions
from colonnade.diagnostics.row_distances import AskRowDistances, RowDistances
from colonnade.evaluation.clustering import AskPartialDistances, PartialDistances
from colonnade.evaluation.linear import (
    AskPartialPredictions,
    AskRoundedPredictions,
    PartialPredictions,
)
from colonnade.evaluation.masked.server import AppliedModel, masked_losses
from colonnade.evaluation.rounding import RoundedParts, sum_parts
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.sixteen_bits import restore_evenly
from colonnade.messages import Reveals, sendable_floats, sendable_rows
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows, use_rows
from colonnade.tasks.jobs import deliver_in_secret
from hostile_trial import N_ROWS, HostileServer, columns_of, features_of, hostile_server, made_parties, one_hot

TARGET, WIDTH = "party2", 4
NO_RAW_DATA = {"never": ["features", "labels", "scores", "row ids", "row weights", "model"]}


def columns_by_predictions(server: HostileServer) -> Floats:
    """One coefficient is 1: predictions are a column. All of them exact, one request each."""
    server.told(TARGET, UseAllRows(), Ready)
    asks = (AskPartialPredictions(one_hot(column, WIDTH), False, False) for column in range(WIDTH))
    return np.stack([server.told(TARGET, ask, PartialPredictions).values for ask in asks], axis=1)


def columns_by_rounded_predictions(server: HostileServer) -> Floats:
    """The same in 32 bits: to 1e-9 of the range of a column."""
    server.told(TARGET, UseAllRows(), Ready)
    found = []
    for column in range(WIDTH):
        ask = AskRoundedPredictions(one_hot(column, WIDTH), False, False, 32, 0)
        reply = server.told(TARGET, ask, RoundedParts)
        found.append(sum_parts({TARGET: reply}, (N_ROWS, 1), Rounding(32, {TARGET: 0})).values[:, 0])
    return np.stack(found, axis=1)


def columns_by_audit(server: HostileServer) -> Floats:
    """All columns as directions of one audit, row by row: the least of a single value is the value, in full.

    Of all rows at once they would come in 16 bits. 100 of 100 rows exact by 200 requests.
    """
    found = []
    for row in range(N_ROWS):
        server.told(TARGET, UseRows(sendable_rows([row])), Ready)
        found.append(server.told(TARGET, AskAuditedPredictions(np.eye(WIDTH), 0), AuditedPredictions).low)
    return np.stack(found)


def columns_by_coarse_audit(server: HostileServer) -> Floats:
    """All columns of all rows by one audit of one request: to a 65,000th of their range."""
    server.told(TARGET, UseAllRows(), Ready)
    reply = server.told(TARGET, AskAuditedPredictions(np.eye(WIDTH), 0), AuditedPredictions)
    rng, codes = np.random.default_rng(0), np.split(np.frombuffer(reply.codes or b"", np.uint8), WIDTH)
    ranges = zip(reply.low, reply.step, codes, strict=True)
    return np.stack([restore_evenly(low, step, each.tobytes(), N_ROWS, rng) for low, step, each in ranges], axis=1)


def columns_by_distances(server: HostileServer) -> Floats:
    """Squared distances to 0 and to each unit vector: half of what they differ by is a column. To 1e-10."""
    server.told(TARGET, UseAllRows(), Ready)
    centers = np.vstack([np.zeros(WIDTH), np.eye(WIDTH)])
    squares = server.told(TARGET, AskPartialDistances(sendable_floats(centers), None), PartialDistances).values
    return np.asarray((squares[:, :1] - squares[:, 1:] + 1) / 2)


def rows_by_row_distances(server: HostileServer) -> Floats:
    """Distances of all rows to all rows: the rows up to a rotation and a shift, of one party alone."""
    server.told(TARGET, UseAllRows(), Ready)
    squares = server.told(TARGET, AskRowDistances(sendable_rows(np.arange(N_ROWS))), RowDistances).values
    centred = np.eye(N_ROWS) - 1 / N_ROWS
    values, vectors = np.linalg.eigh(-0.5 * centred @ squares @ centred)
    return np.asarray(vectors[:, -WIDTH:] * np.sqrt(values[-WIDTH:]))


def labels_by_predictions(server: HostileServer) -> Floats:
    """A model of zeros less the label is the label."""
    server.told("party3", UseAllRows(), Ready)
    ask = AskPartialPredictions(np.zeros(3), True, False)
    return -server.told("party3", ask, PartialPredictions).values


def columns_by_masked_sums(server: HostileServer, to: str) -> Floats:
    """Honest deliveries to a party that joins forces, of models that are 0 but for a 1 among the target's columns.

    It is told sums of all parties' parts, under masks: a column of the target's. To 1e-9, a run a column.
    """
    names, start = server.roster.feature_names, server.roster.parts[TARGET].start
    found = []
    for column in range(start, start + WIDTH):
        server.new_run(verb="predict", task="regression", sampler=None, solver=None)
        model = cn.LinearModel(one_hot(column, len(names)), 0.0, names)
        server.play(deliver_in_secret(model, None, to, server.roster))
        found.append(server.delivered_to(to))
    return np.stack(found, axis=1)


def values_by_losses(server: HostileServer, rows: Rows) -> Floats:
    """Masked evaluations by an honest party, of 50 rows and of these and one more: sums of squares differ by one value.

    The centre is 0, and the units of all columns but one are huge: the cost is a sum of squares of one column. |x| of
    ten rows to 1e-6, two runs each; only sums are told.
    """
    n_columns, column = len(server.roster.feature_names), server.roster.parts[TARGET].start
    scale = np.where(np.arange(n_columns) == column, 1.0, 1e6)

    def cost(chosen: Rows) -> float:
        server.new_run(verb="evaluate", task="kmeans", sampler=None, solver=None)
        server.play(use_rows(server.roster, chosen))
        model = AppliedModel(None, np.zeros((1, n_columns)), scale, 0.0, "party1", evaluating=True)
        losses, _, _ = server.play(masked_losses(server.roster, chosen, np.ones(len(chosen)), model))
        return losses.cost

    base = np.setdiff1d(np.arange(N_ROWS), rows)[:50]
    before = cost(base)
    return np.sqrt([cost(np.sort(np.append(base, row))) - before for row in rows])


@pytest.mark.parametrize(
    ("attack", "error"),
    [
        (columns_by_predictions, 0.0),
        (columns_by_rounded_predictions, 1e-7),
        (columns_by_audit, 1e-12),
        (columns_by_coarse_audit, 1e-2),
        (columns_by_distances, 1e-8),
    ],
)
def test_a_model_of_one_coefficient_tells_a_column(
    tmp_path: Path, attack: Callable[[HostileServer], Floats], error: float
) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, NO_RAW_DATA) as server:
        found = attack(server)
        assert server.disclosed() <= {Reveals.PREDICTIONS, Reveals.MOMENTS}
    np.testing.assert_allclose(found, columns_of(parties[1]), atol=error)


def test_a_model_of_zeros_tells_labels(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"never": ["features"]}) as server:
        found = labels_by_predictions(server)
    np.testing.assert_array_equal(found, columns_of(parties[2])[:, -1])


def test_distances_to_rows_tell_rows_up_to_a_rotation(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, NO_RAW_DATA) as server:
        found = rows_by_row_distances(server)
    truth = features_of(parties[1]) - features_of(parties[1]).mean(axis=0)
    U, _, Vt = np.linalg.svd(found.T @ truth)
    np.testing.assert_allclose(found @ (U @ Vt), truth, atol=1e-8)


def test_masked_sums_tell_a_column_to_a_party_that_joins_forces(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"never": ["features", "labels", "scores", "moments"]}) as server:
        found = columns_by_masked_sums(server, "party3")
        assert server.disclosed() == {Reveals.TOTALS}
    np.testing.assert_allclose(found, features_of(parties[1]), atol=1e-8)


def test_losses_of_two_runs_that_differ_by_a_row_tell_its_values(tmp_path: Path) -> None:
    parties, rows = made_parties(label=False), np.arange(10)
    with hostile_server(tmp_path, parties, {"never": ["features", "labels", "scores"]}) as server:
        found = values_by_losses(server, rows)
        assert server.disclosed() == {Reveals.MOMENTS, Reveals.TOTALS}
        assert server.rows_disclosed() > 0  # passed on under masks: not to the server
    np.testing.assert_allclose(found, np.abs(features_of(parties[1])[rows, 0]), rtol=1e-5)
