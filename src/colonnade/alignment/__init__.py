"""Matching of records by key, so that the same position is the same record at every party."""

from collections.abc import Mapping
from types import ModuleType
from typing import Literal

import msgspec

from colonnade.alignment import aided, clear, curve, meeting, settling, shared_secret
from colonnade.alignment.listing import BLOCK_KEYS, MAX_KEYS, block_starts
from colonnade.contracts import Script
from colonnade.errors import AlignmentError, InputError
from colonnade.kernels import ristretto
from colonnade.kernels.tokens import has_repeats, in_all
from colonnade.privacy import primitives
from colonnade.protocol.sheet import JobSheet
from colonnade.routes import Route, either, some, then

Mode = Literal["exact", "clear", "aided", "curve"]
MODES: dict[str, ModuleType] = {"clear": clear, "aided": aided, "curve": curve}
HANDLERS = (
    *meeting.HANDLERS,
    *shared_secret.HANDLERS,
    *(handler for mode in MODES.values() for handler in mode.HANDLERS),
    *settling.HANDLERS,
)


def check_mode(mode: object, run_by: str | None = None) -> None:
    """Require a way to align, with what it needs, that keeps what it promises where a party runs the server."""
    if mode in ("hash", "hashed", "hashes", "plain", "md5", "sha1", "sha256", "sha512"):
        raise InputError(
            f"align={mode!r} is not done: whoever sees plain hashes of keys hashes all telephone numbers, or all "
            "names, and compares. Use 'aided' or 'curve', or 'clear' if keys are no secret."
        )
    if not isinstance(mode, str) or (mode != "exact" and mode not in MODES):
        raise InputError(f"align={mode!r} is none of exact, {', '.join(MODES)}. Choose one of them.")
    if mode == "aided" and run_by is not None:
        raise InputError(
            f"align='aided' keeps keys from the server only while it has not the parties' secret, and {run_by!r} runs "
            "the server. Use 'curve'."
        )
    if mode == "curve":
        ristretto.check_available()
    if mode != "exact":
        primitives.check_available()


def align(mode: str, cards: Mapping[str, meeting.KeyCard]) -> Script[dict[str, meeting.KeyCard]]:
    """Match the keys of all parties, let each know which of its rows are common and where, and give their cards."""
    n_keys = {party: card.n_keys for party, card in cards.items()}
    yield from shared_secret.share_secret(sorted(cards))
    lists: dict[str, bytes] = yield from MODES[mode].compared(n_keys)
    width: int = MODES[mode].WIDTH
    for party, tokens in lists.items():
        if has_repeats(tokens, width):
            raise AlignmentError(f"Party {party!r} listed a key twice. Nothing was kept: see its log.")
    common = dict(zip(lists, in_all(list(lists.values()), width), strict=True))
    n_common = int(next(iter(common.values())).sum())
    if n_common == 0:
        counts = ", ".join(f"{party} {count:,}" for party, count in n_keys.items())
        raise AlignmentError(
            f"No key is at every party ({counts} keys). Check that all name the same key, in the same form."
        )
    fingerprint = yield from settling.settle(sorted(cards), common)
    return {party: msgspec.structs.replace(card, alignment=fingerprint) for party, card in cards.items()}


def n_rounds(mode: str, cards: Mapping[str, meeting.KeyCard]) -> int:
    """Tell how many rounds it takes: one that opens, three for the secret, those of the lists, two to settle."""
    n_blocks = len(block_starts(max(card.n_keys for card in cards.values())))
    return 6 + n_blocks * (len(cards) if mode == "curve" else 1)


def align_route(sheet: JobSheet) -> Route:
    """Say what a party is asked where records are aligned."""
    if sheet.align not in MODES:
        raise InputError(f"a job sheet aligns by {sheet.align!r}, which is none of {', '.join(MODES)}.")
    n_blocks = MAX_KEYS // BLOCK_KEYS * len(sheet.parties)
    asked = some(either(*MODES[sheet.align].ASKED), least=1, most=n_blocks)
    return then(shared_secret.secret_route(), asked, settling.settling_route())
