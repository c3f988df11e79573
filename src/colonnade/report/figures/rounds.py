"""The rounds of a run as a sequence diagram: who told whom, how much, in which phase."""

from collections.abc import Sequence
from typing import NamedTuple

from colonnade.ledger import SERVER, Entry, Ledger
from colonnade.number_words import count, in_bytes, per_cent
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.sheet import SIZE, SMALL, WIDE, Sheet, figure, note
from colonnade.report.figures.words import fitted, isolated, plain, width_of

TITLE = "Rounds, and the bytes of each"
# Arrows that are drawn; of more messages the rest is told in words.
MOST_ARROWS = 24
# Parties that have a lane each; on a telephone fewer.
MOST_LANES, MOST_LANES_NARROW = 6, 3
ROW, HEADING = 29.0, 26.0


class Arrow(NamedTuple):
    """All messages of one kind and direction in rounds of a phase that follow one another."""

    phase: str
    first: int
    last: int
    kind: str
    to_server: bool
    parties: dict[str, int]

    @property
    def bytes(self) -> int:
        """What they weigh together."""
        return sum(self.parties.values())


def rounds(ledger: Ledger) -> Figure:
    """Draw the messages of a ledger as arrows between the server and the parties, with their bytes.

    Rounds of a phase that repeat are one arrow. Where there are many parties, they share a lane.

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
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [2, 2, 2]))
    >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10))
    >>> "party2" in rounds(run.ledger).svg
    True
    """
    found = arrows(ledger)
    if not found:
        return note(TITLE, "No message was sent.")
    parties = list(dict.fromkeys(party for arrow in found for party in arrow.parties))
    server = SERVER if ledger.run_by is None else f"{SERVER} ({plain(ledger.run_by, 30)})"
    return figure(TITLE, _words(ledger, found, parties), lambda width: _Diagram(found, parties, server, width).sheet)


def arrows(ledger: Ledger) -> list[Arrow]:
    """Sum up a ledger by phase, kind and direction, in the order they came.

    Examples
    --------
    >>> from colonnade.ledger import Entry
    >>> ask, reply = ("server", "airline", "Ask", 0, 20, ()), ("airline", "server", "Reply", 1, 15, ())
    >>> entries = [Entry("solving", number, *message) for number in (2, 3) for message in (ask, reply)]
    >>> [(arrow.kind, arrow.first, arrow.last, arrow.bytes) for arrow in arrows(Ledger(entries))]
    [('Ask', 2, 3, 40), ('Reply', 2, 3, 30)]
    """
    groups: dict[tuple[int, str, bool], list[Entry]] = {}
    stretch, before = 0, None
    for entry in ledger:
        # Another phase begins, or another run.
        stretch += before is not None and (entry.phase != before.phase or entry.round < before.round)
        before = entry
        groups.setdefault((stretch, entry.kind, entry.sender != SERVER), []).append(entry)
    return [_arrow(group, to_server=to_server) for (_, _, to_server), group in groups.items()]


def _arrow(group: list[Entry], *, to_server: bool) -> Arrow:
    parties: dict[str, int] = {}
    for entry in group:
        parties[entry.party] = parties.get(entry.party, 0) + max(0, entry.bytes)  # a file can say anything
    return Arrow(group[0].phase, group[0].round, group[-1].round, group[0].kind, to_server, parties)


def _parties(number: int) -> str:
    return "1 party" if number == 1 else f"{count(number)} parties"


def _words(ledger: Ledger, found: Sequence[Arrow], parties: Sequence[str]) -> str:
    total, up = (sum(arrow.bytes for arrow in found if arrow.to_server >= least) for least in (False, True))
    most = max(found, key=lambda arrow: arrow.bytes)
    share = f", {per_cent(most.bytes / total)} of all" if total else ""
    return (
        f"{count(len(ledger))} messages between the server and {_parties(len(parties))}, {in_bytes(total)}: "
        f"{in_bytes(up)} to the server, {in_bytes(total - up)} from it. "
        f"The most are {isolated(plain(most.kind, 40))} in phase {isolated(plain(most.phase, 40))}: "
        f"{in_bytes(most.bytes)}{share}. Blue arrows go to the server, grey ones from it; thicker ones carry more."
    )


class _Diagram:
    """The drawing of arrows at one width."""

    def __init__(self, found: Sequence[Arrow], parties: Sequence[str], server: str, width: float) -> None:
        self.parties, self.wide = parties, width == WIDE
        shown, rest = found[:MOST_ARROWS], found[MOST_ARROWS:]
        self.apart = len(parties) <= (MOST_LANES if self.wide else MOST_LANES_NARROW)
        self.lanes = list(parties) if self.apart else [_parties(len(parties))]
        self.server, first, last = 70.0, 0.42 * width, width - (60.0 if self.wide else 36.0)
        self.size = SIZE if self.wide else SMALL
        if len(self.lanes) == 1:
            first = last
        step = (last - first) / max(1, len(self.lanes) - 1)
        self.places = {name: first + step * i for i, name in enumerate(self.lanes)}
        names = [width_of(plain(name), SIZE, bold=True) for name in (server, *self.lanes)]
        self.lifted = len(self.lanes) > 1 and max(names) > 0.9 * step
        self.top = 42.0 if self.lifted else 24.0
        headings = sum(self._begins(shown, i) for i in range(len(shown)))
        self.floor = self.top + headings * HEADING + len(shown) * ROW + 8
        self.sheet = Sheet(width, self.floor + (24 if rest else 4))
        self.most = max(arrow.bytes for arrow in found) or 1
        self._draw_lanes(server, step)
        self._draw_arrows(shown)
        if rest:
            more = f"and {len(rest):,} more kinds of messages: {in_bytes(sum(arrow.bytes for arrow in rest))}"
            self.sheet.text(0, self.floor + 12, more, role="muted", size=self.size)

    def _begins(self, shown: Sequence[Arrow], i: int) -> bool:
        return i == 0 or shown[i].phase != shown[i - 1].phase

    def _draw_lanes(self, server: str, step: float) -> None:
        room = self.sheet.width / 2 if len(self.lanes) == 1 else step * (1.9 if self.lifted else 0.95)
        for i, (name, x) in enumerate([(server, self.server), *self.places.items()]):
            y = 28.0 if self.lifted and i % 2 == 0 else 10.0
            self.sheet.line([(x, y + 10), (x, self.floor)], "grid", 1.5)
            space = min(room, 2 * (self.sheet.width - x)) if i else 2 * self.server
            shown = isolated(fitted(plain(name), space, SIZE, bold=True))
            self.sheet.text(x, y, shown, align="center", bold=True, halo=True)
        if server == SERVER:
            self.sheet.text(0, 28.0 if self.lifted else 10.0, "round", role="muted", size=SMALL)

    def _draw_arrows(self, shown: Sequence[Arrow]) -> None:
        y, before = self.top, None
        for i, arrow in enumerate(shown):
            numbers = (arrow.first, arrow.last)
            if self._begins(shown, i):
                before = None
                name = isolated(fitted(plain(arrow.phase), self.sheet.width - 8, SMALL))
                self.sheet.text(0, y + 14, name, role="muted", size=SMALL, bold=True, halo=True)
                y += HEADING
            self._draw_arrow(arrow, y + ROW - 8)
            if numbers != before:
                text = str(arrow.first) if arrow.first == arrow.last else f"{arrow.first}\u2013{arrow.last}"
                self.sheet.text(0, y + ROW - 8, fitted(text, self.server - 12, SMALL), role="muted", size=SMALL)
            before, y = numbers, y + ROW

    def _draw_arrow(self, arrow: Arrow, y: float) -> None:
        sheet, role = self.sheet, "series-1" if arrow.to_server else "muted"
        ends = sorted({self.places[party] for party in arrow.parties} if self.apart else set(self.places.values()))
        weight = 1.2 + 2.8 * (arrow.bytes / self.most) ** 0.5
        start, stop = (self.server + 6, ends[-1]) if arrow.to_server else (self.server, ends[-1] - 6)
        sheet.line([(start, y), (stop, y)], role, weight)
        if arrow.to_server:
            _head(sheet, self.server, y, role, -1)
        for x in ends:
            if arrow.to_server:
                sheet.mark(x, y, role, size=6)
            else:
                _head(sheet, x, y, role, 1)
        part = "" if self.apart or len(arrow.parties) == len(self.parties) else f", {_parties(len(arrow.parties))}"
        weighs = f" \u00b7 {in_bytes(arrow.bytes)}{part}"
        room = sheet.width - self.server - 14 - width_of(weighs, self.size)
        kind = isolated(fitted(plain(arrow.kind), room, self.size))
        sheet.text(self.server + 12, y - 11, kind + weighs, size=self.size, halo=True)


def _head(sheet: Sheet, x: float, y: float, role: str, way: int) -> None:
    sheet.shape([(x, y), (x - way * 8, y - 4.5), (x - way * 8, y + 4.5)], role)
