"""Could the server read leverage off the whitened rows, so that no scores travel? A trial, without messages.

    python benchmarks/row_scores.py --data FOLDER [--job houses] [--seeds 60]

At the bytes of the paper's wire, excess loss of least squares on rows drawn by leverage, whitened, rounded by a shared
dither and calibrated as `CompactCentral` does, where the scores that weigh the rows

    fine      travel, rounded by less than a thousandth (11 bits)
    coarse    travel, rounded to powers of exp(0.2) (5 bits)
    read      are read off the rounded rows, less what rounding adds on average: near, but not what rows were drawn by
    drawn     are those of the rounded rows, by which they are then drawn as well: a party rounds all its rows first

Bytes are those of the codes, ids, scores and moments; headers are guessed.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from wire import JOBS, Job, best_step

from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import calibrate, calibration_strength
from colonnade.kernels.draws import draw_by_scores
from colonnade.kernels.linear import reduce_rows, solve_ridge
from colonnade.kernels.per_row import numbers_in
from colonnade.kernels.quantise import encode_codes, restore_dithered, round_with_dither
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.kernels.row_ids import encode_row_ids, row_id_bytes
from colonnade.kernels.score_codes import LOG_STEP, encode_scores, round_scores
from colonnade.kernels.whitening import mix, whiten

SCORE_BITS = {"fine": 11.3, "coarse": 5.0, "read": 0.0, "drawn": 0.0}
LOG_STEPS = {"fine": LOG_STEP, "coarse": 0.2}
HEADERS = 120  # a party
MARGIN = 0.985


class Trial:
    """Parties' whitened columns of a job, the label the last of the last one's."""

    def __init__(self, job: Job) -> None:
        if job.labels is None:
            raise SystemExit("Only regressions are drawn by leverage. Name another job.")
        columns = np.split(job.features, np.cumsum(job.widths)[:-1], axis=1)
        columns[-1] = np.column_stack([columns[-1], job.labels])
        self._job, self._n, self._l2 = job, len(job.features), float(job.task.l2)
        self._whitenings = [whiten(ArrayBlocks(block)) for block in columns]
        self._whitened = [found.of(block) for found, block in zip(self._whitenings, columns, strict=True)]
        self._scores = [self._leverage(values) for values in self._whitened]
        joined = np.hstack(columns)
        self._mean = joined.mean(axis=0)
        self._second = (joined - self._mean).T @ (joined - self._mean) / self._n
        self._best = self._cost(*self._fit(joined, np.ones(self._n)))

    def run(self, arm: str, size: int, step: float, seed: int) -> tuple[float, int]:
        """Draw, round, weigh and learn; give the excess and the bytes."""
        rng, dithers = np.random.default_rng(seed), [[seed, j] for j in range(len(self._whitened))]
        scores, rounded = self._scores, [np.empty(0)] * len(dithers)
        if arm == "drawn":
            rounded = [_rounded(u, step, dither)[0] for u, dither in zip(self._whitened, dithers, strict=True)]
            scores = [self._leverage(values) for values in rounded]
        if arm in LOG_STEPS:
            scores = [round_scores(each, LOG_STEPS[arm]) for each in scores]
        totals = np.array([each.sum() for each in scores])
        quotas = rng.multinomial(size, totals / totals.sum())
        by_party = [
            draw_by_scores(numbers_in(g), int(a), rng, stratified=True) for g, a in zip(scores, quotas, strict=True)
        ]
        rows = np.sort(np.concatenate(by_party))
        # What a party drew goes to the server, and from there to every other party.
        sent = len(by_party) * sum(len(encode_row_ids(own)) for own in by_party)
        if arm == "drawn":
            sent += sum(
                len(encode_codes(round_with_dither(u, step, np.random.default_rng(dither))[:, rows]))
                for u, dither in zip(self._whitened, dithers, strict=True)
            )
            values = [each[rows] for each in rounded]
        else:
            found = [_rounded(u[rows], step, dither) for u, dither in zip(self._whitened, dithers, strict=True)]
            values = [each for each, _ in found]
            sent += sum(length for _, length in found)
        weighed = [each[rows] for each in scores]
        if arm == "read":
            weighed = [self._leverage(each, each.shape[1] * step**2 / 12) for each in values]
        if arm in LOG_STEPS:
            sent += sum(len(encode_scores(each, LOG_STEPS[arm])) for each in weighed)
        weights = totals.sum() / (size * np.sum(weighed, axis=0))
        noise = [np.full(each.shape[1], step**2 / 12) for each in values]
        weights = calibrate(weights, values, float(self._n), noise, calibration_strength(size), np.ones(len(weights)))
        columns = [mix(u, found.mean, found.mixing) for u, found in zip(values, self._whitenings, strict=True)]
        ranks = [each.shape[1] for each in values]
        sent += sum(8 * (r * (r + 1) // 2 + r) + HEADERS for r in ranks)
        return self._cost(*self._fit(np.hstack(columns), weights)) / self._best - 1, sent

    def _leverage(self, whitened: Floats, too_much: float = 0.0) -> Floats:
        """Score rows: leverage with a column of ones, and 1/n."""
        squares = np.maximum(np.square(whitened).sum(axis=1) - too_much, 0.0)
        return np.asarray((2.0 + squares) / self._n)

    def _fit(self, joined: Floats, weights: Floats) -> tuple[Floats, float]:
        problem = reduce_rows(joined[:, :-1], joined[:, -1], weights, fit_intercept=True)
        theta = solve_ridge(problem, self._n * self._l2)
        return theta, problem.intercept(theta)

    def _cost(self, coef: Floats, intercept: float) -> float:
        direction = np.append(coef, -1.0)
        offset = self._mean @ direction + intercept
        return float(direction @ self._second @ direction + offset**2 + self._l2 * coef @ coef)


def _rounded(whitened: Floats, step: float, dither: list[int]) -> tuple[Floats, int]:
    codes = round_with_dither(whitened, step, np.random.default_rng(dither))
    return restore_dithered(codes, step, np.random.default_rng(dither)), len(encode_codes(codes))


def main() -> None:
    """Run all arms at the same bytes."""
    parser = argparse.ArgumentParser(description="Leverage read off the rows, or sent.")
    parser.add_argument("--data", type=Path, default=os.environ.get("COLONNADE_DATA"), help="folder of the data sets")
    parser.add_argument("--job", default="houses")
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    job = JOBS[options.job](options.data)
    trial, budget, n_parties = Trial(job), job.budget(job.size), len(job.widths)
    for arm, score_bits in SCORE_BITS.items():
        size = 12 * job.size
        ids = 8 * row_id_bytes(len(job.features), size) / size
        step = best_step(job.n_rounded, n_parties * (ids + score_bits), job.noise_ratio)
        for seed in range(3):
            size = int(MARGIN * size * budget / trial.run(arm, size, step, 1000 + seed)[1])
        found = np.array([trial.run(arm, size, step, seed)[0] for seed in range(options.seeds)])
        error = found.std(ddof=1) / np.sqrt(len(found))
        print(
            f"{arm:<7} m = {size:>6,}  step {step:.2f}  excess {100 * found.mean():.3f} % +- {100 * error:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
