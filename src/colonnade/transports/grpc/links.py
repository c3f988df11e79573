"""A party's stream as the server holds it, and the threads and files that streams take."""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import suppress
from typing import Any

from colonnade.failpoints import reach
from colonnade.transports.envelopes import EncodedEnvelope

UNLIMITED = 1 << 20


class DaemonThreads(futures.Executor):
    """A thread for each stream that ends with the process: a waiting stream must not keep it alive."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "futures.Future[Any]":
        """Start a thread for this."""
        done: futures.Future[Any] = futures.Future()

        def run() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as error:  # handed to who waits for it
                done.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return done


def most_files() -> int:
    """Tell how many files this process may hold open, and let it be as many as its owner may allow."""
    try:
        import resource  # not on Windows
    except ImportError:
        return UNLIMITED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems have a limit below the one that they tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


class Link:
    """One stream of a party, and the serial of the certificate that it was opened with."""

    def __init__(self, serial: int | None = None) -> None:
        self.serial = serial
        self.joined = threading.Event()
        self.strays = 0
        self.left = False
        self.owner_asked: tuple[str, int] | None = None  # the request that waits for the party's owner
        self.refusal: tuple[Any, str] | None = None
        self._outgoing: queue.SimpleQueue[EncodedEnvelope | None] = queue.SimpleQueue()

    def send(self, envelope: EncodedEnvelope) -> None:
        """Queue an envelope."""
        self._outgoing.put(envelope)

    def close(self, refusal: tuple[Any, str] | None = None) -> None:
        """End the stream after what is queued, with the first refusal given, if any."""
        self.refusal = self.refusal or refusal
        self.joined.set()
        self._outgoing.put(None)

    def outgoing(self) -> Iterator[bytes]:
        """Wait for envelopes and give out their pieces until the end."""
        return sent_from(self._outgoing)


def sent_from(outgoing: "queue.SimpleQueue[EncodedEnvelope | None]") -> Iterator[bytes]:
    """Wait for envelopes and give out their pieces, until None."""
    for envelope in iter(outgoing.get, None):
        reach("before send", envelope)
        yield from envelope.pieces()
        reach("after send", envelope)
