"""Who a party is to the other parties: what a session needs to take part in a secure phase."""

from typing import Protocol


class Identity(Protocol):
    """Who a party is to the other parties, and where its secrets come from."""

    @property
    def name(self) -> str:
        """The party's name."""

    @property
    def parties(self) -> tuple[str, ...]:
        """Whom its owner lets it take part with, itself included, in the order of their names."""

    def fresh(self, count: int) -> bytes:
        """Draw so many secret bytes, never from a run's seed."""

    def derived(self, context: bytes) -> bytes:
        """Derive 32 secret bytes that are the same whenever it is asked for the same, also after a restart."""

    def contribution(self, request: bytes, run_nonce: bytes) -> bytes:
        """Derive 32 bytes to add to a joint seed: the same again in this run, others in any other, and nobody can tell.

        A rehearsal leaves out the run's nonce, so that all its runs contribute alike.
        """

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement as this party."""

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether one of these parties signed this statement."""
