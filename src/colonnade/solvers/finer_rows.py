"""A second look at rows that were fetched before: what rounding took off them, rounded more finely."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from colonnade.contracts import LogisticTask, PartyCard, Task
from colonnade.kernels.arrays import Rows
from colonnade.kernels.quantise import decode_codes, encode_codes, restore_dithered, round_with_dither
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.solvers.whitened_columns import WhitenedRows, check_rounding, rounded_part, whitening_of

# Values are rounded in single precision: by half a step and so much of it.
ROUNDED_OFF = 1e-3


class FinerRows(Message, frozen=True):
    """Codes of what whitened rows are beyond their rounded values; `label` is the label's place in a row, if any.

    Of columns that travelled exactly there is nothing beyond.
    """

    phase: ClassVar[str] = "solving"

    size: Annotated[int, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.NOTHING]
    label: Annotated[int | None, Reveals.LABELS]
    codes: Annotated[bytes, Reveals.FEATURES]

    def units(self) -> int:
        """Count the rows as the paper sends them, every value a number."""
        return self.size * self.n_columns

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count a label a row, too, where codes are also of these."""
        told = super().numbers_told(units)
        if self.label is None:
            return told
        return {**told, Reveals.FEATURES: units - self.size, Reveals.LABELS: self.size}


class AskFinerRows(Message, frozen=True):
    """Look again at some of the rows agreed on, by their places, that were sent with one step and dither.

    Send what they are beyond that, rounded by a finer step and another dither.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = FinerRows

    step: Annotated[float, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    finer_step: Annotated[float, Reveals.NOTHING]
    finer_seed: Annotated[int, Reveals.NOTHING]
    places: Annotated[Rows, Reveals.ROW_IDS]


class AskFinerClassRows(AskFinerRows, frozen=True):
    """As `AskFinerRows`, of rows that `AskClassColumns` asked for: the label has classes, and came as it is."""


def finer_kind(task: Task[Any]) -> type[AskFinerRows]:
    """Say how rows of this task are looked at again."""
    return AskFinerClassRows if isinstance(task, LogisticTask) else AskFinerRows


def read_finer(card: PartyCard, reply: FinerRows, known: WhitenedRows, request: AskFinerRows) -> WhitenedRows:
    """Check and restore rows that are known already, less finely; no value may be another than before."""
    party, size, rank = card.name, len(request.places), known.n_rounded
    if (reply.size, reply.n_columns) != (size, rank):
        found = f"{reply.size} rows of {reply.n_columns} columns"
        raise checks.wrong(party, reply, f"{found}, where {size} of {rank} are due")
    if reply.label != known.label:
        raise checks.wrong(party, reply, "a label where none was due, or none where it was, or at another place")
    try:
        codes = decode_codes(reply.codes, rank, size)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    beyond = restore_dithered(codes, request.finer_step, np.random.default_rng(request.finer_seed))
    if np.any(np.abs(beyond) > (0.5 + ROUNDED_OFF) * (request.step + request.finer_step)):
        raise checks.wrong(party, reply, "other rows than it sent before")
    rows, n_exact = known.at(request.places), known.exact.shape[1]
    values = np.hstack([rows.values[:, :n_exact], rows.values[:, n_exact:] + beyond])
    return replace(rows, values=values, step=request.finer_step)


def _answer(state: PartyState, request: AskFinerRows, data: PartyData) -> tuple[PartyState, Message]:
    check_rounding(request, request.step, request.seed)
    check_rounding(request, request.finer_step, request.finer_seed)
    rows, table = state.selected(), data.table
    checks.row_ids(SERVER, request, request.places, len(rows))
    # A row rounded by many dithers is known to a part of the step.
    if np.any(np.diff(request.places) == 0):
        raise checks.wrong(SERVER, request, "a row twice")
    whitening = whitening_of(data, classes=isinstance(request, AskFinerClassRows))
    values = rounded_part(whitening, table.take(rows))
    known = round_with_dither(values, request.step, np.random.default_rng(request.seed))
    beyond = values - restore_dithered(known, request.step, np.random.default_rng(request.seed))
    beyond, rng = beyond[request.places], np.random.default_rng(request.finer_seed)
    codes = encode_codes(round_with_dither(beyond, request.finer_step, rng))
    return state, FinerRows(
        len(beyond), beyond.shape[1], None if table.label_name is None else len(table.feature_names), codes
    )


HANDLERS = tuple(
    Handler(kind, _answer, after=frozenset({SELECTED}), then=SELECTED, solver="compact")
    for kind in (AskFinerRows, AskFinerClassRows)
)
