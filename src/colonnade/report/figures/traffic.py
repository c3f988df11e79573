"""Bytes by party and phase, to the server and from it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from colonnade.ledger import SERVER, Ledger
from colonnade.report.figures.colours import SERIES
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.words import fitted, isolated, plain, width_of
from colonnade.report.numbers import count, in_bytes, per_cent

TITLE = "Bytes by party and phase"
# Parties with bars of their own; the rest are added up.
MOST_PARTIES = 8
# Phases with colours of their own; the rest are added up.
MOST_PHASES = len(SERIES)
OTHER_PHASES = "other phases"
BAR, STRIPE = 11.0, 5.0


class PartyBytes(NamedTuple):
    """What one party, or several, sent to the server and were sent from it, by phase."""

    name: str
    to_server: Counter[str]
    from_server: Counter[str]

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
    by_phase = Counter({phase: totals.bytes for phase, totals in ledger.by_phase().items()})
    kept = {phase for phase, _ in by_phase.most_common(MOST_PHASES)}
    if len(by_phase) > MOST_PHASES:
        kept = {phase for phase, _ in by_phase.most_common(MOST_PHASES - 1)}
    phases = [phase for phase in by_phase if phase in kept]
    return figure(TITLE, _words(ledger, bars), lambda width: _Bars(bars, phases, by_phase, width).sheet)


def party_bytes(ledger: Ledger) -> list[PartyBytes]:
    """Sum up a ledger by party, the largest first; those beyond the first eight together."""
    found: dict[str, PartyBytes] = {}
    for entry in ledger:
        own = found.setdefault(entry.party, PartyBytes(entry.party, Counter(), Counter()))
        (own.from_server if entry.sender == SERVER else own.to_server)[entry.phase] += entry.bytes
    ordered = sorted(found.values(), key=lambda each: -each.bytes)
    if len(ordered) <= MOST_PARTIES + 1:
        return ordered
    rest = ordered[MOST_PARTIES:]
    others = PartyBytes(f"{count(len(rest))} others", Counter(), Counter())
    for each in rest:
        others.to_server.update(each.to_server)
        others.from_server.update(each.from_server)
    return [*ordered[:MOST_PARTIES], others]


def _words(ledger: Ledger, bars: Sequence[PartyBytes]) -> str:
    up = sum(each.to_server.total() for each in bars)
    first = bars[0]
    total = ledger.bytes
    share = f" ({per_cent(first.bytes / total)})" if total else ""
    return (
        f"{in_bytes(total)} in all: {in_bytes(up)} to the server, {in_bytes(total - up)} from it. "
        f"The most with {isolated(plain(first.name, 40))}: {in_bytes(first.bytes)}{share}. "
        "The upper bar of each party is what it sent, the lower, fainter one what it was sent."
    )


class _Bars:
    """The drawing of bars at one width."""

    def __init__(self, bars: Sequence[PartyBytes], phases: Sequence[str], by_phase: Counter[str], width: float) -> None:
        self.wide, self.phases, self.width = width == WIDE, phases, width
        self.rest = set(by_phase) - set(phases)
        named = [(phase, by_phase[phase]) for phase in phases]
        if self.rest:
            named.append((OTHER_PHASES, sum(by_phase[phase] for phase in self.rest)))
        legend = self._legend(named)
        top = (max(y for _, y, _, _ in legend) if legend else 0) + 26
        self.left = 132.0 if self.wide else 0.0
        self.room = width - self.left - (150.0 if self.wide else 128.0)
        self.step = 2 * BAR + (18.0 if self.wide else 36.0)
        self.sheet = Sheet(width, top + len(bars) * self.step)
        self.most = max(max(each.to_server.total(), each.from_server.total()) for each in bars) or 1
        for x, y, number, text in legend:
            self._fill(x, y - 5, 11, number, faint=False)
            self.sheet.text(x + 17, y, text, size=SMALL)
        for i, each in enumerate(bars):
            self._draw(each, top + i * self.step)

    def _legend(self, named: Sequence[tuple[str, int]]) -> list[tuple[float, float, int, str]]:
        x, y, places = 0.0, 9.0, []
        for number, (phase, weighs) in enumerate(named):
            text = f"{isolated(fitted(plain(phase), 0.5 * self.width, SMALL))} {in_bytes(weighs)}"
            reach = 17 + width_of(text, SMALL)
            if x > 0 and x + reach > self.width:
                x, y = 0.0, y + 20
            places.append((x, y, number, text))
            x += reach + 18
        return places

    def _draw(self, each: PartyBytes, y: float) -> None:
        name = isolated(fitted(plain(each.name), self.left - 12 if self.wide else self.width, SIZE))
        if self.wide:
            self.sheet.text(0, y + BAR + 1, name, bold=True)
        else:
            self.sheet.text(0, y + 4, name, bold=True)
            y += 16
        ways = ((each.to_server, "to the server", False), (each.from_server, "from it", True))
        for sums, way, faint in ways:
            x = self.left
            for number, weighs in enumerate(self._stacked(sums)):
                length = self.room * weighs / self.most
                if length > 0:
                    self._fill(x, y, max(length, 0.6), number, faint=faint)
                x += length
            self.sheet.text(x + 6, y + BAR / 2, f"{in_bytes(sums.total())} {way}", role="muted", size=SMALL)
            y += BAR + 3

    def _stacked(self, sums: Counter[str]) -> list[int]:
        rest = [sum(sums[phase] for phase in self.rest)] if self.rest else []
        return [*(sums[phase] for phase in self.phases), *rest]

    def _fill(self, x: float, y: float, length: float, number: int, *, faint: bool) -> None:
        """Fill a piece of a bar with the phase's colour and, for who confuses colours, its stripes."""
        self.sheet.box(x, y, length, BAR, SERIES[number], opacity=0.5 if faint else 1.0)
        if number % 3 == 1:
            for i in range(int(length // STRIPE)):
                at = x + (i + 0.5) * STRIPE
                self.sheet.line([(at, y), (at, y + BAR)], "paper", 1.2)
        if number % 3 == 2:
            for up in (1 / 3, 2 / 3):
                self.sheet.line([(x, y + up * BAR), (x + length, y + up * BAR)], "paper", 1.2)
