"""The ledger: every message sent, what it weighed and what it revealed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from colonnade.cells import html_table
from colonnade.cells import in_a_line as in_a_line
from colonnade.messages import Reveals
from colonnade.text_tables import aligned as aligned

SERVER = "server"
# Of a table of kinds of messages, and which of its columns are numbers.
HEADER = ("phase", "round", "message", "server", "units", "bytes", "reveals")
NUMBERS = frozenset({4, 5})


# A file may come from anybody: no count is larger.
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. `numbers` are how many tell each of `reveals`, at most; none in ledgers of earlier versions."""

    phase: str
    round: Count
    sender: str
    receiver: str
    kind: str
    units: Count
    bytes: Count
    reveals: tuple[str, ...]
    numbers: tuple[Count, ...] = ()

    @property
    def party(self) -> str:
        """The party at one end; the server is at the other."""
        return self.receiver if self.sender == SERVER else self.sender


@dataclass(frozen=True)
class Totals:
    """Sums over some entries."""

    messages: int
    units: int
    bytes: int


class Ledger:
    """An append-only record of messages.

    Parameters
    ----------
    entries : iterable of Entry
        What is on it already.
    run_by : str or None
        The party that is also the server, and so is shown all that the server is.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [2, 2, 2]))
    >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10))
    >>> run.ledger.units == 10 + 2 * 10 * 3 + 2 * 3  # Algorithm 1: m + 2mT + 2T
    True
    """

    def __init__(self, entries: Iterable[Entry] = (), *, run_by: str | None = None) -> None:
        self._entries = list(entries)
        self.run_by = run_by

    def record(self, entry: Entry) -> None:
        """Append one message."""
        self._entries.append(entry)

    def since(self, position: int) -> "Ledger":
        """Copy what was recorded from `position` on."""
        return Ledger(self._entries[position:], run_by=self.run_by)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._entries == other._entries

    __hash__ = None  # type: ignore[assignment]  # it grows

    @property
    def units(self) -> int:
        """Numbers sent in all."""
        return sum(entry.units for entry in self)

    @property
    def bytes(self) -> int:
        """Encoded bytes sent in all."""
        return sum(entry.bytes for entry in self)

    @property
    def n_rounds(self) -> int:
        """How many rounds there were."""
        rounds = [entry.round for entry in self]
        # Numbers begin again with each job, such as a pilot.
        return sum(number != before for number, before in zip(rounds, [0, *rounds], strict=False))

    def by_phase(self) -> dict[str, Totals]:
        """Sum over each phase, in the order the phases came."""
        return self._sums(lambda entry: entry.phase)

    def by_party(self) -> dict[str, Totals]:
        """Sum over each party, both directions."""
        return self._sums(lambda entry: entry.party)

    def disclosures(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Map (sender, receiver) to all that the receiver was shown, in the order it came.

        A server that a party runs is written ``server (party)``.
        """
        shown: dict[tuple[str, str], dict[str, None]] = {}
        for entry in self:
            ends = self._end(entry.sender), self._end(entry.receiver)
            shown.setdefault(ends, {}).update(dict.fromkeys(entry.reveals))
        return {pair: tuple(kinds) for pair, kinds in shown.items() if kinds}

    def to_json(self) -> str:
        """Write the entries as a JSON array of objects."""
        return msgspec.json.encode(self._entries).decode()

    @classmethod
    def from_json(cls, text: str, *, run_by: str | None = None) -> "Ledger":
        """Read what `to_json` wrote."""
        entries = msgspec.json.decode(text, type=list[Entry])
        if unknown := {kind for entry in entries for kind in entry.reveals} - set(Reveals):
            raise ValueError(f"nothing is known of what it reveals: {sorted(unknown)[0][:50]!r}")
        return cls(entries, run_by=run_by)

    def __str__(self) -> str:
        """Lay out one line a kind of message, of all rounds of a phase that follow one another, then the total.

        `-> 3 parties` is what the server sent to three, `<- 3 parties` what three sent to it.
        """
        return aligned([HEADER, *self.lines(), self._total()], numbers=NUMBERS)

    def _repr_html_(self) -> str:
        return html_table(f"{len(self):,} messages", HEADER, [*self.lines(), self._total()], NUMBERS)

    def lines(self) -> list[tuple[str, ...]]:
        """Lay out one line a kind of message, as `HEADER` says."""
        return [_line(group) for group in self._kinds()]

    def _total(self) -> tuple[str, ...]:
        return ("total", "", "", "", f"{self.units:,}", f"{self.bytes:,}", "")

    def _end(self, name: str) -> str:
        return f"{SERVER} ({self.run_by})" if name == SERVER and self.run_by is not None else name

    def _kinds(self) -> list[list[Entry]]:
        groups: dict[tuple[int, str, bool], list[Entry]] = {}
        stretch, before = 0, None
        for entry in self:
            # Another phase begins, or another run.
            stretch += before is not None and (entry.phase != before.phase or entry.round < before.round)
            before = entry
            groups.setdefault((stretch, entry.kind, entry.sender == SERVER), []).append(entry)
        return list(groups.values())

    def _sums(self, key: Callable[[Entry], str]) -> dict[str, Totals]:
        groups: dict[str, list[Entry]] = {}
        for entry in self:
            groups.setdefault(key(entry), []).append(entry)
        return {
            name: Totals(len(group), sum(e.units for e in group), sum(e.bytes for e in group))
            for name, group in groups.items()
        }


def _line(group: list[Entry]) -> tuple[str, ...]:
    first = group[0]
    return (
        first.phase,
        str(first.round) if group[-1].round == first.round else f"{first.round}-{group[-1].round}",
        first.kind,
        f"{'->' if first.sender == SERVER else '<-'} {_ends([entry.party for entry in group])}",
        f"{sum(entry.units for entry in group):,}",
        f"{sum(entry.bytes for entry in group):,}",
        ", ".join(dict.fromkeys(kind for entry in group for kind in entry.reveals)) or "-",
    )


def _ends(names: list[str]) -> str:
    return names[0] if len(set(names)) == 1 else f"{len(set(names)):,} parties"
