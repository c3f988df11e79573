"""Secure phases between machines that go away in the middle of them: fresh keys, and the same result."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.evaluation.telling import model_digest
from colonnade.kernels import selections
from colonnade.node.certificates import new_certificates
from colonnade.solvers.gram import question
from network_trial import PartyThread, free_port, write_federation_file
from secure_trial import made_parties

NAMES = ["party1", "party2", "party3"]
# The parts of a model of ones, of so many columns each, which owners accept.
ONES = [model_digest((np.ones(width), None, None)).hex() for width in (1, 2, 3)]


class PowerCut(BaseException):
    """No error of ours: the process might as well have died."""


class Town:
    """Three parties with identities that outlive them, and a server; all may be started many times."""

    def __init__(self, folder: Path) -> None:
        new_certificates(folder / "certs", NAMES)
        self.folder, self.port = folder, free_port()
        self.path = write_federation_file(folder, NAMES, self.port)

    def play(
        self,
        job: Any,
        cut_at: tuple[str, int] | None = None,
        policy: cn.Policy | None = None,
        made: Callable[[], list[cn.Party]] = made_parties,
    ) -> Any:
        def on_round(phase: str, number: int) -> None:
            if (phase, number) == cut_at:
                raise PowerCut

        those = made()
        for each in those:
            each.policy = policy or each.policy
        parties = [PartyThread(self.folder, each, self.port) for each in those]
        try:
            with cn.Federation.connect(self.path, on_round=on_round) as federation:
                return job(federation)
        finally:
            for party in parties:
                party.join()


def gram(federation: cn.Federation) -> bytes:
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(30), solver=cn.SecureGram(), seed=1)
    return run.model.coef_.tobytes()


def lloyd(federation: cn.Federation) -> bytes:
    task = cn.KMeans(n_clusters=2, n_starts=1)
    run = federation.fit(task, sampler=cn.UniformSampling(30), solver=cn.SecureLloyd(), seed=1)
    return run.model.cluster_centers_.tobytes()


def deliver(federation: cn.Federation) -> bytes:
    model = cn.LinearModel(np.arange(6.0), 2.5, federation.roster.feature_names)
    federation.deliver(model, "party2", rows=[3, 5])
    return b""


def evaluate(federation: cn.Federation) -> Any:
    model = cn.LinearModel(np.arange(6.0), 2.5, federation.roster.feature_names)
    return federation.evaluate(model, by="party2", rows=40)


@pytest.mark.parametrize(
    ("job", "cut_at"),
    [
        (gram, ("keys", 3)),
        (gram, ("solving", 4)),
        (gram, ("solving", 5)),
        (gram, ("keys", 6)),
        (gram, ("telling", 7)),
        (lloyd, ("solving", 4)),
        (lloyd, ("solving", 7)),
        (lloyd, ("solving", 8)),
        (deliver, ("predicting", 5)),
        (deliver, ("predicting", 6)),
        (evaluate, ("predicting", 5)),
        (evaluate, ("predicting", 6)),
    ],
)
def test_a_phase_that_was_cut_begins_again_with_fresh_keys(tmp_path: Path, job: Any, cut_at: tuple[str, int]) -> None:
    town = Town(tmp_path)
    with pytest.raises(PowerCut):
        town.play(job, cut_at)
    assert town.play(job) == job(cn.Federation(made_parties()))
    assert not list(tmp_path.rglob("*.journal")), "runs that are done are removed"


def gram_in_windows(federation: cn.Federation) -> bytes:
    run = federation.fit(cn.Regression(l2=0.1), sampler=cn.AllRows(), solver=cn.SecureGram(), seed=1)
    return run.model.coef_.tobytes()


def parties_of_three_windows() -> list[cn.Party]:
    return made_parties(40_000)


@pytest.mark.parametrize("cut_at", [("solving", 4), ("solving", 5), ("solving", 7), ("solving", 9), ("keys", 10)])
def test_windows_that_were_cut_begin_again_with_fresh_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: tuple[str, int]
) -> None:
    """What a party had added up of windows is lost with its key: none of them is told for another."""
    monkeypatch.setattr(question, "AT_ONCE", 1000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    town = Town(tmp_path)
    with pytest.raises(PowerCut):
        town.play(gram_in_windows, cut_at, made=parties_of_three_windows)
    again = town.play(gram_in_windows, made=parties_of_three_windows)
    assert again == gram_in_windows(cn.Federation(parties_of_three_windows()))
    assert not list(tmp_path.rglob("*.journal")), "runs that are done are removed"


def yes_no_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return cn.split_columns(X, (X.sum(axis=1) + rng.logistic(size=300) > 0).astype(float), [2, 3, 1])


def evaluate_classes(federation: cn.Federation) -> Any:
    """Under masks, and plainly, where the label party is asked in the fourth round, after the others."""
    model = cn.ClassificationModel(np.ones((1, 6)), np.array([0.5]), (0, 1), federation.roster.feature_names)
    return federation.evaluate(model, by="party3"), federation.evaluate(model)


@pytest.mark.parametrize("cut_at", [("predicting", 4), ("predicting", 5), ("predicting", 6), ("keys", 7)])
def test_an_evaluation_of_classes_that_was_cut_goes_on(tmp_path: Path, cut_at: tuple[str, int]) -> None:
    """At the usual level: what was told before the cut is told once."""
    town, usual = Town(tmp_path), cn.Policy(accepted=ONES)
    with pytest.raises(PowerCut):
        town.play(evaluate_classes, cut_at, usual, yes_no_parties)
    assert town.play(evaluate_classes, None, usual, yes_no_parties) == evaluate_classes(cn.Federation(yes_no_parties()))
    assert not list(tmp_path.rglob("*.journal")), "runs that are done are removed"


def three_clusters(federation: cn.Federation) -> bytes:
    task = cn.KMeans(n_clusters=3, n_starts=1)
    run = federation.fit(task, sampler=cn.AllRows(), solver=cn.SecureLloyd(), seed=1)
    return run.model.cluster_centers_.tobytes()


@pytest.mark.parametrize("cut_at", [("solving", 29), ("keys", 30), ("telling", 31)])
def test_centres_that_a_run_has_told_do_not_count_against_it(tmp_path: Path, cut_at: tuple[str, int]) -> None:
    """Of six columns, three centres are told in all runs together; a run of three that begins again is still one."""
    town, policy = Town(tmp_path), cn.Policy(["features"], least_rows=2)
    with pytest.raises(PowerCut):
        town.play(three_clusters, cut_at, policy)
    centers = town.play(three_clusters, None, policy)
    assert centers == three_clusters(cn.Federation(made_parties()))
    with pytest.raises(cn.PolicyRefusedError, match="from these and 6 numbers a column in sums"):
        town.play(lambda federation: federation.fit(OTHER, sampler=cn.AllRows(), solver=cn.SecureLloyd()), None, policy)


OTHER = cn.KMeans(n_clusters=3, n_starts=2)
