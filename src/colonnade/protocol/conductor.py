"""Runs a script to its end over a transport, and puts every message on the ledger."""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import numpy as np

from colonnade.contracts import Inbox, Outbox, Script, Transport
from colonnade.errors import ColonnadeError, RemoteProtocolError
from colonnade.ledger import SERVER, Entry, Ledger
from colonnade.messages import Message
from colonnade.protocol.codec import Codec
from colonnade.protocol.refusal import Refused, raise_refusal

T = TypeVar("T")
P = ParamSpec("P")
RoundListener = Callable[[str, int], None]


class RoundNumber(int):
    """The number of a round, from 1, of a run whose rounds can be counted beforehand: `total` is how many there are."""

    total: int = 0

    @classmethod
    def of(cls, number: int, total: int) -> "RoundNumber":
        """Make one."""
        found = cls(number)
        found.total = total
        return found


def nobody_listens(_phase: str, _number: int) -> None:
    """Hear of rounds, and do nothing."""


class Conductor:
    """Plays scripts: carries their rounds by a transport, and records each message on a ledger.

    The codec says what each message weighs, whether or not the transport encodes it. `on_round` is told the phase and
    the number of each round before it starts.
    """

    def __init__(self, transport: Transport, codec: Codec, ledger: Ledger, on_round: RoundListener) -> None:
        self._transport = transport
        self._codec = codec
        self._ledger = ledger
        self._on_round = on_round

    def play(self, script: Script[T]) -> T:
        """Play one script from its first round to its result."""
        number = 0
        try:
            outbox = next(script)
            while True:
                number += 1
                inbox = self._exchange(outbox, number)
                outbox = reading(tuple(inbox), script.send, inbox)
        except StopIteration as end:
            result: T = end.value
            return result

    def _exchange(self, outbox: Outbox, number: int) -> Inbox:
        phase = next(iter(outbox.values())).phase
        self._on_round(phase, number)
        self._record(phase, number, [(SERVER, party, request) for party, request in outbox.items()])
        replies = self._transport.exchange(outbox)
        self._record(phase, number, [(party, SERVER, replies[party]) for party in outbox if party in replies])
        return {party: _expected(party, request, replies) for party, request in outbox.items()}

    def _record(self, phase: str, number: int, sent: list[tuple[str, str, Message]]) -> None:
        """Put messages on the ledger, each with its sender and receiver; none where one of them is too large."""
        messages = [*dict.fromkeys(message for _, _, message in sent)]  # one that goes to many is looked at once
        sizes = self._codec.sizes(messages)
        found = {message: (size, message.facts()) for message, size in zip(messages, sizes, strict=True)}
        for sender, receiver, message in sent:
            size, (kind, units, reveals, numbers) = found[message]
            self._ledger.record(Entry(phase, number, sender, receiver, kind, units, size, reveals, numbers))


@np.errstate(over="raise", invalid="raise", divide="raise")
def reading(parties: Sequence[str], act: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Act so that nothing that these parties sent stops a run but with an error of ours, nor gives NaN unseen.

    Places that read a reply check it and name its sender. What slips through them cannot be told from a bug.
    """
    try:
        return act(*args, **options)
    except (ColonnadeError, StopIteration, Warning):
        raise
    except Exception as error:
        who = f"Party {parties[0]!r}" if len(parties) == 1 else f"One of {', '.join(parties)}"
        # The error's words can quote numbers, and all parties are told why a run ended.
        raise RemoteProtocolError(
            f"{who} sent numbers that do not lead to a result ({type(error).__name__}): too large, too small, or such "
            "as no table has. The run was stopped; nothing of it was used. Look for extreme values in the columns; if "
            "there are none, the server's traceback shows more.",
            party=parties[0] if len(parties) == 1 else None,
        ) from error


def _expected(party: str, request: Message, replies: Mapping[str, Message]) -> Message:
    reply = replies.get(party)
    if isinstance(reply, Refused):
        raise_refusal(party, request, reply)
    if type(reply) is not request.reply:
        wanted = request.reply.__name__ if request.reply else "nothing"
        seen = reply.kind if reply else "no reply"
        raise RemoteProtocolError(
            f"Party {party!r} was asked {request.kind} and must answer {wanted}; it gave {seen}. "
            "The run was stopped; check that the party runs a compatible version.",
            party=party,
            kind=seen,
        )
    return reply
