"""Who a party is to the other parties: what a session needs to take part in a secure phase."""

from typing import Protocol


class Pair(Protocol):
    """A key of one secret, to agree on others with: its public part, and what it agrees on."""

    @property
    def public(self) -> bytes:
        """What others are told: 32 bytes."""

    def agreed(self, their_key: bytes) -> bytes:
        """Agree on 32 bytes with whoever holds the secret of `their_key`."""


class Identity(Protocol):
    """Who a party is to the other parties, and where its secrets come from."""

    @property
    def name(self) -> str:
        """The party's name."""

    @property
    def parties(self) -> tuple[str, ...]:
        """Whom its owner lets it take part with, itself included, in the order of their names."""

    def now(self) -> "Identity":
        """Give it as it is now, to answer one request by: what changes meanwhile counts from the next one on."""

    def fresh(self, count: int) -> bytes:
        """Draw so many secret bytes, never from a run's seed."""

    def derived(self, context: bytes) -> bytes:
        """Derive 32 secret bytes that are the same whenever it is asked for the same, also after a restart."""

    def pair(self, secret: bytes) -> Pair:
        """Make a key of 32 secret bytes, to agree on secrets with these parties."""

    def contribution(self, request: bytes, run_nonce: bytes) -> bytes:
        """Derive 32 bytes to add to a joint seed: the same again in this run, others in any other, and nobody can tell.

        A rehearsal leaves out the run's nonce, so that all its runs contribute alike.
        """

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement as this party: 64 bytes."""

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether one of these parties signed this statement."""
