"""Matching aided by the server: it compares keyed hashes, whose secret the parties share and it does not know.

A key is hashed once, and the hash is told encrypted: the hash itself decides the common order, which the server is not
to know.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from colonnade.alignment.listing import collect, listed_places
from colonnade.alignment.shared_secret import LISTED, PHASE, SECRET, aligning, by_mode
from colonnade.contracts import Script
from colonnade.kernels.tokens import HASH_BYTES, chosen
from colonnade.messages import Message, Reveals
from colonnade.privacy.primitives import scrambled
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


def compared(n_keys: Mapping[str, int]) -> Script[dict[str, bytes]]:
    """Ask for all hashes."""
    return (yield from collect(n_keys, AskPseudonyms, Pseudonyms, lambda reply: reply.tokens, WIDTH))


WIDTH = HASH_BYTES
ASKED: tuple[Route, ...] = (Ask(AskPseudonyms),)


def _answer(state: PartyState, request: AskPseudonyms, data: PartyData) -> tuple[PartyState, Message]:  # noqa: ARG001
    kept = aligning(state)
    return by_mode(state, "aided"), Pseudonyms(
        scrambled(kept.shared, chosen(kept.hashes, listed_places(state, request.start)))
    )


HANDLERS = (Handler(AskPseudonyms, _answer, after=frozenset({SECRET, LISTED}), then=LISTED),)
