import json

import numpy as np
import pytest

import colonnade as cn
from colonnade.ledger import SERVER, Entry, Ledger, Totals
from colonnade.text_tables import n_columns

ENTRIES = [
    Entry("sampling", 1, "server", "airline", "AskTotal", 0, 20, ()),
    Entry("sampling", 1, "server", "weather", "AskTotal", 0, 20, ()),
    Entry("sampling", 1, "airline", "server", "Total", 1, 15, ("totals",)),
    Entry("sampling", 1, "weather", "server", "Total", 1, 15, ("totals",)),
    Entry("solving", 2, "airline", "server", "Columns", 12, 120, ("features", "labels")),
]


def test_totals_by_phase_and_party() -> None:
    ledger = Ledger(ENTRIES)
    assert (ledger.units, ledger.bytes, len(ledger)) == (14, 190, 5)
    assert ledger.by_phase() == {"sampling": Totals(4, 2, 70), "solving": Totals(1, 12, 120)}
    assert ledger.by_party() == {"airline": Totals(3, 13, 155), "weather": Totals(2, 1, 35)}


def test_disclosures_say_who_showed_what_to_whom() -> None:
    assert Ledger(ENTRIES).disclosures() == {
        ("airline", "server"): ("totals", "features", "labels"),
        ("weather", "server"): ("totals",),
    }


def test_json_round_trip() -> None:
    ledger = Ledger(ENTRIES)
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert json.loads(ledger.to_json())[2] == {
        "phase": "sampling",
        "round": 1,
        "sender": "airline",
        "receiver": "server",
        "kind": "Total",
        "units": 1,
        "bytes": 15,
        "reveals": ["totals"],
    }


def test_printed_table_has_one_line_a_round_and_direction() -> None:
    lines = str(Ledger(ENTRIES)).splitlines()
    assert [line.split()[0] for line in lines] == ["phase", "sampling", "sampling", "solving", "total"]
    assert "2 parties" in lines[1]
    assert lines[-1].split() == ["total", "14", "190"]


def test_it_says_what_the_server_sent_and_what_it_was_sent() -> None:
    lines = str(Ledger(ENTRIES)).splitlines()
    assert lines[0].split() == ["phase", "round", "message", "server", "units", "bytes", "reveals"]
    assert ("-> 2 parties" in lines[1], "<- 2 parties" in lines[2], "<- airline" in lines[3]) == (True, True, True)


@pytest.mark.parametrize("name", ["bank", "northern-district-hospital-trust-of-the-lakes", "x" * 150, "病院" * 27])
@pytest.mark.parametrize("amount", [1, 10**9, 10**12])
def test_it_fits_a_terminal_whatever_the_names_and_numbers(name: str, amount: int) -> None:
    shown = ("features", "labels", "moments")
    entries = [
        Entry("certifying", number, name, "server", "AuditedPredictions", amount, amount, shown)
        for number in (1, 2, 1002)
    ]
    text = str(Ledger([*ENTRIES, *entries]))
    assert max(map(n_columns, text.splitlines())) <= 80
    assert f"{3 * amount + 14:,}" in text


def test_runs_are_not_mixed_up() -> None:
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    for _ in range(2):
        federation.coreset(cn.Regression(), cn.UniformSampling(size=4))
    lines = str(federation.ledger).splitlines()
    assert [line.split()[2] for line in lines[1:-1]] == [
        "Hello",
        "Card",
        *2 * ["OpenJob", "JobAccepted", "UseSharedDraw", "Ready"],
    ]
    assert not any("4 parties" in line for line in lines)


def test_an_empty_ledger_prints() -> None:
    assert str(Ledger()).splitlines()[-1].split() == ["total", "0", "0"]


def test_a_runs_ledger_is_its_part_of_the_federations() -> None:
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
    assert federation.ledger.by_phase().keys() == {"hello"}
    first = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=4))
    second = federation.coreset(cn.Regression(), cn.UniformSampling(size=4))
    assert list(federation.ledger)[4:] == [*first.ledger, *second.ledger]


def test_rounds_of_jobs_that_follow_one_another_are_counted_each() -> None:
    entries = [Entry("opening", number, SERVER, "bank", "OpenJob", 0, 10, ()) for number in (1, 1, 2, 1, 2, 2, 3)]
    assert (Ledger(entries).n_rounds, Ledger().n_rounds) == (5, 0)


@pytest.mark.parametrize("field", [{"bytes": 10**400}, {"units": -1}, {"reveals": ["everything"]}])
def test_a_ledger_of_somebody_else_s_making_is_read_without_trust(field: dict[str, object]) -> None:
    entry = {"phase": "p", "round": 1, "sender": "server", "receiver": "a", "kind": "K", "units": 1, "bytes": 1}
    with pytest.raises(ValueError, match=r"."):
        Ledger.from_json(json.dumps([{**entry, "reveals": [], **field}]))
