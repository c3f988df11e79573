"""Matching aided by the server: it compares keyed hashes, whose secret the parties share and it does not know.

A key is hashed once, and the hash is told encrypted: the hash itself decides the common order, which the server is not
to know.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from colonnade.alignment.listing import Tokens, block_size, check_length, collect, listed_places
from colonnade.alignment.shared_secret import LISTED, PHASE, SECRET, aligning, by_mode
from colonnade.contracts import Script
from colonnade.kernels.tokens import HASH_BYTES, chosen
from colonnade.messages import Message, Reveals
from colonnade.privacy.primitives import scrambled
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.routes import Ask, Route


class Pseudonyms(Message, frozen=True):
    """Keyed hashes of a block of keys, encrypted, 16 bytes each."""

    phase: ClassVar[str] = PHASE

    tokens: Annotated[bytes, Reveals.MATCHES]

    def coded_rows(self) -> int:
        """One a hash."""
        return len(self.tokens) // HASH_BYTES


class AskPseudonyms(Message, frozen=True):
    """Tell hashes of the keys that are listed from this place."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = Pseudonyms

    start: Annotated[int, Reveals.NOTHING]


WIDTH = HASH_BYTES
ASKED: tuple[Route, ...] = (Ask(AskPseudonyms),)


def compared(n_keys: Mapping[str, int]) -> Script[Tokens]:
    """Ask for all hashes."""

    def block(start: int, parties: list[str]) -> Script[Tokens]:
        replies = checks.replies((yield {party: AskPseudonyms(start) for party in parties}), Pseudonyms)
        for party, reply in replies.items():
            check_length(party, reply, reply.tokens, block_size(n_keys[party], start) * WIDTH)
        return {party: reply.tokens for party, reply in replies.items()}

    return (yield from collect(n_keys, block))


def _answer(state: PartyState, request: AskPseudonyms, data: PartyData) -> tuple[PartyState, Message]:  # noqa: ARG001
    kept = aligning(state)
    hashes = chosen(kept.hashes, listed_places(state, request.start))
    return by_mode(state, "aided"), Pseudonyms(scrambled(kept.shared, hashes))


HANDLERS = (Handler(AskPseudonyms, _answer, after=frozenset({SECRET, LISTED}), then=LISTED),)
