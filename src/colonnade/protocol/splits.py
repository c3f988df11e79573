"""Held-out rows: which, and how much the others count."""

from dataclasses import replace
from functools import partial
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.errors import InputError
from colonnade.kernels.arrays import Flags, Floats
from colonnade.kernels.draws import held_out
from colonnade.kernels.per_row import HeldNumbers, PerRow, numbers_by, numbers_in
from colonnade.options import whole_number

Side = Literal["train", "test"]


class HoldOut(msgspec.Struct, frozen=True, tag_field="kind", tag="fraction", forbid_unknown_fields=True):
    """Hold out a fraction of the rows, the same at every party: only the fraction and a seed travel.

    Parameters
    ----------
    fraction : float
        Of all rows, above 0 and below 1.
    seed : int
        Decides which. It is not the run's seed: runs with other seeds hold out the same rows.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0, 3.0, 4.0], [2, 2]))
    >>> split = cn.HoldOut(0.2)
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100), split=split)
    >>> federation.evaluate(run.model, split=split).n_evaluated
    100
    """

    fraction: float
    seed: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "seed", whole_number("seed", self.seed, least=0, example="Pass for instance seed=0."))
        if isinstance(self.fraction, bool) or not isinstance(self.fraction, float | int) or not 0 < self.fraction < 1:
            raise InputError(f"fraction must lie between 0 and 1, got {self.fraction!r}. Pass for instance 0.2.")
        force_setattr(self, "fraction", float(self.fraction))


class SplitBy(msgspec.Struct, frozen=True, tag_field="kind", tag="column", forbid_unknown_fields=True):
    """Hold out the rows that one party's column marks; that choice of rows is sent to all, a bit a row.

    Parameters
    ----------
    party : str
        The party that was made with ``split=``.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> late = np.arange(500) >= 400
    >>> airline = cn.Party("airline", rng.normal(size=(500, 2)), label=rng.normal(size=500), split=late)
    >>> federation = cn.Federation([airline, cn.Party("weather", rng.normal(size=(500, 2)))])
    >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows(), split=cn.SplitBy("airline"))
    >>> len(run.coreset)
    400
    """

    party: str


AnySplit = HoldOut | SplitBy


def counted(
    n_rows: int, side: Side, split: AnySplit | None, marked: Flags | None, weights: Floats | None
) -> PerRow | None:
    """Decide how much each row counts, None where all count 1; the server and every party come to the same.

    `marked` are the rows held out by a column, and `weights` the rows' own.
    """
    own = None if weights is None else numbers_in(weights)
    if isinstance(split, HoldOut):
        marks = held_out(n_rows, split.fraction, split.seed)
    elif marked is not None:
        marks = replace(numbers_by(n_rows, HeldNumbers(marked)).changed(_marks), n_ones=int(np.count_nonzero(marked)))
    else:
        return own
    row_weights = _side(side, marks, own)
    if isinstance(split, HoldOut):
        row_weights = row_weights.kept()  # a column's marks are in memory as they are, a byte a row
    if not row_weights.n_positive:
        by = f" by the column of {split.party!r}" if isinstance(split, SplitBy) else ""
        raise InputError(f"The split{by} leaves no row to {side}, or none that has weight. Choose another split.")
    return row_weights


def held_out_by_seed(n_rows: int, split: HoldOut, side: Side) -> PerRow:
    """Count each row of one side as 1, and the others as 0; of no row is anything computed before it is asked for."""
    return _side(side, held_out(n_rows, split.fraction, split.seed), None)


def _side(side: Side, marks: PerRow, weights: PerRow | None) -> PerRow:
    """Let rows of one side count, by their weights."""
    n_ones = marks.n_ones if side == "test" or marks.n_ones is None else marks.n_rows - marks.n_ones
    return replace(marks.changed(partial(_kept, side, weights)), n_ones=n_ones if weights is None else None)


def _marks(_: int, marked: Floats) -> Floats:
    """Give a block's marks as numbers: of all rows a byte each is held, and not eight."""
    return marked.astype(np.float64)


def _kept(side: Side, weights: PerRow | None, number: int, marks: Floats) -> Floats:
    """Give the rows of one side their weight, and the others none."""
    kept = marks if side == "test" else 1.0 - marks
    return kept if weights is None else np.where(kept > 0, weights.block(number), 0.0)
