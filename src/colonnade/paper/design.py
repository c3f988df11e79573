"""What an experiment is: tables of methods and sizes, declared in one file each under `experiments/`."""

from dataclasses import dataclass
from typing import Literal

from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.tasks import KMeans, Regression

YEAR, HOUSES = "YearPredictionMSD", "KC House"
SIZES = (1000, 2000, 3000, 4000, 5000, 6000)
# Levels differ by a few per cent, and draws scatter by less than that: differences in stds then look large.
TWIN_REMARK = "On the twin all costs are a few per cent lower than on the original: compare what stands above all rows."
HOUSE_SIZES = (100, 200, 300, 400, 500, 600)


@dataclass(frozen=True)
class Draw:
    """Where the rows come from: all of them, a coreset (C-) or a uniform sample (U-), as the paper writes it."""

    prefix: Literal["", "C-", "U-"]
    size: int

    def sampler(self) -> AnySampler:
        """Give the library's sampler for it."""
        if self.prefix == "C-":
            return ImportanceSampling(self.size, draws="independent")  # Algorithm 1 to the letter
        return UniformSampling(self.size, draws="independent") if self.prefix == "U-" else AllRows()


@dataclass(frozen=True)
class Part:
    """One table: a task on a data set, its columns dealt to parties, learned by some methods.

    Parameters
    ----------
    task : str
        Its name in results.
    learn : Regression or KMeans
        The task itself.
    data : str
        Which data set.
    widths : tuple of int
        How many columns each party holds; the label is the last party's.
    methods : tuple of str
        Each on all rows, on coresets and on uniform samples.
    sizes : tuple of int
        m.
    cost : {"train", "test"}
        Train: the objective on all training rows, penalty included. Test: the squared error of the test rows.
    saga_epochs : int
        Where the authors' SAGA was stopped.
    """

    task: str
    learn: Regression | KMeans
    data: str
    widths: tuple[int, ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    cost: Literal["train", "test"] = "train"
    saga_epochs: int = 10_000


@dataclass(frozen=True)
class Experiment:
    """Some tables under one name.

    Parameters
    ----------
    name : str
        As the command calls it.
    parts : tuple of Part
        Its tables.
    remarks : tuple of str
        Where ours must differ from the authors', and why.
    """

    name: str
    parts: tuple[Part, ...]
    remarks: tuple[str, ...] = ()
