"""How a party says no, and what the server's side then raises."""

import re
from typing import Annotated, ClassVar, Literal, NoReturn

from colonnade.errors import (
    AlignmentError,
    ColonnadeError,
    InputError,
    LocalProtocolError,
    PolicyRefusedError,
    RemoteProtocolError,
    WireVersionError,
)
from colonnade.messages import Message, Reveals
from colonnade.protocol.caps import Branches

# A reason is a sentence; a party that sends a book is cut short.
MAX_REASON = 500
# A path in quotes, which may have spaces and other quotes, or any other word with a slash or backslash in it; not a
# fraction.
PATH = re.compile(
    r"""(?<=(['"]))(?:~|[A-Za-z]:)?[/\\](?:\\.|(?!\1)[^\\\n])*|(?![\d.,]*/[\d.,]*(?!\S))[^\s'"(]*[/\\][^\s'"):,]*"""
)
# What follows a party's name where something is wrong with its table.
OF_TABLE = (": ", ", column ", ", row weights: ")
Cause = Literal["input", "policy", "order", "version", "request", "failure", "alignment"]


class Refused(Message, frozen=True):
    """Takes the place of a reply: no data, one sentence; `instead` is the choice that a sheet might leave."""

    phase: ClassVar[str] = "refusal"

    cause: Annotated[Cause, Reveals.NOTHING]
    reason: Annotated[str, Reveals.NOTHING]
    instead: Annotated[Branches | None, Reveals.NOTHING] = None


def refused(error: ColonnadeError) -> Refused:
    """Put an error raised at the party into words for the server."""
    causes: dict[type[ColonnadeError], Cause] = {
        LocalProtocolError: "order",
        WireVersionError: "version",
        RemoteProtocolError: "request",
        PolicyRefusedError: "policy",
        AlignmentError: "alignment",
    }
    instead = error.instead if isinstance(error, PolicyRefusedError) and isinstance(error.instead, Branches) else None
    return Refused(causes.get(type(error), "input"), without_paths(str(error)), instead)


def without_paths(text: str) -> str:
    """Take out where files lie on this machine: it is nobody else's business."""
    return PATH.sub("<path>", text)


def failed() -> Refused:
    """Say that something broke at the party that nobody foresaw, and nothing of what: that can tell of its table."""
    reason = (
        "it failed inside and goes on. What failed can tell of its data, and was not sent. Ask its owner to look at "
        "its terminal, then run again."
    )
    return Refused("failure", reason)


def raise_refusal(party: str, request: Message, refusal: Refused) -> NoReturn:
    """Raise at the server what a party's refusal of a request means there."""
    # In one line: it can be of anyone's making, and another line could look like somebody else's.
    reason = " ".join(refusal.reason[:MAX_REASON].splitlines())
    # What is wrong with its table it says as is said elsewhere; nothing else may stand where the server speaks.
    is_of_table = refusal.cause == "input" and reason.startswith(tuple(f"Party {party!r}{more}" for more in OF_TABLE))
    text = reason if is_of_table else f"Party {party!r} did not answer {request.kind}: {reason}"
    if refusal.cause == "policy":
        raise PolicyRefusedError(text, party=party, instead=refusal.instead)
    if refusal.cause == "version":
        raise WireVersionError(text)
    if refusal.cause == "input":
        raise InputError(text)
    if refusal.cause == "alignment":
        raise AlignmentError(text)
    if refusal.cause == "failure":
        raise RemoteProtocolError(text, party=party, kind=request.kind)
    raise LocalProtocolError(text)
