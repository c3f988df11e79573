"""A forecast: the mean excess over runs and that of one run, each with its interval, from rehearsals on the pilot."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_law import ClassLaw
from colonnade.kernels.clustering_law import ClusteringLaw
from colonnade.planning.laws import Law
from colonnade.planning.records import Excess

# A run of many coefficients varies less: so many runs, over the number of coefficients, are rehearsed.
RUNS, FEWEST, MOST = 900, 8, 40
# What a rehearsal misses by, relative: one standard error. Measured on half of the tables of benchmarks/promises.py.
LAW_ERROR = 0.28
NINETY_FIVE = 1.96
# An excess below one in a million is not told from none: what rounding leaves of columns that depend on each other.
RESOLVED = 1e-6
# And of classes: how rounding moves rows that nothing but their class tells from others.
RESOLVED_CLASSES = 3e-5


@dataclass(frozen=True)
class Forecast:
    """What is expected of the mean over runs, and of one run; both intervals reach higher by the grain."""

    mean: Excess
    one_run: Excess
    grain: float

    @classmethod
    def none(cls, law: Law) -> Self:
        """No excess at all, but for the grain."""
        grain = _grain(law, None)
        same = Excess(0.0, 0.0, grain)
        return cls(same, same, grain)

    def scaled(self, mean: float) -> "Forecast":
        """Give one of another mean, with intervals as wide."""
        factor = mean / self.mean.mean if self.mean.mean > 0 else 1.0
        mean_excess, one_run = (_scaled(each, factor, self.grain) for each in (self.mean, self.one_run))
        return Forecast(mean_excess, one_run, self.grain)


def forecast(law: Law, chances: Floats, step: float | None, pilot_share: float, rng: np.random.Generator) -> Forecast:
    """Rehearse a draw with these chances of the pilot's rows, (m0,), rounded by the step.

    All runs of a plan have the pilot in common: as far as its share goes, the mean over them varies as one run does.
    """
    repeats = int(np.clip(RUNS / law.n_coefficients, FEWEST, MOST))
    found, grain = law.rehearse(chances, step, repeats, rng), _grain(law, step)
    mean = float(found.mean())
    if not 0 < mean < math.inf:
        same = Excess(mean, mean, mean + grain)
        return Forecast(same, same, grain)
    variation = float(found.std(ddof=1)) / mean
    error = math.hypot(
        LAW_ERROR,
        law.relative_error(chances),
        law.bias_error(chances, step) / mean,
        variation / math.sqrt(repeats),
        variation * pilot_share,
    )
    run = math.sqrt(math.log1p(variation**2))
    centre = mean * math.exp(-(run**2) / 2)
    return Forecast(_around(mean, mean, error, grain), _around(mean, centre, math.hypot(run, error), grain), grain)


def _grain(law: Law, step: float | None) -> float:
    """Give what fits of the same rows may differ by: least squares have one minimum, and end near it."""
    if isinstance(law, ClusteringLaw):
        return law.grain(step)
    if step is None:
        return 0.0
    return RESOLVED_CLASSES if isinstance(law, ClassLaw) else RESOLVED


def _around(mean: float, centre: float, deviation: float, grain: float) -> Excess:
    """Put a 95 % interval around the excess: it is a product, so the interval is one of factors."""
    factor = math.exp(NINETY_FIVE * deviation)
    return Excess(mean, centre / factor, centre * factor + grain)


def _scaled(excess: Excess, factor: float, grain: float) -> Excess:
    return Excess(factor * excess.mean, factor * excess.low, factor * (excess.high - grain) + grain)
