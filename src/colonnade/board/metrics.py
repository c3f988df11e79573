"""What a board counts, as Prometheus reads it; nothing that a party told."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from colonnade.errors import UnsupportedError
from colonnade.node.runs import ServerStatus


def server_metrics(status: ServerStatus, parties: Sequence[str], waiting: int, *, is_up: bool) -> bytes:
    """Count a server's runs, bytes and parties."""
    sheet = _Sheet()
    sheet.put("server_up", "Whether the server is running.", {(): int(is_up)})
    runs = Counter(run.status for run in status.runs)
    sheet.put(
        "runs", "Runs by status, of the last hundred.", {(each,): count for each, count in runs.items()}, "status"
    )
    sheet.put("rounds", "Rounds of the last hundred runs.", {(): sum(run.round for run in status.runs)})
    counts: Counter[tuple[str, ...]] = Counter()
    for run in status.runs:
        counts.update({(party, "sent"): count for party, count in run.bytes_sent.items()})
        counts.update({(party, "received"): count for party, count in run.bytes_received.items()})
    sheet.put("bytes", "Bytes by party, of the last hundred runs.", counts, "party", "direction")
    here = set(status.connected) if is_up else set()
    there = {(party,): int(party in here) for party in parties}
    sheet.put("party_connected", "Whether a party is connected.", there, "party")
    asked = len(status.owners_asked) if is_up else 0
    sheet.put("approvals_pending", "Parties whose owner is asked to approve.", {(): asked})
    sheet.put("queue_waiting", "Jobs that wait in the queue.", {(): waiting})
    return sheet.text()


def party_metrics(counts: Mapping[str, int], left: Mapping[str, int], pending: int, *, is_up: bool) -> bytes:
    """Count a party's answers and what is left of the day's amounts."""
    sheet = _Sheet()
    sheet.put("party_up", "Whether the party is running.", {(): int(is_up)})
    events = {(each,): count for each, count in counts.items()}
    sheet.put("events", "Requests answered and refused, of the last events of the log.", events, "event")
    amounts = {(each,): count for each, count in left.items()}
    sheet.put("left_today", "What is left of the day's amounts.", amounts, "amount")
    sheet.put("approvals_pending", "Jobs that wait for the owner.", {(): pending})
    return sheet.text()


class _Sheet:
    """Gauges of one moment: each look makes them anew, so nothing is kept here."""

    def __init__(self) -> None:
        try:
            import prometheus_client
        except ImportError as error:
            raise UnsupportedError(
                f"Metrics need prometheus-client: {error}. Run pip install 'colonnade[metrics]'."
            ) from error
        self._library: Any = prometheus_client
        self._registry = prometheus_client.CollectorRegistry()

    def put(self, name: str, words: str, values: Mapping[Any, int], *labels: str) -> None:
        """Add one gauge, with a value for each tuple of its labels."""
        gauge = self._library.Gauge(f"colonnade_{name}", words, labels, registry=self._registry)
        for key, value in values.items():
            (gauge.labels(*key) if labels else gauge).set(value)

    def text(self) -> bytes:
        """Give all of it."""
        return bytes(self._library.generate_latest(self._registry))
