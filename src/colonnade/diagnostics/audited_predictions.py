"""Audited predictions: what each party's columns make of the audit's rows, in 16 bits, and its moments over all rows.

The label party tells its part less the label: the server learns residuals. Of one that holds little else these are
almost its labels, so they count as such.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from colonnade.contracts import ModelPart, Roster, Script, Table
from colonnade.diagnostics.model_in_view import coef_in_view, units_of
from colonnade.errors import InputError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.audit import ResidualPart
from colonnade.kernels.blocks import Block
from colonnade.kernels.moments import mean_and_variance
from colonnade.kernels.possible import first_copies, moments_fit
from colonnade.kernels.sixteen_bits import restore_evenly, round_evenly
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_view


class AuditedPredictions(Message, frozen=True):
    """x_i^(j).theta^(j) (at the label party less y_i) for each selected row; then x_i^(j).v^(j) for each direction v.

    In codes, which the label party sends as `less_label`: the value is low + step (code - dither). Mean and variance
    are those of the first, over all rows.
    """

    phase: ClassVar[str] = "certifying"

    size: Annotated[int, Reveals.NOTHING]
    low: Annotated[Floats, Reveals.FEATURES]
    step: Annotated[Floats, Reveals.FEATURES]
    codes: Annotated[bytes | None, Reveals.FEATURES]
    less_label: Annotated[bytes | None, Reveals.LABELS]
    mean: Annotated[float, Reveals.MOMENTS]
    variance: Annotated[float, Reveals.MOMENTS]

    def units(self) -> int:
        """Count a number a row and direction, and the two moments."""
        return self.size * len(self.low) + 2

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count all codes as what they are sent as; units leave out what they are read by."""
        told, codes = super().numbers_told(units), self.size * len(self.low)
        return {**told, Reveals.FEATURES if self.less_label is None else Reveals.LABELS: codes}

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskAuditedPredictions(Message, frozen=True):
    """The party's part of the model; directions that rounding hid, of columns as it sees them; the dither's seed."""

    phase: ClassVar[str] = "certifying"
    reply: ClassVar[type[Message]] = AuditedPredictions

    coef: Annotated[Floats, Reveals.MODEL]
    hidden: Annotated[Floats, Reveals.MODEL]
    seed: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None


def audit_dithers(roster: Roster, shared: int) -> dict[str, int]:
    """Draw the seeds that parts are rounded with, for each party, from the seed on the sheet."""
    seeds = np.random.default_rng([shared, 4]).integers(2**63, size=len(roster.cards)).tolist()
    return dict(zip(roster.names, seeds, strict=True))


class PartTold(NamedTuple):
    """A party's part of the selected rows, and these along directions, in codes; mean and variance of it over all."""

    size: int
    low: Floats
    step: Floats
    codes: bytes
    mean: float
    variance: float


def audited_predictions(
    roster: Roster, rows: Rows, parts: Floats, coef: Floats, hidden: Floats, shared: int
) -> Script[tuple[Mapping[str, ResidualPart], Floats]]:
    """Ask for the parties' parts of the selected rows' residuals. Two bytes a row, party and direction.

    The rows ascend, shape (m,), and have these parts of the weight of all, as the parties see them. Coefficients are of
    columns in their own units, hidden directions, shape (h, n_features), of columns as the parties see them. The seed
    is that on the sheet. Give each party's part, without the intercept, and the rows along the hidden directions, shape
    (h, m).
    """
    first, seeds = first_copies(rows), audit_dithers(roster, shared)
    inbox = yield {
        party: AskAuditedPredictions(sendable_floats(coef[part]), sendable_floats(hidden[:, part]), seeds[party])
        for party, part in roster.parts.items()
    }
    found, along = {}, np.zeros((len(hidden), len(rows)))
    for party, reply in checks.replies(inbox, AuditedPredictions).items():
        codes = reply.less_label if party == roster.label_party else reply.codes
        told = PartTold(reply.size, reply.low, reply.step, codes or b"", reply.mean, reply.variance)
        found[party], own = read_part(party, reply, told, parts, first, 1 + len(hidden), seeds[party])
        along += own
    return found, along


def read_part(
    party: str, reply: Message, told: PartTold, parts: Floats, first: Rows, n_directions: int, seed: int
) -> tuple[ResidualPart, Floats]:
    """Check and restore what a reply tells: the party's part, and the rows along hidden directions, shape (h, m).

    The rows have these parts of the weight of all, shape (m,), and are in places `first` for the first time.
    """
    values = _read(party, reply, told, len(parts), n_directions, seed)
    if not moments_fit(values[0][first], parts[first], told.mean, told.variance, 0.5 * float(told.step[0])):
        moments = f"a mean of {told.mean:g} and a variance of {told.variance:g}"
        raise checks.wrong(party, reply, f"{moments}, belied by its own values")
    return ResidualPart(values[0], float(told.step[0]) ** 2 / 12, told.mean, told.variance), values[1:]


def _read(party: str, reply: Message, told: PartTold, size: int, n_directions: int, seed: int) -> Floats:
    if told.size != size:
        raise checks.wrong(party, reply, f"predictions of {told.size} rows where {size} were asked for")
    for numbers in (told.low, told.step):
        checks.shape(party, reply, numbers, (n_directions,))
        checks.in_range(party, reply, numbers)
    for step in told.step.tolist():
        checks.positive(party, reply, step)
    checks.in_range(party, reply, np.array([told.mean]))
    checks.non_negative(party, reply, np.array([told.variance]))
    rng, width, codes = np.random.default_rng(seed), 2 * size, told.codes
    if len(codes) != width * n_directions:
        raise checks.wrong(party, reply, f"{len(codes)} bytes where {width * n_directions} were asked for")
    values = np.stack(
        [
            restore_evenly(low, step, codes[i * width : (i + 1) * width], size, rng)
            for i, (low, step) in enumerate(zip(told.low.tolist(), told.step.tolist(), strict=True))
        ]
    )
    checks.in_range(party, reply, values)
    return values


def check_request(request: Message, coef: Floats, hidden: Floats, seed: int, table: Table, n_rows: int) -> Floats:
    """Require a model and directions of this table's columns; give the coefficients of columns as it is seen."""
    d, n_hidden = len(table.feature_names), len(hidden)
    checks.shape(SERVER, request, coef, (d,))
    checks.shape(SERVER, request, hidden, (n_hidden, d))
    in_view = coef_in_view(coef, units_of(table))
    for numbers in (coef, in_view, hidden):
        checks.in_range(SERVER, request, numbers)
    checks.seed(request, seed)
    if not n_rows or n_rows * (1 + n_hidden) > MAX_NUMBERS:
        raise InputError(
            f"{n_rows:,} rows along {1 + n_hidden} directions are none, or too many for one message. "
            "Ask for fewer rows, and at least one."
        )
    return in_view


def told_part(table: Table, rows: Rows, hidden: Floats, seed: int, part: Callable[[Floats], Floats]) -> PartTold:
    """Round what `part` makes of the rows, and these along hidden directions; add its moments over all rows."""
    chosen = table.take(rows)
    values = np.stack([part(chosen), *(hidden @ chosen[:, : hidden.shape[1]].T)])
    mean, variance = mean_and_variance(table.map(partial(_part, part)))
    rng = np.random.default_rng(seed)
    lows, steps, codes = zip(*(round_evenly(value, rng) for value in values), strict=True)
    return PartTold(len(rows), sendable_floats(lows), sendable_floats(steps), b"".join(codes), mean, variance)


def _part(part: Callable[[Floats], Floats], block: Block) -> tuple[Floats, Floats | None]:
    return part(block.values), block.weights


def _answer(state: PartyState, request: AskAuditedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    coef = check_request(request, request.coef, request.hidden, request.seed, table, len(rows))
    what = f"mean and variance by model {model_digest(request.part).hex()}"
    state = check_view(state, data, what, 1, 2, of_each=2)
    told = told_part(table, rows, request.hidden, request.seed, partial(own_part, coef, table.label_name is not None))
    plain, less_label = (told.codes, None) if table.label_name is None else (None, told.codes)
    return state, AuditedPredictions(told.size, told.low, told.step, plain, less_label, told.mean, told.variance)


def own_part(coef: Floats, holds_label: bool, rows: Floats) -> Floats:
    """Compute a party's part of residuals: its columns' part of the predictions, less the label if it holds it."""
    part: Floats = rows[:, : len(coef)] @ coef
    return part - rows[:, len(coef)] if holds_label else part


HANDLERS = (Handler(AskAuditedPredictions, _answer, after=frozenset({SELECTED}), then=SELECTED),)
