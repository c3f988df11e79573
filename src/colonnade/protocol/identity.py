"""Who a party is to the other parties: what a session needs to take part in a secure phase."""

from typing import Protocol

from colonnade.kernels.masks import Words


class Stretched(Protocol):
    """A secret, stretched to a long line and a large grid of uniform words."""

    def line(self, start: int, count: int) -> Words:
        """Give so many pairs of words of the line, from the pair at a place on."""

    def grid(self, layers: int, rows: range, columns: range) -> Words:
        """Give two words for each place of a part of the grid; shape (layers, 2, n_rows, n_columns)."""


class Pair(Protocol):
    """A key of one secret, to agree on others with: its public part, and what it agrees on."""

    @property
    def public(self) -> bytes:
        """What others are told: 32 bytes."""

    def agreed(self, their_key: bytes) -> bytes:
        """Agree on 32 bytes with whoever holds the secret of `their_key`."""

    def stretched(self, secret: bytes, context: bytes) -> Stretched:
        """Stretch a secret that all parties have, for one purpose."""


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
        """Sign a statement as this party."""

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether one of these parties signed this statement."""
