"""What refusals tell: no word of one depends on the values of rows, and whether there is one on as little as possible.

Before, an error was put into words before the policy looked at the reply that it took the place of: any column could be
read in six digits under a policy that forbade everything.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.evaluation.clustering import AskRoundedDistances
from colonnade.evaluation.masked.messages import DeliverMasked
from colonnade.evaluation.masked.ring import LARGEST_ERROR, rounded_by
from colonnade.evaluation.masked.server import AppliedModel, MaskedParts, common_magnitude, masked_parts
from colonnade.evaluation.rounding import RoundedParts
from colonnade.evaluation.telling import ModelKept, TellModel
from colonnade.kernels.selections import ListedRows
from colonnade.messages import UNCOUNTED, Reveals, sendable_floats
from colonnade.protocol.refusal import Refused
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.selecting import use_rows
from colonnade.signing import SignedWeights
from colonnade.tasks.jobs import learn, rounding_of, shared_seed
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, one_hot, turned_away

TARGET, WIDTH = "party1", 3
NOTHING_AT_ALL = {"never": [str(kind) for kind in Reveals if kind not in UNCOUNTED], "rows_a_day": 1}
TASK, GRAM, ALL = cn.Regression(), cn.SecureGram(), cn.AllRows()


def tell(server: HostileServer, model: cn.LinearModel | cn.KMeansModel) -> None:
    """Learn honestly on all rows, and tell the parties another model in the end."""
    server.new_run(task=TASK, sampler=ALL, solver=GRAM)
    server.play_until(learn(TASK, ALL, GRAM, None, server.roster, 0), TellModel)
    parts = model.parts(server.roster)
    server.told_by_each({party: TellModel(*part) for party, part in parts.items()}, ModelKept)


def small_units(server: HostileServer) -> cn.KMeansModel:
    """Make a centre far away, in units so small that distances cannot be rounded."""
    centers, scale = np.zeros((1, 10)), np.full(10, 1e99)
    centers[0, 2], scale[2] = 1e6, 1e-80
    return cn.KMeansModel(centers, server.roster.feature_names, scale)


def refusal_by_small_units(server: HostileServer, rows: list[int]) -> Refused:
    """Ask for distances of rows that cannot be rounded: the refusal said how far they are apart."""
    model, chosen = small_units(server), np.array(rows)
    server.new_run("predict", model=model, rows=chosen, bits=16)
    server.play(use_rows(server.roster, chosen))
    rounding = rounding_of(16, server.roster, shared_seed(0))
    assert rounding is not None
    _, centers, scale = model.parts(server.roster)[TARGET]
    assert centers is not None
    request = AskRoundedDistances(centers, scale, 16, rounding.seeds[TARGET], 0, len(chosen))
    reply = server.ask(TARGET, request)
    assert isinstance(reply, Refused)
    return reply


def test_a_refusal_is_the_same_for_all_rows(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        tell(server, small_units(server))
        reasons = {refusal_by_small_units(server, rows).reason for rows in ([0, 1], [2, 3], [50, 99])}
        assert len(reasons) == 1
        assert not any(isinstance(reply, RoundedParts) for _, reply in server.received)


def by_distances(server: HostileServer) -> None:
    """A model that nobody was told."""
    server.new_run("predict", model=small_units(server), rows=np.array([0, 1]), bits=16)


def by_columns(server: HostileServer) -> None:
    """A plan's pilot, of rows that lie far out by weights of the server's choice."""
    server.new_run("plan", task=TASK, pilot=40)


def by_weights(server: HostileServer) -> None:
    """The same weights in any other job."""
    server.new_run(task=TASK, sampler=ALL, solver=GRAM)
    weights = sendable_floats(one_hot(0, N_ROWS) + 1e-18 * one_hot(1, N_ROWS))
    frame = UseFrame("train", "own", None, None, SignedWeights("party2", weights, bytes(64)))
    server.told(TARGET, frame, Moments)


def by_delivery(server: HostileServer) -> None:
    """Delivery to the target itself, which sends no part: a bit of its row was whether it refused."""
    model = cn.LinearModel(one_hot(0, 10), 0.0, server.roster.feature_names)
    server.new_run("deliver", model=model, rows=np.array([17]), to=TARGET)


@pytest.mark.parametrize("attack", [by_distances, by_columns, by_weights, by_delivery])
def test_where_nothing_may_be_told_no_job_opens(tmp_path: Path, attack: Callable[[HostileServer], None]) -> None:
    with hostile_server(tmp_path, made_parties(), {"level": "open"}, policies={TARGET: NOTHING_AT_ALL}) as server:
        refused = turned_away(lambda: attack(server), "its owner's policy never reveals")
        assert refused.request.kind == "OpenJob"
        assert server.disclosed(TARGET) == set()


def is_refused(server: HostileServer, model: cn.LinearModel, row: int, magnitude: int | None) -> bool:
    """Deliver one row's prediction to the target under masks as coarse as asked for; tell whether it refuses."""
    rows = np.array([row])
    server.new_run("deliver", model=model, rows=rows, to=TARGET)
    server.play(use_rows(server.roster, rows))
    applied = AppliedModel(model.coef_, None, None, 0.0, TARGET)
    least = server.play(common_magnitude(server.roster, applied))
    parts = server.play(
        masked_parts(server.roster, ListedRows(rows), applied, least if magnitude is None else magnitude)
    )
    assert isinstance(parts, MaskedParts)
    return isinstance(server.ask(TARGET, DeliverMasked(parts.of_others(TARGET), 0.0, *parts.ends)), Refused)


def test_bisection_by_models_ends_with_them(tmp_path: Path) -> None:
    """A coefficient a try was a bit a run, and by 30 of them |x|. Here each is a model, and a third of three is one."""
    with hostile_server(tmp_path, made_parties(), {"level": "strict"}) as server:

        def attack() -> None:
            for coefficient in (1e5, 1e6):
                model = cn.LinearModel(coefficient * one_hot(0, 10), 0.0, server.roster.feature_names)
                tell(server, model)
                is_refused(server, model, 17, 80)

        turned_away(attack, "applies 1 models in all")


def size_by_magnitudes(server: HostileServer, row: int) -> float:
    """Find the coarsest masks under which a row's prediction is not refused: |x| within a factor of two."""
    names = server.roster.feature_names
    model = cn.LinearModel(one_hot(0, len(names)), 0.0, names)
    low, high = 10, 80
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_refused(server, model, row, middle) else (middle, high)
    return rounded_by(high, len(server.roster.names)) / LARGEST_ERROR


def test_coarse_masks_do_not_tell_how_large_a_value_is(tmp_path: Path) -> None:
    """To a factor of two, of any row by one model. A receiver keeps to itself that it has too few digits."""
    parties = made_parties()
    sizes = 10.0 ** np.linspace(-3, 3, N_ROWS)
    parties[0] = cn.Party(TARGET, np.column_stack([sizes, features_of(parties[0])[:, 1:]]))
    with hostile_server(tmp_path, parties, {"level": "strict"}) as server:
        tell(server, cn.LinearModel(one_hot(0, 10), 0.0, server.roster.feature_names))
        found = np.array([size_by_magnitudes(server, row) for row in range(0, N_ROWS, 20)])
    assert not (np.abs(np.log2(found / sizes[::20]) - 0.5) <= 0.5 + 1e-6).all()
