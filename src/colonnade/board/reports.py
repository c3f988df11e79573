"""The page of a saved run, for a board to show."""

import tempfile
from html import escape
from importlib import import_module
from pathlib import Path

from colonnade.run import Run


def report_page(folder: Path) -> str:
    """Make the report of a saved run: one page that needs nothing else."""
    run = Run.load(folder)
    try:
        write_report = import_module("colonnade.report").write_report
    except ImportError:
        return _plain(run)
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "report.html"
        write_report([run], page)
        return page.read_text(encoding="utf-8")


def _plain(run: "Run[object]") -> str:
    """Show a run as text, where this version makes no pages."""
    model = getattr(run.model, "table", None)
    parts = [repr(run), model() if callable(model) else "", "What was sent:", str(run.ledger)]
    text = escape("\n\n".join(str(part) for part in parts if part))
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>Run</title><pre>{text}</pre></html>"
