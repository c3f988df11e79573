"""How parties meet whose rows are not aligned: each says how many keys it has, and which alignment, if it has one."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar

from colonnade.alignment.listing import MAX_KEYS
from colonnade.contracts import Script
from colonnade.errors import AlignmentError, InputError
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.hello import MAX_ROWS
from colonnade.protocol.policy import ALIGN
from colonnade.protocol.session import GREETED, NEW, Handler, PartyData, PartyState
from colonnade.protocol.sheet import MAX_COLUMNS, SheetParty, party_on_sheet


class KeyCard(Message, frozen=True):
    """A party's columns and keys in numbers: rows, keys that name one row each, and the alignment it goes by."""

    phase: ClassVar[str] = "hello"

    party: Annotated[SheetParty, Reveals.SCHEMA]
    n_rows: Annotated[int, Reveals.SCHEMA]
    n_keys: Annotated[int, Reveals.SCHEMA]
    alignment: Annotated[bytes | None, Reveals.SCHEMA]
    mode: Annotated[str | None, Reveals.SCHEMA]


class AskKeyCard(Message, frozen=True):
    """Introduce your keys; `again`, also where they are others than those of the alignment that the party has."""

    phase: ClassVar[str] = "hello"
    reply: ClassVar[type[Message]] = KeyCard

    again: Annotated[bool, Reveals.NOTHING]


def meet(parties: Iterable[str], *, again: bool) -> Script[dict[str, KeyCard]]:
    """Ask every party for its card."""
    cards = dict(checks.replies((yield {party: AskKeyCard(again) for party in parties}), KeyCard))
    for party, card in cards.items():
        if card.party.name != party or not 1 <= card.n_keys <= min(card.n_rows, MAX_KEYS):
            raise checks.wrong(party, card, f"{card.n_keys} keys of {card.n_rows} rows, or another party's name")
        if not 0 <= card.party.features <= MAX_COLUMNS or card.n_rows > MAX_ROWS:
            raise checks.wrong(party, card, f"{card.party.features:,} columns of {card.n_rows:,} rows")
        if card.mode not in (None, *ALIGN) or (card.alignment is None) != (card.mode is None):
            raise checks.wrong(party, card, "an alignment by no mode that there is")
    if len(cards) < 2:
        raise InputError("One party has nobody to align with. Leave out align=.")
    return cards


def have_alignment(cards: Mapping[str, KeyCard], mode: str) -> bool:
    """Tell whether all parties go by one alignment; that some do, or by different ones or another mode, is an error."""
    by_party = {party: card.alignment for party, card in cards.items()}
    if len(set(by_party.values())) > 1:
        listed = ", ".join(f"{party} {each.hex()[:8] if each else 'none'}" for party, each in by_party.items())
        raise AlignmentError(
            f"Parties go by different alignments: {listed}. Align again, which makes another split of rows held out: "
            "`colonnade align FEDERATION.toml --again`."
        )
    if other := next((card.mode for card in cards.values() if card.mode not in (None, mode)), None):
        raise AlignmentError(
            f"Records were matched by {other!r}, and [align] says {mode!r}. Write mode = {other!r}, or align again: "
            "`colonnade align FEDERATION.toml --again`."
        )
    return None not in by_party.values()


def _answer(state: PartyState, request: AskKeyCard, data: PartyData) -> tuple[PartyState, Message]:
    if not request.again:
        data.check_aligned()
    keys, ours, alignment = data.keys(), party_on_sheet(data.name, data.table), data.table.alignment
    how = (None, None) if alignment is None else (alignment.fingerprint, alignment.mode)
    return state, KeyCard(ours, keys.n_rows, keys.count, *how)


HANDLERS = (Handler(AskKeyCard, _answer, after=frozenset({NEW, GREETED}), then=GREETED),)
