"""What was sent: rounds, and bytes by phase and party."""

from typing import Any

from colonnade.ledger import HEADER, Ledger
from colonnade.number_words import count, in_bytes, per_cent
from colonnade.report import figures
from colonnade.report.sections import Section, Shown
from colonnade.report.tables import Table, name, number, table, text
from colonnade.run import Run

ALL_MESSAGES = "All messages are in ledger.json in the run's folder, and in run.ledger."
ALL_PARTIES = "All are in run.ledger.by_party()."


def rounds_section(run: Run[Any]) -> Section:
    """Show the rounds as a sequence of messages."""
    ledger = run.ledger
    words = (
        "In each round the server sends each party one request, and each answers once. "
        f"{count(len(ledger))} messages in {count(ledger.n_rounds)} rounds, {in_bytes(ledger.bytes)} in all.",
    )
    return Section("rounds", "Rounds", words, (Shown(figures.rounds(ledger), _messages(ledger)),))


def bytes_section(run: Run[Any]) -> Section:
    """Show who sent how much, and for what."""
    ledger = run.ledger
    largest = max(ledger.by_phase().items(), key=lambda each: each[1].bytes, default=None)
    words: tuple[str, ...] = ()
    if largest is not None and ledger.bytes:
        words = (
            f"Most was sent in the phase {name(largest[0])}: {per_cent(largest[1].bytes / ledger.bytes)} of all bytes.",
        )
    tables = (_sums("Bytes by party", "party", ledger), _sums("Bytes by phase", "phase", ledger))
    return Section(
        "bytes", "Bytes by phase and party", words, (Shown(figures.bytes_by_phase_and_party(ledger)),), tables
    )


def _sums(caption: str, by: str, ledger: Ledger) -> Table:
    sums = ledger.by_party() if by == "party" else ledger.by_phase()
    lines = [
        (
            text(key),
            number(each.messages, count(each.messages)),
            number(each.units, count(each.units)),
            number(each.bytes, in_bytes(each.bytes)),
            number(each.bytes, per_cent(each.bytes / max(ledger.bytes, 1))),
        )
        for key, each in sums.items()
    ]
    return table(caption, (by, "messages", "numbers", "bytes", "share"), lines, all_of_it=ALL_PARTIES)


def _messages(ledger: Ledger) -> Table:
    lines = [
        (
            text(phase),
            text(rounds),
            text(kind),
            text(ends.replace("->", "to").replace("<-", "from")),
            number(_plain(units), units),
            number(_plain(sent), in_bytes(_plain(sent))),
            text(reveals),
        )
        for phase, rounds, kind, ends, units, sent, reveals in ledger.lines()
    ]
    head = [{"units": "numbers"}.get(each, each) for each in HEADER]
    return table("Messages, by kind", head, lines, all_of_it=ALL_MESSAGES)


def _plain(written: str) -> float:
    return float(written.replace(",", ""))
