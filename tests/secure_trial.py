"""What tests of secure phases share: a wire that shows and swaps messages, a party that restarts, entropy on record."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import colonnade as cn
from colonnade.catalogue import codec, party_session
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol.session import PartySession

Meddle = Callable[[str, str, bytes], bytes]


def made_parties(
    n_rows: int = 300, widths: Sequence[int] = (2, 3, 1), *, label: bool = True, identities: Any = None
) -> list[cn.Party]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(n_rows, sum(widths))) + 7.0
    y = X @ rng.normal(size=sum(widths)) + rng.normal(size=n_rows)
    parties = cn.split_columns(X, y if label else None, list(widths))
    for party in parties if identities is not None else ():
        party.identity = identities[party.name]
    return parties


class Wire:
    """A loop-back that shows every message to a function, which may put another in its place."""

    def __init__(self, meddle: Meddle) -> None:
        self._meddle = meddle

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Wire":
        self.sessions, self._codec = sessions, codec()
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        return {party: self._ask(party, request) for party, request in outbox.items()}

    def _ask(self, party: str, request: Message) -> Message:
        asked = self._codec.decode(self._meddle(SERVER, party, self._codec.encode(request)), party=SERVER)
        reply = self._codec.encode(self.sessions[party].answer(asked))
        return self._codec.decode(self._meddle(party, SERVER, reply), party=party)


class Recording(Wire):
    """Keeps all bytes: those the server received, and those it sent."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.sent: list[bytes] = []
        super().__init__(self._keep)

    def _keep(self, sender: str, _receiver: str, data: bytes) -> bytes:
        (self.sent if sender == SERVER else self.received).append(data)
        return data

    def replies(self) -> list[Message]:
        return [codec().decode(data) for data in self.received]


def flip_message(number: int, bit: int) -> Meddle:
    """Flip a bit of the message with this number, counted from 0 over both directions."""
    count = -1

    def meddle(_sender: str, _receiver: str, data: bytes) -> bytes:
        nonlocal count
        count += 1
        if count != number:
            return data
        changed = bytearray(data)
        changed[bit % (8 * len(data)) // 8] ^= 1 << bit % 8
        return bytes(changed)

    return meddle


class Restarting:
    """Restarts a party just before some request: a new session hears all again that was asked, as from a journal."""

    def __init__(self, kind: str, party: str = "party3", times: int = 1) -> None:
        self._kind, self._party, self._times = kind, party, times

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Restarting":
        self.sessions = dict(sessions)
        self._heard: list[Message] = []
        self.restarts = 0
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        request = outbox.get(self._party)
        if request is not None:
            if request.kind == self._kind and self.restarts < self._times:
                self._restart()
            self._heard.append(request)
        return {party: self.sessions[party].answer(asked) for party, asked in outbox.items()}

    def _restart(self) -> None:
        self.restarts += 1
        old = self.sessions[self._party]
        self.sessions[self._party] = party_session(old._data.table, old._policy, old._data.identity).greeted(
            old.state.run_nonce
        )
        for heard in self._heard:
            self.sessions[self._party].answer(heard)


class Entropy:
    """The operating system's part, recorded: every secret byte that was drawn."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.drawn: list[bytes] = []

    def __call__(self, count: int) -> bytes:
        self.drawn.append(self._rng.bytes(count))
        return self.drawn[-1]


def forms_of(secret: bytes) -> list[bytes]:
    """Write a secret as it might leak: raw, hexadecimal, base64, repr, a list of numbers."""
    listed = ", ".join(map(str, secret)).encode()
    return [secret, secret.hex().encode(), base64.b64encode(secret), repr(secret)[2:-1].encode(), listed]


def float_forms(values: Floats) -> set[bytes]:
    """Write numbers as they would travel in the clear."""
    return {np.float64(value).tobytes() for value in np.asarray(values).reshape(-1) if value != 0}


def numbers_in(message: Message) -> Floats:
    """Collect every number of a message's arrays."""
    arrays = [value for name in message.__struct_fields__ if isinstance(value := getattr(message, name), np.ndarray)]
    return np.concatenate([np.asarray(array, np.float64).reshape(-1) for array in arrays]) if arrays else np.empty(0)
