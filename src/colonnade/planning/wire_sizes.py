"""What a run will send: every message of it, written with content of the right length."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from colonnade.branches import Branch
from colonnade.contracts import PartyCard, Roster
from colonnade.evaluation.telling import TellModel
from colonnade.kernels.row_ids import row_id_bytes
from colonnade.messages import Message, sendable_floats, sendable_rows
from colonnade.planning.pilot import PilotRows
from colonnade.planning.sheet_sizes import A_SIGNATURE, AN_ACCEPTANCE, opening_bytes, telling_bytes
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.sheet import JobAccepted, OpenJob, TakeBranch
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling
from colonnade.sampling.distinct.messages import AskDistinctCodes, DistinctCodes
from colonnade.sampling.plain.messages import AskVouched, DrawnRows, Draws, OpenDraw, Vouched
from colonnade.sampling.plain.server import is_vouched
from colonnade.sampling.rules import AnyRule, travelling
from colonnade.sampling.selecting import Ready, UseAllRows, UseSharedDraw
from colonnade.signing import SignedRows, VouchedRows
from colonnade.solvers import AnySolver
from colonnade.solvers.central import AskColumns, Columns
from colonnade.solvers.compact import PartyColumns
from colonnade.solvers.scaled_columns import AskScaledColumns, ScaledColumns, ScaledRows
from colonnade.solvers.whitened_columns import AskClassColumns, AskWhitenedColumns, WhitenedColumns
from colonnade.tasks import Classification, PaperTask

# Of a seed drawn at random: all but one in a million take as many bytes on the wire.
A_SEED = 2**62
# The header of an array of more than 65,535 bytes is longer than that of an empty one by so many.
LONG_HEADER = 3


class MessageSize(NamedTuple):
    """How many bytes one message takes, of which phase and party."""

    phase: str
    party: str
    bytes: float


def sampling_messages(
    task: PaperTask,
    roster: Roster,
    sampler: AnySampler,
    pilot: PilotRows,
    n_rows: int,
    score_bytes: dict[str, float],
    *,
    here: bool,
) -> Iterator[MessageSize]:
    """List what agreeing on so many rows will send, by rounded scores if any; the pilot tells each party's part.

    In the pilot's run rows are scored by its rule.
    """
    shares = dict(zip(roster.names, (pilot.totals / pilot.totals.sum()).tolist(), strict=True))
    for card in roster.cards:
        if isinstance(sampler, ImportanceSampling):
            rule = None if here else travelling(sampler.scored_by(task.score_rule(), roster))
            yield from _by_scores(rule, card, sampler, shares, n_rows, score_bytes[card.name])
        else:
            even = isinstance(sampler, UniformSampling)
            request: Message = UseSharedDraw(sampler.size, A_SEED, distinct=True) if even else UseAllRows()  # type: ignore[union-attr]
            yield from _sent(card.name, request, Ready())


def sheet_messages(
    task: PaperTask, roster: Roster, split: AnySplit | None, sampler: AnySampler, solver: AnySolver, seed: int = 0
) -> Iterator[MessageSize]:
    """List what opens a run, the job sheet."""
    what = {"task": task, "sampler": sampler, "solver": solver, "split": split, "seed": seed}
    opening = opening_bytes("fit", what, roster)
    for card in roster.cards:
        yield MessageSize(OpenJob.phase, card.name, opening)


def branch_messages(roster: Roster, branch: Branch) -> Iterator[MessageSize]:
    """List what lets a pilot's run go on by a branch."""
    taken = len(wire_bytes(TakeBranch(branch.encoded()))) + len(wire_bytes(JobAccepted(AN_ACCEPTANCE, None)))
    for card in roster.cards:
        yield MessageSize(TakeBranch.phase, card.name, taken)


def telling_messages(task: PaperTask, roster: Roster) -> Iterator[MessageSize]:
    """List what ends a run: every party is told its part of the model."""
    for card in roster.cards:
        yield MessageSize(TellModel.phase, card.name, telling_bytes(task, card))


def _by_scores(
    rule: AnyRule | None,
    card: PartyCard,
    sampler: ImportanceSampling,
    shares: dict[str, float],
    n_rows: int,
    score_bytes: float,
) -> Iterator[MessageSize]:
    n, size, no_rows = card.n_rows, sampler.size, sendable_rows(np.empty(0, np.int64))
    quotas = {name: round((1 - sampler.uniform_share) * share * size) for name, share in shares.items()}
    own = quotas[card.name]
    yield from _sent(card.name, OpenDraw(rule, own, A_SEED, Draws.DISTINCT), DrawnRows(no_rows, A_SIGNATURE))
    yield MessageSize(DrawnRows.phase, card.name, _ids(n, own))
    coded = bytes(round(n_rows * score_bytes))
    relayed = tuple(SignedRows(name, no_rows, A_SIGNATURE) for name in shares if name != card.name)
    ids = sum(_ids(n, drawn) for name, drawn in quotas.items() if name != card.name)
    if is_vouched(shares) and card.name == min(shares):
        yield from _sent(card.name, AskVouched(relayed), Vouched(A_SIGNATURE))
        yield MessageSize(AskVouched.phase, card.name, ids)
    told = VouchedRows(no_rows, A_SIGNATURE) if is_vouched(shares) else relayed
    ids = _ids(n * len(shares), sum(quotas.values())) if is_vouched(shares) else ids
    yield from _sent(
        card.name, AskDistinctCodes(n_rows, told, 1 / 3, A_SEED, size), DistinctCodes(n_rows, coded, 1 / 3)
    )
    yield MessageSize(AskDistinctCodes.phase, card.name, ids)


def _ids(n_rows: int, size: int) -> float:
    length = row_id_bytes(n_rows, size)
    return length + (LONG_HEADER if length > 0xFFFF else int(length > 0xFF))


def rounded_messages(
    task: PaperTask,
    roster: Roster,
    columns: PartyColumns,
    size: int,
    step: float,
    row_bytes: dict[str, float],
) -> Iterator[MessageSize]:
    """List what fetching rows will send where they are rounded, and moments known from the pilot."""
    kind = AskClassColumns if isinstance(task, Classification) else AskWhitenedColumns
    for card in roster.cards:
        known, n_codes = columns[card.name], round(size * row_bytes.get(card.name, 0.0))
        if isinstance(known, ScaledRows):
            levels = sendable_floats(np.zeros(known.n_levels))
            reply: Message = ScaledColumns(size, card.n_features, 1 / 3, levels, bytes(n_codes))
            yield from _sent(card.name, AskScaledColumns(step, A_SEED), reply)
            yield MessageSize(ScaledColumns.phase, card.name, known.unseen_bytes(size))
        else:
            label_mean = None if known.label is None else 1 / 3
            codes = bytes(n_codes + known.fixed_bytes(size))
            reply = WhitenedColumns(size, step, len(known.mean), None, None, label_mean, codes)
            yield from _sent(card.name, kind(step, A_SEED, known=True), reply)


def plain_messages(task: PaperTask, roster: Roster, size: int) -> Iterator[MessageSize]:
    """List what fetching rows will send where they are sent as they are."""
    needs_label = task.needs_label
    for card in roster.cards:
        labels = sendable_floats(np.zeros(1)) if needs_label and card.label_name is not None else None
        reply = Columns(sendable_floats(np.zeros((1, card.n_features))), labels)
        yield from _sent(card.name, AskColumns(needs_label), reply)
        arrays = 1 + (labels is not None)
        numbers = 8 * (size - 1) * (card.n_features + (labels is not None))
        yield MessageSize(Columns.phase, card.name, numbers + arrays * LONG_HEADER)


def _sent(party: str, *messages: Message) -> Iterator[MessageSize]:
    for message in messages:
        yield MessageSize(message.phase, party, len(wire_bytes(message)))


def n_rounds(sampler: AnySampler, parties: Collection[str]) -> int:
    """Count the rounds of opening, sampling, fetching and telling."""
    return 4 if isinstance(sampler, UniformSampling | AllRows) else 5 + is_vouched(parties)
