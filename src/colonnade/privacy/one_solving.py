"""One secure solving, delivery or evaluation a run: after a lost key a server asks again what it asked, nothing else.

Two answers about rows, weights or labels that differ a little tell by their difference what neither of them tells.
"""

from dataclasses import replace

from colonnade.errors import RemoteProtocolError
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.pair_keys import view_digest
from colonnade.protocol.session import PartyData, PartyState
from colonnade.signing import digest, rows_digest


def require_same_question(state: PartyState, request: Message, what: bytes, place: int = 0) -> PartyState:
    """Note what a run's secure phases ask; refuse something else than was asked at this place before.

    Parameters
    ----------
    what : bytes
        All that decides the answer; keys do not.
    place : int
        How many such requests came before it since keys were made.
    """
    question = digest(request.kind.encode(), what)
    if place == len(state.answered_digests):
        return replace(state, answered_digests=(*state.answered_digests, question))
    if state.answered_digests[place] != question:
        raise RemoteProtocolError(
            f"The server sent a {request.kind} that differs from what it asked before in this run: from the difference "
            "of the answers it would learn about single rows. Start another run for other rows, weights or options.",
            party=SERVER,
            kind=request.kind,
        )
    return state


def seen_rows(state: PartyState, data: PartyData) -> bytes:
    """Hash the rows agreed on, what they count, and in which units columns enter."""
    return digest(rows_digest(state.selection()), view_digest(state, data))
