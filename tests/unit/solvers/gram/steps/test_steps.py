"""Classification by Gram mode: what it finds, in how many steps, what it tells whom, and who may."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.solvers.gram.steps.messages import AskStepColumn, StepColumn, StepPart
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from secure_trial import Recording, Restarting, float_forms, numbers_in

GRAM = cn.SecureGram()
RIDGE = cn.Classification(l2=1e-3)


def table(n_rows: int = 1200, n_columns: int = 9, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(n_rows, n_columns)) @ (np.eye(n_columns) + 0.3 * rng.normal(size=(n_columns,) * 2)) + 1
    labels = np.where(X @ rng.normal(size=n_columns) * 0.4 + rng.logistic(size=n_rows) > 1, "yes", "no")
    return X, labels


X, Y = table()


def federation(transport: Any = Loopback, widths: tuple[int, ...] = (3, 4, 2), **policy: Any) -> cn.Federation:
    parties = cn.split_columns(X, Y, list(widths))
    for party in parties if policy else ():
        party.policy = cn.Policy(**policy)
    return cn.Federation(parties, transport=transport)


CORESET = federation().coreset(RIDGE, cn.ImportanceSampling(400), seed=3).coreset


def fit(transport: Any = Loopback, solver: Any = GRAM, **options: Any) -> cn.Run[Any]:
    return federation(transport, **options).fit(RIDGE, coreset=CORESET, solver=solver, seed=1)


@pytest.mark.parametrize(
    "task",
    [
        cn.Classification(),
        RIDGE,
        cn.Classification(l2=1e-2, standardize=True),
        cn.Classification(l2=1e-3, fit_intercept=False),
        cn.Classification(l2=1e-3, classes=("yes", "no")),
    ],
)
@pytest.mark.parametrize("sampler", [cn.ImportanceSampling(400), cn.UniformSampling(400), cn.AllRows()])
def test_the_objective_is_centrals_within_a_hundred_thousandth(task: Any, sampler: Any) -> None:
    parties = federation()
    gram = parties.fit(task, sampler=sampler, solver=GRAM, seed=2)
    central = parties.fit(task, coreset=gram.coreset, seed=2)
    codes, rows = (Y == "yes").astype(float), gram.coreset.rows
    weighted = (X[rows], codes[rows], gram.coreset.weights, gram.coreset.total_weight)
    costs = [task.cost(run.model, *weighted) for run in (gram, central)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)
    assert gram.facts["cost"] == pytest.approx(costs[0], rel=1e-9)
    assert gram.model.classes_ == central.model.classes_
    np.testing.assert_allclose(gram.model.coef_, central.model.coef_, atol=0.02)
    assert gram.facts["steps"] <= 6, "the others have seven columns"
    assert gram.facts["gain"] <= 1e-6


@pytest.mark.parametrize("kind", ["collinear across parties", "constant", "far from zero", "of unlike scales"])
@pytest.mark.parametrize("intercept", [True, False])
def test_any_rank_and_any_scale(kind: str, intercept: bool) -> None:
    features = X.copy()
    if kind == "collinear across parties":
        features[:, 8] = features[:, 0] - 2 * features[:, 4]
    if kind == "constant":
        features[:, [0, 5]] = 12.5
    if kind == "far from zero" and intercept:
        features += 1e4
    if kind == "of unlike scales":
        features *= 10.0 ** np.array([-4, 4, 0, 3, -3, 0, 1, 2, -2])
    parties = cn.Federation(cn.split_columns(features, Y, [3, 4, 2]))
    task = cn.Classification(fit_intercept=intercept)
    gram, central = (parties.fit(task, sampler=cn.AllRows(), solver=solver) for solver in (GRAM, cn.Central()))
    assert gram.facts["cost"] == pytest.approx(central.facts["cost"], rel=1e-5)


def test_the_label_party_may_have_no_columns_and_two_parties_may_be_enough() -> None:
    parties = [cn.Party("label", np.empty((len(X), 0)), label=Y), cn.Party("a", X[:, :5]), cn.Party("b", X[:, 5:])]
    two = cn.split_columns(X, Y, [6, 3])
    for together, solver in ((parties, GRAM), (two, cn.SecureGram(allow_two_parties=True))):
        runs = [cn.Federation(together).fit(RIDGE, coreset=CORESET, solver=each) for each in (solver, cn.Central())]
        assert runs[0].facts["cost"] == pytest.approx(runs[1].facts["cost"], rel=1e-5)


def test_each_step_lowers_the_objective_and_few_steps_are_warned_of() -> None:
    costs = []
    for steps in (1, 2, 3, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cn.ConvergenceWarning)
            costs.append(fit(solver=cn.SecureGram(steps=steps)).facts["cost"])
    assert costs == sorted(costs, reverse=True)
    with pytest.warns(cn.ConvergenceWarning, match=r"stopped after 1 steps: another would still lower the objective"):
        fit(solver=cn.SecureGram(steps=1))


def test_the_model_is_the_same_whatever_the_keys_and_over_any_transport() -> None:
    first, second, third = (fit(transport) for transport in (Loopback, Loopback, InProcess))
    for other in (second, third):
        assert first.model.coef_.tobytes() == other.model.coef_.tobytes()
        assert first.model.intercept_.tobytes() == other.model.intercept_.tobytes()


@pytest.mark.parametrize(
    ("kind", "party"), [("AskStepPart", "party1"), ("AskStepColumn", "party3"), ("AskStepShares", "party2")]
)
def test_a_party_that_restarts_has_lost_its_key_and_all_begin_again(kind: str, party: str) -> None:
    restarting = Restarting(kind, party)
    run = fit(restarting)
    assert restarting.restarts == 1
    assert run.model.coef_.tobytes() == fit().model.coef_.tobytes()


def test_the_server_is_shown_no_row_and_the_label_party_sums_of_the_others() -> None:
    wire = Recording()
    run = federation(wire).fit(RIDGE, sampler=cn.UniformSampling(400), solver=GRAM, seed=3)
    assert run.disclosure.headline == "Nobody was shown features or labels of any row."
    learned = {(line.who, line.what) for line in run.disclosure.lines}
    assert ("party3", "predictions") in learned
    assert not {what for who, what in learned if who == SERVER} & {"features", "labels", "predictions", "scores"}
    assert {who for who, what in learned if what == "predictions"} == {"party3"}
    told = np.concatenate([numbers_in(reply) for reply in wire.replies()])
    for session in wire.sessions.values():
        features = session._data.table.take(run.coreset.rows)[:, : len(session._data.table.feature_names)]
        forms = float_forms(features[:20])
        assert not any(form in data for data in wire.received for form in forms)
        assert not np.isin(features, told).any()


def test_what_a_step_tells_is_a_number_a_column() -> None:
    wire = Recording()
    run = fit(wire)
    replies, m = wire.replies(), len(CORESET.rows)
    parts = [each for each in replies if isinstance(each, StepPart)]
    columns = [each for each in replies if isinstance(each, StepColumn)]
    assert len(columns) == run.facts["steps"]
    assert {len(each.block) // 16 for each in parts} == {3, 4}
    assert all(each.size == m for each in parts)
    assert [len(each.coef) for each in columns] == [k + 1 + 2 for k in range(len(columns))]
    asked = [codec().decode(data) for data in wire.sent]
    boxes = [each.boxes for each in asked if isinstance(each, AskStepColumn)]
    assert {len(box) for each in boxes for box in each} == {8 * m + 16}


def test_strict_owners_take_part_in_as_many_steps_as_they_apply_models() -> None:
    """A third of their columns, for all time: with 3 and 4 columns, one."""
    parties = federation(level="strict")
    with pytest.warns(cn.ConvergenceWarning, match="after 1 steps"):
        run = parties.fit(RIDGE, sampler=cn.UniformSampling(400), solver=cn.SecureGram(steps=1), seed=1)
    central = federation().fit(RIDGE, coreset=run.coreset)
    assert run.facts["cost"] < 1.05 * central.facts["cost"]
    with pytest.raises(cn.PolicyRefusedError, match=r"each of 6 steps is one\. Use SecureGram\(steps=1\)"):
        federation(level="strict").fit(RIDGE, sampler=cn.UniformSampling(400), solver=GRAM, seed=1)
    with pytest.raises(cn.PolicyRefusedError, match="never reveals labels"):
        federation(level="strict").fit(
            RIDGE, sampler=cn.ImportanceSampling(400, scores="secure"), solver=cn.SecureGram(steps=1), seed=1
        )


def test_owners_who_keep_predictions_do_not_take_part() -> None:
    with pytest.raises(cn.PolicyRefusedError, match="never reveals predictions"):
        fit(level="open", never=["predictions"])


def test_what_is_not_for_it() -> None:
    with pytest.raises(cn.UnsupportedError, match="solves regressions only"):
        fit(solver=cn.SecureGram(products="ckks"))
    with pytest.raises(cn.UnsupportedError, match="without l1"):
        federation().fit(cn.Classification(l1=0.1), coreset=CORESET, solver=GRAM)
    three = cn.split_columns(X, np.arange(len(X)) % 3, [3, 4, 2])
    with pytest.raises(cn.UnsupportedError, match="two classes apart, not 3"):
        cn.Federation(three).fit(RIDGE, coreset=CORESET, solver=GRAM)
    two = cn.Federation(cn.split_columns(X[:, :4], Y, [1, 3]))
    with pytest.raises(cn.InputError, match="fewer than two columns"):
        two.fit(RIDGE, coreset=CORESET, solver=cn.SecureGram(allow_two_parties=True))
    with pytest.raises(cn.InputError, match="steps must be 30 at most, got 31"):
        cn.SecureGram(steps=31)


def test_rows_of_one_class_and_separable_ones_are_refused() -> None:
    labels = np.where(np.arange(len(X)) % 2 == 0, "no", "yes")
    evens = cn.Coreset(np.arange(0, 800, 2), np.ones(400), len(X), float(len(X)))
    with pytest.raises(cn.InputError, match="all of one class"):
        cn.Federation(cn.split_columns(X, labels, [3, 4, 2])).fit(RIDGE, coreset=evens, solver=GRAM)
    apart = np.where(X[:, 8] > 1, "yes", "no")
    separable = cn.Federation(cn.split_columns(X, apart, [3, 4, 2]))
    with pytest.raises(cn.InputError, match="told apart without error"):
        separable.fit(cn.Classification(), coreset=CORESET, solver=GRAM)
    assert separable.fit(RIDGE, coreset=CORESET, solver=GRAM).facts["gain"] <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.0356])
def test_few_steps_are_enough_on_credit_default(data_folder: Path, share: float) -> None:
    """As on the page on privacy, whatever the draw; `share` of the positives are kept, so that 1.1 % are positive."""
    read = pq.read_table(data_folder / "credit_default.parquet")
    values = np.column_stack([read.column(place).to_numpy().astype(float) for place in range(1, 25)])
    kept = (values[:, 23] == 0) | (np.random.default_rng(5).random(len(values)) < share)
    features, labels = values[kept, :23], values[kept, 23]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    parties = cn.Federation(cn.split_columns(features, labels, [8, 8, 7]))
    task = cn.Classification(l2=5e-5)
    for seed in range(3):
        run = parties.fit(task, sampler=cn.ImportanceSampling(2000), solver=GRAM, seed=seed)
        central = parties.fit(task, coreset=run.coreset)
        assert run.facts["cost"] == pytest.approx(central.facts["cost"], rel=1e-5)
        assert run.facts["steps"] <= (7 if share == 1.0 else 12)
        assert run.ledger.bytes < 2_200_000
