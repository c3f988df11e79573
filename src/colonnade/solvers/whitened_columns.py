"""A party's columns of the coreset's rows, whitened, rounded with a shared dither, and entropy-coded.

Columns of few values, such as levels and counts, take fewer bits as they are: these travel exactly.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import PartyCard, Roster, Table
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.bits import Buffer, pack_bits, packed_length, unpack_bits
from colonnade.kernels.level_codes import LOOKED_AT, LevelsBytes, decode_levels, encode_levels, few_valued, levels_bytes
from colonnade.kernels.possible import first_copies, norm_fits
from colonnade.kernels.quantise import (
    LARGEST_STEP,
    SMALLEST_STEP,
    decode_codes,
    encode_codes,
    restore_dithered,
    round_with_dither,
)
from colonnade.kernels.whitening import Whitening, pack_mixing, unpack_mixing, whiten, whiten_first
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_view
from colonnade.protocol.windows import check_fits
from colonnade.solvers.fewer_rows import MOST_COARSER, coded_within, kept_rows


class WhitenedColumns(Message, frozen=True):
    """Codes of the whitened rows; means and mixing matrix lead back to columns, the label's last where there is one.

    Of r whitened and d columns the mixing matrix has r (2 d - r + 1) / 2 entries: those on and above its diagonal. Both
    moments are left out where they are known. The codes tell first which columns are exact, a bit each; then those;
    then the others, whitened and rounded by `step`: the one asked for, or up to twice that where codes are limited.
    """

    phase: ClassVar[str] = "solving"
    known_before: ClassVar[tuple[Reveals, ...]] = (Reveals.MOMENTS,)

    size: Annotated[int, Reveals.NOTHING]
    step: Annotated[float, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.NOTHING]
    mean: Annotated[Floats | None, Reveals.MOMENTS]
    mixing: Annotated[Floats | None, Reveals.MOMENTS]
    label_mean: Annotated[float | None, Reveals.LABELS]
    codes: Annotated[bytes, Reveals.FEATURES]

    def units(self) -> int:
        """Count the rows as the paper sends them, every value a number, and the moments."""
        moments = sum(len(each) for each in (self.mean, self.mixing) if each is not None)
        return self.size * self.n_columns + moments + (self.label_mean is not None)

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count a label a row, too, where codes are also of these."""
        told = super().numbers_told(units)
        if self.label_mean is None:
            return told
        return {**told, Reveals.FEATURES: told[Reveals.FEATURES] - self.size, Reveals.LABELS: self.size + 1}


class AskWhitenedColumns(Message, frozen=True):
    """Send your columns of the rows agreed on, and the label if you hold it.

    Columns of few values come as they are, the others rounded by this step and dither.
    Where their codes would take more than `most` bytes, round more coarsely, or leave out rows. Leave out moments that
    are `known`: you told them before.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = WhitenedColumns

    step: Annotated[float, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    most: Annotated[int | None, Reveals.NOTHING] = None
    known: Annotated[bool, Reveals.NOTHING] = False


class AskClassColumns(AskWhitenedColumns, frozen=True):
    """As `AskWhitenedColumns`, where the label has classes: it comes as it is, however many these are."""


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    """A party's rows as the server has them.

    Parameters
    ----------
    values : ndarray of float64, shape (m, r)
        Whitened; all but the first e are rounded.
    mean : ndarray of float64, shape (d,)
        Of the columns, the label's last.
    mixing : ndarray of float64, shape (r, d)
        Leads back: columns are mean + values @ mixing.
    label : int or None
        The label's place among the columns, the last, if this party holds it.
    step : float or ndarray of float64, shape (m,)
        That values are rounded by, in all rows or in each.
    first : ndarray of int64, shape (e,)
        The places of columns that came as they are.
    exact : ndarray of float64, shape (m, e)
        These columns.
    """

    values: Floats
    mean: Floats
    mixing: Floats
    label: int | None
    step: float | Floats
    first: Rows
    exact: Floats

    def noise(self, weights: Floats) -> Floats:
        """Give the variance of rounding errors in each whitened column, shape (r,), on weighted average over rows."""
        squares = np.square(self.step)
        variance = float(squares if np.ndim(squares) == 0 else np.average(squares, weights=weights)) / 12
        return np.where(np.arange(self.values.shape[1]) >= self.exact.shape[1], variance, 0.0)

    @property
    def n_rounded(self) -> int:
        """How many values of a row are rounded."""
        return int(self.values.shape[1] - self.exact.shape[1])

    def fixed_bytes(self, size: int) -> int:
        """Predict the bytes of codes of so many rows that are not rows' own."""
        return round(packed_length(len(self.mean), 1) + self._levels.of(size) + self.n_rounded + 2)

    @cached_property
    def _levels(self) -> LevelsBytes:
        return levels_bytes(self.exact)

    def at(self, places: Rows) -> "WhitenedRows":
        """Take some of the rows."""
        step = self.step[places] if isinstance(self.step, np.ndarray) else self.step
        return replace(self, values=self.values[places], step=step, exact=self.exact[places])

    def with_rows(self, others: "WhitenedRows", order: Rows) -> "WhitenedRows":
        """Put the rows of others, with the same moments, after these, and all in an order."""
        both = (self, others)
        values, exact = np.concatenate([each.values for each in both]), np.concatenate([each.exact for each in both])
        steps = np.concatenate([np.broadcast_to(each.step, len(each.values)) for each in both])
        return replace(self, values=values[order], step=steps[order], exact=exact[order])


def read_whitened(
    card: PartyCard,
    reply: WhitenedColumns,
    roster: Roster,
    rows: Rows,
    request: AskWhitenedColumns,
    known: WhitenedRows | None = None,
) -> WhitenedRows:
    """Check and restore the rows, of these that ascend, that a party sent: all, where nothing limits their codes.

    Moments are those that came with rows that are `known`, if there are some.
    """
    party, step, seed = card.name, reply.step, request.seed
    if not request.step <= step <= (1.0 if request.most is None else MOST_COARSER) * request.step:
        raise checks.wrong(party, reply, f"a step of {step}, where {request.step} was asked for")
    rows = rows[kept_rows(rows, checked_size(party, reply, reply.size, len(rows), request.most))]
    size = len(rows)
    if (reply.label_mean is not None) != (card.label_name is not None):
        raise checks.wrong(party, reply, "a label where none was due, or none where it was")
    n_columns = card.n_features + (reply.label_mean is not None)
    if size * n_columns > MAX_NUMBERS:
        raise checks.wrong(party, reply, f"{size} rows of {n_columns} columns, which do not fit one message")
    if reply.n_columns != n_columns:
        raise checks.wrong(party, reply, f"{reply.n_columns} columns, where {n_columns} are due")
    try:
        first, rest = _read_first(reply.codes, n_columns)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    read = _read_moments(card, reply, first) if known is None else _known_moments(party, reply, known, first)
    mean, mixing = read
    try:
        exact, rest = decode_levels(rest, len(first), size)
        codes = decode_codes(rest, len(mixing) - len(first), size)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    rounded = restore_dithered(codes, step, np.random.default_rng(seed))
    values = np.hstack([whiten_first(exact, mean, mixing, first), rounded])
    checks.in_range(party, reply, exact)
    checks.in_range(party, reply, values)
    checks.copies(party, reply, rows, values, step)
    # Of all rows, each of weight 1, second moments are 1.
    if roster.weight_party is None and not norm_fits(values[first_copies(rows)], roster.n_rows**0.5, step / 2):
        raise checks.wrong(party, reply, "rows that vary more than whitened ones")
    return WhitenedRows(values, mean, mixing, None if reply.label_mean is None else card.n_features, step, first, exact)


def _read_first(data: bytes, n_columns: int) -> tuple[Rows, Buffer]:
    """Read which columns are exact."""
    length = packed_length(n_columns, 1)
    (first,) = unpack_bits(data[:length], n_columns, 1).nonzero()
    return first, memoryview(data)[length:]


def _read_moments(card: PartyCard, reply: WhitenedColumns, first: Rows) -> tuple[Floats, Floats]:
    """Check the columns' means and the mixing matrix, and unpack it."""
    party = card.name
    if reply.mean is None or reply.mixing is None:
        raise checks.wrong(party, reply, "no moments, where they are due")
    checks.shape(party, reply, reply.mean, (card.n_features,))
    mean = reply.mean if reply.label_mean is None else np.append(reply.mean, reply.label_mean)
    checks.in_range(party, reply, mean)
    checks.in_range(party, reply, reply.mixing)
    if reply.mixing.ndim != 1:
        raise checks.wrong(party, reply, "a mixing matrix that is not packed")
    try:
        return mean, unpack_mixing(reply.mixing, len(mean), first)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error


def _known_moments(party: str, reply: WhitenedColumns, known: WhitenedRows, first: Rows) -> tuple[Floats, Floats]:
    """Take the moments that the party told before; of these the label's mean comes again, and is the same."""
    if reply.mean is not None or reply.mixing is not None:
        raise checks.wrong(party, reply, "moments, where they are known")
    if reply.label_mean is not None and reply.label_mean != known.mean[-1]:
        raise checks.wrong(party, reply, "another mean of the label than it told before")
    if not np.array_equal(first, known.first):
        raise checks.wrong(party, reply, "other columns that are exact than before")
    return known.mean, known.mixing


def checked_size(party: str, reply: Message, size: int, asked: int, most: int | None) -> int:
    """Require as many rows as were asked for, or fewer where their codes are limited."""
    if size != asked and not (most is not None and 0 < size < asked):
        raise checks.wrong(party, reply, f"{size} rows, where {asked} were asked for")
    return size


def check_rounding(request: Message, step: float, seed: int) -> None:
    """Require a step and a seed that one can round by."""
    checks.seed(request, seed)
    if not SMALLEST_STEP <= step <= LARGEST_STEP:
        raise checks.wrong(SERVER, request, f"a step of {step}, outside {SMALLEST_STEP:g} to {LARGEST_STEP:g}")


def _answer(state: PartyState, request: AskWhitenedColumns, data: PartyData) -> tuple[PartyState, Message]:
    check_rounding(request, request.step, request.seed)
    table, n_features = data.table, len(data.table.feature_names)
    check_fits(state, n_features + 1)
    rows = state.selected()
    # Of r columns that are left of d there are fewer numbers, but whether a sum is told must not hang on values.
    d = n_features + (table.label_name is not None)
    state = check_view(state, data, "means and products of columns", d, d + d * (d + 1) // 2)
    whitening = whitening_of(data, classes=isinstance(request, AskClassColumns))
    columns = table.take(rows)
    exact, rounded = columns[:, whitening.first], rounded_part(whitening, columns)
    is_first = np.zeros(d, np.uint64)
    is_first[whitening.first] = 1
    first = pack_bits(is_first, 1)

    def encode(places: Rows, step: float) -> tuple[bytes, bytes]:
        rng = np.random.default_rng(request.seed)
        codes = encode_codes(round_with_dither(rounded[places], step, rng))
        code = first + encode_levels(exact[places]) + codes
        return code, code

    size, step, codes = coded_within(request.most, rows, request.step, encode)
    return state, WhitenedColumns(
        size=size,
        step=step,
        n_columns=d,
        mean=None if request.known else sendable_floats(whitening.mean[:n_features]),
        mixing=None if request.known else sendable_floats(pack_mixing(whitening.mixing, whitening.first)),
        label_mean=None if table.label_name is None else float(whitening.mean[n_features]),
        codes=codes,
    )


def whitening_of(data: PartyData, *, classes: bool = False) -> Whitening:
    """Give the basis of the party's columns; where the label has classes, it is among those that come as they are."""
    return data.once(_whitening_of_classes if classes else _whitening)


def rounded_part(whitening: Whitening, columns: Floats) -> Floats:
    """Whiten rows, (m, d), and leave out what is sent exactly."""
    return whitening.of(columns)[:, len(whitening.first) :]


def _whitening(table: Table) -> Whitening:
    return whiten(table, _few_valued(table))


def _whitening_of_classes(table: Table) -> Whitening:
    if table.label_name is None:
        return _whitening(table)
    # The label before all: no other columns that are exact make it up.
    label = len(table.feature_names)
    first = _few_valued(table)
    return whiten(table, np.append(label, first[first != label]))


def _few_valued(table: Table) -> Rows:
    some = np.unique(np.linspace(0, table.n_rows - 1, min(table.n_rows, LOOKED_AT)).astype(np.int64))
    return few_valued(table.take(some))


HANDLERS = tuple(
    Handler(kind, _answer, after=frozenset({SELECTED}), then=SELECTED, solver="compact")
    for kind in (AskWhitenedColumns, AskClassColumns)
)
