"""What the job sheet costs: rounds and bytes of every kind of job, beside those of the wire before it.

`BEFORE` was measured in a working tree of commit 33c5827, the last one without a sheet:

    PYTHONPATH=<that tree>/src python tests/equivalence/test_guard_costs.py
"""

import json
import sys
import warnings
from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.transports.loopback import Loopback

# What a party may send and be sent more: a tenth, a kilobyte for the sheet, and a signature of every party.
A_TENTH, A_KILOBYTE, A_SIGNATURE = 0.1, 1_000, 64
# One that opens a run, and one that tells what was learned.
MORE_ROUNDS = 2


def parties(n_parties: int, *, weighted: bool = False) -> list[cn.Party]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(2_000, 2 * n_parties))
    y = X.sum(axis=1) + rng.normal(size=2_000)
    made = cn.split_columns(X, y, [2] * n_parties)
    made[1] = cn.Party("party2", X[:, 2:4], split=np.arange(2_000) % 4 == 0)
    if weighted:
        made[0] = cn.Party("party1", X[:, :2], weight=rng.integers(1, 4, size=2_000))
    return made


def sampling(**options: Any) -> cn.ImportanceSampling:
    return cn.ImportanceSampling(200, **({"scores": "plain"} | options))


def model(federation: cn.Federation, task: Any) -> Any:
    return federation.fit(task, sampler=cn.UniformSampling(200), solver=cn.Central()).model


LEARN, CLUSTER, SPLIT = cn.Regression(l2=0.1), cn.KMeans(n_clusters=3), cn.SplitBy("party2")
SECURE = sampling(scores="secure")
COMMITTED = sampling(scores="secure", draws="committed", uniform_share=0.2)
# The last run that each of them plays is measured.
JOBS: dict[str, Callable[[cn.Federation], object]] = {
    "coreset": lambda f: f.coreset(LEARN, sampling()),
    "coreset, independent draws": lambda f: f.coreset(LEARN, sampling(draws="independent", uniform_share=0.2)),
    "coreset, rounded scores": lambda f: f.coreset(LEARN, sampling(round_scores=True)),
    "coreset, coarse scores": lambda f: f.coreset(CLUSTER, sampling(round_scores=0.5)),
    "coreset, secure": lambda f: f.coreset(LEARN, SECURE),
    "coreset, secure, set totals": lambda f: f.coreset(LEARN, sampling(scores="secure", totals="set")),
    "coreset, committed": lambda f: f.coreset(LEARN, COMMITTED),
    "coreset, uniform": lambda f: f.coreset(LEARN, cn.UniformSampling(200)),
    "coreset, split": lambda f: f.coreset(CLUSTER, sampling(), split=SPLIT),
    "fit, Central": lambda f: f.fit(LEARN, sampler=sampling(), solver=cn.Central()),
    "fit, Central, standardized": lambda f: f.fit(
        cn.Regression(l1="cv", standardize=True), sampler=sampling(), solver=cn.Central(), split=cn.HoldOut(0.3)
    ),
    "fit, Central, k-means": lambda f: f.fit(CLUSTER, sampler=sampling(), solver=cn.Central()),
    "fit, Central, all rows": lambda f: f.fit(LEARN, sampler=cn.AllRows(), solver=cn.Central()),
    "fit, Central, coreset": lambda f: f.fit(
        LEARN, coreset=f.coreset(LEARN, sampling()).coreset, solver=cn.Central()
    ),
    "fit, CompactCentral": lambda f: f.fit(LEARN, sampler=sampling(round_scores=True), solver=cn.CompactCentral()),
    "fit, CompactCentral, k-means": lambda f: f.fit(
        CLUSTER, sampler=cn.UniformSampling(200), solver=cn.CompactCentral()
    ),
    "fit, Saga": lambda f: f.fit(LEARN, sampler=sampling(), solver=cn.Saga(tolerance=0.0, max_epochs=2)),
    "fit, Saga, 16 bits": lambda f: f.fit(
        LEARN, sampler=sampling(), solver=cn.Saga(tolerance=0.0, max_epochs=2, bits=16)
    ),
    "fit, DistDim": lambda f: f.fit(CLUSTER, sampler=sampling(), solver=cn.DistDim()),
    "fit, SecureGram": lambda f: f.fit(LEARN, sampler=SECURE, solver=cn.SecureGram()),
    "fit, SecureGram, penalty chosen": lambda f: f.fit(cn.Regression(l2="cv"), sampler=SECURE, solver=cn.SecureGram()),
    "fit, SecureLloyd": lambda f: f.fit(CLUSTER, sampler=SECURE, solver=cn.SecureLloyd()),
    "predict": lambda f: f.predict(model(f, LEARN), rows=np.arange(500)),
    "predict, for a party": lambda f: f.predict(model(f, LEARN), to="party1"),
    "predict, 8 bits": lambda f: f.predict(model(f, CLUSTER), bits=8),
    "deliver": lambda f: f.deliver(model(f, LEARN), "party1"),
    "deliver, k-means": lambda f: f.deliver(model(f, CLUSTER), "party1", rows=np.arange(500)),
    "evaluate": lambda f: f.evaluate(model(f, LEARN)),
    "evaluate, split": lambda f: f.evaluate(model(f, CLUSTER), split=SPLIT),
    "evaluate, sample, 8 bits": lambda f: f.evaluate(model(f, LEARN), rows=300, bits=8),
    "evaluate, by a party": lambda f: f.evaluate(model(f, LEARN), by="party3"),
    "evaluate, by a party, k-means": lambda f: f.evaluate(model(f, CLUSTER), by="party3", rows=300),
    "plan": lambda f: f.plan(LEARN, target_excess=0.1, pilot=200),
    "plan, k-means": lambda f: f.plan(CLUSTER, target_excess=0.1, pilot=300),
    "certify": lambda f: f.certify(f.fit(LEARN, sampler=sampling(), solver=cn.Central())),
    "certify, secure": lambda f: f.certify(f.fit(CLUSTER, sampler=SECURE, solver=cn.Central())),
    "diagnose": lambda f: f.diagnose(LEARN, sampler=sampling()),
    "diagnose, k-means": lambda f: f.diagnose(CLUSTER, pairs=200),
    "spot check": lambda f: f.spot_check(f.coreset(LEARN, COMMITTED), seed=1),
}
WEIGHTED: dict[str, Callable[[cn.Federation], object]] = {
    "weighted coreset": lambda f: f.coreset(LEARN, sampling(), split=SPLIT),
    "weighted fit": lambda f: f.fit(
        cn.KMeans(n_clusters=3, standardize=True), sampler=SECURE, solver=cn.SecureLloyd(), split=SPLIT
    ),
}
PLAYED = {f"{name}, {n} parties": (play, n) for name, play in (JOBS | WEIGHTED).items() for n in (3, 8)}


def measured(name: str) -> tuple[int, list[int]]:
    """Play a job; give its rounds, and the bytes that each party sent and was sent."""
    play, n_parties = PLAYED[name]
    federation = cn.Federation(parties(n_parties, weighted=name.startswith("weighted")), transport=Loopback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few rows, and of what is shown
        play(federation)
    sent = federation.sent
    rounds = sum(1 for asks, _ in groupby(sent, key=lambda entry: entry.sender == "server") if asks)
    return rounds, [totals.bytes for _, totals in sorted(sent.by_party().items())]


BEFORE: dict[str, tuple[int, list[int]]] = {}


@pytest.mark.parametrize("name", PLAYED)
def test_a_sheet_costs_two_rounds_and_little_more_than_a_kilobyte(name: str) -> None:
    rounds, sent = measured(name)
    rounds_before, sent_before = BEFORE[name]
    assert rounds <= rounds_before + MORE_ROUNDS
    more = A_KILOBYTE + len(sent) * A_SIGNATURE
    assert [now <= (1 + A_TENTH) * before + more for now, before in zip(sent, sent_before, strict=True)] == [
        True
    ] * len(sent), (sent, sent_before)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: measured(name) for name in PLAYED}))
