"""Audited logits: what each party's columns make of the audit's rows, in 16 bits, and their classes, a bit each.

The label party tells the classes of these rows: rows drawn by scores with a part for each class tell them anyway. For
shorter intervals it tells which share of all rows has the later class, and its own part's mean among these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Roster, Script, Table
from colonnade.diagnostics.audited_predictions import (
    PartTold,
    audit_dithers,
    check_request,
    own_part,
    read_part,
    told_part,
)
from colonnade.errors import InputError
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.audit import ResidualPart
from colonnade.kernels.bits import pack_bits, unpack_bits
from colonnade.kernels.blocks import Block
from colonnade.kernels.possible import first_copies, moments_fit
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.classes import label_classes
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_view


class AuditedLogits(Message, frozen=True):
    """x_i^(j).theta^(j) for each selected row; then x_i^(j).v^(j) for each direction v; at the label party the class.

    In codes: the value is low + step (code - dither). Mean and variance are those of the first, over all rows. Of two
    classes, the bit of the later is 1; `share` is its part of the weight of all rows, `class_mean` the mean among them.
    """

    phase: ClassVar[str] = "certifying"

    size: Annotated[int, Reveals.NOTHING]
    low: Annotated[Floats, Reveals.FEATURES]
    step: Annotated[Floats, Reveals.FEATURES]
    codes: Annotated[bytes, Reveals.FEATURES]
    mean: Annotated[float, Reveals.MOMENTS]
    variance: Annotated[float, Reveals.MOMENTS]
    classes: Annotated[bytes | None, Reveals.LABELS]
    share: Annotated[float | None, Reveals.LABELS]
    class_mean: Annotated[float | None, Reveals.LABELS]

    def units(self) -> int:
        """Count a number a row and direction, and the two moments; of classes as many again."""
        return self.size * len(self.low) + 2 + (0 if self.classes is None else self.size + 2)

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count all codes as what they are sent as; units leave out what they are read by."""
        told = {**super().numbers_told(units), Reveals.FEATURES: self.size * len(self.low)}
        return told if self.classes is None else {**told, Reveals.LABELS: self.size + 2}

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, which these are too: an owner who keeps only them keeps these."""
        return (Reveals.PREDICTIONS,)


class AskAuditedLogits(Message, frozen=True):
    """The party's part of the model; directions that rounding hid, of columns as it sees them; the dither's seed."""

    phase: ClassVar[str] = "certifying"
    reply: ClassVar[type[Message]] = AuditedLogits

    coef: Annotated[Floats, Reveals.MODEL]
    hidden: Annotated[Floats, Reveals.MODEL]
    seed: Annotated[int, Reveals.NOTHING]

    @property
    def part(self) -> ModelPart:
        """The party's part of the model."""
        return self.coef, None, None


@dataclass(frozen=True, eq=False)
class ToldClasses:
    """The classes of the selected rows, 1 for the later, shape (m,), and what is known of it over all rows."""

    codes: Floats
    share: float
    mean: float


def audited_logits(
    roster: Roster, rows: Rows, parts: Floats, coef: Floats, hidden: Floats, shared: int
) -> Script[tuple[Mapping[str, ResidualPart], Floats, ToldClasses]]:
    """Ask for the parties' parts of the selected rows' logits, and their classes: two bytes a row and party, and a bit.

    The parameters are those of `audited_predictions`. Give each party's part, without the intercept, the rows along the
    hidden directions, shape (h, m), and classes.
    """
    first, seeds = first_copies(rows), audit_dithers(roster, shared)
    inbox = yield {
        party: AskAuditedLogits(sendable_floats(coef[part]), sendable_floats(hidden[:, part]), seeds[party])
        for party, part in roster.parts.items()
    }
    replies = checks.replies(inbox, AuditedLogits)
    found, along = {}, np.zeros((len(hidden), len(rows)))
    for party, reply in replies.items():
        told = PartTold(reply.size, reply.low, reply.step, reply.codes, reply.mean, reply.variance)
        found[party], own = read_part(party, reply, told, parts, first, 1 + len(hidden), seeds[party])
        along += own
        of_classes = (reply.classes, reply.share, reply.class_mean)
        if party != roster.label_party and any(told is not None for told in of_classes):
            raise checks.wrong(party, reply, "classes, which it does not have")
    label_party = roster.label_party or ""
    return found, along, _read_classes(label_party, replies[label_party], parts, first)


def _read_classes(party: str, reply: AuditedLogits, parts: Floats, first: Rows) -> ToldClasses:
    if reply.classes is None or reply.share is None or reply.class_mean is None:
        raise checks.wrong(party, reply, "no classes where they were asked for")
    try:
        codes = unpack_bits(reply.classes, len(parts), 1).astype(np.float64)
    except ValueError as error:
        raise checks.wrong(party, reply, str(error)) from error
    share, apart = reply.share, reply.class_mean - reply.mean
    checks.in_range(party, reply, np.array([share, reply.class_mean]))
    if not (0 < share < 1 and moments_fit(codes[first], parts[first], share, share * (1 - share), 0.0)):
        raise checks.wrong(party, reply, f"a share of {share:g}, belied by its own classes")
    if share * apart**2 > (1 - share) * reply.variance * (1 + checks.SLACK):
        raise checks.wrong(party, reply, f"a mean of {reply.class_mean:g} in a class, too far from that of all rows")
    return ToldClasses(codes, share, reply.class_mean)


def _answer(state: PartyState, request: AskAuditedLogits, data: PartyData) -> tuple[PartyState, Message]:
    table, rows = data.table, state.selected()
    coef = check_request(request, request.coef, request.hidden, request.seed, table, len(rows))
    has_label = table.label_name is not None
    what = f"mean and variance{' by class' * has_label} by model {model_digest(request.part).hex()}"
    state = check_view(state, data, what, 1 + has_label, 2 + 2 * has_label, of_each=2 + has_label)
    told = told_part(table, rows, request.hidden, request.seed, partial(own_part, coef, False))
    classes = share = class_mean = None
    if has_label:
        classes, share, class_mean = _own_classes(table, rows, coef, data)
    return state, AuditedLogits(*told, classes, share, class_mean)


def _own_classes(table: Table, rows: Rows, coef: Floats, data: PartyData) -> tuple[bytes, float, float]:
    """Give the selected rows' bits, the later class's share of all that counts, and its mean of the party's part."""
    values = data.seen(None).once(label_classes)
    if len(values) != 2:
        raise InputError(f"its label has {len(values)} classes; an audit is of two.")
    weight, total, own = reduce(np.add, table.map(partial(_sums_of_class, values[1], coef))).tolist()
    if not 0 < total < weight:
        raise InputError("only one of its two classes is among the rows that count. Hold out other rows.")
    bits = pack_bits((table.take(rows)[:, -1] == values[1]).astype(np.uint64), 1)
    return bits, total / weight, own / total


def _sums_of_class(later: float, coef: Floats, block: Block) -> Floats:
    """Add up weights of a block's rows, of those of the later class, and the party's part of the logits of these."""
    d = len(coef)
    is_later, own = block.values[:, d] == later, block.values[:, :d] @ coef
    if block.weights is None:
        return np.array([len(own), np.count_nonzero(is_later), own @ is_later], np.float64)
    counted = block.weights * is_later
    return np.array([block.weights.sum(), counted.sum(), counted @ own])


HANDLERS = (Handler(AskAuditedLogits, _answer, after=frozenset({SELECTED}), then=SELECTED),)
