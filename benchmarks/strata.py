"""What stratified draws lose by not sorting scores: excess loss by classes of scores, by sorted scores, by no strata.

Least squares of 1,000 rows drawn as Algorithm 1 has it, by plain draws of the kernels: no messages, no rounding. Rows
lie by classes of their score, as `draw_by_scores` lays them; sorted by score, as it did before; or are drawn one by
one. How many classes there are was chosen on the houses, the bill, elevations and years.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from excess import LinearExcess
from side_by_side import Line, Store, short
from tables import Table, load

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.draws import draw_by_scores
from colonnade.kernels.leverage import regression_scores
from colonnade.kernels.linear import reduce_rows, solve_ridge
from colonnade.kernels.per_row import PerRow, numbers_in
from colonnade.kernels.row_blocks import ArrayBlocks

_HOUSE, _CREDIT, _COVER = "kc_house.parquet", "credit_default.parquet", "covtype.parquet"
FILES = {
    "houses": _HOUSE,
    "lots": _HOUSE,
    "bill": _CREDIT,
    "limit": _CREDIT,
    "payment-ratios": _CREDIT,
    "elevation": _COVER,
    "roads": _COVER,
    "fires": _COVER,
    "years": "year_msd_sample7000.parquet",
    "delay": "",  # of a package
}
SIZE, SEEDS, MANY_SEEDS = 1000, 400, 2000
Draw = Callable[[int, np.random.Generator], Rows]


def by_classes(scores: Floats) -> Draw:
    """Draw as parties do."""
    line: PerRow = numbers_in(scores)
    return lambda count, rng: draw_by_scores(line, count, rng, stratified=True)


def by_sorted(scores: Floats) -> Draw:
    """Draw so from rows in the order of their scores."""
    order = np.argsort(scores, kind="stable")
    draw = by_classes(scores[order])
    return lambda count, rng: np.sort(order[draw(count, rng)])


def independently(scores: Floats) -> Draw:
    """Draw rows one by one."""
    line = numbers_in(scores)
    return lambda count, rng: draw_by_scores(line, count, rng, stratified=False)


ARMS = {"classes": by_classes, "sorted": by_sorted, "independent": independently}


def excesses(table: Table, seeds: int) -> dict[str, list[float]]:
    """Fit on each arm's draws by the same seeds, and tell how much more each model costs on all rows."""
    parts = np.split(table.features, np.cumsum(table.widths)[:-1], axis=1)
    parts[-1] = np.column_stack([parts[-1], table.labels])  # type: ignore[list-item]  # it has some
    last = len(parts) - 1
    own = [np.asarray(regression_scores(ArrayBlocks(X), constant=j == last)) for j, X in enumerate(parts)]
    totals, scores, excess = np.array([each.sum() for each in own]), np.sum(own, axis=0), LinearExcess(table)
    columns = np.column_stack([table.features, table.labels])  # type: ignore[list-item]
    found: dict[str, list[float]] = {name: [] for name in ARMS}
    draws = {name: [arm(each) for each in own] for name, arm in ARMS.items()}
    for seed in range(seeds):
        for name, of_parties in draws.items():
            rng = np.random.default_rng(seed)
            quotas = rng.multinomial(SIZE, totals / totals.sum())
            rows = np.concatenate([draw(count, rng) for draw, count in zip(of_parties, quotas.tolist(), strict=True)])
            weights = totals.sum() / (SIZE * scores[rows])
            found[name].append(excess(_model(table, columns[rows], weights)))
    return found


def _model(table: Table, rows: Floats, weights: Floats) -> SimpleNamespace:
    problem = reduce_rows(rows[:, :-1], rows[:, -1], weights, fit_intercept=True)
    theta = solve_ridge(problem, len(table.features) * table.task.l2)
    return SimpleNamespace(coef_=theta, intercept_=problem.intercept(theta))


def compared(name: str, folder: Path, seeds: int) -> Line:
    """Give each arm's mean excess, and the standard error of that."""
    found = excesses(load(name, folder), seeds)
    return {
        "mean": {arm: short(float(np.mean(each))) for arm, each in found.items()},
        "error": {arm: short(float(np.std(each) / np.sqrt(seeds))) for arm, each in found.items()},
        "seeds": seeds,
    }


def measure(store: Store, *, large: bool, data: Path) -> None:
    """Compare on every table whose file is there."""
    seeds = MANY_SEEDS if large else SEEDS
    for name, file in FILES.items():
        if (data / file).exists():
            store.fill({"bench": "strata", "table": name, "size": SIZE}, partial(compared, name, data, seeds))
