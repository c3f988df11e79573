"""Where tests look behind a federation: at its parties' sessions, or with a script of their own."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

import colonnade as cn
from colonnade.contracts import Script, Transport
from colonnade.protocol.session import PartySession
from colonnade.runtime import PartiesHere

T = TypeVar("T")
Sessions = dict[str, PartySession]


def parties_of(federation: cn.Federation) -> PartiesHere:
    here = federation._runtime.parties
    assert here is not None, "its parties are on other machines"
    return here


def sessions_of(federation: cn.Federation) -> Sessions:
    """Open a session at every party, as a run does, that answers whatever a handler does: no sheet says what is due."""
    return sessions_without_route(parties_of(federation).sessions())


def watch(federation: cn.Federation) -> Sessions:
    """Give a dict that holds the sessions of the latest run, from the next one on."""
    here, seen = parties_of(federation), Sessions()
    make = here.transport

    def transport(sessions: Sessions) -> Transport:
        seen.update(sessions)
        return make(sessions)

    here.transport = transport  # type: ignore[assignment]  # any mapping will do
    return seen


def play(federation: cn.Federation, script: Script[T]) -> T:
    """Play a script of the test's own as one run, that no sheet opens."""
    runtime, here = federation._runtime, parties_of(federation)
    opened, here.sessions = here.sessions, lambda: sessions_without_route(opened())  # type: ignore[method-assign]
    try:
        return runtime._play(script, "test", {})[0]
    finally:
        here.sessions = opened  # type: ignore[method-assign]


def sessions_without_route(sessions: Sessions) -> Sessions:
    """Let sessions answer whatever a handler does."""
    for session in sessions.values():
        session.state = replace(session.state, route=None)
    return sessions


def bent(content: bytes, how: int, rng: np.random.Generator) -> bytes:
    """Flip a bit of a file's content, cut it off, or swell it."""
    changed = bytearray(content)
    where = int(rng.integers(len(changed)))
    match how % 3:
        case 0:
            changed[where] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[where:]
        case _:
            changed[where:where] = bytes(rng.bytes(8))
    return bytes(changed)
