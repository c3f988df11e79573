"""A log as a table, for people with a spreadsheet."""

import csv
import io

from colonnade.node.log_export import COLUMNS, OTHER, log_csv

EVENTS = [
    {"line": 1, "time": "now", "event": "answered", "reveals": ["features", "labels"], "rows": 100, "before": "0" * 64},
    {
        "line": 2,
        "event": "run ended",
        "reason": '=HYPERLINK("http://evil.example")',
        "left": {"rows": 5},
        "status": "failed",
    },
    {"line": 3, "event": "owner decided", "approved": False, "by": "the owner", "reason": "two\nlines, and a comma"},
]


def test_every_event_is_a_row_and_nothing_is_lost() -> None:
    answered, ended, decided = csv.DictReader(io.StringIO(log_csv(EVENTS)))
    assert list(answered) == [*COLUMNS, OTHER]
    assert (answered["reveals"], answered["rows"], answered[OTHER]) == ("features; labels", "100", "")
    assert (ended["left"], ended["status"]) == ('{"rows":5}', "failed")
    assert (decided["reason"], decided[OTHER]) == ("two\nlines, and a comma", '{"approved":false,"by":"the owner"}')


def test_what_a_server_says_is_no_formula() -> None:
    assert next(row for row in csv.reader(io.StringIO(log_csv(EVENTS))) if row[2] == "run ended")[
        COLUMNS.index("reason")
    ].startswith("'=HYPERLINK")
