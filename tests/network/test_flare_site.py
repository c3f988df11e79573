"""The FLARE example, provisioned on this machine with mutual TLS; and a site's process that dies."""

import json
from pathlib import Path

import pytest

import colonnade as cn
from flare_trial import EXAMPLE, NAMES, Provisioned, job_folder, needs_flare
from network_trial import BANK, events

SAGA = """
[[job]]
do = "fit"
out = "../../run"
task = { kind = "regression", l2 = 0.1 }
sampler = { kind = "importance", size = 200 }
solver = { kind = "saga", batch = 2, tolerance = 1e-4 }
"""


def fit(solver: cn.Saga | cn.Central) -> cn.Run[cn.LinearModel]:
    label = {"bank": "card_spending"}
    parties = [cn.Party(name, BANK / f"{name}.csv", label=label.get(name), key="customer") for name in NAMES]
    with pytest.warns(cn.DisclosureWarning):
        return cn.Federation(parties).fit(
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
