"""NVIDIA FLARE gives the run that one process, the codec and gRPC give, bit for bit."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from flare_trial import NAMES, job_folder, needs_flare, simulate
from network_trial import BANK, federation_in_threads

SECURE = cn.ImportanceSampling(size=120, scores="secure")
PLAIN = cn.ImportanceSampling(size=120, scores="plain")
# The first leaves open how scores are summed: between machines in secret.
JOBS = """
[[job]]
do = "fit"
out = "../../central"
task = { kind = "regression", l2 = 0.1 }
sampler = { kind = "importance", size = 120 }

[[job]]
do = "fit"
out = "../../saga"
seed = 1
task = { kind = "regression", l2 = 0.1, l1 = 0.1 }
sampler = { kind = "importance", size = 120, scores = "plain" }
solver = { kind = "saga", tolerance = 0.01 }

[[job]]
do = "fit"
out = "../../distdim"
seed = 2
task = { kind = "kmeans", n_clusters = 3 }
sampler = { kind = "importance", size = 120, scores = "plain" }
solver = { kind = "distdim" }

[[job]]
do = "predict"
model = "../../central"
to = "shop"
out = "../../predictions.csv"
"""


def parties() -> list[cn.Party]:
    label = {"bank": "card_spending"}
    return [cn.Party(name, BANK / f"{name}.csv", label=label.get(name), key="customer") for name in NAMES]


def play(federation: cn.Federation) -> dict[str, cn.Run[Any]]:
    regression, net, clusters = cn.Regression(l2=0.1), cn.Regression(l2=0.1, l1=0.1), cn.KMeans(n_clusters=3)
    with warnings.catch_warnings(action="ignore", category=cn.DisclosureWarning):
        return {
            "central": federation.fit(regression, sampler=SECURE),
            "saga": federation.fit(net, sampler=PLAIN, solver=cn.Saga(tolerance=0.01), seed=1),
            "distdim": federation.fit(clusters, sampler=PLAIN, solver=cn.DistDim(), seed=2),
        }


def bits(run: cn.Run[Any]) -> tuple[bytes, ...]:
    model = run.model
    numbers = model.cluster_centers_ if isinstance(model, cn.KMeansModel) else np.append(model.coef_, model.intercept_)
    return run.coreset.rows.tobytes(), run.coreset.weights.tobytes(), numbers.tobytes()


@needs_flare
@pytest.mark.slow
def test_four_transports_give_the_same_rows_weights_models_and_ledgers(tmp_path: Path) -> None:
    results = simulate(tmp_path, job_folder(tmp_path, JOBS))
    over_flare = {name: cn.Run.load(results / name) for name in ("central", "saga", "distdim")}
    here, encoded = (cn.Federation(parties(), transport=transport) for transport in (InProcess, Loopback))
    with federation_in_threads(tmp_path, parties()) as over_grpc:
        for federation in (here, encoded, over_grpc):
            for name, run in play(federation).items():
                assert bits(run) == bits(over_flare[name]), name
                assert run.ledger == over_flare[name].ledger, name
                assert run.ledger.units == over_flare[name].ledger.units
    wanted = here.predict(over_flare["central"].model)
    told = tmp_path / "simulated" / "shop" / "predictions.csv"
    for file in (results / "predictions.csv", told):
        _, predictions = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
        assert predictions.tobytes() == wanted.tobytes()
    assert not list(tmp_path.rglob("*.journal")), "journals of runs that are done are removed"
