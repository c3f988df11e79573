"""The server's side of Gram mode in windows: what it is shared of a window it multiplies, adds up, and forgets."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import Summary
from colonnade.kernels.masks import Words
from colonnade.kernels.selections import CountedRows
from colonnade.kernels.shares import LIMBS, packed_size, rounding
from colonnade.privacy.pair_keys import LostKey, compare, exchange_keys, until_kept
from colonnade.protocol import checks
from colonnade.solvers.gram.moments import GramMoments, summary
from colonnade.solvers.gram.question import MOST_IN_WINDOWS, columns_of
from colonnade.solvers.gram.shares.messages import STAR, GramShares
from colonnade.solvers.gram.shares.server import DEPENDENT, deal_seed, held_products, read_products, read_signed
from colonnade.solvers.gram.windows.messages import (
    AskGramBlocks,
    AskGramWindows,
    AskWindowShare,
    WindowShare,
    WindowsOpened,
    WindowsQuestion,
    with_window,
)


@dataclass(frozen=True, eq=False)
class _Held:
    """The products of what parties shared in all windows, and a digest of each party's shares."""

    products: Words
    sent: Mapping[str, bytes]


def gram_in_windows(roster: Roster, rows: CountedRows) -> Script[list[Summary]]:
    """Learn the moments of all rows that count, and nothing of single ones: features as in the roster, label last."""
    columns = columns_of(roster)
    _check_width(columns)
    question = WindowsQuestion(rows, tuple(columns[party] for party in sorted(columns)))
    replies, products = yield from until_kept(lambda: _attempt(roster, question))
    moments = {party: GramMoments(reply.means[0], reply.factors) for party, reply in replies.items()}
    rounded = max(DEPENDENT, rounding(len(rows)))
    return [summary(roster, moments, products, rows.weight, rows.largest_weight, rounded)]


def _check_width(columns: Mapping[str, int]) -> None:
    """Require no more columns than a window and all products can be held of: what a party says it has is its word."""
    n_all, widest = sum(columns.values()), max(columns, key=columns.__getitem__)
    if n_all > MOST_IN_WINDOWS:
        raise InputError(
            f"SecureGram shares so many rows of {MOST_IN_WINDOWS:,} columns of all parties at most, and these are "
            f"{n_all:,}: {widest!r} has {columns[widest]:,}. Draw a coreset, or use fewer columns."
        )


def _attempt(roster: Roster, question: WindowsQuestion) -> Script[tuple[Mapping[str, GramShares], Floats] | LostKey]:
    keys = yield from exchange_keys(roster, question.rows)
    boxes = yield from deal_seed(keys)
    if isinstance(boxes, LostKey):
        return boxes
    inbox = yield {p: AskGramWindows(question.n_columns, keys.to(p, STAR), boxes[p]) for p in roster.names}
    for party, opened in checks.replies(inbox, WindowsOpened).items():
        if not opened.has_key:
            return LostKey(party)
    held = yield from _windows(roster, question)
    if isinstance(held, LostKey):
        return held
    inbox = yield {party: AskGramBlocks() for party in roster.names}
    replies = checks.replies(inbox, GramShares)
    for party, told in replies.items():
        if told.share is None:
            return LostKey(party)
    transcript, no_rows = question.transcript(keys.parties, keys.keys, keys.view), question.of_window(0)
    signed = {
        party: read_signed(party, reply, no_rows, keys.parties, transcript, held.sent[party])
        for party, reply in replies.items()
    }
    yield from compare(roster, transcript, signed, STAR)
    (found,) = read_products(held.products, replies, question.columns(keys.parties), question.low_bits)
    return replies, found


def _windows(roster: Roster, question: WindowsQuestion) -> Script[_Held | LostKey]:
    """Let parties share window after window, and multiply each."""
    columns, n_all = question.columns(sorted(roster.names)), sum(question.n_columns)
    products, sent = np.zeros((1, LIMBS, n_all, n_all), np.uint64), dict.fromkeys(roster.names, b"")
    for piece in question.rows.pieces(n_all):
        inbox = yield {party: AskWindowShare(*piece.window) for party in roster.names}
        shares = checks.replies(inbox, WindowShare)
        for party, reply in shares.items():
            if reply.share is None:
                return LostKey(party)
            _check_share(party, reply, len(piece), len(columns[party]))
            sent[party] = with_window(sent[party], reply.share)
        if len(piece):
            told = {party: reply.share or b"" for party, reply in shares.items()}
            products += held_products(told, question.of_window(len(piece)), columns)
    return _Held(products, sent)


def _check_share(party: str, reply: WindowShare, n_rows: int, n_columns: int) -> None:
    due = packed_size(n_rows, LIMBS, n_columns)
    if len(reply.share or b"") != due:
        raise checks.wrong(party, reply, f"a share of other than {due} bytes")
