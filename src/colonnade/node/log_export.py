"""A party's log for people who read tables: one row an event, as CSV."""

import csv
import io
from collections.abc import Iterable
from typing import Any

import msgspec

# What most events have; the rest of an event goes into the last column, as JSON.
COLUMNS = (
    *(
        "line",
        "time",
        "event",
        "run",
        "server",
        "verb",
        "task",
        "sampler",
        "solver",
        "size",
        "sheet",
        "table",
        "number",
    ),
    *("request", "reply", "reveals", "rows", "row_ids", "numbers", "moments", "units", "bytes", "cause", "status"),
    *("reason", "left", "signed", "signature_digest"),
)
OTHER = "other"
# What holds the chain together, and stays in the log itself.
CHAIN = ("before",)
# A spreadsheet takes what begins so for a formula, and reasons come from others.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def log_csv(events: Iterable[dict[str, Any]]) -> str:
    """Write events as CSV, with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, OTHER))
    for facts in events:
        other = {name: value for name, value in facts.items() if name not in (*COLUMNS, *CHAIN)}
        writer.writerow([*(_cell(facts.get(name)) for name in COLUMNS), _cell(other or None)])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "; ".join(map(str, value))
    words = msgspec.json.encode(value).decode() if isinstance(value, dict | bool) else str(value)
    return f"'{words}" if isinstance(value, str) and words.startswith(FORMULAS) else words
