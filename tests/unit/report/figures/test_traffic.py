import pytest

from colonnade.ledger import Entry, Ledger
from colonnade.report.figures.traffic import bytes_by_phase_and_party, party_bytes
from drawings import drawings, shapes, texts


def sent(phase: str, party: str, weighs: int) -> Entry:
    return Entry(phase, 1, party, "server", "Columns", 1, weighs, ())


def received(phase: str, party: str, weighs: int) -> Entry:
    return Entry(phase, 1, "server", party, "Ask", 1, weighs, ())


def test_bars_add_up_to_the_ledger() -> None:
    ledger = Ledger([sent("a", f"party {i}", 100 + i) for i in range(30)] + [received("b", "party 3", 7)])
    bars = party_bytes(ledger)
    assert sum(bar.bytes for bar in bars) == ledger.bytes
    assert [bar.bytes for bar in bars[:-1]] == sorted((bar.bytes for bar in bars[:-1]), reverse=True)
    assert (bars[-1].name, bars[-1].n_parties) == ("22 others, mean", 22)
    assert sum(bar.n_parties for bar in bars) == 30


def test_others_are_shown_by_their_mean() -> None:
    ledger = Ledger([sent("a", f"party {i}", 2000 if i < 8 else 1000) for i in range(20)])
    shown = texts(drawings(bytes_by_phase_and_party(ledger))[0])
    assert shown.count("2.0 kB to the server") == 8
    assert shown.count("1.0 kB to the server") == 1


def test_lengths_are_as_bytes() -> None:
    ledger = Ledger([sent("a", "one", 8000), sent("a", "two", 2000), received("a", "one", 4000)])
    for drawing in drawings(bytes_by_phase_and_party(ledger)):
        _, *bars = shapes(drawing, "fig-f-series-1")
        lengths = [max(x for x, _ in bar) - min(x for x, _ in bar) for bar in bars]
        assert lengths == pytest.approx([lengths[0], lengths[0] / 2, lengths[0] / 4], abs=0.03)


def test_small_phases_are_told_together() -> None:
    ledger = Ledger([sent("large", "one", 100_000), sent("tiny", "one", 9), sent("small", "one", 11)])
    assert texts(drawings(bytes_by_phase_and_party(ledger))[0])[:2] == [
        "large \u00b7 100 kB",
        "tiny, small \u00b7 20 bytes",
    ]


def test_words_name_who_sends_most() -> None:
    words = bytes_by_phase_and_party(Ledger([sent("a", "one", 750), received("a", "two", 250)])).description
    assert words.startswith(
        "1.0 kB in all: 750 bytes to the server, 250 bytes from it. The most with one: 750 bytes (75.0 %)"
    )
