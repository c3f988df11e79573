"""Parties as objects in this process: nothing is encoded."""

from collections.abc import Mapping

from colonnade.contracts import Inbox, Outbox
from colonnade.protocol.session import PartySession


class InProcess:
    """Hands each request to the party's session.

    Parameters
    ----------
    sessions : mapping of str to PartySession
        The parties.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> from colonnade.transports.inprocess import InProcess
    >>> cn.Federation(cn.split_columns(np.eye(4), None, [2, 2]), transport=InProcess).roster.names
    ('party1', 'party2')
    """

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        self._sessions = sessions

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the parties one after another."""
        return {party: self._sessions[party].answer(request) for party, request in outbox.items()}
