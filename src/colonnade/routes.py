"""A job's route: what an honest server may ask a party next, in which order, how often, and with which numbers.

A route is a value, a small grammar over kinds of requests. Taking a request gives the route that is left of it, so a
party's state stays a value too. Parts compose as the server's script does: `then`, `either`, `some`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.messages import Message


class Route(ABC):
    """What may still come. None in place of a route is: this may not."""

    @abstractmethod
    def after(self, request: Message) -> "Route | None":
        """Give what is left of it after this request, or None where the request is not next."""

    @abstractmethod
    def next_asks(self) -> "Iterator[Ask]":
        """List what may come next."""

    @abstractmethod
    def asks(self) -> "Iterator[Ask]":
        """List all that may come, each kind of request at least once."""

    @property
    @abstractmethod
    def can_end(self) -> bool:
        """Whether an honest server may stop here."""

    def objection(self, request: Message) -> str | None:
        """Say why a request is not next, in words for the other side."""
        same = [ask for ask in self.next_asks() if ask.kind is type(request)]
        if same:
            return "; ".join(dict.fromkeys(what for ask in same if (what := ask.differs(request)) is not None))
        expected = ", ".join(dict.fromkeys(ask.kind.__name__ for ask in self.next_asks())) or "nothing more"
        return f"{expected} would be next in this job, not {request.kind}"


@dataclass(frozen=True)
class AtMost:
    """A whole number from `least` to `most`."""

    most: int
    least: int = 0

    def __call__(self, value: Any) -> bool:
        """Tell whether a field has such a value."""
        return isinstance(value, int) and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class Length:
    """An array of `least` to `most` rows."""

    most: int
    least: int = 0

    def __call__(self, value: Any) -> bool:
        """Tell whether a field is so long."""
        return self.least <= len(value) <= self.most

    def __str__(self) -> str:
        return f"{self.least:,} to {self.most:,} rows"


@dataclass(frozen=True)
class Hashing:
    """A value whose digest is known."""

    digest: bytes
    hashed: Callable[[Any], bytes]

    def __call__(self, value: Any) -> bool:
        """Tell whether a field has this value."""
        return self.hashed(value) == self.digest

    def __str__(self) -> str:
        return f"what has the digest {self.digest.hex()[:16]}"


class Ask(Route):
    """One request of a kind. Fields that are named must have just these values, or satisfy the condition given."""

    def __init__(self, kind: type[Message], **fields: object) -> None:
        self.kind = kind
        self.fields = fields

    def after(self, request: Message) -> Route | None:
        """Be over, if it is this."""
        return None if type(request) is not self.kind or self.differs(request) else END

    def differs(self, request: Message) -> str | None:
        """Say which field has another value than was agreed on."""
        for name, agreed in self.fields.items():
            if not _fits(agreed, value := getattr(request, name)):
                shown = value if isinstance(value, int | float | str | None) else type(value).__name__
                return f"the job sheet says {agreed} where this {request.kind} has {name} = {shown}"
        return None

    def next_asks(self) -> Iterator["Ask"]:
        """List itself."""
        yield self

    asks = next_asks

    @property
    def can_end(self) -> bool:
        """No: it is due."""
        return False


def _fits(agreed: object, value: object) -> bool:
    if callable(agreed):
        return bool(agreed(value))
    if isinstance(agreed, np.ndarray) or isinstance(value, np.ndarray):
        return isinstance(agreed, np.ndarray) and isinstance(value, np.ndarray) and np.array_equal(agreed, value)
    return type(agreed) is type(value) and agreed == value


@dataclass(frozen=True)
class _Then(Route):
    first: Route
    rest: Route

    def after(self, request: Message) -> Route | None:
        if (left := self.first.after(request)) is not None:
            return then(left, self.rest)
        return self.rest.after(request) if self.first.can_end else None

    def next_asks(self) -> Iterator[Ask]:
        yield from self.first.next_asks()
        if self.first.can_end:
            yield from self.rest.next_asks()

    def asks(self) -> Iterator[Ask]:
        yield from self.first.asks()
        yield from self.rest.asks()

    @property
    def can_end(self) -> bool:
        return self.first.can_end and self.rest.can_end


@dataclass(frozen=True)
class _Either(Route):
    ways: tuple[Route, ...]

    def after(self, request: Message) -> Route | None:
        return next((left for way in self.ways if (left := way.after(request)) is not None), None)

    def next_asks(self) -> Iterator[Ask]:
        for way in self.ways:
            yield from way.next_asks()

    def asks(self) -> Iterator[Ask]:
        for way in self.ways:
            yield from way.asks()

    @property
    def can_end(self) -> bool:
        return any(way.can_end for way in self.ways)


@dataclass(frozen=True)
class _Some(Route):
    what: Route
    least: int
    most: int

    def after(self, request: Message) -> Route | None:
        left = self.what.after(request) if self.most else None
        return None if left is None else then(left, some(self.what, least=max(self.least - 1, 0), most=self.most - 1))

    def next_asks(self) -> Iterator[Ask]:
        return self.what.next_asks() if self.most else iter(())

    def asks(self) -> Iterator[Ask]:
        return self.what.asks() if self.most else iter(())

    @property
    def can_end(self) -> bool:
        return self.least == 0 or self.what.can_end


class _End(Route):
    def after(self, request: Message) -> Route | None:  # noqa: ARG002  # nothing may come
        return None

    def next_asks(self) -> Iterator[Ask]:
        return iter(())

    asks = next_asks

    @property
    def can_end(self) -> bool:
        return True


END: Route = _End()


def then(*parts: Route) -> Route:
    """Take parts one after another."""
    route = END
    for part in reversed(parts):
        route = part if route is END else route if part is END else _Then(part, route)
    return route


def either(*ways: Route) -> Route:
    """Take one of several ways; the first that fits a request is taken."""
    return ways[0] if len(ways) == 1 else _Either(ways)


def some(what: Route, *, least: int = 0, most: int = 1) -> Route:
    """Take a part so many times."""
    return END if most == 0 else _Some(what, least, most)


def cut_short(*parts: Route) -> Route:
    """Take parts one after another, or only the first few of them."""
    first, *rest = parts
    return then(first, some(cut_short(*rest))) if rest else first
