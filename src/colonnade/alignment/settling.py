"""How an alignment ends: each party is told which of its keys all have, and all see that they are the same keys.

The common order is that of a keyed hash whose secret the parties share: random to the server, which therefore cannot
tell what a row's position says of its key. Each party signs a digest of the common keys in that order; as all digests
are one, a server that told different parties different things is found out before anybody uses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.alignment.shared_secret import LISTED, MATCHED, PHASE, aligning, this_alignment
from colonnade.contracts import Alignment, Script
from colonnade.errors import AlignmentError, LocalProtocolError, RemoteProtocolError
from colonnade.kernels.arrays import Flags
from colonnade.kernels.tokens import HASH_BYTES, chosen, order_of
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_flags
from colonnade.privacy.pair_keys import identity_of
from colonnade.privacy.statements import SignedDigest
from colonnade.protocol import checks
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.routes import Ask, Route, then
from colonnade.signing import digest

FINGERPRINT_BYTES = 16


class Matched(Message, frozen=True):
    """A digest of the party's common keys in the common order, under the parties' secret, signed."""

    phase: ClassVar[str] = PHASE

    digest: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class TellMatches(Message, frozen=True):
    """Which keys of the party's list all parties have, a bit a key."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = Matched

    common: Annotated[Flags, Reveals.MATCHES]


class AlignmentKept(Message, frozen=True):
    """The party keeps the alignment, by its fingerprint."""

    phase: ClassVar[str] = PHASE

    fingerprint: Annotated[bytes, Reveals.NOTHING]


class KeepAlignment(Message, frozen=True):
    """What every party signed, in the order of their names."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = AlignmentKept

    signed: Annotated[tuple[SignedDigest, ...], Reveals.NOTHING]


def settle(names: Sequence[str], common: Mapping[str, Flags]) -> Script[bytes]:
    """Tell every party its matches, let all compare what they have, and give the alignment's fingerprint."""
    asked = {party: TellMatches(sendable_flags(common[party])) for party in names}
    replies = checks.replies((yield asked), Matched)
    signed = tuple(SignedDigest(replies[name].digest, replies[name].signature) for name in sorted(replies))
    told = checks.replies((yield {party: KeepAlignment(signed) for party in names}), AlignmentKept)
    found = {party: reply.fingerprint for party, reply in told.items()}
    if len(set(found.values())) != 1 or len(found[names[0]]) != FINGERPRINT_BYTES:
        listed = ", ".join(f"{party} {each.hex()[:8]}" for party, each in found.items())
        raise AlignmentError(f"Parties kept different alignments: {listed}. Align again.")
    return found[names[0]]


def settling_route() -> Route:
    """Say what a party is asked for this."""
    return then(Ask(TellMatches), Ask(KeepAlignment))


def _answer_matches(state: PartyState, request: TellMatches, data: PartyData) -> tuple[PartyState, Message]:
    kept, keys, identity = aligning(state), data.keys(), identity_of(data)
    listed = kept.listed()
    if request.common.shape != listed.shape:
        raise checks.wrong(SERVER, request, f"{request.common.size:,} marks for {len(listed):,} keys")
    own = listed[request.common]
    if len(own) < data.policy.least_rows:
        raise AlignmentError(
            f"too few of its keys are common: its owner's policy asks for {data.policy.least_rows} rows at least. "
            "Check that all parties name the same keys."
        )
    hashes = chosen(kept.hashes, own)
    order = order_of(hashes, HASH_BYTES)
    positions = np.full(keys.count, -1, dtype=np.int64)
    positions[own[order]] = np.arange(len(own))
    found = digest(b"common keys", kept.ordering, chosen(hashes, order))
    signature = identity.sign(_statement(state, identity.name, found))
    return replace(state, secret=replace(kept, matched=(found, positions))), Matched(found, signature)


def _answer_keep(state: PartyState, request: KeepAlignment, data: PartyData) -> tuple[PartyState, Message]:
    identity, matched = identity_of(data), aligning(state).matched
    if matched is None:
        raise LocalProtocolError("Nothing was matched: tell matches first.")
    found, positions = matched
    if len(request.signed) != len(identity.parties):
        raise checks.wrong(SERVER, request, f"{len(request.signed)} signatures for {len(identity.parties)} parties")
    for party, each in zip(identity.parties, request.signed, strict=True):
        if not identity.is_signed(party, _statement(state, party, each.digest), each.signature):
            raise RemoteProtocolError(f"the server relayed a digest that {party!r} did not sign.", party=SERVER)
        if each.digest != found:
            raise RemoteProtocolError(
                f"this party and {party!r} were told different common keys. The server, or one of them, does not "
                "follow the rules: nothing was kept.",
                party=SERVER,
            )
    fingerprint = digest(b"alignment", state.sheet, found)[:FINGERPRINT_BYTES]
    kept = Alignment(fingerprint, positions, mode=aligning(state).mode, parties=identity.parties)
    return replace(state, secret=None, aligned=kept), AlignmentKept(fingerprint)


def _statement(state: PartyState, party: str, found: bytes) -> bytes:
    return digest(b"colonnade alignment 1", this_alignment(state), party.encode(), found)


HANDLERS = (
    Handler(TellMatches, _answer_matches, after=frozenset({LISTED}), then=MATCHED),
    Handler(KeepAlignment, _answer_keep, after=frozenset({MATCHED}), then=GREETED),
)
