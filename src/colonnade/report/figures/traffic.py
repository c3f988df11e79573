"""Bytes by party and phase, to the server and from it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from colonnade.ledger import SERVER, Ledger
from colonnade.number_words import count, in_bytes, per_cent
from colonnade.report.figures.colours import SERIES
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Box, Sheet, figure, note
from colonnade.report.figures.words import fitted, isolated, listed, plain, width_of

TITLE = "Bytes by party and phase"
# Parties with bars of their own; of the rest, the mean.
MOST_PARTIES = 8
# Phases with colours of their own, if they are this share of all; the rest are added up.
MOST_PHASES, LEAST_SHARE = 4, 0.01
BAR, STRIPE = 11.0, 6.0


class PartyBytes(NamedTuple):
    """What one party, or several, sent to the server and were sent from it, by phase."""

    name: str
    to_server: Counter[str]
    from_server: Counter[str]
    n_parties: int = 1

    @property
    def bytes(self) -> int:
        """Both ways together."""
        return self.to_server.total() + self.from_server.total()


def bytes_by_phase_and_party(ledger: Ledger) -> Figure:
    """Draw bars of bytes, two a party: what it sent to the server, and what it was sent.

    Parameters
    ----------
    ledger : Ledger
        Any.

    Returns
    -------
    Figure
        Drawn, and in words.

    Examples
    --------
    >>> from colonnade.ledger import Entry
    >>> ledger = Ledger([Entry("sampling", 1, "airline", "server", "Total", 1, 15_000, ("totals",))])
    >>> "15.0 kB" in bytes_by_phase_and_party(ledger).svg
    True
    """
    bars = party_bytes(ledger)
    if not bars:
        return note(TITLE, "No message was sent.")
    stacks = _stacks(bars)
    return figure(TITLE, _words(bars), lambda width: _Bars(bars, stacks, width).sheet)


def party_bytes(ledger: Ledger) -> list[PartyBytes]:
    """Sum up a ledger by party, the largest first; those beyond the first eight together.

    Examples
    --------
    >>> from colonnade.ledger import Entry
    >>> (bar,) = party_bytes(Ledger([Entry("sampling", 1, "airline", "server", "Total", 1, 15, ("totals",))]))
    >>> bar.name, bar.to_server["sampling"], bar.from_server.total()
    ('airline', 15, 0)
    """
    found: dict[str, PartyBytes] = {}
    for entry in ledger:
        own = found.setdefault(entry.party, PartyBytes(entry.party, Counter(), Counter()))
        way = own.from_server if entry.sender == SERVER else own.to_server
        way[entry.phase] += max(0, entry.bytes)  # a file can say anything
    ordered = sorted(found.values(), key=lambda each: -each.bytes)
    if len(ordered) <= MOST_PARTIES + 1:
        return ordered
    rest = ordered[MOST_PARTIES:]
    others = PartyBytes(f"{count(len(rest))} others, mean", Counter(), Counter(), len(rest))
    for each in rest:
        others.to_server.update(each.to_server)
        others.from_server.update(each.from_server)
    return [*ordered[:MOST_PARTIES], others]


class _Stack(NamedTuple):
    """Phases that are drawn as one piece of a bar."""

    name: str
    phases: tuple[str, ...]
    bytes: int


def _stacks(bars: Iterable[PartyBytes]) -> list[_Stack]:
    """Say which phases have a piece of their own, the largest first, and which are together."""
    sums: Counter[str] = Counter()
    for each in bars:
        sums.update(each.to_server)
        sums.update(each.from_server)
    total = sums.total()
    own = [phase for phase, weighs in sums.most_common(MOST_PHASES) if weighs >= LEAST_SHARE * total]
    rest = [phase for phase in sums if phase not in own]
    stacks = [_Stack(plain(phase), (phase,), sums[phase]) for phase in own]
    if not rest:
        return stacks
    return [*stacks, _Stack(listed(rest, 6), tuple(rest), sum(sums[phase] for phase in rest))]


def _words(bars: Sequence[PartyBytes]) -> str:
    total, up = sum(each.bytes for each in bars), sum(each.to_server.total() for each in bars)
    first = bars[0]
    share = f" ({per_cent(first.bytes / total)})" if total else ""
    return (
        f"{in_bytes(total)} in all: {in_bytes(up)} to the server, {in_bytes(total - up)} from it. "
        f"The most with {isolated(plain(first.name, 40))}: {in_bytes(first.bytes)}{share}. "
        "The upper bar of each party is what it sent, the lower, fainter one what it was sent."
    )


class _Bars:
    """The drawing of bars at one width."""

    def __init__(self, bars: Sequence[PartyBytes], stacks: Sequence[_Stack], width: float) -> None:
        self.wide, self.stacks, self.width = width == WIDE, stacks, width
        self.left = 132.0 if self.wide else 0.0
        self.room = width - self.left - 150.0
        legend = self._legend()
        top = legend[-1][1] + 24
        step = 2 * BAR + (16.0 if self.wide else 34.0)
        self.sheet = Sheet(width, top + len(bars) * step)
        self.most = max(max(each.to_server.total(), each.from_server.total()) / each.n_parties for each in bars) or 1
        for number, (x, y, text) in enumerate(legend):
            self._fill(x, y - BAR / 2, 12, number, faint=False)
            self.sheet.text(x + 18, y, text, size=SMALL)
        for i, each in enumerate(bars):
            self._draw(each, top + i * step)

    def _legend(self) -> list[tuple[float, float, str]]:
        x, y, places = 0.0, 9.0, []
        for stack in self.stacks:
            weighs = f" \u00b7 {in_bytes(stack.bytes)}"
            text = isolated(fitted(stack.name, self.width - 18 - width_of(weighs, SMALL), SMALL)) + weighs
            reach = 18 + width_of(text, SMALL)
            if x > 0 and x + reach > self.width:
                x, y = 0.0, y + 19
            places.append((x, y, text))
            x += reach + 14
        return places

    def _draw(self, each: PartyBytes, y: float) -> None:
        name = isolated(fitted(plain(each.name), self.left - 12 if self.wide else self.width, SIZE, bold=True))
        if self.wide:
            self.sheet.text(0, y + BAR + 1, name, bold=True)
        else:
            self.sheet.text(0, y + 4, name, bold=True)
            y += 15
        for sums, way, faint in ((each.to_server, "to the server", False), (each.from_server, "from it", True)):
            x = self.left
            for number, stack in enumerate(self.stacks):
                weighs = sum(sums[phase] for phase in stack.phases) / each.n_parties
                length = self.room * weighs / self.most
                if length > 0.05:
                    self._fill(x, y, length, number, faint=faint)
                x += length
            told = f"{in_bytes(sums.total() / each.n_parties)} {way}"
            self.sheet.text(max(x, self.left + 1) + 6, y + BAR / 2, told, role="muted", size=SMALL)
            y += BAR + 3

    def _fill(self, x: float, y: float, length: float, number: int, *, faint: bool) -> None:
        """Fill a piece of a bar with the phase's colour and, for who confuses colours, its stripes."""
        self.sheet.boxes([Box(x, y, x + length, y + BAR)], SERIES[number], opacity=0.45 if faint else 1.0)
        if number % 3 == 1:
            places = [x + (i + 0.5) * STRIPE for i in range(int(length // STRIPE))]
            self.sheet.lines([((at, y), (at, y + BAR)) for at in places], "paper", 1.2)
        if number % 3 == 2:
            self.sheet.lines([((x, y + BAR / 2), (x + length, y + BAR / 2))], "paper", 2.0)
