"""A pilot looked at once more: directions in which rounding hides how far the parties' columns agree.

Columns of different parties may nearly coincide. Along their difference the pilot's rows have little but rounding, and
yet the label may hang on it. So some rows are fetched with a finer step. Where these differ by nothing but rounding
either, the columns are the same, and nothing is lost. Where they do differ, all of the pilot's rows are fetched so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.job_sheets import FINE_STEP, PILOT_STEP, finer_dithers, pilot_dithers
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.rounding_noise import Parted, parted
from colonnade.messages import Message
from colonnade.protocol import checks
from colonnade.solvers.compact import PartyColumns, directions
from colonnade.solvers.finer_rows import AskFinerRows, FinerRows, finer_kind, read_finer
from colonnade.solvers.whitened_columns import WhitenedRows
from colonnade.tasks import PaperTask

# Less variance than so many times that of rounding is no clear sign of any; nor, where nobody looks again, a sure one.
CLEAR, SURE = 3.0, 10.0
# Rows that are looked at first: at least so many, and so many more than columns, which least squares take as many of.
FEW, FREE = 24, 10
# A request and a reply without codes and places.
AROUND_CODES = 150
# Of the variance of rounding, so many times what chance makes of it is a sign.
SIGN = 2.0


@dataclass(frozen=True, eq=False)
class Looked:
    """A pilot's columns, the step that they came with, whether some directions stay unclear, and the replies."""

    columns: PartyColumns
    step: float
    unclear: bool
    replies: Mapping[str, Message]


def look_again(
    task: PaperTask, roster: Roster, columns: PartyColumns, weights: Floats, shared: int, spare: int | None
) -> Script[Looked]:
    """Look at the pilot's rows with a finer step, as far as is needed and `spare` bytes allow, if they are limited.

    The weights are what rows stand for, (m0,).
    """
    left = math.inf if spare is None else spare
    doubtful = hidden_in(columns, weights)
    if not doubtful.shape[1]:
        return Looked(columns, PILOT_STEP, unclear=False, replies={})
    joined = np.hstack([each.values for each in columns.values()])
    some = places_to_look(joined @ doubtful, joined.shape[1])
    left -= _bytes(columns, len(some))
    if left < 0:
        return Looked(columns, PILOT_STEP, unclear=True, replies={})
    few, _ = yield from _fetch(task, roster, columns, some, shared)
    if not differ(few, doubtful.shape[1]):
        return Looked(columns, PILOT_STEP, unclear=False, replies={})
    if left < _bytes(columns, len(joined)):
        return Looked(columns, PILOT_STEP, unclear=True, replies={})
    fine, replies = yield from _fetch(task, roster, columns, np.arange(len(joined)), shared)
    hidden = hidden_in(fine, weights, SURE)
    return Looked(fine, FINE_STEP, unclear=differ(fine, hidden.shape[1]), replies=replies)


def _bytes(columns: PartyColumns, n_rows: int) -> float:
    """Guess what a look at so many rows sends: what is left of a value within its cell, about evenly spread."""
    bits = math.log2(PILOT_STEP / FINE_STEP) + 1.5
    return sum(AROUND_CODES + each.n_rounded * n_rows * bits / 8 for each in columns.values())


def hidden_in(columns: PartyColumns, weights: Floats, clear: float = CLEAR) -> Floats:
    """Find orthonormal directions of the joined columns' features, shape (r, h), with little in them but rounding.

    Of columns that are not whitened there are none: distances bear rounding in any direction.
    """
    features, found = _parted(columns, weights)
    Q, _ = np.linalg.qr(found.directions[:, found.noise >= 1 / clear])
    return np.asarray(features @ Q)


def _parted(columns: PartyColumns, weights: Floats) -> tuple[Floats, Parted]:
    """Take the covariance of features apart into what they are and rounding; the features' directions are (r, p)."""
    parties = [each for each in columns.values() if isinstance(each, WhitenedRows)]
    if not parties:
        return np.empty((0, 0)), parted(np.empty((0, 0)), np.empty((0, 0)))
    features, _ = directions(parties)
    rows = np.hstack([party.values for party in parties]) @ features
    w = weights / weights.sum()
    rows = rows - w @ rows
    noise = np.concatenate([party.noise(weights) for party in parties])[:, np.newaxis]
    return features, parted((rows * w[:, np.newaxis]).T @ rows, features.T @ (noise * features))


def places_to_look(along: Floats, n_columns: int) -> Rows:
    """Choose rows by what they are along doubtful directions, (m0, h): half of them those that are farthest."""
    m0 = len(along)
    count = min(max(FEW, n_columns + FREE), m0)
    farthest = np.argsort(-np.square(along).sum(axis=1), kind="stable")[: count // 2]
    evenly = np.linspace(0, m0 - 1, count - len(farthest)).astype(np.int64)
    return np.union1d(farthest, evenly)


def differ(columns: PartyColumns, n_doubtful: int) -> bool:
    """Tell whether rows differ along some of so many doubtful directions by more than their rounding.

    Along each of them that is rounding alone they have no more than that, as chance has it.
    """
    n_rows = len(next(iter(columns.values())).values)
    _, found = _parted(columns, np.ones(n_rows))
    n_free = max(n_rows - 1 - len(found.noise) + n_doubtful, 1)
    chance = (1 + math.sqrt(n_doubtful / n_free)) ** 2 * n_free / n_rows
    return bool(np.count_nonzero(SIGN * chance * found.noise >= 1) < n_doubtful)


def _fetch(
    task: PaperTask, roster: Roster, columns: PartyColumns, places: Rows, shared: int
) -> Script[tuple[PartyColumns, Mapping[str, Message]]]:
    inbox = yield {**_requests(task, roster, places, shared)}
    return read_all(task, roster, columns, places, shared, inbox), inbox


def read_all(
    task: PaperTask, roster: Roster, columns: PartyColumns, places: Rows, shared: int, inbox: Mapping[str, Message]
) -> dict[str, WhitenedRows]:
    """Read rows in these places of the pilot, that were looked at with a finer step."""
    replies, asked = checks.replies(inbox, FinerRows), _requests(task, roster, places, shared)
    return {
        card.name: read_finer(card, replies[card.name], known, asked[card.name])
        for card in roster.cards
        if isinstance(known := columns[card.name], WhitenedRows)
    }


def _requests(task: PaperTask, roster: Roster, places: Rows, shared: int) -> dict[str, AskFinerRows]:
    seeds = zip(roster.names, pilot_dithers(roster, shared), finer_dithers(roster, shared), strict=True)
    kind = finer_kind(task)
    return {party: kind(PILOT_STEP, known, FINE_STEP, seed, places) for party, known, seed in seeds}
