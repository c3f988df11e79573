"""The pilot: a few hundred rows drawn by the scores, rounded finely. What it sends counts, and stands on the ledger."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

import numpy as np

from colonnade.branches import SCORE_STEP, pilot_draw, planned_draw
from colonnade.contracts import ClusteringTask, Inbox, JobView, Roster, Script
from colonnade.errors import UnsupportedError
from colonnade.job_sheets import PILOT_STEP, pilot_dithers
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.row_ids import row_id_bytes
from colonnade.kernels.score_codes import decode_scores
from colonnade.kernels.value_bits import value_bits
from colonnade.messages import Message
from colonnade.planning.looking import look_again
from colonnade.planning.sheet_sizes import opening_bytes, telling_bytes
from colonnade.protocol import checks
from colonnade.protocol.caps import PLANNED, Branches
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.splits import AnySplit
from colonnade.protocol.viewing import agree_on_view
from colonnade.protocol.windows import most_that_fit
from colonnade.sampling.distinct.messages import DistinctCodes
from colonnade.sampling.plain.messages import Total
from colonnade.sampling.plain.server import is_vouched
from colonnade.solvers import CompactCentral
from colonnade.solvers.compact import AskColumns, PartyColumns, kind_of, read_columns
from colonnade.tasks import Classification, KMeans, PaperTask, Regression
from colonnade.tasks.jobs import rows_told, shared_seed

T = TypeVar("T")
SCORE_BITS = 5.5
# Of the budget, for a pilot whose size nobody chose.
PILOT_SHARE = 0.2
# Messages without rows, for each party, but for the job sheet; and for each signed draw that a party is told.
MESSAGES_OF_A_PARTY, OF_A_DRAW = 250, 80
# Drawn by scores, values spread so much more than those of all rows, for a guess that holds.
DRAWN_SPREAD = 1.6
COARSE_STEP = 1.4
# Columns of few values take less, and nobody knows before a pilot of k-means which these are. By this part the guess is
# enough for a table without such columns (`house-clusters` of benchmarks/tables.py): else the pilot is sent in vain.
FEW_VALUES = 0.65


@dataclass(frozen=True, eq=False)
class PilotRows:
    """What the server has of a pilot.

    Parameters
    ----------
    rows : ndarray of int64, shape (m0,)
        Their ids, ascending.
    chances, counts : ndarray of float64, shape (m0,)
        With which chance each row was drawn, and what it counts.
    total_weight : float
        What all rows count.
    totals : ndarray of float64, shape (parties,)
        G^(j).
    scores : ndarray of float64, shape (parties, m0)
        g^(j) of the rows; all 1 where they were drawn evenly.
    columns : mapping of str to WhitenedRows or ScaledRows
        By party.
    step : float
        That whitened columns were rounded by.
    unclear : bool
        Whether rounding still hides directions in which they differ.
    replies, finer : mapping of str to bytes
        In which columns came, by party, and in which they came again with a finer step, if they did.
    task : PaperTask
        What is to be learned, with the label's classes, if it has some.
    """

    rows: Rows
    chances: Floats
    counts: Floats
    total_weight: float
    totals: Floats
    scores: Floats
    columns: PartyColumns
    step: float
    unclear: bool
    replies: Mapping[str, bytes]
    finer: Mapping[str, bytes]
    task: PaperTask

    @property
    def weights(self) -> Floats:
        """What each row stands for."""
        return np.asarray(self.counts / self.chances)


def play_pilot(
    task: PaperTask,
    roster: Roster,
    split: AnySplit | None,
    size: int,
    spare: int | None,
    seed: int,
    *,
    evenly: bool = False,
) -> Script[PilotRows]:
    """Let all parties look at their tables alike, and draw a pilot; looking again may take `spare` bytes."""
    view = yield from agree_on_view(roster, split, "train", task.scaling)
    return (yield from pilot_rows(task, roster, view, size, spare, seed, evenly=evenly))


def pilot_rows(
    task: PaperTask, roster: Roster, view: JobView, size: int, spare: int | None, seed: int, *, evenly: bool
) -> Script[PilotRows]:
    """Draw a pilot by rounded scores, or evenly, and fetch its rows, rounded: not those of a run with the same seed."""
    rng = np.random.default_rng([seed, 5])
    sampler = pilot_draw(task, size, evenly=evenly)
    if isinstance(task, Classification):
        task = yield from settled(task, roster, rows_told(task, sampler, roster))
    heard: list[Inbox] = []
    coreset = yield from _overheard(sampler.sample(roster, task.score_rule(), rng, view.row_weights), heard)
    asked = pilot_requests(task, roster, seed)
    inbox = yield {**asked}
    columns = read_columns(roster, coreset.rows, asked, inbox).columns
    looked = yield from look_again(task, roster, columns, coreset.weights, shared_seed(seed), spare)
    totals, scores = _even_scores(roster, len(coreset)) if evenly else _scores(roster, heard, len(coreset))
    counts = np.ones(len(coreset)) if view.row_weights is None else view.row_weights[coreset.rows]
    return PilotRows(
        coreset.rows,
        counts / coreset.weights,
        counts,
        coreset.total_weight,
        totals,
        scores,
        looked.columns,
        looked.step,
        looked.unclear,
        {party: wire_bytes(reply) for party, reply in inbox.items()},
        {party: wire_bytes(reply) for party, reply in looked.replies.items()},
        task,
    )


def settled(task: Classification, roster: Roster, n_told: int) -> Script[Classification]:
    """Ask for the classes, and require two: of more no law is known."""
    found = yield from task.settled(roster, n_told)
    if len(classes := found.known_classes()) > 2:
        raise UnsupportedError(
            f"A classification of {len(classes)} classes cannot be planned: only one of two can. Name a sampler and a "
            "solver: ImportanceSampling(size=2000) and CompactCentral() or Central()."
        )
    return found


def _scores(roster: Roster, heard: Sequence[Inbox], size: int) -> tuple[Floats, Floats]:
    """Read each party's total, and its scores of the pilot's rows."""
    totals, codes = _replies(heard, Total), _replies(heard, DistinctCodes)
    scores = [decode_scores(codes[party].codes, size, SCORE_STEP) for party in roster.names]
    return np.array([totals[party].total for party in roster.names]), np.array(scores)


def _even_scores(roster: Roster, size: int) -> tuple[Floats, Floats]:
    """Take all rows to have the same score: nobody was asked."""
    n_parties = len(roster.names)
    return np.full(n_parties, float(roster.n_rows)), np.ones((n_parties, size))


def pilot_requests(task: PaperTask, roster: Roster, seed: int) -> dict[str, AskColumns]:
    """Ask every party for a pilot's rows."""
    kind = kind_of(task)
    seeds = zip(roster.names, pilot_dithers(roster, shared_seed(seed)), strict=True)
    return {party: kind(PILOT_STEP, dither) for party, dither in seeds}


def _overheard(script: Script[T], heard: list[Inbox]) -> Script[T]:
    """Play a script, and keep what parties reply: it sums their scores, and each party's own are wanted."""
    outbox = next(script)
    while True:
        inbox = yield outbox
        heard.append(inbox)
        try:
            outbox = script.send(inbox)
        except StopIteration as end:
            result: T = end.value
            return result


R = TypeVar("R", bound=Message)


def _replies(heard: Sequence[Inbox], kind: type[R]) -> Mapping[str, R]:
    return next(checks.replies(inbox, kind) for inbox in heard if isinstance(next(iter(inbox.values())), kind))


def least_pilot(task: PaperTask, roster: Roster) -> int:
    """Give the size of the smallest pilot that tells anything: of rows enough to learn on, and to leave some out."""
    match task:
        case KMeans():
            return max(200, 30 * task.n_clusters)
        case Regression() | Classification():
            return max(150, 8 * (len(roster.feature_names) + 1))
        case _:
            assert_never(task)


def usual_pilot(task: PaperTask, roster: Roster, budget: int | None) -> int:
    """Choose m0, the size of a pilot: a few hundred rows, fewer where the bytes for pilot and run are few."""
    least = least_pilot(task, roster)
    match task:
        case KMeans():
            usual = max(600, 60 * task.n_clusters)
        case Regression() | Classification():
            usual = max(600, 10 * (len(roster.feature_names) + 1))
        case _:
            assert_never(task)
    usual = min(usual, max(roster.n_rows // 10, least))
    if budget is None:
        return usual
    fixed, a_row = _pilot_bytes(task, roster)
    return max(least, min(usual, math.floor((PILOT_SHARE * budget - fixed) / a_row)))


def least_size(task: PaperTask, roster: Roster) -> int:
    """Give the fewest rows that a run is planned with: fewer do not determine a model."""
    match task:
        case KMeans():
            return 5 * task.n_clusters
        case Regression() | Classification():
            return 4 * (len(roster.feature_names) + 1)
        case _:
            assert_never(task)


def all_branches(task: PaperTask, roster: Roster) -> Branches:
    """Say what a planner chooses between where nobody objects: rows that fit one message of any party."""
    fewest, widest = least_size(task, roster), max(card.n_features for card in roster.cards) + 1
    return Branches(PLANNED, fewest, max(min(roster.n_rows, most_that_fit(widest)), fewest))


def pilot_bytes(task: PaperTask, roster: Roster, size: int) -> int:
    """Guess what a pilot will send, before anything is known of the data: somewhat more than it will."""
    fixed, a_row = _pilot_bytes(task, roster)
    return math.ceil(fixed + size * a_row)


def least_run_bytes(task: PaperTask, roster: Roster) -> int:
    """Guess what the smallest run will send."""
    size = least_size(task, roster)
    what = {"task": task, "sampler": planned_draw(task, size), "solver": CompactCentral(COARSE_STEP)}
    fixed, a_row = _draw_bytes(task, roster, COARSE_STEP)
    opened = opening_bytes("fit", what, roster) * len(roster.cards)
    told = sum(telling_bytes(task, card) for card in roster.cards)
    return math.ceil(opened + fixed + told + size * a_row)


def _pilot_bytes(task: PaperTask, roster: Roster) -> tuple[float, float]:
    """Guess the bytes of its messages, and of each row."""
    fixed, a_row = _draw_bytes(task, roster, PILOT_STEP)
    opened = opening_bytes("plan", {"task": task}, roster) * len(roster.cards)
    return fixed + opened + _moments(task, roster), a_row


def _draw_bytes(task: PaperTask, roster: Roster, step: float) -> tuple[float, float]:
    """Guess the bytes of the messages that draw and fetch rows, and of each row; rows that are drawn spread more."""
    n_parties = len(roster.cards)
    n_signed = 2 * n_parties if is_vouched(roster.names) else n_parties**2
    drawn = max(500 // n_parties, 1)
    ids = 8 * row_id_bytes(roster.n_rows, drawn) / drawn
    value = FEW_VALUES * value_bits(step) if isinstance(task, ClusteringTask) else value_bits(step, DRAWN_SPREAD)
    bits = sum(_widths(task, roster)) * value + n_parties * (SCORE_BITS + ids)
    return MESSAGES_OF_A_PARTY * n_parties + OF_A_DRAW * n_signed, bits / 8


def _moments(task: PaperTask, roster: Roster) -> int:
    """Give the bytes of what tells the rows' units."""
    if isinstance(task, ClusteringTask):
        return 0
    return sum(8 * width * (width + 3) // 2 for width in _widths(task, roster))


def _widths(task: PaperTask, roster: Roster) -> list[int]:
    return [card.n_features + (task.needs_label and card.label_name is not None) for card in roster.cards]
