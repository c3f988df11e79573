"""A toy transport: hands messages over, and counts the rounds. All that a transport in one process is made of."""

from collections.abc import Mapping

from colonnade.contracts import Inbox, Outbox
from colonnade.protocol.session import PartySession


class Counting:
    """Asks the parties one after another."""

    rounds = 0

    def __init__(self, sessions: Mapping[str, PartySession]) -> None:
        self._sessions = sessions

    def exchange(self, outbox: Outbox) -> Inbox:
        """Deliver each party its request and bring back each party's reply."""
        Counting.rounds += 1
        return {party: self._sessions[party].answer(request) for party, request in outbox.items()}
