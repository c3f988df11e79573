"""Matching in the clear: keys go to the server, which needs no secret to compare them."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.alignment.listing import block_size, block_starts, listed_keys
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


def compared(n_keys: Mapping[str, int]) -> Script[dict[str, bytes]]:
    """Ask for all keys, and hash them."""
    lists: dict[str, list[bytes]] = {party: [] for party in n_keys}
    for start in block_starts(max(n_keys.values())):
        asked = {party: AskKeys(start) for party, count in n_keys.items() if start < count}
        for party, reply in checks.replies((yield asked), KeysInClear).items():
            checks.shape(party, reply, reply.lengths, (block_size(n_keys[party], start),))
            if reply.lengths.min() < 1 or reply.lengths.sum() != len(reply.text):
                raise checks.wrong(party, reply, "lengths of keys that do not add up to their texts")
            ends = np.cumsum(reply.lengths).tolist()
            keys = (reply.text[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
            lists[party].append(keyed_hashes(keys, SALT))
    return {party: b"".join(blocks) for party, blocks in lists.items()}


def _answer(state: PartyState, request: AskKeys, data: PartyData) -> tuple[PartyState, Message]:
    keys = list(listed_keys(state, request.start, data))
    return by_mode(state, "clear"), KeysInClear(sendable_rows([len(key) for key in keys]), b"".join(keys))


HANDLERS = (Handler(AskKeys, _answer, after=frozenset({SECRET, LISTED}), then=LISTED),)
