"""Failpoints: before and after every write, sync, rename, removal and sending, where tests stop the process.

Outside tests nobody listens, and reaching one does nothing.
"""

from collections.abc import Callable
from typing import TypeAlias

# Is told the point, and the file, path or envelope that it is about.
Listener: TypeAlias = Callable[[str, object], None]
_listeners: list[Listener] = []


def reach(point: str, about: object) -> None:
    """Say that the process is here."""
    for listener in _listeners:
        listener(point, about)


def listen(listener: Listener) -> None:
    """Be told of every point from now on; for tests."""
    _listeners.append(listener)


def unlisten(listener: Listener) -> None:
    """Be told no longer."""
    _listeners.remove(listener)
