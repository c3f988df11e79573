"""The terms of a plan: what it may choose between, after what parties' policies leave of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from colonnade.contracts import ClusteringTask, Roster
from colonnade.errors import PolicyRefusedError
from colonnade.ledger import Entry
from colonnade.planning.pilot import all_branches
from colonnade.protocol.caps import Branches
from colonnade.protocol.sheet import OpenJob
from colonnade.tasks import PaperTask


@dataclass(frozen=True)
class Terms:
    """What may be chosen, which party's policy left no more of it, by field, and what was sent to find that out.

    Parties that were `heard` have named all that their policies leave.
    """

    task: PaperTask
    choice: Branches
    limited_by: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Entry, ...] = ()
    heard: frozenset[str] = frozenset()

    @classmethod
    def widest(cls, task: PaperTask, roster: Roster) -> "Terms":
        """Start with all that a planner can do."""
        return cls(task, all_branches(task, roster))

    @property
    def bytes(self) -> int:
        """What refused sheets, and refusals, took."""
        return sum(entry.bytes for entry in self.refused)

    def narrowed(self, refusal: PolicyRefusedError, sent: Iterable[Entry]) -> "Terms":
        """Go on with what a party offers in place of a sheet that it refused; its refusal stands where that is nothing.

        A party is heard once: two that take turns could else send a server round and round.
        """
        entries, ours, offer = tuple(sent), self.choice, refusal.instead
        if any(entry.phase != OpenJob.phase for entry in entries):
            raise refusal
        if not isinstance(offer, Branches) or refusal.party in self.heard:
            raise self._no_plan(refusal) from refusal
        solvers = tuple(kind for kind in ours.solvers if kind in offer.solvers)
        least, most = max(ours.least, offer.least), min(ours.most, offer.most)
        if "compact" not in solvers or least > most:
            raise self._no_plan(refusal) from refusal
        choice = Branches(solvers, least, most, ours.evenly or offer.evenly)
        changed = [name for name in choice.__struct_fields__ if getattr(choice, name) != getattr(ours, name)]
        limited_by = {**self.limited_by, **dict.fromkeys(changed, refusal.party)}
        return Terms(self.task, choice, limited_by, (*self.refused, *entries), self.heard | {refusal.party})

    def _no_plan(self, refusal: PolicyRefusedError) -> PolicyRefusedError:
        secure = "SecureLloyd()" if isinstance(self.task, ClusteringTask) else "SecureGram()"
        return PolicyRefusedError(
            f"No plan is possible. {refusal} A pilot shows some rows, and sums over all rows. Without a plan, name "
            f"a sampler and a solver that the policy allows: {secure} shows only sums of rows, Central() only rows.",
            party=refusal.party,
        )
