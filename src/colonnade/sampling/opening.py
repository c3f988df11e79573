"""A spot check of committed draws: all parties open the same rows. Messages and script."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Evidence, OpenedRow
from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.privacy.sum_tree import depth, unpack_openings
from colonnade.protocol import checks
from colonnade.sampling.integers import IntegerScores


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
    """Open these rows of what was committed to when the server sent this rule and this seal."""

    phase: ClassVar[str] = "auditing"
    reply: ClassVar[type[Message]] = Openings

    rule: Annotated[IntegerScores, Reveals.NOTHING]
    seal: Annotated[bytes, Reveals.NOTHING]
    rows: Annotated[Rows, Reveals.ROW_IDS]


def open_rows(roster: Roster, rule: IntegerScores, evidence: Evidence, rows: Rows) -> Script[Evidence]:
    """Ask all parties to open the same rows.

    Parameters
    ----------
    roster : Roster
        The parties.
    rule : IntegerScores
        What they committed to.
    evidence : Evidence
        Of the run.
    rows : ndarray of int64, shape (k,)
        Which, ascending, each once.

    Returns
    -------
    Evidence
        With what was shown; it is not yet compared with anything.
    """
    inbox = yield dict.fromkeys(roster.names, AskOpenings(rule, evidence.seal, sendable_rows(rows)))
    parties = {}
    for party, reply in checks.replies(inbox, Openings).items():
        levels = depth(roster.n_rows)
        openings = unpack_openings(
            reply.scores.tolist(), reply.salts, reply.hashes, reply.sums.ravel().tolist(), levels
        )
        if openings is None or len(openings) != len(rows):
            raise checks.wrong(party, reply, f"something else than {len(rows)} openings of {levels} levels")
        shown = {
            row: OpenedRow(each.number, each.salt, each.hashes, each.sums)
            for row, each in zip(rows.tolist(), openings, strict=True)
        }
        ours = evidence.parties[party]
        parties[party] = msgspec.structs.replace(ours, opened={**ours.opened, **shown})
    return msgspec.structs.replace(evidence, parties=parties)


def rows_to_open(evidence: Evidence, count: int | None, rng: np.random.Generator) -> Rows:
    """Choose rows among each party's draws, `count` of each, or all."""
    chosen = [_some(np.unique(np.array(each.rows, np.int64)), count, rng) for each in evidence.parties.values()]
    return np.unique(np.concatenate(chosen))


def _some(rows: Rows, count: int | None, rng: np.random.Generator) -> Rows:
    return rows if count is None or count >= len(rows) else rng.choice(rows, size=count, replace=False)
