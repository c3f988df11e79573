"""Attack 1: means and spreads of rows of the server's choice, under a policy that forbids all but moments."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Scaling
from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import hold_out
from colonnade.messages import Message, Reveals, sendable_flags, sendable_floats
from colonnade.protocol.splits import HoldOut
from colonnade.protocol.viewing import Moments, RowWeights, UseFrame, agree_on_view
from hostile_trial import (
    N_ROWS,
    HostileServer,
    columns_of,
    features_of,
    hostile_server,
    made_parties,
    one_hot,
)

TARGET = "party1"
Attack = Callable[[HostileServer], Floats]
ONLY_MOMENTS = {
    "never": [
        *("totals", "row ids", "scores", "sums of scores", "features", "labels"),
        *("predictions", "row weights", "model"),
    ],
    "rows_a_day": 1,
}


def moments(
    server: HostileServer, weights: Floats | None, split: HoldOut | None = None, scaling: Scaling = "standard"
) -> tuple[Floats, Floats]:
    frame = UseFrame("train", scaling, split, None, None if weights is None else sendable_floats(weights))
    reply = server.told(TARGET, frame, Moments)
    assert reply.shift is not None
    assert reply.scale is not None
    return reply.shift, reply.scale


def rows_by_weights(server: HostileServer) -> Floats:
    """All weight on one row: its mean is that row. 100 of 100 rows exact, one request each, 0.2 s."""
    return np.stack([moments(server, one_hot(row, N_ROWS))[0] for row in range(N_ROWS)])


def rows_held_out(server: HostileServer) -> Floats:
    """Hold out all rows but one, by a column that another party is said to have: 100 of 100 rows exact."""
    frames = (
        UseFrame("test", "standard", None, sendable_flags(one_hot(row, N_ROWS) > 0), None) for row in range(N_ROWS)
    )
    shifts = (server.told(TARGET, frame, Moments).shift for frame in frames)
    return np.stack([shift for shift in shifts if shift is not None])


def rows_by_fractions(server: HostileServer) -> dict[int, Floats]:
    """Hold out 99 % by a seed, which both ends draw from: the row that is left. 50 seeds, about 40 rows, exact."""
    found = {}
    for seed in range(50):
        (left,) = np.flatnonzero(~hold_out(N_ROWS, 0.99, np.random.default_rng(seed)))
        found[int(left)] = moments(server, None, HoldOut(0.99, seed))[0]
    return found


def rows_by_spreads(server: HostileServer) -> Floats:
    """Only spreads, with means untold ("scaled"), of two rows and of three.

    Half of how far two rows are apart, and which of them lies between: all rows less row 0, up to a sign a column. 100
    rows to 1e-12 by 197 requests.
    """

    def spread(*rows: int) -> Floats:
        return moments(server, np.isin(np.arange(N_ROWS), rows).astype(float), scaling="scaled")[1]

    distance = {row: 2 * spread(0, row) for row in range(1, N_ROWS)}
    found = np.zeros((N_ROWS, len(distance[1])))
    found[1] = distance[1]
    for row in range(2, N_ROWS):
        # Of 0, a and ±b the mean square about the mean is (a² + b² ∓ a b) 2 / 9.
        variance = spread(0, 1, row) ** 2
        product = distance[1] ** 2 + distance[row] ** 2 - 4.5 * variance
        found[row] = np.copysign(distance[row], product)
    return found


def rows_by_two_runs(server: HostileServer) -> Floats:
    """Two aggregates of 100 and of 99 rows differ by a row: ten rows to 1e-10, two runs each."""
    found = []
    for row in range(10):
        server.new_run()
        everything, _ = moments(server, np.ones(N_ROWS))
        server.new_run()
        without, _ = moments(server, 1.0 - one_hot(row, N_ROWS))
        found.append(N_ROWS * everything - (N_ROWS - 1) * without)
    return np.stack(found)


def rows_by_other_weights(server: HostileServer) -> Floats:
    """The same 100 rows in two runs, one of them a little heavier in the second: ten rows to 1e-9."""
    everything, _ = moments(server, np.ones(N_ROWS))
    found = []
    for row in range(10):
        server.new_run()
        heavier, _ = moments(server, 1.0 + 0.5 * one_hot(row, N_ROWS))
        found.append(((N_ROWS + 0.5) * heavier - N_ROWS * everything) / 0.5)
    return np.stack(found)


def rows_by_honest_splits(server: HostileServer) -> Floats:
    """Nothing but honest halves: 100 runs that hold out half the rows, each by another seed, and are standardised.

    Any two halves differ by some 50 rows, each mean is of 50 rows, a run tells 6 numbers of 150. Yet 100 means of known
    halves are 100 equations: 100 of 100 rows to 1e-9. Only a count of all runs, not of a day, stops it.
    """
    means, halves = [], []
    for seed in range(N_ROWS):
        server.new_run()
        split = HoldOut(0.5, seed)
        view = server.play(agree_on_view(server.roster, split, "train", "standard"))
        assert view.shift is not None
        means.append(view.shift[server.roster.parts[TARGET]])
        halves.append(~hold_out(N_ROWS, 0.5, np.random.default_rng(seed)))
    return np.asarray(np.linalg.lstsq(np.stack(halves) / (N_ROWS // 2), np.stack(means), rcond=None)[0])


class WeighingParty:
    """Holds the rows' weights, and says that all of it is on one row."""

    def __init__(self) -> None:
        self.row = 0

    def __call__(self, request: Message, reply: Message) -> Message:
        if request.kind == "AskRowWeights":
            return RowWeights(sendable_floats(one_hot(self.row, N_ROWS)))
        return reply


def rows_by_collusion(server: HostileServer, weigher: WeighingParty) -> Floats:
    """The server plays an honest script; the party that weighs rows says what it wants. 100 of 100 rows exact."""
    found = []
    for weigher.row in range(N_ROWS):
        server.new_run()
        view = server.play(agree_on_view(server.roster, None, "train", "standard"))
        assert view.shift is not None
        found.append(view.shift[server.roster.parts[TARGET]])
    return np.stack(found)


@pytest.mark.parametrize("attack", [rows_by_weights, rows_held_out, rows_by_honest_splits])
def test_moments_of_chosen_rows_are_the_rows(tmp_path: Path, attack: Attack) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, ONLY_MOMENTS) as server:
        found = attack(server)
        assert server.disclosed() == {Reveals.MOMENTS}
        assert {line.get("rows", 0) for line in server.log_of(TARGET)} == {0}
    np.testing.assert_allclose(found, columns_of(parties[0]), rtol=1e-8)


@pytest.mark.parametrize("attack", [rows_by_two_runs, rows_by_other_weights])
def test_moments_of_two_runs_differ_by_a_row(tmp_path: Path, attack: Attack) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, ONLY_MOMENTS) as server:
        found = attack(server)
    np.testing.assert_allclose(found, columns_of(parties[0])[:10], rtol=1e-8)


def test_moments_of_a_small_fraction_are_a_row(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, ONLY_MOMENTS) as server:
        found = rows_by_fractions(server)
    assert len(found) > 30
    np.testing.assert_allclose(list(found.values()), columns_of(parties[0])[list(found)], rtol=1e-8)


def test_spreads_alone_are_the_rows_up_to_shift_and_sign(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, ONLY_MOMENTS) as server:
        found = rows_by_spreads(server)
    truth = columns_of(parties[0]) - columns_of(parties[0])[0]
    np.testing.assert_allclose(found * np.sign(found[1] * truth[1]), truth, atol=1e-8)


def test_a_party_that_weighs_rows_joins_forces(tmp_path: Path) -> None:
    parties, weigher = made_parties(), WeighingParty()
    parties[1] = cn.Party("party2", features_of(parties[1]), weight=np.ones(N_ROWS))
    with hostile_server(tmp_path, parties, {}, {"party2": weigher}) as server:
        found = rows_by_collusion(server, weigher)
    np.testing.assert_allclose(found, features_of(parties[0]), rtol=1e-8)
