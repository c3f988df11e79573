"""Attack 1: means and spreads of rows of the server's choice, under a policy that forbids all but moments.

Before there were job sheets, each of these read rows to 1e-8: by weights of the server's own, all of them in 0.2 s.
"""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Scaling
from colonnade.kernels import draws
from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals, sendable_flags, sendable_floats
from colonnade.protocol.sheet import OpenJob
from colonnade.protocol.viewing import Moments, RowWeights, UseFrame, agree_on_view
from colonnade.signing import SignedMarks, SignedWeights, digest, weights_statement
from hostile_trial import (
    N_ROWS,
    HostileServer,
    features_of,
    hostile_server,
    identity_of,
    made_parties,
    one_hot,
    turned_away,
)

TARGET = "party1"
ONLY_MOMENTS = {
    "never": [
        *("totals", "row ids", "scores", "sums of scores", "features", "labels"),
        *("predictions", "row weights"),
    ],
    "rows_a_day": 1,
}
OPEN = {"level": "open"}
TASK = cn.Regression(standardize=True)
JOB = {"task": TASK, "sampler": cn.AllRows(), "solver": cn.SecureGram()}


def moments(server: HostileServer, frame: UseFrame) -> Floats:
    reply = server.told(TARGET, frame, Moments)
    assert reply.shift is not None
    return reply.shift


def by_weights(server: HostileServer) -> None:
    """All weight on one row: its mean is that row. The weights are those of a party that never signed them."""
    server.new_run("fit", **JOB)
    weights = SignedWeights("party2", sendable_floats(one_hot(3, N_ROWS)), bytes(64))
    moments(server, UseFrame("train", "standard", None, None, weights))


def held_out(server: HostileServer) -> None:
    """Hold out all rows but one, by a column that another party is said to have."""
    server.new_run("fit", **JOB, split=cn.SplitBy("party2"))
    marks = SignedMarks("party2", sendable_flags(one_hot(3, N_ROWS) > 0), bytes(64))
    moments(server, UseFrame("train", "standard", cn.SplitBy("party2"), marks, None))


def by_fractions(server: HostileServer) -> None:
    """Hold out 99 % by a seed, which both ends draw from: the row that is left."""
    split = cn.HoldOut(0.99, 0)
    server.new_run("fit", **JOB, split=split)
    server.play(agree_on_view(server.roster, split, "train", "standard"))


def by_another_frame(server: HostileServer) -> None:
    """Agree on one split, and ask for moments of another; or for a second frame in one run."""
    split = cn.HoldOut(0.5, 0)
    server.new_run("fit", **JOB, split=split)
    moments(server, UseFrame("train", "standard", cn.HoldOut(0.5, 1), None, None))


def by_the_other_side(server: HostileServer) -> None:
    """Learn on one side of a split, and ask for moments of the other."""
    split = cn.HoldOut(0.5, 0)
    server.new_run("fit", **JOB, split=split)
    moments(server, UseFrame("test", "standard", split, None, None))


def by_spreads(server: HostileServer) -> None:
    """Ask for spreads where the job needs none."""
    server.new_run(task=cn.Regression(), sampler=cn.AllRows(), solver=cn.SecureGram())
    scaling: Scaling = "scaled"
    moments(server, UseFrame("train", scaling, None, None, None))


def by_two_runs(server: HostileServer) -> None:
    """Two aggregates of 50 rows and of 51: their difference is a row."""
    for fraction in (0.5, 0.49):
        split = cn.HoldOut(fraction, 0)
        server.honestly(agree_on_view(server.roster, split, "train", "standard"), "fit", **JOB, split=split)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_weights, "the job sheet says nothing where this UseFrame has weights = SignedWeights"),
        (held_out, "rows to hold out that 'party2' did not sign for this job"),
        (by_fractions, "a split holds out, and leaves, 10 rows at least"),
        (by_another_frame, "the job sheet says HoldOut"),
        (by_the_other_side, "the job sheet says train where this UseFrame has side = test"),
        (by_spreads, "UseAllRows would be next in this job, not UseFrame"),
    ],
)
def test_moments_are_of_rows_that_the_sheet_says(tmp_path: Path, attack: object, why: str) -> None:
    parties = made_parties()
    parties[1] = cn.Party("party2", features_of(parties[1]), split=np.arange(N_ROWS) % 2 == 0)
    with hostile_server(tmp_path, parties, OPEN, policies={TARGET: ONLY_MOMENTS}) as server:
        turned_away(lambda: attack(server), why)  # type: ignore[operator]
        assert server.disclosed(TARGET) == set()


def test_moments_of_two_runs_do_not_differ_by_a_row(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), OPEN, policies={TARGET: ONLY_MOMENTS}) as server:
        turned_away(lambda: by_two_runs(server), "1 rows apart from a sum that it has told before")
        assert server.disclosed(TARGET) == {Reveals.MOMENTS}
        assert len([1 for party, reply in server.received if party == TARGET and isinstance(reply, Moments)]) == 1


def test_honest_splits_end_before_there_are_equations_enough(tmp_path: Path) -> None:
    """Halves by 100 seeds were 100 equations for 100 rows. 150 numbers, half of the party's values, is all it tells."""
    parties = made_parties()
    means, halves = [], []

    def attack(server: HostileServer) -> None:
        for seed in range(N_ROWS):
            split = cn.HoldOut(0.5, seed)
            script = agree_on_view(server.roster, split, "train", "standard")
            view = server.honestly(script, "fit", **JOB, split=split)
            assert view.shift is not None
            means.append(view.shift[server.roster.parts[TARGET]])
            halves.append(~np.asarray(draws.held_out(N_ROWS, 0.5, seed), bool))

    with hostile_server(tmp_path, parties, OPEN, policies={TARGET: ONLY_MOMENTS}) as server:
        turned_away(lambda: attack(server), "for each of its values")
    assert len(means) == N_ROWS * 3 // 2 // 6
    found = np.linalg.lstsq(np.stack(halves) / (N_ROWS // 2), np.stack(means), rcond=None)[0]
    error = np.abs(found - features_of(parties[0])) / features_of(parties[0]).std(axis=0)
    assert np.median(error) > 0.3, "25 equations leave rows as far off as their spread"


class WeighingParty:
    """Holds the rows' weights, says that all of it is on one row, and signs that."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.sheet = folder, b""

    def __call__(self, request: Message, reply: Message) -> Message:
        if isinstance(request, OpenJob):
            self.sheet = digest(request.sheet)
        if request.kind == "AskRowWeights":
            weights = sendable_floats(one_hot(3, N_ROWS))
            signature = identity_of(self._folder, "party2").sign(weights_statement("party2", self.sheet, weights))
            return RowWeights(weights, signature)
        return reply


def test_a_party_that_weighs_rows_and_joins_forces_cannot_single_one_out(tmp_path: Path) -> None:
    parties, weigher = made_parties(), WeighingParty(tmp_path)
    parties[1] = cn.Party("party2", features_of(parties[1]), weight=np.ones(N_ROWS))
    with hostile_server(tmp_path, parties, {}, {"party2": weigher}) as server:
        script = agree_on_view(server.roster, None, "train", "standard")
        turned_away(lambda: server.honestly(script, "fit", **JOB), "by these weights there are 1")
        assert server.disclosed(TARGET) == set()
