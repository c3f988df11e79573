"""The disclosure sheet: who learned what about whom, in words that need no statistics. Made from a ledger alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from textwrap import fill

import msgspec

from colonnade.cells import html_table
from colonnade.ledger import SERVER, Ledger, aligned
from colonnade.messages import Reveals

OTHERS = "the other parties"
# The worst first. The only place where kinds of disclosure are put into words.
MEANINGS = {
    Reveals.KEYS: "what identifies its rows, all of them",
    Reveals.FEATURES: "values of its columns for single rows: raw, rounded, averaged, or in a basis that it keeps",
    Reveals.LABELS: "labels of single rows: raw, or less what a model predicts",
    Reveals.ROW_WEIGHTS: "the weight of every row",
    Reveals.PREDICTIONS: "what a model says of single rows, or the part of it that its columns make",
    Reveals.SCORES: "how unusual single rows are in its columns, or how far apart they are",
    Reveals.MODEL: "the part of the model that belongs to its columns",
    Reveals.MOMENTS: "means and spreads of its columns, and how they vary together",
    Reveals.SCORE_SUMS: "how unusual single rows are to all parties together; no party's own part of it",
    Reveals.MATCHES: "how many rows it has, and which of them, by numbers, others have too; no key",
    Reveals.LEVELS: "which values its columns of categories have, and what was made of them",
    Reveals.ROW_IDS: "which rows were drawn or set aside: unusual ones are drawn more often",
    Reveals.TOTALS: "one number about all its rows, such as how many independent columns it has",
    Reveals.SCHEMA: "names of columns, the number of rows, a digest of the keys, whether the table changed",
}
RAW = (Reveals.FEATURES, Reveals.LABELS)
LIMITS = (
    "Each line is what messages say. What follows from several of them is not listed: of two parties each can "
    "subtract its own part from a sum; runs on the same rows can be compared; rows that are drawn often are unusual."
)


class DisclosureLine(msgspec.Struct, frozen=True):
    """One thing that somebody learned.

    Parameters
    ----------
    who, about : str
        A party's name, "server" (with the party that runs it, if one does), or "the other parties", where the server
        told what came from them.
    what : str
        The kind of disclosure, as in the ledger.
    meaning : str
        The same in plain words.
    numbers : int
        At most so many, in all messages of these kinds: those that tell this, not what else is in them.
    messages : tuple of str
        The kinds of messages that told it.
    """

    who: str
    about: str
    what: str
    meaning: str
    numbers: int
    messages: tuple[str, ...]


@dataclass(frozen=True)
class Disclosure:
    """The disclosure sheet of a run. Printed, it is a table; it names no value.

    Parameters
    ----------
    lines : tuple of DisclosureLine
        The worst first.
    planned : bool
        Whether it is of a run that was only rehearsed: then numbers are not known.
    """

    lines: tuple[DisclosureLine, ...]
    planned: bool = False

    @classmethod
    def of(cls, ledger: Ledger, *, planned: bool = False) -> "Disclosure":
        """Read the ledger of a run, of a federation, or of a rehearsal, which is only planned."""
        numbers: dict[tuple[str, str, str], int] = {}
        messages: dict[tuple[str, str, str], dict[str, None]] = {}
        server = SERVER if ledger.run_by is None else f"{SERVER} ({ledger.run_by})"
        for entry in ledger:
            about = OTHERS if entry.sender == SERVER else entry.sender
            # Of an earlier version it is only known that there were no more than in the whole message.
            for what, count in zip(entry.reveals, entry.numbers or repeat(entry.units), strict=False):
                told = (server if entry.receiver == SERVER else entry.receiver, about, what)
                numbers[told] = numbers.get(told, 0) + count
                messages.setdefault(told, {})[entry.kind] = None
        severity = {str(kind): place for place, kind in enumerate(MEANINGS)}
        worst_first = sorted(numbers, key=lambda told: severity[told[2]])
        return cls(
            tuple(
                DisclosureLine(*told, MEANINGS[Reveals(told[2])], numbers[told], tuple(messages[told]))
                for told in worst_first
            ),
            planned,
        )

    @property
    def raw(self) -> tuple[DisclosureLine, ...]:
        """What was learned of single rows' features and labels."""
        return tuple(line for line in self.lines if line.what in RAW)

    @property
    def headline(self) -> str:
        """One sentence: whether features or labels of single rows were shown, whose, and to whom."""
        verb = "would be" if self.planned else "was"
        if not self.raw:
            return f"Nobody {verb} shown features or labels of any row."
        shown = [
            f"to {_listed(line.who for line in group)} {group[0].what} of {_listed(line.about for line in group)}"
            for group in _groups(self.raw)
        ]
        verb = "would be" if self.planned else "were"
        return f"Features or labels of single rows {verb} shown: {'; '.join(shown)}."

    def to_json(self) -> str:
        """Write the headline and the lines as a JSON object."""
        return msgspec.json.encode({"headline": self.headline, "lines": self.lines}).decode()

    def __str__(self) -> str:
        """Lay out the headline, a table with one line a kind and direction, and what the words mean."""
        if not self.lines:
            return f"Nobody {'would learn' if self.planned else 'learned'} anything about anybody's data."
        table = aligned(self._cells(), numbers=() if self.planned else {3})
        words = dict.fromkeys(line.what for line in self.lines)
        meanings = "\n".join(fill(f"{what}: {MEANINGS[Reveals(what)]}", 100, subsequent_indent="  ") for what in words)
        return f"{self.headline}\n\n{table}\n\nWhere\n{meanings}\n\n{fill(LIMITS, 100)}"

    def _repr_html_(self) -> str:
        head, *lines = self._cells()
        words = dict.fromkeys(line.what for line in self.lines)
        meanings = [f"{what}: {MEANINGS[Reveals(what)]}" for what in words]
        return html_table(self.headline, head, lines, () if self.planned else {3}, [*meanings, LIMITS])

    def _cells(self) -> list[list[str]]:
        header = ("who learns" if self.planned else "who learned", "about whom", "what", "numbers, at most", "told in")
        columns = [0, 1, 2, 4] if self.planned else [0, 1, 2, 3, 4]
        return [[line[column] for column in columns] for line in [header, *map(_row, _groups(self.lines))]]


def _groups(lines: Iterable[DisclosureLine]) -> list[list[DisclosureLine]]:
    """Put together what the server learned of one kind, and what parties did."""
    groups: dict[tuple[str, bool], list[DisclosureLine]] = {}
    for line in lines:
        groups.setdefault((line.what, _is_server(line.who)), []).append(line)
    return list(groups.values())


def _is_server(who: str) -> bool:
    return who == SERVER or who.startswith(f"{SERVER} (")


def _row(group: list[DisclosureLine]) -> tuple[str, ...]:
    return (
        _listed(line.who for line in group),
        _listed(line.about for line in group),
        group[0].what,
        f"{sum(line.numbers for line in group):,}",
        _listed(kind for line in group for kind in line.messages),
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
