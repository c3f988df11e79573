"""A toy kind of message: how many zeros a party's table has. A request, its reply, a script and a handler."""

from typing import Annotated, ClassVar

from colonnade.contracts import Roster, Script
from colonnade.kernels.blocks import Block
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState


class Zeros(Message, frozen=True):
    """How many values of the party's table are zero."""

    phase: ClassVar[str] = "diagnosing"

    count: Annotated[int, Reveals.MOMENTS]


class AskZeros(Message, frozen=True):
    """Count the zeros among your values."""

    phase: ClassVar[str] = "diagnosing"
    reply: ClassVar[type[Message]] = Zeros


def count_zeros(roster: Roster) -> Script[dict[str, int]]:
    """Ask every party, and refuse counts that cannot be."""
    inbox = yield {party: AskZeros() for party in roster.names}
    replies = checks.replies(inbox, Zeros)
    for card in roster.cards:
        most = card.n_rows * (card.n_features + (card.label_name is not None))
        if not 0 <= replies[card.name].count <= most:
            raise checks.wrong(card.name, replies[card.name], f"a count outside 0..{most}")
    return {party: reply.count for party, reply in replies.items()}


def _zeros(block: Block) -> int:
    return int((block.values == 0).sum())


def _answer(state: PartyState, _: AskZeros, data: PartyData) -> tuple[PartyState, Message]:
    return state, Zeros(sum(data.table.map(_zeros)))


HANDLERS = (Handler(AskZeros, _answer, after=None, then=GREETED),)
