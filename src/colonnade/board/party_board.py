"""A party's board: what its owner sees, and the decisions that the owner writes down."""

from pathlib import Path
from typing import Any

from colonnade.board.app import Acts, Body
from colonnade.board.metrics import party_metrics
from colonnade.board.party_view import PartyView
from colonnade.node.approvals import decide_for_owner, decision_on, pending_jobs
from colonnade.node.state_folder import is_held


class PartyBoard:
    """What the owner of a party's data sees, and may do: approve a run, or refuse it with a reason."""

    def __init__(self, party_file: Path) -> None:
        self._view = PartyView(party_file)

    @property
    def name(self) -> str:
        """What it is a board of."""
        return f"Party {self._view.name}"

    def snapshot(self) -> dict[str, Any]:
        """Put into words what is there now."""
        return self._view.snapshot()

    def acts(self) -> Acts:
        """Give what can be done, by name."""
        return {"decide": self._decide}

    def report(self, run: str) -> str | None:  # noqa: ARG002  # a board's
        """Give none: results are at the server."""
        return None

    def metrics(self) -> bytes:
        """Give what is counted."""
        file = self._view.file()
        state = Path(file.state)
        waiting = [job for job in pending_jobs(state) if decision_on(state, job) is None]
        return party_metrics(self._view.counts(), self._view.left(file), len(waiting), is_up=is_held(state))

    def _decide(self, body: Body) -> str:
        state = Path(self._view.file().state)
        decision = decide_for_owner(state, body.run, is_approved=body.approve, reason=body.reason, digest=body.digest)
        later = "" if is_held(state) else " The party is not running; it answers when it is started."
        return f"Run {body.run}: {'approved' if decision.is_approved else 'refused'}.{later}"
