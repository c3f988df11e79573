"""What a spot check of committed draws asks for: all parties open the same rows."""

import msgspec
import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.coreset import Coreset, Evidence, OpenedRow
from colonnade.kernels.arrays import Rows
from colonnade.messages import sendable_rows
from colonnade.privacy.sum_tree import depth, unpack_openings
from colonnade.protocol import checks
from colonnade.sampling.committed.messages import AskOpenings, Openings
from colonnade.sampling.rules.integers import IntegerScores


def open_rows(roster: Roster, rule: IntegerScores, evidence: Evidence, rows: Rows) -> Script[Evidence]:
    """Ask all parties to open the same rows: ascending ids, each once. What they show is not yet compared."""
    inbox = yield dict.fromkeys(roster.names, AskOpenings(rule, evidence.contribution_digest, sendable_rows(rows)))
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


def rows_to_open(coreset: Coreset, evidence: Evidence, count: int | None, rng: np.random.Generator) -> Rows:
    """Choose rows among each party's draws, and among those drawn evenly, `count` of each, or all."""
    drawn = [np.array(each.rows, np.int64) for each in evidence.parties.values()]
    # As often as a row is in the coreset and nobody drew it, it was drawn evenly.
    rows, counts = np.unique(coreset.rows, return_counts=True)
    taken = np.sort(np.concatenate(drawn))
    even = rows[counts > np.searchsorted(taken, rows, "right") - np.searchsorted(taken, rows)]
    return np.unique(np.concatenate([_some(np.unique(rows), count, rng) for rows in (*drawn, even)]))


def _some(rows: Rows, count: int | None, rng: np.random.Generator) -> Rows:
    return rows if count is None or count >= len(rows) else rng.choice(rows, size=count, replace=False)
