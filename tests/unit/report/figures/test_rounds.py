import numpy as np
import pytest

import colonnade as cn
from colonnade.ledger import Entry, Ledger
from colonnade.number_words import in_bytes
from colonnade.report.figures.rounds import MOST_ARROWS, arrows, rounds
from drawings import drawings, marks, texts


def ledger(n_parties: int, n_rounds: int, *, n_phases: int = 1) -> Ledger:
    return Ledger(
        [
            Entry(f"phase {phase}", number, sender, receiver, kind, 1, weighs + number, ())
            for phase in range(n_phases)
            for number in range(phase * n_rounds + 1, (phase + 1) * n_rounds + 1)
            for sender_first, kind, weighs in ((True, "Ask", 20), (False, "Reply", 1000))
            for party in (f"party {i}" for i in range(n_parties))
            for sender, receiver in [("server", party) if sender_first else (party, "server")]
        ]
    )


def test_arrows_have_all_bytes_of_a_real_run() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    federation = cn.Federation(cn.split_columns(X, X.sum(axis=1), [2, 2, 2]))
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=50))
    found = arrows(run.ledger)
    assert sum(arrow.bytes for arrow in found) == run.ledger.bytes
    for name, totals in run.ledger.by_party().items():
        assert sum(arrow.parties.get(name, 0) for arrow in found) == totals.bytes
    for drawing in drawings(rounds(run.ledger)):
        shown = texts(drawing)
        assert all(f"{arrow.kind} \u00b7 {in_bytes(arrow.bytes)}" in shown for arrow in found)
        assert set(run.ledger.by_phase()) <= set(shown)


def test_rounds_that_repeat_are_one_arrow() -> None:
    found = arrows(ledger(2, 101))
    assert [(arrow.kind, arrow.first, arrow.last) for arrow in found] == [("Ask", 1, 101), ("Reply", 1, 101)]
    (wide, narrow) = drawings(rounds(ledger(2, 101)))
    assert "1\u2013101" in texts(wide)
    assert "1\u2013101" in texts(narrow)


def test_another_run_begins_arrows_of_its_own() -> None:
    twice = Ledger([*ledger(1, 2), *ledger(1, 2)])
    assert [(arrow.first, arrow.last) for arrow in arrows(twice)] == [(1, 2)] * 4


@pytest.mark.parametrize(("n_parties", "lanes_wide", "lanes_narrow"), [(3, 3, 3), (6, 6, 1), (7, 1, 1), (50, 1, 1)])
def test_many_parties_share_a_lane(n_parties: int, lanes_wide: int, lanes_narrow: int) -> None:
    for drawing, lanes in zip(drawings(rounds(ledger(n_parties, 1))), (lanes_wide, lanes_narrow), strict=True):
        assert (f"{n_parties} parties" in texts(drawing)) == (lanes == 1)
        # Each lane that replies has a mark.
        assert len(marks(drawing, "fig-f-series-1")) == lanes


def test_of_some_parties_of_a_lane_it_is_said_how_many() -> None:
    some = Ledger([*ledger(9, 1), Entry("after", 2, "party 3", "server", "Late", 1, 500, ())])
    assert "Late \u00b7 500 bytes, 1 party" in texts(drawings(rounds(some))[0])


def test_what_is_too_much_to_draw_is_summed_up_in_words() -> None:
    many = ledger(2, 1, n_phases=20)
    rest = arrows(many)[MOST_ARROWS:]
    words = f"and 16 more kinds of messages: {in_bytes(sum(arrow.bytes for arrow in rest))}"
    for drawing in drawings(rounds(many)):
        assert words in texts(drawing)
        assert sum(" \u00b7 " in text for text in texts(drawing)) == MOST_ARROWS


def test_a_server_that_a_party_runs_is_named_with_it() -> None:
    told = Ledger(ledger(2, 1), run_by="party 1")
    assert "server (party 1)" in texts(drawings(rounds(told))[0])


def test_words_tell_both_ways_apart() -> None:
    words = rounds(ledger(2, 1)).description
    assert words.startswith(
        "4 messages between the server and 2 parties, 2.0 kB: 2.0 kB to the server, 42 bytes from it."
    )
