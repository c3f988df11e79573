"""A party's side of Gram mode in windows: it finds a basis, shares window after window, and at last tells sums."""

from dataclasses import dataclass, replace

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.block_basis import BlockBasis, all_directions, block_basis
from colonnade.kernels.masks import Words
from colonnade.kernels.selections import CountedRows, Window
from colonnade.kernels.shares import LIMBS, pack_words, to_limbs, unpack_words
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_floats
from colonnade.privacy.one_solving import require_same_question, seen_rows
from colonnade.privacy.pair_keys import (
    IN_WINDOWS,
    OPENED,
    PAIRED,
    SHARED,
    identity_of,
    phase_keys,
    view_digest,
    with_keys,
)
from colonnade.privacy.pairwise import share_words
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.protocol.windows import check_window, n_selected_in
from colonnade.signing import digest
from colonnade.solvers.gram.party import check_columns, check_told
from colonnade.solvers.gram.question import MOST_IN_WINDOWS, comes_at_once
from colonnade.solvers.gram.shares.messages import STAR, GramShares, sent_digest
from colonnade.solvers.gram.shares.party import open_seed, shared
from colonnade.solvers.gram.windows.messages import (
    AskGramBlocks,
    AskGramWindows,
    AskWindowShare,
    WindowShare,
    WindowsOpened,
    WindowsQuestion,
    window_transcript,
    with_window,
)


@dataclass(frozen=True, eq=False)
class WindowsKept:
    """What a party keeps between windows, in memory only.

    Parameters
    ----------
    seed : bytes
        All parties', of which shares are made.
    stop : int
        Where the windows that were shared end.
    blocks : ndarray of uint64
        The masked blocks of these windows, added up. Each is under masks of its own.
    sent : bytes
        A digest of their shares.
    """

    question: WindowsQuestion
    basis: BlockBasis
    seed: bytes
    transcript: bytes
    blocks: Words
    stop: int = 0
    sent: bytes = b""

    def __repr__(self) -> str:
        return "WindowsKept(not shown)"


def _answer_opening(state: PartyState, request: AskGramWindows, data: PartyData) -> tuple[PartyState, Message]:
    question, state = _question(state, request, data)
    kept, identity = with_keys(state, request.keys, data, STAR), identity_of(data)
    state = require_same_question(state, request, digest(seen_rows(state, data), question.fingerprint()))
    transcript = question.transcript(identity.parties, kept.relayed, view_digest(state, data))
    if kept.secret is None:
        return replace(state, secret=kept.used(transcript)), WindowsOpened(has_key=False)
    seed, basis = open_seed(state, kept, kept.secret, request.box, data), block_basis(data.table)
    ours = len(basis.mean)
    blocks = np.zeros(LIMBS * ours * (sum(question.n_columns) - ours), np.uint64)
    for_windows = WindowsKept(question, basis, seed, transcript, blocks)
    return replace(state, secret=kept.used(transcript, for_windows)), WindowsOpened(has_key=True)


def _question(state: PartyState, request: AskGramWindows, data: PartyData) -> tuple[WindowsQuestion, PartyState]:
    rows, ours = state.selection(), check_columns(request, request.n_columns, data)
    n_all = sum(request.n_columns)
    if not isinstance(rows, CountedRows):
        raise checks.wrong(SERVER, request, "windows of all rows, where others were agreed on")
    if comes_at_once(len(rows), n_all):
        raise checks.wrong(SERVER, request, f"windows of {len(rows):,} rows, which are shared at once")
    # Others' numbers of columns are the server's word, and masks of all of them are made for each window.
    if n_all > MOST_IN_WINDOWS:
        raise InputError(
            f"{n_all:,} columns of all parties are more than the {MOST_IN_WINDOWS:,} of which so many rows are shared. "
            "Use a coreset."
        )
    return WindowsQuestion(rows, request.n_columns), check_told(state, data, [rows], ours, request.n_columns)


def _answer_window(state: PartyState, request: AskWindowShare, data: PartyData) -> tuple[PartyState, Message]:
    kept = phase_keys(state).kept
    if not isinstance(kept, WindowsKept):
        return state, WindowShare(None)
    window = request.window
    check_window(state, request, window)
    if window.first != kept.stop or window.n_numbers != sum(kept.question.n_columns):
        raise checks.wrong(SERVER, request, f"rows from {window.first} on, where {kept.stop} would be next")
    share, blocks = _shared(kept, window, n_selected_in(state, window), data)
    after = replace(kept, blocks=kept.blocks + blocks, stop=window.stop, sent=with_window(kept.sent, share))
    return replace(state, secret=replace(phase_keys(state), kept=after)), WindowShare(share)


def _shared(kept: WindowsKept, window: Window, n_rows: int, data: PartyData) -> tuple[bytes, Words]:
    """Share a window as if there were no other: its words are of itself alone."""
    if not n_rows:
        return b"", np.zeros_like(kept.blocks)
    identity, words = identity_of(data), share_words(kept.seed, window_transcript(kept.transcript, window))
    limbs = to_limbs(all_directions(kept.basis, data.table, window.blocks), kept.question.low_bits)
    place = identity.parties.index(identity.name)
    share, blocks = shared(limbs, words, kept.question.of_window(n_rows), place)
    return share, unpack_words(blocks, len(kept.blocks))


def _answer_blocks(state: PartyState, request: AskGramBlocks, data: PartyData) -> tuple[PartyState, Message]:
    phase, identity = phase_keys(state), identity_of(data)
    kept = phase.kept
    if not isinstance(kept, WindowsKept):
        nothing = sendable_floats(np.empty((0, 0)))
        return state, GramShares(nothing, nothing, None, b"", phase.transcript, b"")
    if kept.stop < state.n_places:
        raise checks.wrong(SERVER, request, f"sums of all rows, where {kept.stop:,} of {state.n_places:,} were shared")
    means, factor = sendable_floats(kept.basis.mean[np.newaxis]), sendable_floats(kept.basis.factor)
    blocks = pack_words(kept.blocks)
    sent = sent_digest(means, factor, kept.sent, blocks)
    signature = identity.sign(sent_statement(identity.name, kept.transcript, sent))
    reply = GramShares(means, factor, b"", blocks, kept.transcript, signature)
    return replace(state, secret=phase.used(kept.transcript)), reply


HANDLERS = (
    Handler(AskGramWindows, _answer_opening, after=frozenset({PAIRED, OPENED}), then=IN_WINDOWS, solver="gram"),
    Handler(AskWindowShare, _answer_window, after=frozenset({IN_WINDOWS}), then=IN_WINDOWS, solver="gram"),
    Handler(AskGramBlocks, _answer_blocks, after=frozenset({IN_WINDOWS}), then=SHARED, solver="gram"),
)
