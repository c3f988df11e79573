"""NVIDIA FLARE gives the run that one process, the codec and gRPC give, bit for bit; also where a site dies."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from flare_trial import EXAMPLE, NAMES, Provisioned, job_folder, needs_flare, simulate
from network_trial import BANK, events, federation_in_threads

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
SAGA = """
[[job]]
do = "fit"
out = "../../run"
task = { kind = "regression", l2 = 0.1 }
sampler = { kind = "importance", size = 200 }
solver = { kind = "saga", batch = 2, tolerance = 1e-4 }
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
        _, predictions = np.loadtxt(file, str, delimiter=",", skiprows=1, unpack=True)
        assert predictions.astype(np.float64).tobytes() == wanted.tobytes()
    assert not list(tmp_path.rglob("*.journal")), "journals of runs that are done are removed"


def fit(solver: cn.Saga | cn.Central) -> cn.Run[cn.LinearModel]:
    with pytest.warns(cn.DisclosureWarning):
        return cn.Federation(parties()).fit(
            cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=200, scores="secure"), solver=solver
        )


def same(found: cn.Run[cn.LinearModel], wanted: cn.Run[cn.LinearModel]) -> bool:
    return found.model.coef_.tobytes() == wanted.model.coef_.tobytes() and found.ledger == wanted.ledger


@needs_flare
@pytest.mark.slow
def test_submit_collect_and_a_site_that_dies(tmp_path: Path) -> None:
    with Provisioned(tmp_path) as flare:
        job = flare.submit(EXAMPLE / "job")
        assert flare.outcome(job) == "FINISHED:COMPLETED"
        results = flare.download(job)
        assert same(cn.Run.load(results / "run"), fit(cn.Central()))
        assert json.loads((results / "evaluation.json").read_text())["n_evaluated"] == 800
        assert (flare.sites / "shop" / "predictions.csv").read_text().count("\n") == 801

        saga = job_folder(tmp_path, SAGA)
        job = flare.submit(saga)
        flare.wait_for_round(30)
        flare.kill_job(job, "telephone")
        assert flare.outcome(job) != "FINISHED:COMPLETED", "FLARE ends a job whose site has died"
        job = flare.submit(saga)
        assert flare.outcome(job) == "FINISHED:COMPLETED"
        assert same(cn.Run.load(flare.download(job) / "run"), fit(cn.Saga(batch=2, tolerance=1e-4)))
        log = events(flare.sites / "localhost" / "colonnade-state" / "log.jsonl")
        assert [line["verb"] for line in log if line["event"] == "run resumed"] == ["fit"], "it went on where it was"
        assert not list(flare.sites.rglob("*.journal"))
