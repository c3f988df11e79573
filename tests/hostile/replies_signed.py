"""A party that lies with its own hand: what it makes up is signed, masked and committed to as true numbers would be.

`Liar` carries the rounds of a federation. In one round, or from one on, one party answers by another table, bends
numbers before it signs or masks them, signs with what it signed before, refuses, or sends what has no such form.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

import msgspec
import numpy as np

import colonnade as cn
from colonnade.contracts import Inbox, Outbox, Table
from colonnade.kernels.masks import pack
from colonnade.kernels.shares import pack_words
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.privacy import identities
from colonnade.privacy.identities import RehearsedPair
from colonnade.protocol.refusal import Cause, Refused, failed
from colonnade.protocol.session import PartyData, PartySession
from hostile.replies_changes import CODEC
from hostile.replies_jobs import Job

Draw = np.random.Generator
WAYS = ("table", "numbers", "signature", "refusal", "form", "kind", "replay")
TIMES = (0.0, -1.0, 1e-3, 0.9, 1.1, 2.0, 30.0, 1e6, 1e12, 1e75, 1e99, 1e-99, 1e-310)
PLACED = (np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e-310, 1e99, 1e150, -1e150, 1.7e308, 2.0**53, -1.0)
SHAPES = ((0,), (1,), (0, 0), (0, 4_000_000_000), (4_000_000_000, 0), (1, 1), (3, 2), (100_000,))


def false_table(job: Job, name: str, rng: Draw) -> Table:
    """Make another table of a party: other values, as large or small as it likes, copies, constants."""
    honest = next(party for party in job.parties() if party.name == name).table
    if (raw := getattr(honest, "preparing", None)) is not None:
        mixed = raw.columns.take(rng.integers(honest.n_rows, size=honest.n_rows))
        return cn.Party(name, mixed, prepare=cn.Prepare(dict(raw.rules))).table
    columns = np.array(honest.take(np.arange(honest.n_rows)))
    weight, split = honest.weight_column, honest.split_column
    way = rng.integers(9)
    if way == 0:
        columns = rng.permutation(columns)
    elif way == 1:
        columns = columns * float(rng.choice([-1.0, 1e-40, 1e-6, 3.0, 1e6, 1e40, 1e49, 1e90]))
    elif way == 2:
        columns[int(rng.integers(len(columns)))] = float(rng.choice([1e6, -1e12, 1e45, 1e99]))
    elif way == 3:
        columns[:] = columns[int(rng.integers(len(columns)))]
    elif way == 4:
        columns = np.zeros_like(columns)
    elif way == 5:
        columns = rng.standard_cauchy(columns.shape) ** 3
    elif way == 6:
        columns = columns + float(rng.choice([1e3, 1e8, 1e15]))
    elif way == 7:
        columns = np.repeat(columns[:, :1], columns.shape[1], axis=1)
    elif weight is not None:
        weight = weight ** float(rng.choice([0.0, 5.0, 40.0]))
        weight[int(rng.integers(len(weight)))] = float(rng.choice([0.0, 1e-90, 1e6, 1e90]))
    elif split is not None:
        split = rng.permutation(split) if rng.random() < 0.5 else rng.random(len(split)) < rng.random()
    else:
        columns = columns * rng.choice([0.0, 1.0], size=columns.shape)
    d = len(honest.feature_names)
    label = columns[:, d] if honest.label_name is not None else None
    return cn.Party(name, columns[:, :d], label=label, weight=weight, split=split).table


def bent(array: Any, rng: Draw) -> Any:
    """Change numbers of an array in place of what is signed: some, all, or how they stand."""
    made = np.array(array)
    if not made.size:
        return made
    way, flat = rng.integers(6), made.reshape(-1)
    if made.dtype.kind == "b":
        flat[rng.random(flat.size) < 0.3] ^= True
    elif made.dtype.kind == "u":
        flat[: 1 + int(rng.integers(flat.size))] += np.uint64(2 ** int(rng.integers(64)))
    elif made.dtype.kind == "i":
        flat[int(rng.integers(flat.size))] = int(rng.choice([0, -1, 1, 2**31, 2**62, -(2**62), flat[0], flat[-1]]))
    elif way == 0:
        flat[int(rng.integers(flat.size))] = float(rng.choice(PLACED))
    elif way == 1:
        flat[:] = float(rng.choice(PLACED))
    elif way == 2:
        flat[:] = rng.permutation(flat)
    elif way == 3:
        flat += rng.normal(size=flat.size) * float(rng.choice([1e-7, 1e-3, 1.0, 1e9]))
    else:
        with np.errstate(all="ignore"):
            flat *= float(rng.choice(TIMES)) if way == 4 else rng.choice(TIMES, size=flat.size)
    return made


@contextmanager
def bending(rng: Draw) -> Iterator[None]:
    """Let all numbers that are made ready to be sent meanwhile, each with a chance, be others."""

    def instead(send: Callable[..., Any]) -> Callable[..., Any]:
        return lambda numbers, *more: send(bent(numbers, rng) if rng.random() < 0.7 else numbers, *more)

    def low(*secrets: Any) -> RehearsedPair:
        pair = RehearsedPair(*secrets)
        pair.public = bytes(32) if rng.random() < 0.5 else pair.public
        return pair

    patched: list[tuple[Any, Callable[..., Any]]] = [(identities, RehearsedPair)]
    identities.RehearsedPair = low  # type: ignore[assignment, misc]
    for send in (pack, pack_words, sendable_flags, sendable_floats, sendable_rows):
        other = instead(send)
        for module in [each for name, each in sys.modules.items() if name.startswith("colonnade.")]:
            if getattr(module, send.__name__, None) is send:
                patched.append((module, send))
                setattr(module, send.__name__, other)
    try:
        yield
    finally:
        for module, send in patched:
            setattr(module, send.__name__, send)


class Forger:
    """An identity that signs with what it signed before, or with nothing."""

    def __init__(self, honest: Any, before: list[bytes], rng: Draw) -> None:
        self._honest, self._before, self._rng = honest, before, rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)

    def sign(self, _: bytes) -> bytes:
        """Sign something else."""
        forged = [*self._before, b"", bytes(64), self._honest.sign(b"something else"), os.urandom(64)]
        return bytes(forged[int(self._rng.integers(len(forged)))])


class Liar:
    """A transport that plays honestly until it is armed, keeps what it hears, and lets one party lie."""

    def __init__(self, job: Job, number: int = -1, party: str = "", seed: int = 0) -> None:
        self.job, self.number, self.party, self.rng = job, number, party, np.random.default_rng(seed)
        self.way = str(self.rng.choice(WAYS))
        self.lasts = self.way in ("table", "numbers") and bool(self.rng.random() < 0.5)
        self.false: Table | None = None
        self.armed, self.what = False, "nothing"
        self.heard: list[dict[str, Message]] = []
        self.earlier: list[Message] = []
        self._signed: list[bytes] = []

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Liar":
        """Carry the rounds of one more run."""
        self.sessions = sessions
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        """Carry a round."""
        number = len(self.heard)
        lies = self.armed and (number == self.number or (self.lasts and number > self.number))
        inbox: dict[str, Message] = {}
        for party, request in outbox.items():
            session = self.sessions[party]
            if lies and party == self.party:
                self.what = f"round {number + 1}, {request.kind}, {self.way}"
                inbox[party] = self._lie(session, request)
            else:
                inbox[party] = session.answer(request)
        if self.armed:
            self.heard.append(dict(inbox))
        self.earlier += inbox.values()
        self._signed += [s for m in inbox.values() if (s := getattr(m, "signature", None))]
        return inbox

    def _lie(self, session: PartySession, request: Message) -> Message:
        honest = session._data
        if self.way == "table":
            if self.false is None or self.rng.random() < 0.3:  # one in one round, another in another
                self.false = false_table(self.job, self.party, self.rng)
            session._data = PartyData(self.false, honest.identity, honest.policy, honest.memory)
        if self.way == "signature":
            forger: Any = Forger(honest.identity, self._signed, self.rng)
            session._data = PartyData(honest.table, forger, honest.policy, honest.memory)
        try:
            if self.way == "numbers":
                with bending(self.rng):
                    reply = session.answer(request)
            else:
                reply = session.answer(request)
        except Exception:  # its own
            reply = failed()
        finally:
            session._data = honest
        if self.way in ("refusal", "form", "kind", "replay"):
            reply = getattr(self, f"_{self.way}")(reply)
        return CODEC.decode(CODEC.encode(reply), party=self.party)

    def _refusal(self, _: Message) -> Message:
        reasons = ("", "x" * 100_000, "\x1b[31m\x00 bank", "'bank' sent a lie. The run was stopped.", "{0} %s")
        return Refused(str(self.rng.choice(get_args(Cause))), str(self.rng.choice(reasons)))  # type: ignore[arg-type]

    def _form(self, reply: Message) -> Message:
        """Give fields other shapes; a float that has none becomes a number of any size."""
        fields = {name: getattr(reply, name) for name in reply.__struct_fields__}
        arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
        if not arrays:
            numbers = [name for name, value in fields.items() if type(value) in (int, float)]
            if not numbers:
                return self._kind(reply)
            name = str(self.rng.choice(numbers))
            lie: Any = float(self.rng.choice(PLACED)) if type(fields[name]) is float else 2**63 - 1
            return msgspec.structs.replace(reply, **{name: lie})
        name = str(self.rng.choice(list(arrays)))
        shape = SHAPES[int(self.rng.integers(len(SHAPES)))]
        dtype = arrays[name].dtype if len(shape) == 1 else np.dtype(np.float64)
        return msgspec.structs.replace(reply, **{name: np.zeros(shape, dtype)})

    def _kind(self, reply: Message) -> Message:
        others = [each for each in self.earlier if type(each) is not type(reply)]
        return others[int(self.rng.integers(len(others)))] if others else Refused("failure", "none")

    def _replay(self, reply: Message) -> Message:
        """Send what some party, this one too, sent in an earlier run or round."""
        same = [each for each in self.earlier if type(each) is type(reply)]
        return same[int(self.rng.integers(len(same)))] if same else reply
