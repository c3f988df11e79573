"""Runs an experiment trial by trial; what the results file already has is not computed again."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import msgspec

from colonnade.paper.data_sets.data_set import DataSet
from colonnade.paper.design import Draw, Experiment, Part
from colonnade.paper.formulas import printed_units
from colonnade.paper.methods import METHODS, Method
from colonnade.paper.problem import Problem
from colonnade.paper.store import Key, Store
from colonnade.paper.trials import Trial
from colonnade.paper.variants import VARIANTS, Variant
from colonnade.tasks import KMeans


@dataclass(frozen=True)
class Settings:
    """How an experiment is run.

    Parameters
    ----------
    variant : Variant
        The switches.
    repeats : int
        Of every draw.
    seed : int
        Every trial's seed is made of it and of the trial's place in the tables: a further size changes no other cell.
    quick : bool
        Fewer repeats and sizes, and every fifth row where rows are clustered.
    """

    variant: Variant
    repeats: int = 20
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Step:
    """One trial to come; a draw of size 0 is of all rows, however many they will be."""

    part: Part
    method: Method
    draw: Draw
    repeat: int


def plan(experiment: Experiment, settings: Settings) -> list[Step]:
    """List an experiment's trials, table by table, in the order they are run."""
    return [
        Step(part, METHODS[name], draw, repeat)
        for part in experiment.parts
        for name in part.methods
        for draw in _draws(part, METHODS[name], settings)
        for repeat in range(_repeats(METHODS[name], draw, settings))
    ]


def _draws(part: Part, method: Method, settings: Settings) -> list[Draw]:
    sizes = part.sizes
    if settings.quick:
        sizes = sizes[:1] if method.is_slow else (sizes[0], sizes[-1])
    everything = method.fits_all_rows(settings.variant) and not (settings.quick and method.is_slow)
    return [Draw("", 0)] * everything + [Draw("C-", m) for m in sizes] + [Draw("U-", m) for m in sizes]


def _repeats(method: Method, draw: Draw, settings: Settings) -> int:
    if not draw.prefix and not method.repeats_on_all_rows:
        return 1
    return min(settings.repeats, method.quick_repeats) if settings.quick else settings.repeats


def run(
    experiment: Experiment, settings: Settings, load: Callable[[Part, bool], DataSet], store: Store
) -> Iterator[Trial]:
    """Give every trial of an experiment as planned, from the store or freshly made and then stored."""
    steps = plan(experiment, settings)
    for part in experiment.parts:
        data = load(part, settings.quick)
        problem: Problem | None = None
        for step in (step for step in steps if step.part is part):
            place = _place(experiment, settings, data, step)
            trial = store.get(place) or _same_fit(place, step.draw, store)
            if trial is None:
                problem = problem or Problem(part, data)
                trial = _trial(problem, settings, step, place)
            if store.get(place) is None:
                store.add(trial)
            yield trial


def _place(experiment: Experiment, settings: Settings, data: DataSet, step: Step) -> Key:
    n_rows = len(data.features) if isinstance(step.part.learn, KMeans) else data.n_train
    return Key(
        experiment.name,
        step.part.task,
        settings.variant.name,
        data.name,
        step.draw.prefix + step.method.name,
        step.draw.size or n_rows,
        step.repeat,
        settings.seed,
    )


def _same_fit(place: Key, draw: Draw, store: Store) -> Trial | None:
    """Find the fit of all rows in another variant: the switches only concern draws."""
    if draw.prefix:
        return None
    others = (store.get(place._replace(variant=name)) for name in VARIANTS)
    return next((msgspec.structs.replace(trial, variant=place.variant) for trial in others if trial), None)


def _trial(problem: Problem, settings: Settings, step: Step, place: Key) -> Trial:
    draw, started = Draw(step.draw.prefix, place.size), perf_counter()
    outcome = step.method.learn(problem, settings.variant, draw, trial_seed(place))
    seconds = perf_counter() - started
    cost = problem.cost(outcome.model)
    formula = printed_units(step.part, step.method.name, draw, outcome.epochs)
    return Trial(*place, cost, outcome.units, outcome.bytes, formula, seconds, outcome.epochs)


def trial_seed(place: Key) -> int:
    """Make a trial's seed of its place in the tables; the variant is no part of it."""
    axes = "|".join(map(str, place._replace(variant="")))
    return int.from_bytes(hashlib.blake2b(axes.encode(), digest_size=4).digest(), "big")
