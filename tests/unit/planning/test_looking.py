"""A second look at a pilot: only where columns nearly agree, and no more than it takes."""

import warnings
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import PartyCard, Roster
from colonnade.job_sheets import FINE_STEP, PILOT_STEP, finer_dithers, pilot_dithers, route_of, sheet_of
from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, sendable_rows
from colonnade.planning.looking import FEW, FREE, differ, hidden_in, places_to_look
from colonnade.routes import Route
from colonnade.solvers.finer_rows import AskFinerRows
from colonnade.solvers.scaled_columns import ScaledRows
from colonnade.solvers.whitened_columns import AskWhitenedColumns, WhitenedRows

N_ROWS = 20_000


def alike(eta: float) -> cn.Federation:
    """Two parties' columns that differ by a part eta of their spread; the label hangs on the differences."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(N_ROWS, 4))
    own = [rng.normal(size=(N_ROWS, 4)) for _ in range(2)]
    y = common.sum(axis=1) + (own[0] - own[1]).sum(axis=1) + rng.normal(size=N_ROWS)
    return cn.Federation([cn.Party("a", common + eta * own[0]), cn.Party("b", common + eta * own[1], label=y)])


def looks(plan: cn.Plan) -> list[int]:
    """Give how many values each party told at a second look, look by look."""
    return [entry.units for entry in plan.pilot if entry.kind == "FinerRows" and entry.party == "a"]


def planned(federation: cn.Federation) -> cn.Plan:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return federation.plan(cn.Regression(), budget_bytes=60_000)


def test_columns_that_are_independent_are_looked_at_once() -> None:
    plan = planned(alike(1.0))
    assert looks(plan) == []
    assert plan.sample.finer == {}


def test_columns_that_are_the_same_take_a_look_at_few_rows() -> None:
    """Also where one party's are sums of the other's. The excess is known, and what the look costs is small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    y = X.sum(axis=1) + rng.normal(size=N_ROWS)
    for copies in (X, X @ rng.normal(size=(4, 4)), X[:, :1]):
        plan = planned(cn.Federation([cn.Party("a", X), cn.Party("b", copies, label=y)]))
        assert len(looks(plan)) == 1
        assert looks(plan)[0] <= 4 * (FEW + 8) < 4 * plan.pilot_rows
        assert plan.sample.finer == {}
        assert plan.excess is not None
        assert sum(entry.bytes for entry in plan.pilot if entry.kind == "FinerRows") < 500


def test_columns_that_differ_slightly_are_looked_at_in_full() -> None:
    """At eta = 0.03 the pilot's step hides the differences, on which most of the label hangs."""
    federation = alike(0.03)
    plan = planned(federation)
    assert len(looks(plan)) == 2
    assert looks(plan)[1] == 4 * plan.pilot_rows
    assert sorted(plan.sample.finer) == ["a", "b"]
    assert plan.solver == cn.Central() or getattr(plan.solver, "step", 1.0) < 0.05
    assert plan.excess is not None
    costs = [federation.evaluate(federation.fit(cn.Regression(), plan=plan, seed=seed).model).cost for seed in range(5)]
    best = federation.evaluate(federation.fit(cn.Regression(), sampler=cn.AllRows()).model).cost
    # A mean of five runs of 9 coefficients is good to a fifth.
    assert np.mean(costs) / best - 1 < 2 * plan.excess.mean


TAKEN_TO_BE_THE_SAME = pytest.mark.xfail(strict=True, reason="open: differences below 1/256 of the spread are not seen")


@pytest.mark.parametrize(
    "eta",
    [0.1, 0.01, 0.003, 0.002, *(pytest.param(eta, marks=TAKEN_TO_BE_THE_SAME) for eta in (0.001, 0.0003))],
)
def test_small_differences_give_a_right_number_or_a_warning_and_none(eta: float) -> None:
    """One run is seldom three times its mean: 9 coefficients make that a chance of one in 10,000."""
    federation = alike(eta)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = federation.plan(cn.Regression(), budget_bytes=60_000)
    assert (plan.excess is None) == any("excess of this plan is not known" in str(each.message) for each in caught)
    if plan.excess is None:
        assert "Expected excess: not known. Columns of different parties agree so closely" in str(plan)
        return
    cost = federation.evaluate(federation.fit(cn.Regression(), plan=plan, seed=1).model).cost
    best = federation.evaluate(federation.fit(cn.Regression(), sampler=cn.AllRows()).model).cost
    assert cost / best - 1 < 3 * plan.excess.mean


def test_a_plan_of_a_fine_look_is_saved_and_fitted_again(tmp_path: Any) -> None:
    federation = alike(0.03)
    plan = planned(federation)
    again = cn.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again == plan
    first, second = (federation.fit(cn.Regression(), plan=each, seed=3) for each in (plan, again))
    np.testing.assert_array_equal(first.model.coef_, second.model.coef_)


def test_clusterings_are_never_looked_at_twice() -> None:
    """Distances bear rounding in any direction."""
    X = np.random.default_rng(0).normal(size=(6000, 2))
    plan = cn.Federation([cn.Party("a", X), cn.Party("b", X)]).plan(cn.KMeans(3), budget_bytes=20_000)
    assert looks(plan) == []
    rows = ScaledRows(X[:50], 0.1, 2)
    assert hidden_in({"a": rows, "b": rows}, np.ones(50)).shape[1] == 0


def rounded(values: Floats, step: float, seed: int) -> WhitenedRows:
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-step / 2, step / 2, values.shape)
    m, r = values.shape
    return WhitenedRows(values + noise, np.zeros(r), np.eye(r), None, step, np.empty(0, np.int64), np.empty((m, 0)))


def test_hidden_directions_are_those_that_parties_share() -> None:
    """The difference of two equal columns has the variance of rounding; at three times as much it is clear."""
    Z = np.random.default_rng(0).normal(size=(600, 3))
    parties = {"a": rounded(Z, PILOT_STEP, 1), "b": rounded(Z[:, :2], PILOT_STEP, 2)}
    found = hidden_in(parties, np.ones(600))
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-12)
    for column in (0, 1):
        difference = (np.eye(5)[column] - np.eye(5)[3 + column]) / np.sqrt(2)
        assert np.linalg.norm(found.T @ difference) > 0.99
    apart = Z[:, :2] + 0.3 * np.random.default_rng(3).normal(size=(600, 2))
    assert hidden_in({**parties, "b": rounded(apart, PILOT_STEP, 2)}, np.ones(600)).shape == (5, 0)


@pytest.mark.parametrize(("m0", "n_columns"), [(500, 4), (150, 40), (10, 3), (1, 1)])
def test_places_to_look_are_some_rows_and_the_farthest(m0: int, n_columns: int) -> None:
    along = np.random.default_rng(0).normal(size=(m0, 2))
    places = places_to_look(along, n_columns)
    assert np.all(np.diff(places) > 0)
    assert 0 <= places[0] <= places[-1] < m0
    most = max(FEW, n_columns + FREE)
    assert min(most, m0) / 2 <= len(places) <= most
    if m0 > 1:
        assert int(np.argmax(np.square(along).sum(axis=1))) in places


@pytest.mark.parametrize(("width", "shared", "m0"), [(9, 1, 152), (9, 9, 152), (9, 1, 600), (30, 3, 488)])
def test_few_rows_tell_a_difference_from_none(width: int, shared: int, m0: int) -> None:
    """Of 200 pilots each, as small as they get, none takes rounding for a difference, or overlooks one of 0.01.

    Ten squares of rounding alone exceed the bound less than once in 5,000 times: of 200 pilots one would do so in one
    of 25 tests, if seeds were not fixed.
    """
    signs = {eta: [_seen(width, shared, m0, eta, seed) for seed in range(200)] for eta in (0.0, 0.01)}
    assert not any(signs[0.0])
    assert all(signs[0.01])


def _seen(width: int, shared: int, m0: int, eta: float, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m0, width))
    other = rng.normal(size=(m0, width))
    other[:, :shared] = np.sqrt(1 - eta**2) * Z[:, :shared] + eta * rng.normal(size=(m0, shared))
    coarse = {"a": rounded(Z, PILOT_STEP, 2 * seed), "b": rounded(other, PILOT_STEP, 2 * seed + 1)}
    doubtful = hidden_in(coarse, np.ones(m0))
    joined = np.hstack([coarse["a"].values, coarse["b"].values])
    places = places_to_look(joined @ doubtful, 2 * width)
    fine = {"a": rounded(Z[places], FINE_STEP, seed), "b": rounded(other[places], FINE_STEP, seed + 1)}
    return differ(fine, doubtful.shape[1])


ROSTER = Roster((PartyCard("a", N_ROWS, ("x", "z"), "y"), PartyCard("b", N_ROWS, ("t",), None)))
SHEET = sheet_of("plan", {"task": cn.Regression(), "pilot": 300, "seed": 9}, ROSTER, None)


def asked(**changed: Any) -> AskFinerRows:
    seeds = {"seed": pilot_dithers(ROSTER, SHEET.seed)[1], "finer_seed": finer_dithers(ROSTER, SHEET.seed)[1]}
    given = {"step": PILOT_STEP, "finer_step": FINE_STEP, **seeds, "places": sendable_rows([0, 5]), **changed}
    return AskFinerRows(**given)


def to_the_look() -> Route:
    """Go along the route of b until the pilot's rows were told."""
    route: Route | None = route_of(SHEET, "b")
    columns = AskWhitenedColumns(PILOT_STEP, pilot_dithers(ROSTER, SHEET.seed)[1])
    # What is drawn by is tested elsewhere: go on by any request that is the next.
    for _ in range(20):
        assert route is not None
        if (left := route.after(columns)) is not None:
            return left
        route = _skipped(route)
    raise AssertionError("no rows were asked for")


def _skipped(route: Route) -> Route | None:
    rest: Route | None = getattr(route, "rest", None)
    return rest


def test_a_route_has_two_finer_looks_at_most() -> None:
    route: Route | None = to_the_look()
    for _ in range(2):
        assert route is not None
        assert route.can_end
        route = route.after(asked())
    assert route is not None
    assert route.can_end
    assert route.after(asked()) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"step": 0.5},
        {"finer_step": 1 / 1024},
        {"finer_step": 1e-6},
        {"seed": 5},
        {"finer_seed": 5},
        {"seed": pilot_dithers(ROSTER, SHEET.seed)[0]},
        {"finer_seed": finer_dithers(ROSTER, SHEET.seed)[0]},
        {"finer_seed": pilot_dithers(ROSTER, SHEET.seed)[1]},
    ],
    ids=str,
)
def test_a_finer_look_is_that_of_the_sheet(changed: dict[str, Any]) -> None:
    route, request = to_the_look(), asked(**changed)
    assert route.after(request) is None
    assert next(iter(changed)) in str(route.objection(request))


def test_no_finer_look_but_of_a_pilot() -> None:
    fit = {"task": cn.Regression(), "sampler": cn.UniformSampling(50), "solver": cn.CompactCentral(PILOT_STEP)}
    clustering = {"task": cn.KMeans(2), "pilot": 300, "seed": 9}
    kinds: list[set[type[Message]]] = [
        {ask.kind for ask in route_of(sheet_of(verb, what, ROSTER, None), "b").asks()}
        for verb, what in (("fit", fit), ("plan", clustering))
    ]
    assert all(AskFinerRows not in each for each in kinds)
    assert AskFinerRows in {ask.kind for ask in route_of(SHEET, "b").asks()}
