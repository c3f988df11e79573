"""Every kind of job on small tables: what is prepared honestly, and then played while one reply is changed."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

import colonnade as cn

SIZE, N_ROWS = 40, 90
Parties = Callable[[], list[cn.Party]]
# What a run's cost tells nothing of: a coded reply of other numbers is longer or shorter.
NOT_COMPARED = {"ledger", "seconds", "versions", "bytes", "units", "run_bytes", "reveals", "pilot", "by_phase"} | {
    "by_party",
    "fingerprint",
    "most_bytes",
    "evidence",
}


class Job(NamedTuple):
    """A job: who takes part, what comes before, and what is played under attack."""

    name: str
    parties: Parties
    prepare: Callable[[cn.Federation], Any]
    play: Callable[[cn.Federation, Any], Any]


def tables(n_rows: int = N_ROWS, *, weighted: bool = False, widths: tuple[int, ...] = (2, 1, 2)) -> Parties:
    """Make parties `bank`, `shop` and `post`; the first holds a label, the last a column to split by."""

    def make() -> list[cn.Party]:
        rng = np.random.default_rng(7)
        X = rng.normal(size=(n_rows, sum(widths))) * rng.choice([1.0, 3.0], size=sum(widths)) + 2.0
        X[: n_rows // 2] += 4.0
        y = X @ rng.normal(size=sum(widths)) + rng.normal(size=n_rows)
        ends = np.cumsum(widths)
        parts = [X[:, end - width : end] for end, width in zip(ends.tolist(), widths, strict=True)]
        return [
            cn.Party("bank", parts[0], label=y),
            cn.Party("shop", parts[1], weight=rng.uniform(0.5, 2.0, n_rows) if weighted else None),
            cn.Party("post", parts[2], split=rng.random(n_rows) < 0.3),
        ]

    return make


SAMPLERS: Mapping[str, Any] = {
    "plain": cn.ImportanceSampling(SIZE),
    "independent": cn.ImportanceSampling(SIZE, 0.3, "independent"),
    "set": cn.ImportanceSampling(SIZE, totals="set"),
    "rounded": cn.ImportanceSampling(SIZE, round_scores=True),
    "coarse": cn.ImportanceSampling(SIZE, 0.2, round_scores=0.2),
    "secure": cn.ImportanceSampling(SIZE, scores="secure"),
    "committed": cn.ImportanceSampling(SIZE, draws="committed"),
    "committed in secret": cn.ImportanceSampling(SIZE, draws="committed", scores="secure"),
    "uniform": cn.UniformSampling(SIZE),
    "all": cn.AllRows(),
}
LINEAR: Mapping[str, Any] = {
    "central": cn.Central(),
    "compact": cn.CompactCentral(),
    "saga": cn.Saga(batch=20, max_epochs=3),
    "coded saga": cn.Saga(batch=20, max_epochs=3, bits=12),
    "gram": cn.SecureGram(),
}
CLUSTERING: Mapping[str, Any] = {
    "central": cn.Central(),
    "compact": cn.CompactCentral(),
    "distdim": cn.DistDim(),
    "lloyd": cn.SecureLloyd(),
}
REGRESSION, KMEANS = cn.Regression(l2=0.1), cn.KMeans(n_clusters=3, n_starts=2)
VIEWS: Mapping[str, tuple[bool, bool, Any]] = {  # whether standardised, whether weighted, and the split
    "as it is": (False, False, None),
    "standardised": (True, False, cn.HoldOut(0.2)),
    "weighted": (False, True, cn.SplitBy("post")),
}


def nothing(_federation: cn.Federation) -> None:
    """Prepare nothing."""


def a_run(task: Any, **what: Any) -> Callable[[cn.Federation], Any]:
    """Prepare a run."""
    return lambda federation: federation.fit(task, **{"sampler": cn.ImportanceSampling(SIZE), **what})


def fits() -> list[Job]:
    """List every sampler with every solver; the views take turns."""
    jobs = []
    for solvers, task in ((LINEAR, REGRESSION), (CLUSTERING, KMEANS)):
        for sampler_name, sampler in SAMPLERS.items():
            for solver_name, solver in solvers.items():
                view = list(VIEWS)[len(jobs) % len(VIEWS)]
                standardize, weighted, split = VIEWS[view]
                viewed = msgspec.structs.replace(task, standardize=standardize)

                def play(federation: cn.Federation, _: Any, viewed: Any = viewed, how: Any = (sampler, solver, split)):  # type: ignore[no-untyped-def]
                    return federation.fit(viewed, sampler=how[0], solver=how[1], split=how[2], seed=3)

                name = f"fit {type(task).__name__}, {sampler_name}, {solver_name}, {view}"
                jobs.append(Job(name, tables(weighted=weighted), nothing, play))
    return jobs


def others() -> list[Job]:
    """List the other verbs."""
    jobs = [
        Job(
            "fit cv gram",
            tables(),
            nothing,
            lambda f, _: f.fit(
                cn.Regression(l2="cv"), sampler=cn.ImportanceSampling(60), solver=cn.SecureGram(), seed=3
            ),
        ),
        Job(
            "coreset and spot check",
            tables(),
            lambda f: f.coreset(REGRESSION, SAMPLERS["committed"], seed=3),
            lambda f, run: f.spot_check(run, rows=4, seed=1),
        ),
    ]
    for task in (REGRESSION, KMEANS):
        name, run = type(task).__name__, a_run(task)
        viewed = msgspec.structs.replace(task, standardize=True)
        jobs += [
            Job(f"plan {name}", tables(400), nothing, lambda f, _, t=task: f.plan(t, budget_bytes=60_000, pilot=220)),
            Job(
                f"diagnose {name}",
                tables(),
                nothing,
                lambda f, _, t=viewed: f.diagnose(t, sampler=cn.ImportanceSampling(SIZE), rows=80, pairs=60),
            ),
            Job(
                f"diagnose a run of {name}",
                tables(),
                run,
                lambda f, r, t=task: f.diagnose(t, coreset=r.coreset, model=r.model if t is KMEANS else None, rows=80),
            ),
            Job(f"certify {name}", tables(400), run, lambda f, r: f.certify(r, rows=80)),
            Job(
                f"certify {name}, compact, weighted",
                tables(400, weighted=True),
                a_run(viewed, solver=cn.CompactCentral()),
                lambda f, r: f.certify(r, rows=80),
            ),
            Job(f"predict {name}", tables(), run, lambda f, r: f.predict(r.model)),
            Job(f"predict {name}, bits, to", tables(), run, lambda f, r: (f.predict(r.model, bits=8, to="post"),)),
            Job(f"deliver {name}", tables(), run, lambda f, r: (f.deliver(r.model, "shop"), f.received("shop"))),
            Job(f"evaluate {name}", tables(), run, lambda f, r: f.evaluate(r.model)),
            Job(
                f"evaluate {name}, weighted, split",
                tables(weighted=True),
                a_run(viewed),
                lambda f, r: f.evaluate(r.model, split=cn.SplitBy("post")),
            ),
            Job(f"evaluate {name}, drawn", tables(), run, lambda f, r: f.evaluate(r.model, rows=50, seed=1)),
            Job(f"evaluate {name}, bits", tables(), run, lambda f, r: f.evaluate(r.model, rows=50, bits=8, seed=1)),
            Job(f"evaluate {name}, by", tables(), run, lambda f, r: f.evaluate(r.model, by="post")),
            Job(
                f"evaluate {name}, by, drawn",
                tables(weighted=True),
                run,
                lambda f, r: f.evaluate(r.model, rows=50, by="bank", seed=1),
            ),
        ]
    return jobs


def told(result: Any) -> Any:
    """Take a result apart into plain numbers that can be compared."""
    if isinstance(result, np.ndarray):
        return result.tolist()
    if isinstance(result, msgspec.Struct):
        return {name: told(getattr(result, name)) for name in result.__struct_fields__ if name not in NOT_COMPARED}
    if is_dataclass(result):
        return {each.name: told(getattr(result, each.name)) for each in fields(result) if each.name not in NOT_COMPARED}
    if isinstance(result, Mapping):
        return {name: told(each) for name, each in result.items()}
    if isinstance(result, tuple | list):
        return [told(each) for each in result]
    return result
