import json

import numpy as np

import colonnade as cn
from colonnade.ledger import Entry, Ledger, Totals

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
