"""What a solver, an audit or a diagnosis tells beside rows that were drawn: sums over all rows, and models applied.

Means and mixing matrices of rounded rows, and means of audited predictions, were compared with no other sum. An audit
applied any directions, a diagnosis any centres, to rows and pairs by seeds of the server's choice.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

import colonnade as cn
from colonnade.messages import Message
from colonnade.solvers.scaled_columns import ScaledColumns
from colonnade.solvers.whitened_columns import WhitenedColumns
from colonnade.tasks.jobs import learn
from hostile_trial import HostileServer, hostile_server, made_parties, turned_away

M = TypeVar("M", bound=Message)
TARGET = "party2"
# 50 rows, and the same with one more: 51 times a mean of these less 50 times a mean of those is a row.
SPLITS = cn.HoldOut(0.5, 0), cn.HoldOut(0.49, 0)
COMPACT, FEW_ROWS = cn.CompactCentral(), cn.UniformSampling(5)
REGRESSION, CLUSTERS = cn.Regression(), cn.KMeans(n_clusters=1, n_starts=1)


def told(server: HostileServer, kind: type[M]) -> list[M]:
    """List what the target told."""
    return [reply for party, reply in server.received if party == TARGET and isinstance(reply, kind)]


def by_whitening(server: HostileServer) -> None:
    """Few rows, rounded, come with the means of all rows that count."""
    for split in SPLITS:
        script = learn(REGRESSION, FEW_ROWS, COMPACT, split, server.roster, 0)
        server.honestly(script, "fit", task=REGRESSION, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)


def by_levels(server: HostileServer) -> None:
    """Columns of clusterings come with their means, too."""
    for split in SPLITS:
        script = learn(CLUSTERS, FEW_ROWS, COMPACT, split, server.roster, 0)
        server.honestly(script, "fit", task=CLUSTERS, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)


@pytest.mark.parametrize(("attack", "kind"), [(by_whitening, WhitenedColumns), (by_levels, ScaledColumns)])
def test_means_beside_rounded_rows_of_two_runs_do_not_differ_by_a_row(
    tmp_path: Path, attack: Callable[[HostileServer], None], kind: type[Message]
) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), "1 rows apart from a sum that it has told before")
        assert len(told(server, kind)) <= 1


def test_means_beside_rounded_rows_are_counted(tmp_path: Path) -> None:
    """Of 300 values, half of which are told as numbers, each split tells 9."""
    seeds: list[int] = []

    def attack(server: HostileServer) -> None:
        for seed in range(100):
            split = cn.HoldOut(0.5, seed)
            script = learn(REGRESSION, FEW_ROWS, COMPACT, split, server.roster, 0)
            server.honestly(script, "fit", task=REGRESSION, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)
            seeds.append(seed)

    with hostile_server(tmp_path, made_parties(), {"level": "open"}, policies={"party1": {}}) as server:
        turned_away(lambda: attack(server), "half of its values")
    assert len(seeds) == 150 // 9


def usual() -> cn.Federation:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = X @ np.ones(6) + rng.normal(size=400)
    policy = cn.Policy.of_level("usual")
    parties = [cn.Party(f"party{j}", X[:, 2 * j - 2 : 2 * j], policy=policy) for j in (1, 2)]
    return cn.Federation([*parties, cn.Party("party3", X[:, 4:], label=y, policy=policy)])


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")
@pytest.mark.parametrize("split", [None, cn.HoldOut(0.2)])
def test_honest_jobs_on_the_same_rows_go_on(split: cn.HoldOut | None) -> None:
    federation = usual()
    for task in (cn.Regression(), cn.Regression(standardize=True), cn.KMeans(n_clusters=3)):
        drawn = cn.ImportanceSampling(200)
        federation.plan(task, budget_bytes=10**6, split=split)
        for solver in (cn.CompactCentral(), cn.Central()):
            run = federation.fit(task, sampler=drawn, solver=solver, split=split)
            for _ in range(2):
                federation.certify(run, rows=100)
        federation.fit(task, budget_bytes=10**6, split=split)
    federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.SecureGram(), split=split)
