"""Every transport gives the same run, bit for bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels import selections
from colonnade.solvers import central
from colonnade.solvers.gram import question
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from network_trial import federation_in_threads
from whole_tables import held

TRANSPORTS: list[Any] = [InProcess, Loopback]


def make_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(700, 6)) + np.array([1e6, 0, 3, 0, 0, 0])
    y = X[:, 1:] @ rng.normal(size=5) + rng.normal(size=700)
    # A Fortran-ordered matrix: a transport that kept its order would give other bits.
    return cn.split_columns(np.asfortranarray(X), y, [3, 2, 1])


def viewed_parties() -> list[cn.Party]:
    """The same with weights at one party, and marks of rows to hold out at another."""
    first, second, third = make_parties()
    weights, marked = np.random.default_rng(1).integers(0, 4, size=700), np.arange(700) % 4 == 0
    return [
        cn.Party("party1", np.asfortranarray(held(first.table)), weight=weights),
        cn.Party("party2", held(second.table), split=marked),
        third,
    ]


def in_the_clear(size: int) -> cn.ImportanceSampling:
    """Between machines scores would be summed in secret, which changes the last digits of weights."""
    return cn.ImportanceSampling(size=size, scores="plain")


JOBS: dict[str, Callable[[cn.Federation], cn.Run[Any]]] = {
    "regression": lambda f: f.fit(cn.Regression(l2=0.1), sampler=in_the_clear(120), seed=3),
    "least squares, uniform": lambda f: f.fit(cn.Regression(), sampler=cn.UniformSampling(size=120), seed=3),
    "all rows": lambda f: f.fit(cn.Regression(fit_intercept=False), sampler=cn.AllRows()),
    "k-means": lambda f: f.fit(cn.KMeans(n_clusters=4), sampler=in_the_clear(120), seed=3),
    "planned": lambda f: f.fit(
        cn.Regression(), plan=f.plan(cn.Regression(), budget_bytes=9_000, seed=1, pilot=150), seed=3
    ),
    "k-means, DistDim": lambda f: f.fit(
        cn.KMeans(n_clusters=4), sampler=in_the_clear(120), solver=cn.DistDim(), seed=3
    ),
    "all rows, DistDim": lambda f: f.fit(cn.KMeans(n_clusters=4), sampler=cn.AllRows(), solver=cn.DistDim()),
    "elastic net, Saga": lambda f: f.fit(
        cn.Regression(l2=0.1, l1=0.1), sampler=in_the_clear(60), solver=cn.Saga(tolerance=0.01), seed=3
    ),
    "coreset": lambda f: f.coreset(cn.KMeans(n_clusters=4), in_the_clear(2000), seed=3),
    "secure coreset": lambda f: f.coreset(cn.Regression(), cn.ImportanceSampling(size=120, scores="secure"), seed=3),
    "distinct": lambda f: f.fit(
        cn.Regression(), sampler=cn.ImportanceSampling(120, 0.2, "distinct", scores="plain"), seed=3
    ),
    "distinct, rounded": lambda f: f.coreset(
        cn.KMeans(n_clusters=4), cn.ImportanceSampling(120, 0.0, "distinct", 0.2, scores="plain"), seed=3
    ),
    "distinct, secure": lambda f: f.coreset(
        cn.Regression(), cn.ImportanceSampling(120, draws="distinct", scores="secure"), seed=3
    ),
    "regression, SecureGram": lambda f: f.fit(
        cn.Regression(l2="cv"), sampler=in_the_clear(120), solver=cn.SecureGram(), seed=3
    ),
    "k-means, SecureLloyd": lambda f: f.fit(
        cn.KMeans(n_clusters=4), sampler=in_the_clear(120), solver=cn.SecureLloyd(), seed=3
    ),
    "coreset again": lambda f: f.fit(
        cn.Regression(l2=2.0), coreset=f.coreset(cn.Regression(), in_the_clear(50), seed=9).coreset
    ),
}


SPLIT = cn.SplitBy("party2")
VIEWED: dict[str, Callable[[cn.Federation], cn.Run[Any]]] = {
    "regression": lambda f: f.fit(
        cn.Regression(l2=0.1, standardize=True), sampler=cn.ImportanceSampling(size=120), split=SPLIT, seed=3
    ),
    "lasso, uniform": lambda f: f.fit(
        cn.Regression(l1="cv", standardize=True), sampler=cn.UniformSampling(size=120), split=cn.HoldOut(0.3), seed=3
    ),
    "all rows": lambda f: f.fit(cn.Regression(fit_intercept=False, standardize=True), sampler=cn.AllRows()),
    "k-means": lambda f: f.fit(
        cn.KMeans(n_clusters=4, standardize=True), sampler=cn.ImportanceSampling(size=120), split=SPLIT, seed=3
    ),
    "k-means, DistDim": lambda f: f.fit(
        cn.KMeans(n_clusters=4, standardize=True),
        sampler=cn.ImportanceSampling(size=120),
        solver=cn.DistDim(),
        split=SPLIT,
    ),
    "elastic net, Saga": lambda f: f.fit(
        cn.Regression(l2=0.1, l1=0.1, standardize=True),
        sampler=cn.ImportanceSampling(size=60),
        solver=cn.Saga(tolerance=0.01),
        split=SPLIT,
    ),
    "elastic net, SecureGram": lambda f: f.fit(
        cn.Regression(l2=0.1, l1=0.1, standardize=True),
        sampler=cn.ImportanceSampling(size=60, scores="secure"),
        solver=cn.SecureGram(),
        split=SPLIT,
    ),
    "k-means, SecureLloyd": lambda f: f.fit(
        cn.KMeans(n_clusters=4, standardize=True), sampler=cn.UniformSampling(60), solver=cn.SecureLloyd(), split=SPLIT
    ),
    "coreset": lambda f: f.coreset(cn.Regression(), cn.ImportanceSampling(size=500), split=SPLIT, seed=3),
    "distinct, Saga": lambda f: f.fit(
        cn.Regression(standardize=True),
        sampler=cn.ImportanceSampling(60, draws="distinct"),
        solver=cn.Saga(batch=7, tolerance=0.1),
        split=SPLIT,
    ),
    "secure coreset": lambda f: f.coreset(
        cn.KMeans(n_clusters=4), cn.ImportanceSampling(size=120, scores="secure"), split=SPLIT, seed=3
    ),
}


def numbers(run: cn.Run[Any]) -> dict[str, bytes]:
    found = {"rows": run.coreset.rows.tobytes(), "weights": run.coreset.weights.tobytes()}
    if isinstance(run.model, cn.LinearModel):
        found |= {"coef": run.model.coef_.tobytes(), "intercept": np.float64(run.model.intercept_).tobytes()}
    if isinstance(run.model, cn.KMeansModel):
        found |= {"centres": run.model.cluster_centers_.tobytes()}
    if run.model is not None and run.model.scale_ is not None:
        found |= {"scale": run.model.scale_.tobytes()}
    return found | {name: np.float64(value).tobytes() for name, value in run.facts.items()}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_rows_weights_model_and_ledger_are_bit_identical(job: Callable[[cn.Federation], cn.Run[Any]]) -> None:
    federations = [cn.Federation(make_parties(), transport=transport) for transport in TRANSPORTS]
    first, second = (job(federation) for federation in federations)
    assert numbers(first) == numbers(second)
    assert first.ledger == second.ledger
    assert federations[0].ledger == federations[1].ledger


def test_over_the_network_all_is_the_same(tmp_path: Path) -> None:
    here = cn.Federation(make_parties())
    with federation_in_threads(tmp_path, make_parties()) as apart:
        assert apart.roster == here.roster
        for job in JOBS.values():
            first, second = job(here), job(apart)
            assert numbers(first) == numbers(second)
            assert first.ledger == second.ledger
        model = here.fit(cn.Regression(), sampler=cn.AllRows()).model
        assert here.predict(model).tobytes() == apart.predict(model).tobytes()
        rows = [5, 3, 3, 600]
        assert (
            here.predict(model, rows=rows, to="party2").tobytes()
            == apart.predict(model, rows=rows, to="party2").tobytes()
        )
        model = msgspec.structs.replace(model, learned_from_=None)  # here and there tables have other fingerprints
        assert here.evaluate(model, split=cn.HoldOut(0.3)) == apart.evaluate(model, split=cn.HoldOut(0.3))
        secret, told = (f.coreset(cn.Regression(), cn.ImportanceSampling(size=120), seed=3) for f in (apart, here))
        assert secret.sampler == cn.ImportanceSampling(size=120, scores="secure"), "between machines it is the default"
        assert numbers(secret) == numbers(JOBS["secure coreset"](here))
        assert secret.coreset.rows.tobytes() == told.coreset.rows.tobytes()
        np.testing.assert_allclose(secret.coreset.weights, told.coreset.weights, rtol=2e-6)
        with pytest.warns(
            cn.DisclosureWarning, match="^Central shows the server features and labels of the drawn rows"
        ):
            apart.fit(cn.Regression(), sampler=cn.UniformSampling(size=20))
        with pytest.raises(cn.UnsupportedError, match="'party2' is on its own machine"):
            apart.received("party2")
    assert not list(tmp_path.rglob("*.journal")), "journals of runs that are done are removed"


def late_parties(late: Any) -> list[cn.Party]:
    X = np.random.default_rng(0).normal(size=(700, 5))
    return cn.split_columns(X, late, [2, 2, 1])


CLASSES = {
    "text": np.where(np.arange(700) % 3 == 1, "late", "on time"),
    "three": (np.arange(700) % 3).astype(float),
}


def applied(federation: cn.Federation, model: cn.ClassificationModel) -> tuple[Any, ...]:
    """Apply a classification in every way there is."""
    model = msgspec.structs.replace(model, learned_from_=None)  # here and there tables have other fingerprints
    some = federation.predict(model, rows=[5, 3, 3, 600], to="party2")
    federation.deliver(model, "party1", rows=[5, 3])
    options: list[dict[str, Any]] = [{}, {"rows": 200}, {"bits": 12}, {"by": "party3"}, {"split": cn.HoldOut(0.3)}]
    reports = [federation.evaluate(model, **each) for each in options]
    return federation.predict(model).probabilities.tobytes(), some.probabilities.tobytes(), some.names, reports


@pytest.mark.parametrize("late", CLASSES.values(), ids=CLASSES.keys())
def test_classes_are_the_same_over_every_transport(tmp_path: Path, late: Any) -> None:
    fit = {"sampler": in_the_clear(300), "seed": 3}
    here, through = (cn.Federation(late_parties(late), transport=transport) for transport in TRANSPORTS)
    with federation_in_threads(tmp_path, late_parties(late)) as apart:
        with pytest.warns(cn.DisclosureWarning):
            runs = [each.fit(cn.Classification(l2=0.01), **fit) for each in (apart, here, through)]  # type: ignore[arg-type]
        first, *others = (applied(each, run.model) for each, run in zip((here, through, apart), runs, strict=True))
        assert [first == other for other in others] == [True, True]
        assert here.ledger == through.ledger
        assert here.sent == apart.sent


def test_rounds_that_ask_only_some_are_the_same_over_the_network(tmp_path: Path) -> None:
    """A split and weights that one party holds are asked of it alone; the others' numbers go on without a gap."""
    rng = np.random.default_rng(0)
    X, marked, weights = rng.normal(size=(300, 4)), rng.random(300) < 0.3, rng.gamma(2.0, size=300)

    def parties() -> list[cn.Party]:
        middle = cn.Party("middle", X[:, 2:], split=marked, weight=weights)
        return [cn.Party("first", X[:, :2], label=X @ [1.0, 2.0, 3.0, 4.0]), middle, cn.Party("last", X[:, 1:2])]

    here, split = cn.Federation(parties()), cn.SplitBy("middle")
    with federation_in_threads(tmp_path, parties()) as apart:
        task, sampler = cn.Regression(l2=0.1, standardize=True), in_the_clear(60)
        first, second = (f.fit(task, sampler=sampler, split=split, seed=2) for f in (here, apart))
        assert numbers(first) == numbers(second)
        assert first.ledger == second.ledger
        some = [f.predict(first.model, rows=[1, 2], to="last").tobytes() for f in (here, apart)]
        assert some[0] == some[1]
        assert here.evaluate(first.model, split=split) == apart.evaluate(second.model, split=split)


def test_a_refusal_over_the_network_is_the_same_refusal(tmp_path: Path) -> None:
    guarded = cn.Party("guarded", np.eye(700, 2), policy=cn.Policy(level="open", never=["features"]))
    with federation_in_threads(tmp_path, [*make_parties(), guarded]) as federation:
        with pytest.raises(
            cn.PolicyRefusedError, match="'guarded' did not answer OpenJob: its owner's policy never reveals features"
        ):
            federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=10))
        assert len(federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10)).coreset) == 10


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_the_same_seed_gives_the_same_bits(job: Callable[[cn.Federation], cn.Run[Any]]) -> None:
    federation = cn.Federation(make_parties())
    assert numbers(job(federation)) == numbers(job(federation)), "again on the same federation: no state is left behind"
    assert numbers(job(federation)) == numbers(job(cn.Federation(make_parties())))


@pytest.mark.parametrize("job", VIEWED.values(), ids=VIEWED.keys())
def test_weights_splits_and_scales_are_bit_identical(job: Callable[[cn.Federation], cn.Run[Any]]) -> None:
    federations = [cn.Federation(viewed_parties(), transport=transport) for transport in TRANSPORTS]
    first, second = (job(federation) for federation in federations)
    assert numbers(first) == numbers(second)
    assert first.ledger == second.ledger
    if first.model is not None:
        reports = [federation.evaluate(first.model, split=SPLIT) for federation in federations]
        assert reports[0] == reports[1]
        told = [federation.predict(first.model, to="party3") for federation in federations]
        assert told[0].tobytes() == told[1].tobytes()
    assert federations[0].ledger == federations[1].ledger
    assert numbers(job(federations[0])) == numbers(first), "again on the same federation: no view is left behind"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_policy_that_lists_tasks_lets_models_be_applied_that_were_learned_so(transport: Any) -> None:
    guarded = cn.Party("guarded", np.eye(700, 2), policy=cn.Policy(level="open", tasks=["regression"]))
    federation = cn.Federation([*make_parties(), guarded], transport=transport)
    model = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=50)).model
    assert federation.evaluate(model).n_evaluated == len(federation.predict(model))
    federation.deliver(model, "party1", rows=[3, 5])
    another = cn.LinearModel(np.ones(8), 0.0, federation.roster.feature_names)
    for apply in (federation.evaluate, federation.predict):
        with pytest.raises(cn.PolicyRefusedError, match="applies only models that it helped to learn"):
            apply(another)
    with pytest.raises(cn.PolicyRefusedError, match="allows the tasks regression, not 'kmeans'"):
        federation.coreset(cn.KMeans(n_clusters=2), cn.ImportanceSampling(size=50))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_errors_are_the_same_too(transport: Any) -> None:
    parties = make_parties()
    guarded = cn.Party("guarded", np.eye(700, 2), policy=cn.Policy(level="open", never=["features"]))
    federation = cn.Federation([*parties, guarded], transport=transport)
    federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10))
    with pytest.raises(
        cn.PolicyRefusedError, match="'guarded' did not answer OpenJob: its owner's policy never reveals features"
    ) as caught:
        federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=10))
    assert caught.value.party == "guarded"
    again = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10))
    assert len(again.coreset) == 10, "a refusal leaves the federation usable"


def test_all_rows_in_windows_are_the_same_rows_over_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(central, "AT_ONCE", 60_000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    values = np.random.default_rng(0).normal(size=(40_000, 5))
    ways: dict[str, Any] = {"sampler": cn.AllRows(), "solver": cn.Central(), "split": cn.HoldOut(0.2)}

    def parties() -> list[cn.Party]:
        return [cn.Party("bank", values[:, :2]), cn.Party("shop", values[:, 2:4], label=values[:, 4])]

    here = cn.Federation(parties()).fit(cn.Regression(), **ways)
    with federation_in_threads(tmp_path, parties()) as apart:
        run = apart.fit(cn.Regression(), **ways)
    assert numbers(run) == numbers(here)
    assert run.ledger == here.ledger
    assert [entry.kind for entry in run.ledger].count("Columns") == 2 * 3


def test_shares_in_windows_are_the_same_over_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "AT_ONCE", 20_000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    values = np.random.default_rng(0).normal(size=(40_000, 5))
    ways: dict[str, Any] = {"sampler": cn.AllRows(), "solver": cn.SecureGram(), "split": cn.HoldOut(0.2)}

    def parties() -> list[cn.Party]:
        label = cn.Party("shop", values[:, 3:4], label=values[:, 4])
        return [cn.Party("bank", values[:, :2]), cn.Party("post", values[:, 2:3]), label]

    here, looped = (cn.Federation(parties(), transport=each).fit(cn.Regression(), **ways) for each in TRANSPORTS)
    with federation_in_threads(tmp_path, parties()) as apart:
        run = apart.fit(cn.Regression(), **ways)
    assert numbers(run) == numbers(here) == numbers(looped)
    assert run.ledger == here.ledger == looped.ledger
    assert [entry.kind for entry in run.ledger].count("WindowShare") == 3 * 3
