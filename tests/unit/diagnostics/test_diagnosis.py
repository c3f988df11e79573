"""Both forms of a diagnosis: exact against plain linear algebra, over the parties against exact."""

import warnings
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from whole_tables import held

N = 3_000
TRANSPORTS: list[Any] = [InProcess, Loopback]


def regression_data(overlap: float = 0.5, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(N, 6))
    X[:, 3] += overlap * X[:, 0]
    return X, X @ rng.normal(size=6) + 3.0 + 2.0 * rng.normal(size=N)


def regression_parties(**options: Any) -> list[cn.Party]:
    return cn.split_columns(*regression_data(**options), [3, 2, 1])


def clustering_parties(widths: tuple[int, ...] = (5, 2)) -> list[cn.Party]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, sum(widths))) + 4 * rng.integers(3, size=(N, 1))
    return cn.split_columns(X, None, widths)


def quietly(call: Any, *arguments: Any, **options: Any) -> cn.Diagnosis:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cn.AssumptionWarning)
        found: cn.Diagnosis = call(*arguments, **options)
        return found


def test_exact_regression_is_what_plain_linear_algebra_says() -> None:
    X, y = regression_data()
    parties = regression_parties()
    coreset = cn.Federation(parties).coreset(cn.Regression(), cn.ImportanceSampling(size=300), seed=1).coreset
    found = quietly(cn.diagnose, parties, cn.Regression(), coreset=coreset)
    ones = np.ones((N, 1))
    blocks = [X[:, :3], X[:, 3:5], np.column_stack([X[:, 5:], y, ones])]
    U = np.hstack([np.linalg.qr(block)[0] for block in blocks])
    assert found.gamma is not None
    assert found.gamma.value == pytest.approx(np.linalg.svd(U, compute_uv=False)[-1], rel=1e-9)
    joined = np.column_stack([X, ones, y])
    values = np.linalg.svd(joined, compute_uv=False)
    assert found.gamma.bound == pytest.approx(values[-1] / values[0], rel=1e-9)
    Q = np.linalg.qr(joined)[0]
    scores = np.square(U).sum(axis=1) + 3 / N
    assert found.sensitivity.total == pytest.approx(scores.sum())
    assert found.sensitivity.zeta == pytest.approx((np.square(Q).sum(axis=1) / scores).max(), rel=1e-9)
    assert found.sensitivity.zeta <= found.sensitivity.bound
    core = Q[coreset.rows].T @ (coreset.weights[:, None] * Q[coreset.rows])
    assert found.epsilon is not None
    assert found.epsilon.worst is not None
    assert found.epsilon.worst == pytest.approx(np.abs(np.linalg.eigvalsh(core) - 1).max(), rel=1e-8)
    assert found.epsilon.random_mean < found.epsilon.random_max <= found.epsilon.worst
    assert found.epsilon.near_max is not None
    assert 0 < found.epsilon.near_max <= found.epsilon.worst
    assert found.robustness is not None
    assert 0 < found.robustness.share < 0.1
    assert (found.exact, found.rows, found.units, found.reveals) == (True, N, 0, ())


def test_over_the_parties_comes_near_the_exact_numbers_and_says_what_it_cost() -> None:
    """Seeds fixed: gamma within 15 %, epsilon within its floor of the exact one."""
    parties = regression_parties()
    federation, sampler = cn.Federation(parties), cn.ImportanceSampling(size=300)
    coreset = federation.coreset(cn.Regression(), sampler, seed=1).coreset
    exact = quietly(cn.diagnose, parties, cn.Regression(), coreset=coreset)
    position = len(federation.ledger)
    found = quietly(federation.diagnose, cn.Regression(), sampler=sampler, seed=1)
    ledger = federation.ledger.since(position)
    assert found.gamma is not None
    assert exact.gamma is not None
    assert found.gamma.effective == pytest.approx(exact.gamma.effective, rel=0.15)
    assert found.gamma.halves is not None
    assert found.sensitivity.total == pytest.approx(exact.sensitivity.total)
    assert found.sensitivity.zeta <= exact.sensitivity.zeta * 1.3
    assert found.epsilon is not None
    assert found.epsilon.floor is not None
    assert found.epsilon.worst is not None
    assert exact.epsilon is not None
    assert exact.epsilon.worst is not None
    assert abs(found.epsilon.worst - exact.epsilon.worst) < found.epsilon.floor
    assert (found.units, found.bytes) == (ledger.units, ledger.bytes)
    m, rank, T = 300, 8, 3
    assert found.units == (2000 + m) * (rank + 2 * T) + m + 4 * T + sum(
        entry.units for entry in ledger if entry.kind == "DrawnRows" and entry.round == 3
    )
    assert found.reveals == ("schema", "totals", "row ids", "scores", "features", "labels")


def test_gamma_from_few_rows_is_rarely_much_too_large() -> None:
    """At most a quarter may be twice too large (Markov); of 100 that none is 1.5 times shows the bound to be loose."""
    parties = regression_parties()
    truth = cn.diagnose(parties, cn.Regression()).gamma
    federation = cn.Federation(parties)
    found = [quietly(federation.diagnose, cn.Regression(), rows=80, seed=seed).gamma for seed in range(100)]
    assert truth is not None
    ratios = np.array([gamma.effective / truth.effective for gamma in found if gamma is not None])
    assert ratios.max() < 1.5
    assert np.median(ratios) < 1.0, "it errs on the safe side"


def test_a_given_coreset_is_measured_without_drawing_it_again() -> None:
    federation, sampler = cn.Federation(regression_parties()), cn.ImportanceSampling(size=300)
    coreset = federation.coreset(cn.Regression(), sampler, seed=4).coreset
    given = quietly(federation.diagnose, cn.Regression(), coreset=coreset, seed=4)
    drawn = quietly(federation.diagnose, cn.Regression(), sampler=sampler, seed=4)
    assert given.epsilon == drawn.epsilon
    assert given.units < drawn.units


def test_without_a_coreset_the_assumptions_alone_are_measured() -> None:
    federation = cn.Federation(regression_parties())
    found = federation.diagnose(cn.Regression(fit_intercept=False))
    assert found.epsilon is None
    assert found.concerns == ()
    assert "What to do: nothing" in str(found)


def test_tau_of_k_means_and_its_trend() -> None:
    parties = clustering_parties()
    found = cn.diagnose(parties, cn.KMeans(n_clusters=3))
    X = np.hstack([held(party.table) for party in parties])
    rng = np.random.default_rng(9)
    i, j = rng.integers(N, size=(2, 2_000))
    i, j = i[i != j], j[i != j]
    ratios = np.square(X[i] - X[j]).sum(axis=1) / np.square(X[i, :5] - X[j, :5]).sum(axis=1)
    assert found.tau is not None
    assert found.tau.party == "party1"
    assert found.tau.by_party["party1"] < found.tau.by_party["party2"]
    assert found.tau.most == pytest.approx(np.quantile(ratios, 0.99), rel=0.3)
    counts, values = zip(*found.tau.trend, strict=True)
    assert counts == (31, 125, 500, 2000)
    assert list(values) == sorted(values)
    assert found.tau.value == values[-1] == found.tau.by_party["party1"]
    assert found.sensitivity.bound == 4 * found.tau.value
    assert found.sensitivity.zeta <= found.sensitivity.bound
    assert found.sensitivity.total == pytest.approx(2 * (2 + 2 * 3))


def test_k_means_over_the_parties_with_a_model() -> None:
    parties = clustering_parties()
    federation = cn.Federation(parties)
    task = cn.KMeans(n_clusters=3)
    run = federation.fit(task, sampler=cn.ImportanceSampling(size=400), seed=2)
    found = quietly(federation.diagnose, task, coreset=run.coreset, model=run.model, seed=2)
    exact = quietly(cn.diagnose, parties, task, coreset=run.coreset)
    assert found.epsilon is not None
    assert exact.epsilon is not None
    assert found.epsilon.floor is not None
    assert found.epsilon.near_max is not None
    assert abs(found.epsilon.random_max - exact.epsilon.random_max) < 3 * found.epsilon.floor
    assert found.epsilon.near_max < 0.3
    assert exact.robustness is not None
    assert exact.robustness.share < 0.05
    assert found.reveals == ("schema", "totals", "row ids", "scores", "predictions", "features")
    assert "Models near the best" in str(found)


def test_transports_agree_on_a_diagnosis_bit_for_bit() -> None:
    for parties, task in ((regression_parties(), cn.Regression()), (clustering_parties(), cn.KMeans(n_clusters=3))):
        found = [
            quietly(
                cn.Federation(parties, transport=transport).diagnose,
                task,
                sampler=cn.ImportanceSampling(size=200),
                seed=3,
            )
            for transport in TRANSPORTS
        ]
        assert found[0] == found[1]


def test_columns_that_overlap_raise_a_warning_that_names_the_remedy() -> None:
    rng = np.random.default_rng(3)
    X, y = regression_data()
    X[:, 3] = X[:, 0] + 0.01 * rng.normal(size=N)
    federation = cn.Federation(cn.split_columns(X, y, [3, 2, 1]))
    with pytest.warns(
        cn.AssumptionWarning, match=r"columns overlap: gamma is 0\.00.*uniform_share=0\.1.*let one party"
    ):
        found = federation.diagnose(cn.Regression(), sampler=cn.ImportanceSampling(size=300))
    assert len(found.concerns) == 1
    assert found.concerns[0] in str(found)


def test_columns_far_from_zero_look_like_the_constant_until_they_are_centred() -> None:
    X, y = regression_data(overlap=0.0)
    X[:, :2] += 1000.0
    found = [
        quietly(cn.diagnose, cn.split_columns(values, y, [3, 2, 1]), cn.Regression()).gamma
        for values in (X, X - X.mean(axis=0))
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].effective < 0.01 < 0.2 < found[1].effective
    with pytest.warns(cn.AssumptionWarning, match="First pass standardize=True"):
        cn.diagnose(cn.split_columns(X, y, [3, 2, 1]), cn.Regression())


def test_a_column_that_two_parties_share_is_no_concern() -> None:
    X, y = regression_data()
    X[:, 3] = 2 * X[:, 0]
    found = cn.diagnose(cn.split_columns(X, y, [3, 2, 1]), cn.Regression())
    assert found.gamma is not None
    assert (found.gamma.value, found.gamma.dependent, found.gamma.label_dependent) == (0.0, 1, False)
    assert found.gamma.effective > 0.1
    assert found.concerns == ()
    assert "1 exact dependence between" in str(found)


def test_a_label_that_the_columns_predict_exactly_is_a_concern() -> None:
    X, _ = regression_data()
    parties = cn.split_columns(X, X @ np.arange(6.0), [3, 2, 1])
    with pytest.warns(cn.AssumptionWarning, match="predict the label exactly"):
        found = cn.diagnose(parties, cn.Regression())
    assert found.gamma is not None
    assert found.gamma.label_dependent


def test_a_size_above_the_threshold_is_no_concern() -> None:
    parties = regression_parties()
    gamma = cn.diagnose(parties, cn.Regression()).gamma
    assert gamma is not None
    threshold = 11 / gamma.effective**2
    federation = cn.Federation(parties)
    for size, concerns in ((int(threshold) - 1, 1), (int(threshold) + 1, 0)):
        coreset = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=size)).coreset
        assert len(quietly(cn.diagnose, parties, cn.Regression(), coreset=coreset).concerns) == concerns


def test_rows_that_each_party_sees_double_make_tau_infinite() -> None:
    rng = np.random.default_rng(4)
    X = rng.integers(3, size=(N, 4)).astype(float)
    federation = cn.Federation(cn.split_columns(X, None, [2, 2]))
    with pytest.warns(cn.AssumptionWarning, match="tau is infinite"):
        found = federation.diagnose(cn.KMeans(n_clusters=3))
    assert found.tau is not None
    assert found.tau.value == np.inf


def test_a_party_that_never_reveals_features_shows_no_whitened_rows() -> None:
    X, y = regression_data()
    guarded = cn.Party("guarded", X[:, :2], policy=cn.Policy(level="open", never=["features"]))
    federation = cn.Federation([guarded, cn.Party("open", X[:, 2:], label=y)])
    with pytest.raises(cn.PolicyRefusedError, match=r"'guarded' did not answer OpenJob: .* which a WhitenedRows would"):
        federation.diagnose(cn.Regression())


def test_a_label_party_that_never_reveals_labels_refuses_too() -> None:
    X, y = regression_data()
    labelled = cn.Party("bank", X[:, 2:], label=y, policy=cn.Policy(level="open", never=["labels"]))
    federation = cn.Federation([cn.Party("shop", X[:, :2]), labelled])
    with pytest.raises(cn.PolicyRefusedError, match="'bank' did not answer OpenJob"):
        federation.diagnose(cn.Regression())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 3}, "3 rows say nothing about 6 columns"),
        ({"rows": 0}, "size must be a whole number"),
        ({"pairs": 1}, "pairs must be a whole number"),
        ({"seed": -1}, "seed must be"),
        ({"sampler": 5}, "is not a sampler"),
        ({"model": 5}, "is not a k-means model"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    federation = cn.Federation(regression_parties())
    with pytest.raises(cn.InputError, match=message):
        federation.diagnose(cn.Regression(), **options)


def test_a_sampler_and_a_coreset_are_one_too_many() -> None:
    federation = cn.Federation(regression_parties())
    sampler = cn.ImportanceSampling(size=10)
    coreset = federation.coreset(cn.Regression(), sampler).coreset
    with pytest.raises(cn.InputError, match="not both"):
        federation.diagnose(cn.Regression(), sampler=sampler, coreset=coreset)


def test_tiny_federations() -> None:
    one = cn.Federation(cn.split_columns(np.ones((1, 2)), np.ones(1), [1, 1]))
    found = quietly(one.diagnose, cn.KMeans(n_clusters=1))
    assert found.tau is None
    parties = cn.split_columns(np.arange(8.0).reshape(4, 2), np.arange(4.0), [1, 1])
    for call in (cn.Federation(parties).diagnose, lambda task: cn.diagnose(parties, task)):
        assert quietly(call, cn.Regression()).sensitivity.total > 0
        assert quietly(call, cn.KMeans(n_clusters=2)).sensitivity.total > 0
    alone = cn.Party("labels", np.empty((4, 0)), label=np.arange(4.0))
    found = quietly(cn.Federation([parties[0], alone]).diagnose, cn.Regression(fit_intercept=False))
    assert found.gamma is not None


def test_standardised_columns_are_diagnosed_as_they_enter() -> None:
    """Columns far from zero look like the constant; standardised they are as good as centred ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4)) + 50.0
    y = X @ np.ones(4) + rng.normal(size=2000)
    parties = cn.split_columns(X, y, [2, 2])
    with pytest.warns(cn.AssumptionWarning):
        raw = cn.diagnose(parties, cn.Regression()).gamma
    exact = cn.diagnose(parties, cn.Regression(standardize=True)).gamma
    seen = cn.Federation(parties).diagnose(cn.Regression(standardize=True)).gamma
    assert exact is not None
    assert raw is not None
    assert seen is not None
    assert exact.value > 10 * raw.value
    assert seen.value == pytest.approx(exact.value, rel=0.2)


def test_centres_of_a_standardised_model_are_moved_in_standard_units() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(10 * rng.normal(size=(3, 4)), 400, axis=0) + rng.normal(size=(1200, 4))
    X *= [1.0, 1e3, 1.0, 1e-3]
    federation = cn.Federation(cn.split_columns(X, None, [2, 2]))
    task = cn.KMeans(n_clusters=3, standardize=True)
    run = federation.fit(task, sampler=cn.ImportanceSampling(300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cn.AssumptionWarning)
        found = federation.diagnose(task, coreset=run.coreset, model=run.model)
    assert found.epsilon is not None
    assert found.epsilon.near_mean is not None
    assert found.epsilon.near_mean < 0.2


def test_row_weights_are_not_diagnosed() -> None:
    X, y = np.random.default_rng(0).normal(size=(2, 50, 3))
    parties = cn.split_columns(X, y[:, 0], [2, 1], weight=np.ones(50))
    with pytest.raises(cn.UnsupportedError, match="counts every row once"):
        cn.Federation(parties).diagnose(cn.Regression())
    with pytest.raises(cn.UnsupportedError, match="counts every row once"):
        cn.diagnose(parties, cn.Regression())


def test_diagnosing_parties_checks_its_input() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(500, 9))
    parties = cn.split_columns(X, X @ np.arange(1.0, 10.0) + 5 * rng.normal(size=500), [3, 3, 3])
    other = cn.Coreset(np.array([0, 1]), np.ones(2), n_rows=7, total_weight=7.0)
    with pytest.raises(cn.AlignmentError, match="The coreset was made of 7 rows"):
        cn.diagnose(parties, cn.Regression(), coreset=other)
    with pytest.raises(cn.InputError, match="epsilon must be above 0"):
        cn.diagnose(parties, cn.Regression(), epsilon=0.0)
    with pytest.raises(cn.InputError, match="at least one party"):
        cn.diagnose([], cn.Regression())
