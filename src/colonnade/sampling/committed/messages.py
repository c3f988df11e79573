"""What committed draws tell, and what a commitment hashes."""

from typing import Annotated, ClassVar

import msgspec

from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals
from colonnade.sampling.committed.joint_seed import PROTOCOL
from colonnade.sampling.plain.messages import DrawnRows
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.signing import digest


class Commitment(Message, frozen=True):
    """The root of the tree of the party's scores, their total in steps, and the digest of its contribution."""

    phase: ClassVar[str] = "sampling"
    fresh: ClassVar[bool] = True

    root: Annotated[bytes, Reveals.NOTHING]
    total: Annotated[int, Reveals.TOTALS]
    contribution_digest: Annotated[bytes, Reveals.NOTHING]


class AskCommitment(Message, frozen=True):
    """Opens the phase: score your rows by this rule, commit to them. With the digest of the server's contribution."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Commitment

    rule: Annotated[IntegerScores, Reveals.NOTHING]
    contribution_digest: Annotated[bytes, Reveals.NOTHING]


class Contribution(Message, frozen=True):
    """What the party adds to the joint seed, or nothing where it no longer has it; and how it will know it again."""

    phase: ClassVar[str] = "sampling"
    fresh: ClassVar[bool] = True

    value: Annotated[bytes | None, Reveals.NOTHING]
    proof: Annotated[bytes, Reveals.NOTHING]


class PartyCommitment(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The digest of a party's commitment, which hides its total, and the digest of its contribution."""

    commitment: bytes
    contribution_digest: bytes


class AskContribution(Message, frozen=True):
    """What every party committed to, in the order of their names: nobody can change it any more."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Contribution

    parties: Annotated[tuple[PartyCommitment, ...], Reveals.NOTHING]


class DrawCommitted(Message, frozen=True):
    """a_j, how many rows this party draws, and all contributions: the server's, and the parties' by name.

    With the proof that the party's own is its own.
    """

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    server: Annotated[bytes, Reveals.NOTHING]
    parties: Annotated[tuple[bytes, ...], Reveals.NOTHING]
    proof: Annotated[bytes, Reveals.NOTHING]


class Openings(Message, frozen=True):
    """The committed scores of some rows, in steps, and their ways up in the tree, one after another.

    For each row a salt of 16 bytes; for each row and level of the tree (log2 n, rounded up) a sum, and a hash of 32.
    """

    phase: ClassVar[str] = "auditing"

    scores: Annotated[Rows, Reveals.SCORES]
    sums: Annotated[Rows, Reveals.SCORES]
    salts: Annotated[bytes, Reveals.NOTHING]
    hashes: Annotated[bytes, Reveals.NOTHING]


class AskOpenings(Message, frozen=True):
    """Open these rows of what was committed to when the server sent this rule and this digest."""

    phase: ClassVar[str] = "auditing"
    reply: ClassVar[type[Message]] = Openings

    rule: Annotated[IntegerScores, Reveals.NOTHING]
    contribution_digest: Annotated[bytes, Reveals.NOTHING]
    rows: Annotated[Rows, Reveals.ROW_IDS]


def commitment_of(name: str, commitment: Commitment) -> bytes:
    """Hash what a party committed to; the root's salts hide the total in it."""
    total = commitment.total.to_bytes(8, "little")
    return digest(PROTOCOL, b"commitment", name.encode(), commitment.root, total, commitment.contribution_digest)
