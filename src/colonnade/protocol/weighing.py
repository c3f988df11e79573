"""Weights of drawn rows that a server tells a party: as the draw has them, or within what the party's scores allow.

A party cannot know all parties' scores, and so not the weights: they are 1 over these, up to one factor. But it knows
its own, and that no score of another is below the row's part of all weight, or above what every rule keeps to. Distinct
rows weigh 1 over a chance that is no smaller than this party alone, or the even draw, gives them. It remembers these
limits with the rows, for runs that use them again.
"""

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import n_blocks_of
from colonnade.kernels.possible import first_copies
from colonnade.kernels.selections import CountedRows
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol import checks
from colonnade.protocol.memory import CoresetNote, SpoiledNote
from colonnade.protocol.session import PartyData, PartyState
from colonnade.signing import digest, rows_digest

# No rule's score of a row exceeds this: leverages are 2 at most, scores for clusters 4, and rounding less than doubles.
MOST_SCORE = 8.0
ROUNDING = 1e-6
# No distinct row's is smaller than 1 over so many times the rows, where it weighs as most do: parties hold few columns
# each. Of fewer rows than these it is 1 over so many times these.
LEAST_CHANCE, FEW_ROWS = 2.0**-3, 1 << 27
# Limits that are remembered: eight steps for a factor of two, downwards from the heaviest row, and as many as a byte
# holds. Rows that are lighter than the 2^32nd part of that are of no use to anybody.
STEPS, MOST_STEPS = 8, 255
Limits = tuple[Floats, Floats]


def check_weights(state: PartyState, request: Message, weights: Floats | None, data: PartyData) -> None:
    """Require weights, shape (m,), or None where they are all the same, that an honest server could have."""
    is_given = state.weighing == "given"
    if is_given and not data.policy.known_only:
        return
    rows = state.selected()
    told = np.ones(len(rows)) if weights is None else weights
    ways = _remembered(rows, data) if is_given else [_range(state, rows, data)]
    # Up to one factor: there is one for all rows, or the weights are not of this draw.
    if (told <= 0).any() or not any(_fits(told, *limits) for limits in ways):
        # That depends on the party's scores: tried again, run after run, other weights would tell them.
        data.memory.keep([SpoiledNote(coreset_digest(rows_digest(rows), data))])
        raise checks.wrong(SERVER, request, "weights that rows drawn as agreed, by this party's scores, cannot have")


def with_coreset(state: PartyState, data: PartyData) -> PartyState:
    """Remember the rows that were agreed on, and what they may weigh, where only such may be used again."""
    if not data.policy.known_only:
        return state
    rows = state.selection()
    if isinstance(rows, CountedRows):
        steps = _steps_of_all(rows)
    else:
        low, high = _range(state, rows[first_copies(rows)], data)
        steps = _steps(low, high, float(high.max(initial=0.0)))
    # Nothing where all weigh the same: a server may have as many rows drawn evenly, as often, as it likes.
    told = (each if any(each) else b"" for each in steps)
    return state.but(notes=(*state.notes, CoresetNote(coreset_digest(rows_digest(rows), data), *told)))


def _steps(low: Floats, high: Floats, heaviest: float) -> tuple[bytes, bytes]:
    """Write limits in steps, a byte each, downwards from the heaviest row."""
    most = max(heaviest, np.finfo(np.float64).tiny)
    steps = np.ceil(-STEPS * np.log2(low / most)), np.floor(-STEPS * np.log2(high / most))
    lightest, heaviest_of = (np.clip(each, 0, MOST_STEPS).astype(np.uint8).tobytes() for each in steps)
    return lightest, heaviest_of


def _steps_of_all(rows: CountedRows) -> tuple[bytes, bytes]:
    """Write those of all rows that count, which weigh just that; nothing where all count the same."""
    if rows.row_weights is None or rows.row_weights.n_ones is not None:
        return b"", b""
    most, pieces = rows.row_weights.max(), []
    for number in range(n_blocks_of(rows.n_rows)):
        counts = rows.row_weights.block(number)
        pieces.append(_steps(counts[counts > 0], counts[counts > 0], most))
    lightest, heaviest = map(b"".join, zip(*pieces, strict=True))
    return lightest, heaviest


def _remembered(rows: Rows, data: PartyData) -> list[Limits]:
    """List the limits that these rows had when they were drawn; none where this party knows them not, or no more."""
    name, (_, places) = coreset_digest(rows_digest(rows), data), np.unique(rows, return_inverse=True)
    known = [note for note in known_coresets(data) if note.digest == name]
    return [(_weights(note.lightest, places), _weights(note.heaviest, places)) for note in known]


def coreset_digest(rows: bytes, data: PartyData) -> bytes:
    """Know a coreset by the digest of its rows, under the alignment that they go by: under another they are others."""
    return rows if data.table.alignment is None else digest(rows, data.table.alignment.fingerprint)


def known_coresets(data: PartyData) -> list[CoresetNote]:
    """List the coresets that may be used again."""
    notes = data.memory.notes()
    return [each for each in notes if isinstance(each, CoresetNote) and SpoiledNote(each.digest) not in notes]


def _weights(steps: bytes, places: Rows) -> Floats:
    return np.asarray(0.5 ** (np.frombuffer(steps, np.uint8)[places] / STEPS)) if steps else np.ones(len(places))


def _fits(told: Floats, low: Floats, high: Floats) -> bool:
    return bool((low / told).max() <= (high / told).min() * (1 + ROUNDING))


def _range(state: PartyState, rows: Rows, data: PartyData) -> Limits:
    """Bound the weights up to one factor, from what each row counts; shape (m,) both."""
    row_weights = data.table.row_weights
    counts = np.ones(len(rows)) if row_weights is None else row_weights[rows]
    if state.weighing == "evenly":
        heavier = np.maximum(1.0, counts * (state.even_factor or 0.0))  # distinct rows that were certain
        return heavier, heavier
    if state.weighing == "all":
        return counts, counts
    scores, others = data.scores(state.rule), len(data.known().parties) - 1
    own, share = scores[rows], state.even_share
    part = counts / (data.table.n_rows if row_weights is None else row_weights.sum())
    if state.weighing == "distinct":
        # Another party may be certain to draw the row, or have next to no chance of it.
        missed = [1 - np.minimum(1.0, (state.even_factor or 0.0) * counts)]
        missed.append(1 - np.minimum(1.0, (state.draw_factor or 0.0) * own))
        n_rows = data.table.n_rows
        least = np.maximum(1 - missed[0] * missed[1], LEAST_CHANCE / max(n_rows, FEW_ROWS) * part * n_rows)
        return counts, counts / least
    if share == 0:  # the total of all scores is the factor
        return counts / (own + others * MOST_SCORE), counts / (own + others * part)
    least_total = scores.sum() + others
    highest = (1 - share) * (own + others * MOST_SCORE) / least_total + share * part
    return counts / highest, counts / (share * part)
