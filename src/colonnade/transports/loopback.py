"""Parties in this process behind the wire codec: every message becomes bytes and is read again."""

from collections.abc import Mapping

from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol.session import PartySession


class Loopback:
    """Sends bytes to itself, to show that a run over a wire is the same run.

    Parameters
    ----------
    sessions : mapping of str to PartySession
        The parties.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> from colonnade.transports.loopback import Loopback
    >>> cn.Federation(cn.split_columns(np.eye(4), None, [2, 2]), transport=Loopback).roster.names
    ('party1', 'party2')
    """

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        self._sessions = sessions
        self._codec = codec()

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the parties one after another."""
        return {party: self._ask(party, request) for party, request in outbox.items()}

    def _ask(self, party: str, request: Message) -> Message:
        received = self._codec.decode(self._codec.encode(request), party=SERVER)
        reply = self._sessions[party].answer(received)
        return self._codec.decode(self._codec.encode(reply), party=party)
