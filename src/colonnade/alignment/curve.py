"""Matching on a curve: every list passes under every party's secret, and only then is compared (Diffie-Hellman).

A key is hashed to a point of ristretto255. Its owner multiplies the point by a secret number, and so does every other
party, one after the other: in the end equal keys are equal points, whoever listed them, and nobody can make such a
point of a key that he guesses without all parties' help. A party multiplies only what the one before it signed: the
server, which carries the lists, can put no guess of its own among them.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from colonnade.alignment.listing import (
    BLOCK_KEYS,
    Tokens,
    block_size,
    check_length,
    check_start,
    collect,
    listed_keys,
)
from colonnade.alignment.shared_secret import LISTED, PHASE, SECRET, by_mode, this_alignment
from colonnade.contracts import Script
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.ristretto import (
    HASHED_BYTES,
    POINT_BYTES,
    NoPointError,
    hashed_to_points,
    multiplied,
    secret_scalar,
)
from colonnade.kernels.tokens import has_repeats, keyed_hashes
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import identity_of
from colonnade.protocol import checks
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.routes import Ask, Route
from colonnade.signing import digest

WIDTH = POINT_BYTES


class Points(Message, frozen=True):
    """Points of a block, each multiplied by the party's secret, and its signature on them."""

    phase: ClassVar[str] = PHASE

    points: Annotated[bytes, Reveals.MATCHES]
    signature: Annotated[bytes, Reveals.NOTHING]

    def coded_rows(self) -> int:
        """One a point."""
        return len(self.points) // POINT_BYTES


class AskPoints(Message, frozen=True):
    """Hash the keys that are listed from this place to points, and multiply them."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = Points

    start: Annotated[int, Reveals.NOTHING]


class MultiplyPoints(Message, frozen=True):
    """Multiply a block of a party's points that so many parties, the owner first, have multiplied."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = Points

    owner: Annotated[str, Reveals.NOTHING]
    hop: Annotated[int, Reveals.NOTHING]
    start: Annotated[int, Reveals.NOTHING]
    points: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


ASKED: tuple[Route, ...] = (Ask(AskPoints), Ask(MultiplyPoints))
Signed = tuple[bytes, bytes]


def compared(n_keys: Mapping[str, int]) -> Script[Tokens]:
    """Let every list pass under every party's secret."""
    names = sorted(n_keys)

    def block(start: int, owners: list[str]) -> Script[Tokens]:
        replies = checks.replies((yield {party: AskPoints(start) for party in owners}), Points)
        blocks = {party: _checked(party, reply, n_keys[party], start) for party, reply in replies.items()}
        for hop in range(1, len(names)):
            blocks = yield from _passed_on(names, hop, start, blocks, n_keys)
        return {party: points for party, (points, _) in blocks.items()}

    return (yield from collect(n_keys, block))


def _passed_on(
    names: list[str], hop: int, start: int, blocks: Mapping[str, Signed], n_keys: Mapping[str, int]
) -> Script[dict[str, Signed]]:
    """Bring every block to the next party: all of them multiply at a time, each another's."""
    bearers = {bearer(names, owner, hop): owner for owner in blocks}
    asked = {party: MultiplyPoints(owner, hop, start, *blocks[owner]) for party, owner in bearers.items()}
    replies = checks.replies((yield asked), Points)
    return {bearers[party]: _checked(party, reply, n_keys[bearers[party]], start) for party, reply in replies.items()}


def _checked(party: str, reply: Points, n_keys: int, start: int) -> Signed:
    check_length(party, reply, reply.points, block_size(n_keys, start) * POINT_BYTES)
    if has_repeats(reply.points, POINT_BYTES):
        raise checks.wrong(party, reply, "a point twice")
    return reply.points, reply.signature


def bearer(names: list[str], owner: str, hop: int) -> str:
    """Tell who multiplies a list after so many others: who comes after the owner in the order of names."""
    return names[(names.index(owner) + hop) % len(names)]


def _statement(state: PartyState, party: str, owner: str, hop: int, start: int, points: bytes) -> bytes:
    numbers = hop.to_bytes(8, "little") + start.to_bytes(8, "little")
    return digest(b"colonnade curve 1", this_alignment(state), party.encode(), owner.encode(), numbers, points)


def _signed(state: PartyState, data: PartyData, owner: str, hop: int, start: int, points: bytes) -> Points:
    identity = identity_of(data)
    return Points(points, identity.sign(_statement(state, identity.name, owner, hop, start, points)))


def _scalar(state: PartyState, data: PartyData) -> bytes:
    """Derive the party's secret number of this alignment: 64 uniform bytes, reduced."""
    identity = identity_of(data)
    halves = (identity.derived(digest(part, state.run_nonce, state.sheet)) for part in (b"scalar 1", b"scalar 2"))
    return secret_scalar(b"".join(halves))


def _answer_own(state: PartyState, request: AskPoints, data: PartyData) -> tuple[PartyState, Message]:
    # In this alignment, and no other.
    hashes = keyed_hashes(listed_keys(state, request.start, data), this_alignment(state), HASHED_BYTES)
    points = multiplied(hashed_to_points(hashes), _scalar(state, data))
    return by_mode(state, "curve"), _signed(state, data, identity_of(data).name, 0, request.start, points)


def _answer_other(state: PartyState, request: MultiplyPoints, data: PartyData) -> tuple[PartyState, Message]:
    identity, names = identity_of(data), list(identity_of(data).parties)
    check_start(request.start)
    # Each party multiplies a list once: the owner, whose it was, not again.
    is_hop = request.owner in names and 0 < request.hop < len(names)
    if not is_hop or bearer(names, request.owner, request.hop) != identity.name:
        raise RemoteProtocolError("the server brought points that are another party's to multiply.", party=SERVER)
    before = bearer(names, request.owner, request.hop - 1)
    statement = _statement(state, before, request.owner, request.hop - 1, request.start, request.points)
    if not identity.is_signed(before, statement, request.signature):
        raise RemoteProtocolError(
            f"the server brought points of {request.owner!r} that {before!r} did not sign: it may have put guesses "
            "among them. Nothing was multiplied.",
            party=SERVER,
        )
    if not 0 < len(request.points) <= BLOCK_KEYS * POINT_BYTES or len(request.points) % POINT_BYTES:
        raise RemoteProtocolError(f"{before!r} sent {len(request.points)} bytes of points.", party=before)
    if has_repeats(request.points, POINT_BYTES):
        raise RemoteProtocolError(f"{before!r} sent a point of {request.owner!r} twice.", party=before)
    try:
        points = multiplied(request.points, _scalar(state, data))
    except NoPointError as error:
        raise RemoteProtocolError(f"{before!r} sent what is no point of the group.", party=before) from error
    return state, _signed(state, data, request.owner, request.hop, request.start, points)


HANDLERS = (
    Handler(AskPoints, _answer_own, after=frozenset({SECRET, LISTED}), then=LISTED),
    Handler(MultiplyPoints, _answer_other, after=frozenset({SECRET, LISTED}), then=LISTED),
)
