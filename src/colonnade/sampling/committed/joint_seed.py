"""The joint seed of a committed draw: how contributions are committed to, how they make one seed, and what it decides.

Scores are committed to together with contributions, before any of these is told, so the seed need not depend on them.
"""

from collections.abc import Sequence

from colonnade.coreset import Evidence
from colonnade.kernels.arrays import Rows
from colonnade.kernels.integer_draws import count_even, shares
from colonnade.signing import digest, rows_digest

# In every hashed text, so that none of another protocol, or of another version, can take its place. The words beside it
# ("seal") belong to this version, and stay with it.
PROTOCOL = b"colonnade committed draw 1"


def contribution_digest(name: str, contribution: bytes) -> bytes:
    """Commit to a contribution before it is told: hash it; it is 32 bytes that nobody guesses."""
    return digest(PROTOCOL, b"seal", name.encode(), contribution)


def joint_key(server: bytes, contributions: Sequence[bytes]) -> bytes:
    """Make the joint seed of all contributions: the server's, and the parties' in the order of their names."""
    return digest(PROTOCOL, b"joint", server, *contributions)


def key_of(evidence: Evidence) -> bytes:
    """Make the joint seed again."""
    return joint_key(evidence.contribution, [evidence.parties[name].contribution for name in sorted(evidence.parties)])


def quotas_of(key: bytes, totals: Sequence[int], size: int, even_share: float) -> tuple[int, Rows]:
    """Draw how many rows are drawn evenly, and how many by each party."""
    n_even = even_count_of(key, size, even_share)
    return n_even, shares(totals, size - n_even, digest(key, b"quotas"))


def even_count_of(key: bytes, size: int, even_share: float) -> int:
    """Draw how many rows are drawn evenly."""
    return count_even(even_share, size, digest(key, b"how many evenly"))


def joint_draw_statement(party: str, sheet: bytes, key: bytes, rows: Rows, even: Rows) -> bytes:
    """Give the text a party signs to say: in this job, by this seed, I drew these rows; those are drawn evenly."""
    return digest(PROTOCOL, b"drawn", sheet, party.encode(), key, rows_digest(rows), rows_digest(even))


def draw_key(key: bytes, name: str) -> bytes:
    """Derive the key of a party's own draw."""
    return digest(key, b"draw", name.encode())


def even_key(key: bytes) -> bytes:
    """Derive the key of the rows that are drawn evenly."""
    return digest(key, b"evenly")


def total_of(totals: Sequence[int], exponent: int) -> float:
    """Add totals in steps, and give the sum as a number."""
    return sum(totals) / (1 << exponent)
