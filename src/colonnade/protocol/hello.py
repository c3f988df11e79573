"""The hello round: who holds what, and whether it is the same rows."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from colonnade.contracts import PartyCard, Roster, Script
from colonnade.errors import AlignmentError, InputError, WireVersionError
from colonnade.messages import Message, Reveals
from colonnade.protocol.checks import replies, wrong
from colonnade.protocol.session import GREETED, NEW, Handler, PartyData, PartyState

# Hello never changes, and a card only by more fields at its end, so that ends of different versions can still tell each
# other so.
WIRE_VERSION = 4
MAX_ROWS = 1 << 40
BY_KEY = "let them be matched by key: align = 'curve', 'aided' or 'clear'"


class Card(Message, frozen=True):
    """A party introduces its table: names and counts, no values.

    Where it `prepares` its columns, these are their names as they came: what is made of them depends on the job.
    """

    phase: ClassVar[str] = "hello"

    version: Annotated[int, Reveals.NOTHING]
    n_rows: Annotated[int, Reveals.SCHEMA]
    feature_names: Annotated[tuple[str, ...], Reveals.SCHEMA]
    label_name: Annotated[str | None, Reveals.SCHEMA]
    key_digest: Annotated[bytes | None, Reveals.SCHEMA]
    has_weights: Annotated[bool, Reveals.SCHEMA]
    has_split: Annotated[bool, Reveals.SCHEMA]
    prepares: Annotated[bool, Reveals.SCHEMA] = False
    label_is_text: Annotated[bool, Reveals.SCHEMA] = False


class Hello(Message, frozen=True):
    """The server opens the exchange."""

    phase: ClassVar[str] = "hello"
    reply: ClassVar[type[Message]] = Card

    version: Annotated[int, Reveals.NOTHING]


def hello(parties: Iterable[str]) -> Script[Roster]:
    """Learn each party's card, in the order of the model's columns, and check that all hold the same rows."""
    inbox = yield {party: Hello(WIRE_VERSION) for party in parties}
    cards = replies(inbox, Card)
    roster = Roster(tuple(_read_card(party, card) for party, card in cards.items()))
    _check_alignment(cards)
    _check_roles(cards)
    return roster


def _read_card(party: str, card: Card) -> PartyCard:
    if card.version != WIRE_VERSION:
        raise WireVersionError(
            f"Party {party!r} speaks wire version {card.version}, this side {WIRE_VERSION}. Upgrade the older one."
        )
    if not 1 <= card.n_rows <= MAX_ROWS or len(set(card.feature_names)) != len(card.feature_names):
        raise wrong(party, card, f"a row count outside 1..{MAX_ROWS}, or a feature name twice")
    if card.label_is_text and card.label_name is None:
        raise wrong(party, card, "a label of text, and no label")
    has, prepared = (card.has_weights, card.has_split), "" if card.prepares else None
    return PartyCard(
        party, card.n_rows, card.feature_names, card.label_name, *has, prepared, label_is_text=card.label_is_text
    )


def _check_alignment(cards: Mapping[str, Card]) -> None:
    counts = {party: card.n_rows for party, card in cards.items()}
    if len(set(counts.values())) > 1:
        raise AlignmentError(
            f"Parties hold different numbers of rows: {_listed(counts)}. Give every party the same rows in the same "
            f"order, or {BY_KEY}."
        )
    digests = {party: card.key_digest for party, card in cards.items() if card.key_digest is not None}
    if len(set(digests.values())) > 1:
        raise AlignmentError(
            f"The key columns of {', '.join(digests)} differ: the same row number means different rows. "
            f"Sort every party's table by the same keys and keep only keys that all of them have, or {BY_KEY}."
        )


def _check_roles(cards: Mapping[str, Card]) -> None:
    labels = {party: card.label_name for party, card in cards.items() if card.label_name is not None}
    if len(labels) > 1:
        raise InputError(f"Two parties hold a label: {_listed(labels)}. Name a label at one party only.")
    weighing = [party for party, card in cards.items() if card.has_weights]
    if len(weighing) > 1:
        raise InputError(f"{' and '.join(weighing)} all hold row weights. Name weights at one party only.")


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in values.items())


def _answer_hello(state: PartyState, request: Hello, data: PartyData) -> tuple[PartyState, Message]:
    if request.version != WIRE_VERSION:
        raise WireVersionError(
            f"the server speaks wire version {request.version}, the party {WIRE_VERSION}. Upgrade the older one."
        )
    data.check_aligned()
    table = data.table
    if table.alignment is None and table.keys is not None and table.keys.count != table.keys.n_rows:
        raise AlignmentError(
            f"{table.keys.n_rows - table.keys.count:,} of its rows repeat keys, and cannot be the same rows, in the "
            f"same order, as others'. Leave them out of the table, or {BY_KEY}."
        )
    return state, Card(
        version=WIRE_VERSION,
        n_rows=table.n_rows,
        feature_names=table.feature_names,
        label_name=table.label_name,
        key_digest=table.key_digest,
        has_weights=table.weight_column is not None,
        has_split=table.split_column is not None,
        prepares=table.preparing is not None,
        label_is_text=table.label_levels is not None,
    )


HANDLERS = (Handler(Hello, _answer_hello, after=frozenset({NEW, GREETED}), then=GREETED),)
