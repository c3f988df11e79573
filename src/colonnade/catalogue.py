"""The closed list of phases: what may travel, and what a party can answer."""

from colonnade import diagnostics, evaluation, sampling, solvers
from colonnade.contracts import Table
from colonnade.messages import Message
from colonnade.protocol import framing, hello
from colonnade.protocol.codec import Codec
from colonnade.protocol.identity import Identity
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession

HANDLERS = (
    *hello.HANDLERS,
    *framing.HANDLERS,
    *sampling.HANDLERS,
    *solvers.HANDLERS,
    *evaluation.HANDLERS,
    *diagnostics.HANDLERS,
)


def kinds() -> frozenset[type[Message]]:
    """List every kind of message there is: each request, its reply, and the refusal."""
    requests = {handler.request for handler in HANDLERS}
    replies = {request.reply for request in requests if request.reply is not None}
    return frozenset(requests | replies | {Refused})


def codec() -> Codec:
    """Build the codec of all kinds."""
    return Codec(kinds())


def party_session(table: Table, policy: Policy, identity: Identity | None = None) -> PartySession:
    """Open a session that answers every request its owner allows.

    Parameters
    ----------
    table : Table
        The party's data.
    policy : Policy
        The owner's.
    identity : Identity, optional
        For secure sums.

    Returns
    -------
    PartySession
        At its first step.
    """
    return PartySession(table, HANDLERS, policy, identity)
