"""The closed list of phases: what may travel, and what a party can answer."""

from functools import cache, partial
from typing import get_args

from colonnade import alignment, diagnostics, evaluation, sampling, solvers
from colonnade.alignment.meeting import AskKeyCard
from colonnade.contracts import Table
from colonnade.errors import InputError
from colonnade.job_sheets import route_of
from colonnade.messages import MAX_MESSAGE_BYTES, Message
from colonnade.privacy import pair_keys
from colonnade.protocol import classes, hello, preparing, viewing
from colonnade.protocol.codec import Codec
from colonnade.protocol.hello import Hello
from colonnade.protocol.identity import Identity
from colonnade.protocol.judging import narrower_choice, objection_to_job
from colonnade.protocol.memory import Memory
from colonnade.protocol.policy import Policy
from colonnade.protocol.preparations import Preparations
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from colonnade.protocol.sheet import BRANCHING, OpenJob, opening_handler
from colonnade.routes import Ask, either
from colonnade.solvers import AnySolver
from colonnade.tasks import AnyTask

_SOLVER_OF = {handler.request: handler.solver for handler in solvers.HANDLERS}
HANDLERS = (
    *hello.HANDLERS,
    opening_handler(route_of, partial(objection_to_job, _SOLVER_OF.get), narrower_choice),
    BRANCHING,
    *alignment.HANDLERS,
    *viewing.HANDLERS,
    *classes.HANDLERS,
    *preparing.HANDLERS,
    *sampling.HANDLERS,
    *pair_keys.HANDLERS,
    *solvers.HANDLERS,
    *evaluation.HANDLERS,
    *diagnostics.HANDLERS,
)


# What tasks and solvers are called where an owner, or a file, names them.
TASKS, SOLVERS = (tuple(str(kind.__struct_config__.tag) for kind in get_args(known)) for known in (AnyTask, AnySolver))
# How a run begins: parties meet, or a job is opened.
OPENING = either(Ask(Hello), Ask(AskKeyCard), Ask(OpenJob))


def kinds() -> frozenset[type[Message]]:
    """List every kind of message there is: each request, its reply, and the refusal."""
    requests = {handler.request for handler in HANDLERS}
    replies = {request.reply for request in requests if request.reply is not None}
    return frozenset(requests | replies | {Refused})


@cache
def codec(max_bytes: int = MAX_MESSAGE_BYTES) -> Codec:
    """Build the codec of all kinds, for messages of so many bytes at most."""
    return Codec(kinds(), max_bytes)


def check_policy(policy: Policy) -> None:
    """Require that a policy names solvers and tasks that exist: a slip would refuse all of them."""
    for what, named, known in (("solver", policy.solvers, SOLVERS), ("task", policy.tasks, TASKS)):
        if unknown := sorted((named or frozenset()).difference(known)):
            raise InputError(f"A policy cannot name the {what} {unknown[0]!r}. Choose among: {', '.join(known)}.")


def party_session(
    table: Table,
    policy: Policy,
    identity: Identity | None = None,
    memory: Memory | None = None,
    problem: str = "",
    preparations: Preparations | None = None,
) -> PartySession:
    """Open a session that answers every request its owner allows; without an identity it signs nothing.

    A problem is why the table's rows are those of no alignment any more: it can only be aligned again. `preparations`
    keep how its columns were prepared.
    """
    return PartySession(table, HANDLERS, policy, identity, memory, OPENING, problem, preparations)
