"""Audited predictions: what each party's columns make of the audit's rows, in 16 bits, and its moments over all rows.

The label party tells its part less the label: the server learns residuals. Of one that holds little else these are
almost its labels, so they count as such.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Script, Table
from colonnade.diagnostics.model_in_view import coef_in_view, units_of
from colonnade.errors import InputError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.audit import ResidualPart
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
    replies = checks.replies(inbox, AuditedPredictions)
    found, along = {}, np.zeros((len(hidden), len(rows)))
    for party, reply in replies.items():
        codes = reply.less_label if party == roster.label_party else reply.codes
        values = _read(party, reply, codes or b"", len(rows), 1 + len(hidden), seeds[party])
        if not moments_fit(values[0][first], parts[first], reply.mean, reply.variance, 0.5 * float(reply.step[0])):
            moments = f"a mean of {reply.mean:g} and a variance of {reply.variance:g}"
            raise checks.wrong(party, reply, f"{moments}, belied by its own values")
        found[party] = ResidualPart(values[0], float(reply.step[0]) ** 2 / 12, reply.mean, reply.variance)
        along += values[1:]
    return found, along


def _read(party: str, reply: AuditedPredictions, codes: bytes, size: int, n_directions: int, seed: int) -> Floats:
    if reply.size != size:
        raise checks.wrong(party, reply, f"predictions of {reply.size} rows where {size} were asked for")
    for numbers in (reply.low, reply.step):
        checks.shape(party, reply, numbers, (n_directions,))
        checks.in_range(party, reply, numbers)
    for step in reply.step.tolist():
        checks.positive(party, reply, step)
    checks.in_range(party, reply, np.array([reply.mean]))
    checks.non_negative(party, reply, np.array([reply.variance]))
    rng, width = np.random.default_rng(seed), 2 * size
    if len(codes) != width * n_directions:
        raise checks.wrong(party, reply, f"{len(codes)} bytes where {width * n_directions} were asked for")
    values = np.stack(
        [
            restore_evenly(low, step, codes[i * width : (i + 1) * width], size, rng)
            for i, (low, step) in enumerate(zip(reply.low.tolist(), reply.step.tolist(), strict=True))
        ]
    )
    checks.in_range(party, reply, values)
    return values


def _answer(state: PartyState, request: AskAuditedPredictions, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    d, n_hidden = len(table.feature_names), len(request.hidden)
    checks.shape(SERVER, request, request.coef, (d,))
    checks.shape(SERVER, request, request.hidden, (n_hidden, d))
    coef = coef_in_view(request.coef, units_of(table))
    for numbers in (request.coef, coef, request.hidden):
        checks.in_range(SERVER, request, numbers)
    checks.seed(request, request.seed)
    if not len(rows) or len(rows) * (1 + n_hidden) > MAX_NUMBERS:
        raise InputError(
            f"{len(rows):,} rows along {1 + n_hidden} directions are none, or too many for one message. "
            "Ask for fewer rows, and at least one."
        )
    what = f"mean and variance by model {model_digest(request.part).hex()}"
    state = check_view(state, data, what, 1, 2, of_each=2)
    chosen = table.take(rows)
    values = np.stack([own_part(table, chosen, coef), *(request.hidden @ chosen[:, :d].T)])
    mean, variance = mean_and_variance((own_part(table, block, coef) for block in table.blocks()), table.row_weights)
    rng = np.random.default_rng(request.seed)
    lows, steps, codes = zip(*(round_evenly(value, rng) for value in values), strict=True)
    told = b"".join(codes)
    plain, less_label = (told, None) if table.label_name is None else (None, told)
    return state, AuditedPredictions(
        len(rows), sendable_floats(lows), sendable_floats(steps), plain, less_label, mean, variance
    )


def own_part(table: Table, rows: Floats, coef: Floats) -> Floats:
    """Compute a party's part of residuals: its columns' part of the predictions, less the label if it holds it."""
    part: Floats = rows[:, : len(coef)] @ coef
    return part if table.label_name is None else part - rows[:, len(coef)]


HANDLERS = (Handler(AskAuditedPredictions, _answer, after=frozenset({SELECTED}), then=SELECTED),)
