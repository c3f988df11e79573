"""How a secure phase on the agreed rows opens and closes: fresh keys at its beginning, a comparison at its end.

In between, what a phase sends is hidden by what pairs of parties agree on through these keys. A party that restarted
has lost its key and says so; all begin again with fresh ones, and the result is the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar, TypeVar

from colonnade.contracts import Roster, Script
from colonnade.errors import InputError, LocalProtocolError, RemoteProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.selections import CountedRows
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.privacy.circles import NEIGHBOURS, Circle
from colonnade.privacy.pairwise import Secret, check_circle, check_signatures, split_keys
from colonnade.privacy.primitives import KEY_BYTES, check_available, gives_secret
from colonnade.privacy.statements import (
    DIGEST_BYTES,
    CircleKeys,
    KeySignature,
    SignedDigest,
    agreement_of,
    digest_of_view,
    key_statement,
)
from colonnade.protocol import checks
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.routes import Ask, Route, cut_short, some, then
from colonnade.signing import digest, rows_digest

T = TypeVar("T")

# The steps of a secure phase: keys are made, rounds of its own go on (if it has any), all was shared.
PAIRED, OPENED, IN_WINDOWS, MULTIPLIED, SHARED = "paired", "opened", "in windows", "multiplied", "shared"
# A party that loses its keys again and again is not restarting.
MAX_ATTEMPTS = 5


class PairKey(Message, frozen=True):
    """A fresh key, signed; with digests of the rows agreed on, and of which rows count in which units."""

    phase: ClassVar[str] = "keys"
    fresh: ClassVar[bool] = True

    key: Annotated[bytes, Reveals.NOTHING]
    rows: Annotated[bytes, Reveals.NOTHING]
    view: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskPairKey(Message, frozen=True):
    """Make a key for one secure phase on the rows agreed on."""

    phase: ClassVar[str] = "keys"
    reply: ClassVar[type[Message]] = PairKey


class PairAgreement(Message, frozen=True):
    """The digest of all that the party saw in the phase."""

    phase: ClassVar[str] = "keys"

    digest: Annotated[bytes, Reveals.NOTHING]


class AskPairAgreement(Message, frozen=True):
    """What those that it shares secrets with, and itself, signed at the end of the phase, in the order of names."""

    phase: ClassVar[str] = "keys"
    reply: ClassVar[type[Message]] = PairAgreement

    signed: Annotated[tuple[SignedDigest, ...], Reveals.NOTHING]


@dataclass(frozen=True)
class RelayedKeys:
    """All parties' keys of a phase, in the order of names, what each signed with it; and what they all see alike."""

    parties: tuple[str, ...]
    keys: bytes
    signed: tuple[KeySignature, ...]
    view: bytes

    def to(self, party: str, circle: Circle = NEIGHBOURS) -> CircleKeys:
        """Give what the server relays to a party: signatures of its circle only."""
        around = circle.around(self.parties.index(party), len(self.parties))
        return CircleKeys(self.keys, tuple(self.signed[place] for place in around))


@dataclass(frozen=True)
class LostKey:
    """A party that has its key no longer, or what else it kept in memory."""

    party: str


@dataclass(frozen=True, eq=False)
class PhaseKeys:
    """What a party keeps of a secure phase.

    Parameters
    ----------
    secret : Secret or None
        Its key, as long as it is needed.
    relayed : bytes
        All parties' keys, in the order of their names.
    circle : tuple of int
        The places of those that it shares secrets with, and its own.
    transcript : bytes
        A digest of what it saw.
    kept : object or None
        What else the phase keeps at the party, in memory only; it alone reads it.
    """

    secret: Secret | None = None
    relayed: bytes = b""
    circle: tuple[int, ...] = ()
    transcript: bytes = b""
    kept: object | None = field(default=None, repr=False)

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """The public keys, in the order of the parties' names."""
        return split_keys(self.relayed)

    def used(self, transcript: bytes, kept: object | None = None) -> "PhaseKeys":
        """Give what is left when all was told that the key was for."""
        return replace(self, secret=None, transcript=transcript, kept=kept)


def check_enough_parties(roster: Roster, name: str, *, allow_two_parties: bool) -> None:
    """Require enough parties for weights to tell none of them another's scores; the solver's name is for the error."""
    check_available()
    if len(roster.cards) == 1:
        raise InputError(f"With one party, {roster.names[0]}, {name} has nobody to hide among. Use Central().")
    if len(roster.cards) == 2 and not allow_two_parties:
        raise InputError(
            f"With two parties, {' and '.join(roster.names)}, each can work out the other's scores from the rows' "
            f"weights, which {name} tells both. Pass allow_two_parties=True if that is no secret."
        )


def until_kept(attempt: Callable[[], Script[T | LostKey]]) -> Script[T]:
    """Play an attempt, which begins with fresh keys, until no party loses what it keeps in memory."""
    lost = ""
    for _ in range(MAX_ATTEMPTS):
        result = yield from attempt()
        if not isinstance(result, LostKey):
            return result
        lost = result.party
    raise RemoteProtocolError(
        f"Party {lost!r} lost its key {MAX_ATTEMPTS} times in one secure phase. Check why it restarts, and run again.",
        party=lost,
    )


def secure_route(*asks: Route) -> Route:
    """Say what a party is asked in a secure phase: keys, then these, again from the first where a key is lost."""
    return then(some(cut_short(Ask(AskPairKey), *asks), least=1, most=MAX_ATTEMPTS), Ask(AskPairAgreement))


def exchange_keys(roster: Roster, rows: Rows | CountedRows) -> Script[RelayedKeys]:
    """Ask every party for a fresh key, and see that all have the same rows in the same units before them."""
    inbox = yield {party: AskPairKey() for party in roster.names}
    replies = checks.replies(inbox, PairKey)
    agreed, view = rows_digest(rows), usual_view(reply.view for reply in replies.values())
    for party, reply in replies.items():
        if reply.rows != agreed:
            raise checks.wrong(party, reply, "a digest of other rows than were agreed on")
        if reply.view != view or len(view) != DIGEST_BYTES:
            raise checks.wrong(party, reply, "other row weights or units than other parties have")
        check_key(party, reply, reply.key)
    ordered = sorted(replies.items())
    keys, signed = relayed_keys([(reply.key, reply.rows, reply.signature) for _, reply in ordered])
    return RelayedKeys(tuple(party for party, _ in ordered), keys, signed, view)


def relayed_keys(told: Iterable[tuple[bytes, bytes, bytes]]) -> tuple[bytes, tuple[KeySignature, ...]]:
    """Put keys one after another, and beside them what was signed with them: what was exchanged, and signatures."""
    keys, exchanged, signatures = zip(*told, strict=True)
    return b"".join(keys), tuple(map(KeySignature, exchanged, signatures))


def check_key(party: str, reply: Message, key: bytes) -> None:
    """Require a public key; a party that is relayed anything else cannot tell whether it is the server's doing."""
    if len(key) != KEY_BYTES:
        raise checks.wrong(party, reply, f"a key of {len(key)} bytes where {KEY_BYTES} are due")
    if not gives_secret(key):
        raise checks.wrong(party, reply, "a key that gives no secret with any other")


def usual_view(views: Iterable[bytes]) -> bytes:
    """Give the digest that most parties have of their views: who has another is the one to name."""
    return Counter(views).most_common(1)[0][0]


def compare(
    roster: Roster, transcript: bytes, signed: Mapping[str, SignedDigest], circle: Circle = NEIGHBOURS
) -> Script[None]:
    """Close a phase: let all sides see that they saw the same transcript, and that each signed what it sent."""
    told = signed_around(signed, circle)
    inbox = yield {party: AskPairAgreement(told[party]) for party in roster.names}
    for party, reply in checks.replies(inbox, PairAgreement).items():
        if reply.digest != agreement_of(transcript, told[party]):
            raise checks.wrong(party, reply, "a digest of something else than was exchanged")


def signed_around(
    signed: Mapping[str, SignedDigest], circle: Circle = NEIGHBOURS
) -> dict[str, tuple[SignedDigest, ...]]:
    """Give for each party what those of its circle signed, in the order of names."""
    names = sorted(signed)
    arounds = circle.around_each(len(names))
    return {party: tuple(signed[names[other]] for other in arounds[place]) for place, party in enumerate(names)}


def identity_of(data: PartyData, otherwise: str = "choose a solver that needs none") -> Identity:
    """Give the party's identity, as it is now, without which nothing is secure; `otherwise` is for the error."""
    if data.identity is None:
        raise InputError(
            "it has no identity and no pins of the other parties, and the server could put its own keys between them. "
            f"Give it an identity (between machines, [identity] in its party.toml), or {otherwise}."
        )
    return data.identity.now()


def view_digest(state: PartyState, data: PartyData) -> bytes:
    """Hash which rows count, how much, in which units columns enter, as the party sees it, and in which job."""
    scaling = "own" if state.view is None else state.view.scaling
    return digest(digest_of_view(data.table.row_weights, scaling), state.sheet)


def phase_keys(state: PartyState) -> PhaseKeys:
    """Give what the party keeps of the phase."""
    if not isinstance(state.secret, PhaseKeys):
        raise LocalProtocolError("No secure phase was opened: ask for keys first.")
    return state.secret


def circle_of(identity: Identity, circle: Circle = NEIGHBOURS) -> tuple[int, ...]:
    """Give the places of those that the party shares secrets with, and its own, by the names that its owner pinned."""
    return circle.around(identity.parties.index(identity.name), len(identity.parties))


def with_keys(state: PartyState, relayed: CircleKeys, data: PartyData, circle: Circle = NEIGHBOURS) -> PhaseKeys:
    """Check relayed keys, and keep them; a party whose own is not among them was restarted, and lost its secret."""
    identity, kept = identity_of(data), phase_keys(state)
    around, agreed = circle_of(identity, circle), rows_digest(state.selection())
    check_circle(identity, around, relayed, view_digest(state, data))
    if any(entry.exchanged != agreed for entry in relayed.signed):
        raise RemoteProtocolError("The server relayed a key that was made for other rows.", party=SERVER)
    found = PhaseKeys(kept.secret, relayed.keys, around)
    ours = found.keys[identity.parties.index(identity.name)]
    return found if kept.secret is not None and kept.secret.key == ours else replace(found, secret=None)


def _answer_key(state: PartyState, _: AskPairKey, data: PartyData) -> tuple[PartyState, Message]:
    identity = identity_of(data)
    check_available()
    secret = Secret(identity.fresh(KEY_BYTES), identity.pair)
    rows, view = rows_digest(state.selection()), view_digest(state, data)
    signature = identity.sign(key_statement(identity.name, secret.key, rows, view))
    return replace(state, secret=PhaseKeys(secret), learning=None), PairKey(secret.key, rows, view, signature)


def _answer_agreement(state: PartyState, request: AskPairAgreement, data: PartyData) -> tuple[PartyState, Message]:
    kept = phase_keys(state)
    check_signatures(identity_of(data), kept.circle, kept.transcript, request.signed)
    return replace(state, secret=None), PairAgreement(agreement_of(kept.transcript, request.signed))


HANDLERS = (
    Handler(
        AskPairKey,
        _answer_key,
        after=frozenset({SELECTED, PAIRED, OPENED, IN_WINDOWS, MULTIPLIED, SHARED}),
        then=PAIRED,
    ),
    Handler(AskPairAgreement, _answer_agreement, after=frozenset({SHARED}), then=SELECTED),
)
