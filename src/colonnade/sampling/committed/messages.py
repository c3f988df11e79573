"""What committed draws tell, what a commitment hashes, and what parties sign."""

from typing import Annotated, ClassVar

import msgspec

from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals
from colonnade.protocol.codec import wire_bytes
from colonnade.sampling.committed.joint_seed import PROTOCOL
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.signing import digest


class Commitment(Message, frozen=True):
    """The root of the tree of the party's scores, their total in steps, and the digest of its contribution; signed."""

    phase: ClassVar[str] = "sampling"

    root: Annotated[bytes, Reveals.NOTHING]
    total: Annotated[int, Reveals.TOTALS]
    contribution_digest: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]


class AskCommitment(Message, frozen=True):
    """Opens the phase: score your rows by this rule, commit to them. With the digest of the server's contribution."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Commitment

    rule: Annotated[IntegerScores, Reveals.NOTHING]
    contribution_digest: Annotated[bytes, Reveals.NOTHING]


class Contribution(Message, frozen=True):
    """What the party adds to the joint seed: what its signed digest is of."""

    phase: ClassVar[str] = "sampling"

    value: Annotated[bytes, Reveals.NOTHING]


class PartyCommitment(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Digests of a party's commitment, in which its total is hidden, and of its contribution; its signature on both."""

    commitment: bytes
    contribution_digest: bytes
    signature: bytes


class AskContribution(Message, frozen=True):
    """What every party committed to, in the order of their names: nobody can change it any more."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Contribution

    parties: Annotated[tuple[PartyCommitment, ...], Reveals.NOTHING]


class CommittedRows(Message, frozen=True):
    """S^(j), the rows the party drew; signed together with the joint seed, and the rows that it draws evenly."""

    phase: ClassVar[str] = "sampling"

    rows: Annotated[Rows, Reveals.ROW_IDS]
    signature: Annotated[bytes, Reveals.NOTHING]


class DrawCommitted(Message, frozen=True):
    """a_j, how many rows this party draws, how many are drawn evenly, and all contributions: the server's first."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = CommittedRows

    count: Annotated[int, Reveals.TOTALS]
    n_even: Annotated[int, Reveals.NOTHING]
    server: Annotated[bytes, Reveals.NOTHING]
    parties: Annotated[tuple[bytes, ...], Reveals.NOTHING]


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
    total = str(commitment.total).encode()
    return digest(PROTOCOL, b"commitment", name.encode(), commitment.root, total, commitment.contribution_digest)


def commitment_statement(
    party: str, sheet: bytes, asked: AskCommitment, commitment: bytes, contribution_digest: bytes
) -> bytes:
    """Give the text a party signs to say: in this job, asked this, I committed to that."""
    return digest(PROTOCOL, b"signed", sheet, party.encode(), wire_bytes(asked), commitment, contribution_digest)
