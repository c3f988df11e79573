"""How parties agree on a secret that the server, which relays it, does not learn: one of them deals it, sealed to each.

Keys are bound to the job's sheet and signed by pinned identities. Everything secret is derived from the party's
identity and from a number that no other run of it has: a party that is killed comes back with the same secrets, and
never writes one down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from colonnade.contracts import Script
from colonnade.errors import LocalProtocolError, RemoteProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.tokens import keyed_hashes, private_order
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import check_key, identity_of
from colonnade.privacy.pairwise import Secret, check_keys
from colonnade.privacy.primitives import KEY_BYTES, check_available, mask_words
from colonnade.privacy.statements import SignedKey, key_statement
from colonnade.protocol import checks
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.routes import Ask, Route, then
from colonnade.signing import digest

PHASE = "aligning"
# The steps of an alignment: a key is made, keys are relayed, the secret is shared, keys are listed, and matched.
KEYED, DEALT, SECRET, LISTED, MATCHED = "align keyed", "align dealt", "align secret", "align listed", "align matched"
VIEW = b"alignment"


class ShareKey(Message, frozen=True):
    """A key for this alignment, signed."""

    phase: ClassVar[str] = PHASE

    key: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskShareKey(Message, frozen=True):
    """Make a key with which a secret can be sealed to this party."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = ShareKey


class DealtSecret(Message, frozen=True):
    """The secret, sealed to each other party in the order of their names; of all but the first by name, nothing."""

    phase: ClassVar[str] = PHASE

    sealed: Annotated[tuple[bytes, ...], Reveals.NOTHING]


class DealSecret(Message, frozen=True):
    """All parties' keys, in the order of their names; the first of them deals."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = DealtSecret

    keys: Annotated[tuple[SignedKey, ...], Reveals.NOTHING]


class SecretOpened(Message, frozen=True):
    """The party has the secret."""

    phase: ClassVar[str] = PHASE


class OpenSecret(Message, frozen=True):
    """What was sealed to this party; nothing to who dealt."""

    phase: ClassVar[str] = PHASE
    reply: ClassVar[type[Message]] = SecretOpened

    sealed: Annotated[bytes, Reveals.NOTHING]


@dataclass(frozen=True)
class Aligning:
    """What a party keeps while records are aligned; it stays in memory.

    Parameters
    ----------
    keys : tuple of SignedKey
        All parties', in the order of their names.
    shared : bytes
        Of all parties: hashes are encrypted with it where the server compares them.
    ordering : bytes
        Of all parties: keys are hashed with it, and hashes decide the common order.
    hashes : bytes
        Of all keys, in the order of the table.
    places : Rows
        The order in which this party lists its keys, which nobody else knows.
    matched : tuple of (bytes, Rows), or None
        The digest of the common keys, and the position of each of its own.
    mode : str
        How keys are compared.
    """

    keys: tuple[SignedKey, ...] = ()
    shared: bytes = field(default=b"", repr=False)
    ordering: bytes = field(default=b"", repr=False)
    hashes: bytes = field(default=b"", repr=False)
    places: Rows | None = field(default=None, repr=False)
    matched: tuple[bytes, Rows] | None = field(default=None, repr=False)
    mode: str = ""

    def listed(self) -> Rows:
        """Give the order in which keys are listed."""
        if self.places is None:
            raise LocalProtocolError("No secret was shared: open it first.")
        return self.places


def aligning(state: PartyState) -> Aligning:
    """Give what the party keeps."""
    if not isinstance(state.secret, Aligning):
        raise LocalProtocolError("No alignment was begun: ask for keys first.")
    return state.secret


def by_mode(state: PartyState, mode: str) -> PartyState:
    """Note how keys are compared: the party keeps it with the alignment."""
    return replace(state, secret=replace(aligning(state), mode=mode))


def this_alignment(state: PartyState) -> bytes:
    """Give what no other alignment has, though their sheets are equal: all parties' keys are new in every run."""
    return digest(VIEW, state.sheet, *(each.key for each in aligning(state).keys))


def share_secret(names: Sequence[str]) -> Script[None]:
    """Let the parties, in the order of their names, agree on a secret."""
    replies = checks.replies((yield {party: AskShareKey() for party in names}), ShareKey)
    for party, reply in replies.items():
        check_key(party, reply, reply.key)
    keys = tuple(SignedKey(replies[party].key, b"", replies[party].signature) for party in names)
    dealt = checks.replies((yield {party: DealSecret(keys) for party in names}), DealtSecret)
    for party, told in dealt.items():
        if len(told.sealed) != (len(names) - 1 if party == names[0] else 0):
            raise checks.wrong(party, told, f"{len(told.sealed)} sealed texts")
    sealed = dict(zip(names, (b"", *dealt[names[0]].sealed), strict=True))
    yield {party: OpenSecret(sealed[party]) for party in names}


def secret_route() -> Route:
    """Say what a party is asked for this."""
    return then(Ask(AskShareKey), Ask(DealSecret), Ask(OpenSecret))


def _own_key(state: PartyState, data: PartyData) -> Secret:
    identity = identity_of(data, "keep to align = exact")
    check_available()
    return Secret(identity.derived(digest(b"alignment key", state.run_nonce, state.sheet)), identity.pair)


def _answer_key(state: PartyState, _: AskShareKey, data: PartyData) -> tuple[PartyState, Message]:
    secret, identity = _own_key(state, data), identity_of(data)
    signature = identity.sign(key_statement(identity.name, secret.key, b"", _view(state)))
    return replace(state, secret=Aligning()), ShareKey(secret.key, signature)


def _answer_deal(state: PartyState, request: DealSecret, data: PartyData) -> tuple[PartyState, Message]:
    identity, secret = identity_of(data), _own_key(state, data)
    check_keys(identity, request.keys, _view(state))
    if request.keys[identity.parties.index(identity.name)].key != secret.key:
        raise RemoteProtocolError("the server relayed another key of this party than its own.", party=SERVER)
    state = replace(state, secret=Aligning(request.keys))
    if identity.name != identity.parties[0]:
        return state, DealtSecret(())
    keys, text = [each.key for each in request.keys], b"".join(_dealt(state, data))
    others = range(1, len(keys))
    return state, DealtSecret(tuple(secret.encrypt_for(text, other, keys, this_alignment(state)) for other in others))


def _dealt(state: PartyState, data: PartyData) -> tuple[bytes, bytes]:
    """Make the secrets of a dealer: of hashes, new in every run; of the order, new in every run between machines."""
    identity = identity_of(data)
    shared = identity.derived(digest(b"alignment secret", state.run_nonce, state.sheet))
    return shared, identity.contribution(digest(b"alignment order", state.sheet), state.run_nonce)


def _answer_open(state: PartyState, request: OpenSecret, data: PartyData) -> tuple[PartyState, Message]:
    identity, kept = identity_of(data), aligning(state)
    if identity.name == identity.parties[0]:
        shared, ordering = _dealt(state, data)
    else:
        keys = [each.key for each in kept.keys]
        text = _own_key(state, data).decrypt_from(identity.parties[0], request.sealed, 0, keys, this_alignment(state))
        if len(text) != 2 * KEY_BYTES:
            raise RemoteProtocolError(f"{identity.parties[0]!r} dealt a secret of {len(text)} bytes.", party=SERVER)
        shared, ordering = text[:KEY_BYTES], text[KEY_BYTES:]
    own = identity.derived(digest(b"alignment list", state.run_nonce, state.sheet))
    places = private_order(mask_words(own, b"alignment list", data.keys().count))
    hashes = keyed_hashes(data.keys().values, ordering)
    kept = replace(kept, shared=shared, ordering=ordering, hashes=hashes, places=places)
    return replace(state, secret=kept), SecretOpened()


def _view(state: PartyState) -> bytes:
    return digest(VIEW, state.sheet)


HANDLERS = (
    Handler(AskShareKey, _answer_key, after=frozenset({GREETED}), then=KEYED),
    Handler(DealSecret, _answer_deal, after=frozenset({KEYED}), then=DEALT),
    Handler(OpenSecret, _answer_open, after=frozenset({DEALT}), then=SECRET),
)
