"""Matching in the clear: keys go to the server, which needs no secret to compare them."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.alignment.listing import Tokens, block_size, collect, listed_keys
from colonnade.alignment.shared_secret import LISTED, PHASE, SECRET, by_mode
from colonnade.contracts import Script
from colonnade.kernels.arrays import Rows
from colonnade.kernels.tokens import HASH_BYTES, keyed_hashes
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.routes import Ask, Route

WIDTH = HASH_BYTES
# The server hashes keys to compare them: this is no secret.
SALT = b"colonnade keys in the clear"


class KeysInClear(Message, frozen=True):
    """A block of keys: their lengths, and their texts one after the other."""

    phase: ClassVar[str] = PHASE

    lengths: Annotated[Rows, Reveals.KEYS]
    text: Annotated[bytes, Reveals.KEYS]

    def coded_rows(self) -> int:
        """One a key."""
        return len(self.lengths)


class AskKeys(Message, frozen=True):
    """Tell the keys that are listed from this place."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = KeysInClear

    start: Annotated[int, Reveals.NOTHING]


ASKED: tuple[Route, ...] = (Ask(AskKeys),)


def compared(n_keys: Mapping[str, int]) -> Script[Tokens]:
    """Ask for all keys, and hash them."""

    def block(start: int, parties: list[str]) -> Script[Tokens]:
        replies = checks.replies((yield {party: AskKeys(start) for party in parties}), KeysInClear)
        return {party: _hashed(party, reply, block_size(n_keys[party], start)) for party, reply in replies.items()}

    return (yield from collect(n_keys, block))


def _hashed(party: str, reply: KeysInClear, n_keys: int) -> bytes:
    checks.shape(party, reply, reply.lengths, (n_keys,))
    if reply.lengths.min() < 1 or reply.lengths.sum() != len(reply.text):
        raise checks.wrong(party, reply, "lengths of keys that do not add up to their texts")
    ends = np.cumsum(reply.lengths).tolist()
    return keyed_hashes((reply.text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)), SALT)


def _answer(state: PartyState, request: AskKeys, data: PartyData) -> tuple[PartyState, Message]:
    keys = list(listed_keys(state, request.start, data))
    return by_mode(state, "clear"), KeysInClear(sendable_rows([len(key) for key in keys]), b"".join(keys))


HANDLERS = (Handler(AskKeys, _answer, after=frozenset({SECRET, LISTED}), then=LISTED),)
