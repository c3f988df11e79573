"""Every kind of job on small tables: what is prepared honestly, and then played while one reply is changed."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
import numpy as np
import pyarrow as pa

import colonnade as cn
from colonnade.kernels.selections import WINDOW_NUMBERS
from colonnade.solvers.gram import question
from harness import parties_of

SIZE, N_ROWS = 40, 90
WORDS, NUMBERS = ("no", "yes"), (0.0, 1.0)
# What it cost, and what that says: a coded reply of other numbers is longer or shorter. Evidence is what was told.
NOT_COMPARED = {"ledger", "seconds", "versions", "bytes", "units", "run_bytes", "most_bytes", "reveals", "evidence"} | {
    "pilot",
    "by_phase",
    "by_party",
    "fingerprint",
}


class Job(NamedTuple):
    """A job: who takes part, what comes before it, and what is played under attack."""

    name: str
    play: Callable[[cn.Federation, Any], Any]
    prepare: Callable[[cn.Federation], Any] = lambda _: None
    n_rows: int = N_ROWS
    weighted: bool = False
    prepared: bool = False
    alike: bool = False
    classes: tuple[str | float, ...] = ()
    crowd: int = 0

    def parties(self) -> list[cn.Party]:
        """Make `bank`, `shop` and `post`: a label, perhaps weights, and a column to split by; and perhaps a crowd."""
        rng = np.random.default_rng(7)
        X = rng.normal(size=(self.n_rows, 5)) * [1.0, 3.0, 1.0, 1.0, 3.0] + 2.0
        X[: self.n_rows // 2] += 4.0
        if self.alike:  # but for what rounding hides
            X[:, 3:] = X[:, :2] + 0.03 * rng.normal(size=(self.n_rows, 2))
        y = X @ rng.normal(size=5) + rng.normal(size=self.n_rows)
        if self.classes:
            y = np.array(self.classes)[(y > np.median(y)).astype(int)]
        weight = rng.uniform(0.5, 2.0, self.n_rows) if self.weighted else None
        shop = cn.Party("shop", X[:, 2:3], weight=weight)
        if self.prepared:
            table = pa.table({"job": rng.choice(["clerk", "driver", "nurse"], self.n_rows), "age": X[:, 2]})
            shop = cn.Party("shop", table, prepare=cn.Prepare({"job": cn.Category(), "age": cn.Number(scale=True)}))
        return [
            cn.Party("bank", X[:, :2], label=y),
            shop,
            cn.Party("post", X[:, 3:], split=rng.random(self.n_rows) < 0.3),
            *(cn.Party(f"crowd{number}", rng.normal(size=(self.n_rows, 1))) for number in range(self.crowd)),
        ]


SAMPLERS: Mapping[str, Any] = {
    "plain": cn.ImportanceSampling(SIZE),
    "independent": cn.ImportanceSampling(SIZE, 0.3, "independent"),
    "set": cn.ImportanceSampling(SIZE, totals="set"),
    "rounded": cn.ImportanceSampling(SIZE, round_scores=True),
    "coarse": cn.ImportanceSampling(SIZE, 0.2, round_scores=0.2),
    "distinct": cn.ImportanceSampling(SIZE, 0.2, "distinct"),
    "distinct, rounded": cn.ImportanceSampling(SIZE, draws="distinct", round_scores=0.2),
    "distinct in secret": cn.ImportanceSampling(SIZE, draws="distinct", scores="secure"),
    "secure": cn.ImportanceSampling(SIZE, scores="secure"),
    "committed": cn.ImportanceSampling(SIZE, draws="committed"),
    "committed in secret": cn.ImportanceSampling(SIZE, draws="committed", scores="secure"),
    "uniform": cn.UniformSampling(SIZE),
    "all": cn.AllRows(),
}
SHARPENED = cn.ImportanceSampling(SIZE, sharpened=True)
SOLVERS: Mapping[str, Mapping[str, Any]] = {
    "Regression": {
        "central": cn.Central(),
        "compact": cn.CompactCentral(),
        "saga": cn.Saga(batch=20, max_epochs=3),
        "coded saga": cn.Saga(batch=20, max_epochs=3, bits=12),
        "gram": cn.SecureGram(),
    },
    "KMeans": {
        "central": cn.Central(),
        "compact": cn.CompactCentral(),
        "distdim": cn.DistDim(),
        "lloyd": cn.SecureLloyd(),
    },
}
TASKS: Mapping[str, Any] = {"Regression": cn.Regression(l2=0.1), "KMeans": cn.KMeans(n_clusters=3, n_starts=2)}
# Whether columns are standardised, whether rows have weights, and which are held out.
VIEWS = ((False, False, None), (True, False, cn.HoldOut(0.2)), (False, True, cn.SplitBy("post")))

PREPARED = {"prepared": None, "prepared by a split": cn.SplitBy("post")}


def all_jobs() -> list[Job]:
    """List every sampler with every solver, and every other verb."""
    jobs = [Job("hello", lambda f, _: cn.Federation(jobs[0].parties(), transport=parties_of(f).transport).roster)]
    for name in TASKS:
        jobs += [*_fits(name), *_others(name)]
    jobs += [_alignment(mode) for mode in ("clear", "aided", "curve")]
    jobs += [Job(f"fit, {view}", partial(_prepared_fit, split), prepared=True) for view, split in PREPARED.items()]
    cv, ckks = cn.Regression(l2="cv"), cn.SecureGram(products="ckks")
    return [
        *jobs,
        Job("fit, cv", lambda f, _: f.fit(cv, sampler=cn.ImportanceSampling(90), solver=cn.SecureGram(), seed=3)),
        Job("fit, gram in windows", _in_windows, weighted=True),
        Job(
            "weights in two windows",
            lambda f, _: f.coreset(TASKS["Regression"], cn.UniformSampling(SIZE), seed=3),
            n_rows=WINDOW_NUMBERS + N_ROWS,
            weighted=True,
        ),
        Job("fit, a crowd", lambda f, _: f.fit(TASKS["Regression"], sampler=SAMPLERS["plain"], seed=3), crowd=31),
        Job("fit, sharpened", lambda f, _: f.fit(TASKS["Regression"], sampler=SHARPENED, seed=3)),
        Job("look again", lambda f, _: f.plan(cn.Regression(), budget_bytes=60_000, pilot=220), n_rows=400, alike=True),
        *_of_classes(),
        Job("fit, ckks", lambda f, _: f.fit(TASKS["Regression"], sampler=cn.UniformSampling(SIZE), solver=ckks)),
        Job(
            "spot check",
            lambda f, run: f.spot_check(run, rows=4, seed=1),
            lambda f: f.coreset(TASKS["Regression"], SAMPLERS["committed"], seed=3),
        ),
    ]


def _in_windows(federation: cn.Federation, _: object) -> Any:
    with patch.object(question, "AT_ONCE", SIZE):
        return federation.fit(TASKS["Regression"], sampler=cn.AllRows(), solver=cn.SecureGram(), seed=3)


def _prepared_fit(split: Any, federation: cn.Federation, _: object) -> Any:
    """Learn of columns that a party prepares, all rows; what it keeps of that is its own."""
    model = federation.fit(TASKS["Regression"], sampler=cn.AllRows(), split=split).model
    return model.coef_, model.feature_names_in_


def _of_classes() -> list[Job]:
    """List what a classification asks that others do not."""
    task, sampler = cn.Classification(l2=0.1), cn.ImportanceSampling(SIZE)

    def run(federation: cn.Federation) -> Any:
        return federation.fit(task, sampler=sampler)

    def compact(federation: cn.Federation) -> Any:
        return federation.fit(task, sampler=sampler, solver=cn.CompactCentral())

    def learned(solver: Any) -> Any:
        return lambda f, _: f.fit(task, sampler=sampler, solver=solver, seed=3)

    def deliver(federation: cn.Federation, found: Any) -> Any:
        federation.deliver(found.model, "shop")
        return federation.received("shop")

    def evaluate(name: str, weighted: bool = False, classes: Any = NUMBERS, **options: Any) -> Job:
        return Job(name, lambda f, r: f.evaluate(r.model, **options), run, 200, weighted=weighted, classes=classes)

    def plan(federation: cn.Federation, _: object) -> Any:
        return federation.plan(task, budget_bytes=60_000, pilot=220)

    return [
        Job("plan classes", plan, n_rows=400, classes=NUMBERS),
        Job("diagnose classes", lambda f, _: f.diagnose(task, sampler=sampler, rows=80), n_rows=200, classes=NUMBERS),
        Job("fit Classification, central", learned(cn.Central()), classes=NUMBERS),
        Job("fit Classification, compact", learned(cn.CompactCentral()), classes=WORDS),
        Job("fit Classification, gram", learned(cn.SecureGram()), classes=WORDS),
        Job("fit Classification, saga", learned(cn.Saga(batch=20, max_epochs=3)), classes=NUMBERS),
        evaluate("evaluate classes", classes=WORDS),
        evaluate("evaluate classes, split", weighted=True, split=cn.SplitBy("post")),
        evaluate("evaluate classes, drawn", rows=120, bits=8, seed=1),
        evaluate("evaluate classes, by", weighted=True, by="bank"),
        evaluate("evaluate classes, drawn, by", rows=120, by="bank", seed=1, classes=WORDS),
        Job("predict classes", lambda f, r: (f.predict(r.model, to="post"), f.received("post")), run, classes=WORDS),
        Job("deliver classes", deliver, run, classes=NUMBERS),
        Job("certify classes", lambda f, r: f.certify(r, rows=90), run, 400, classes=NUMBERS),
        Job(
            "certify classes, weighted",
            lambda f, r: f.certify(r, rows=90),
            compact,
            400,
            weighted=True,
            classes=NUMBERS,
        ),
    ]


def _alignment(mode: Any) -> Job:
    """Match records of tables of which each has rows that the others lack, in an order of its own."""
    rng = np.random.default_rng(5)
    tables = {
        name: pa.table({"id": rng.permutation(np.arange(start, start + N_ROWS)), name: rng.normal(size=N_ROWS)})
        for name, start in (("bank", 0), ("shop", 20), ("post", 10))
    }

    def play(federation: cn.Federation, _: object) -> Any:
        parties = [cn.Party(name, table, key="id") for name, table in tables.items()]
        aligned = cn.Federation(parties, align=mode, transport=parties_of(federation).transport)
        return aligned.alignment, aligned.roster

    return Job(f"align, {mode}", play)


def _fits(name: str) -> list[Job]:
    """List every sampler with every solver; the views take turns."""
    return [
        _fit(f"fit {name}, {sampler}, {solver}", TASKS[name], SAMPLERS[sampler], SOLVERS[name][solver], turn)
        for turn, (sampler, solver) in enumerate((each, other) for each in SAMPLERS for other in SOLVERS[name])
    ]


def _fit(name: str, task: Any, sampler: Any, solver: Any, turn: int) -> Job:
    standardize, weighted, split = VIEWS[turn % len(VIEWS)]
    viewed = msgspec.structs.replace(task, standardize=standardize)
    return Job(name, lambda f, _: f.fit(viewed, sampler=sampler, solver=solver, split=split, seed=3), weighted=weighted)


def _others(name: str) -> list[Job]:
    task, viewed = TASKS[name], msgspec.structs.replace(TASKS[name], standardize=True)
    sampler = cn.ImportanceSampling(SIZE)
    drawn: dict[str, Any] = {"rows": 50, "seed": 1}

    def run(federation: cn.Federation) -> Any:
        return federation.fit(task, sampler=sampler)

    def compact(federation: cn.Federation) -> Any:
        return federation.fit(viewed, sampler=sampler, solver=cn.CompactCentral())

    def diagnose(federation: cn.Federation, found: Any) -> Any:
        model = found.model if isinstance(found.model, cn.KMeansModel) else None
        return federation.diagnose(task, coreset=found.coreset, model=model, rows=80)

    def deliver(federation: cn.Federation, found: Any) -> Any:
        federation.deliver(found.model, "shop")
        return federation.received("shop")

    return [
        Job(f"plan {name}", lambda f, _: f.plan(task, budget_bytes=60_000, pilot=220), n_rows=400),
        Job(f"diagnose {name}", lambda f, _: f.diagnose(viewed, sampler=sampler, rows=80, pairs=60)),
        Job(f"diagnose a run of {name}", diagnose, run),
        Job(f"certify {name}", lambda f, r: f.certify(r, rows=80), run, 400),
        Job(f"certify {name}, weighted", lambda f, r: f.certify(r, rows=80), compact, 400, weighted=True),
        Job(f"predict {name}", lambda f, r: f.predict(r.model), run),
        Job(f"predict {name}, bits, to", lambda f, r: (f.predict(r.model, bits=8, to="post"), f.received("post")), run),
        Job(f"deliver {name}", deliver, run),
        Job(f"evaluate {name}", lambda f, r: f.evaluate(r.model), run),
        Job(
            f"evaluate {name}, split",
            lambda f, r: f.evaluate(r.model, split=cn.SplitBy("post")),
            compact,
            weighted=True,
        ),
        Job(f"evaluate {name}, drawn", lambda f, r: f.evaluate(r.model, **drawn), run),
        Job(f"evaluate {name}, bits", lambda f, r: f.evaluate(r.model, bits=8, **drawn), run),
        Job(f"evaluate {name}, by", lambda f, r: f.evaluate(r.model, by="post"), run),
        Job(f"evaluate {name}, drawn, by", lambda f, r: f.evaluate(r.model, by="bank", **drawn), run, weighted=True),
    ]


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
