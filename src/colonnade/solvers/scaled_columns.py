"""A party's features of the coreset's rows, for distances: each column in the form that suits it."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Table
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.column_codes import common_step, decode_columns, encode_columns
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.possible import first_copies, norm_fits
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_view
from colonnade.protocol.windows import check_fits
from colonnade.solvers.fewer_rows import coded_within, kept_rows
from colonnade.solvers.whitened_columns import check_rounding, checked_size

FEW_LEVELS = 3


class ScaledColumns(Message, frozen=True):
    """Exact levels and codes of the columns, and the step they are rounded by, in the columns' units.

    A column of two values has two levels, any other has one.
    """

    phase: ClassVar[str] = "solving"

    size: Annotated[int, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.NOTHING]
    step: Annotated[float, Reveals.MOMENTS]
    levels: Annotated[Floats, Reveals.MOMENTS]
    codes: Annotated[bytes, Reveals.FEATURES]

    def units(self) -> int:
        """Count the rows as the paper sends them, every value a number, and step and levels."""
        return self.size * self.n_columns + 1 + len(self.levels)


class AskScaledColumns(Message, frozen=True):
    """Send your features of the rows agreed on, rounded by this step, in standard deviations, and dither.

    Where their codes would take more than `most` bytes, round more coarsely, or leave out rows.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = ScaledColumns

    step: Annotated[float, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    most: Annotated[int | None, Reveals.NOTHING] = None


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """A party's features of rows, (m, d), and the step they were rounded by, in their units."""

    values: Floats
    step: float
    n_levels: int

    @property
    def n_rounded(self) -> int:
        """How many values of a row take a bit more where the step halves: all but for columns of few levels."""
        return sum(len(np.unique(column)) > FEW_LEVELS for column in self.values.T)

    def at(self, places: Rows) -> "ScaledRows":
        """Take some of the rows."""
        return replace(self, values=self.values[places])

    def with_rows(self, others: "ScaledRows", order: Rows) -> "ScaledRows":
        """Put the rows of others after these, and all in an order."""
        return replace(self, values=np.concatenate([self.values, others.values])[order])

    def unseen_bytes(self, size: int) -> float:
        """Guess what rare values cost that the pilot saw none of: a level, and the places of one in 2 m0 rows."""
        m0 = len(self.values)
        constant = int(np.count_nonzero((self.values == self.values[:1]).all(axis=0)))
        return constant * (8 + size / (2 * m0) * (math.log2(2 * m0) + 1.5) / 8)


def read_scaled(
    card: PartyCard, reply: ScaledColumns, roster: Roster, rows: Rows, request: AskScaledColumns
) -> ScaledRows:
    """Check and restore features of the rows, of these that ascend, that a party sent."""
    step, seed = request.step, request.seed
    rows = rows[kept_rows(rows, checked_size(card.name, reply, reply.size, len(rows), request.most))]
    size = len(rows)
    if reply.n_columns != card.n_features:
        raise checks.wrong(card.name, reply, f"rows of {reply.n_columns} columns, not as asked for")
    checks.positive(card.name, reply, reply.step)
    checks.in_range(card.name, reply, reply.levels)
    shape = (size, card.n_features)
    try:
        values = decode_columns(reply.levels, reply.codes, shape, reply.step, np.random.default_rng(seed))
    except ValueError as error:
        raise checks.wrong(card.name, reply, str(error)) from error
    checks.in_range(card.name, reply, values)
    checks.copies(card.name, reply, rows, values, reply.step)
    own = values[first_copies(rows)]
    # The step is so many deviations, in the columns' root mean square.
    most = reply.step / step * (roster.n_rows * card.n_features) ** 0.5
    if roster.weight_party is None and not norm_fits(own - own.mean(axis=0), most, reply.step / 2, "fro"):
        raise checks.wrong(card.name, reply, f"a step of {reply.step:g}, which is too small for how its rows vary")
    return ScaledRows(values, reply.step, len(reply.levels))


def _answer(state: PartyState, request: AskScaledColumns, data: PartyData) -> tuple[PartyState, Message]:
    check_rounding(request, request.step, request.seed)
    table, n_features = data.table, len(data.table.feature_names)
    check_fits(state, n_features + 1)
    rows = state.selected()
    # A mean a column, and one spread of all.
    state = check_view(state, data, "means and a spread", n_features, n_features + 1)
    centres, spreads = data.once(_centres_and_spreads)
    values = table.take(rows)[:, :n_features]

    def encode(places: Rows, step: float) -> tuple[tuple[Floats, bytes], bytes]:
        found = encode_columns(values[places], centres, step, np.random.default_rng(request.seed))
        return found, found[1]

    size, step, (levels, codes) = coded_within(request.most, rows, common_step(spreads, request.step), encode)
    return state, ScaledColumns(size, n_features, step, sendable_floats(levels), codes)


def _centres_and_spreads(table: Table) -> tuple[Floats, Floats]:
    return centre_and_spread(table, len(table.feature_names), centred=True)


HANDLERS = (Handler(AskScaledColumns, _answer, after=frozenset({SELECTED}), then=SELECTED, solver="compact"),)
