"""Round 3 of Algorithm 1 in the clear: each party tells its scores of the drawn rows, the server adds them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Roster, Script
from colonnade.kernels.arrays import Floats, Rows
from colonnade.ledger import SERVER
from colonnade.messages import MIN_MAGNITUDE, Message, Reveals, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState

# The step this phase starts from: the party has drawn its share of the rows.
DRAWN = "drawn"


class Scores(Message, frozen=True):
    """G^(j), the party's scores of the rows in S (line 7)."""

    phase: ClassVar[str] = "summing"

    scores: Annotated[Floats, Reveals.SCORES]


class AskScores(Message, frozen=True):
    """S, the rows that all parties drew together (line 6), without those that this party drew: it knows them."""

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = Scores

    others: Annotated[Rows, Reveals.ROW_IDS]
    n_own: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count all of S: what the paper's server sends."""
        return len(self.others) + self.n_own


def sum_in_the_clear(roster: Roster, rows: Rows, drawn: Mapping[str, Rows]) -> Script[Floats]:
    """Sum the scores of some rows over the parties.

    Parameters
    ----------
    roster : Roster
        The parties.
    rows : ndarray of int64, shape (m,)
        S, ascending.
    drawn : mapping of str to ndarray of int64
        S^(j), the part of S that each party drew.

    Returns
    -------
    ndarray of float64, shape (m,)
        g_i for each i in S, positive.
    """
    inbox = yield {party: ask_scores(rows, drawn[party]) for party in roster.names}
    return _add(checks.replies(inbox, Scores), len(rows))


def ask_scores(rows: Rows, own: Rows) -> AskScores:
    """Tell a party the rows of S that it did not draw.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        S, ascending.
    own : ndarray of int64, shape (a,)
        S^(j), ascending, a part of S.

    Returns
    -------
    AskScores
        The request.
    """
    # Of equal rows the party's own come first: the c-th copy of a row that it drew is the c-th copy in S.
    first_copy = np.searchsorted(own, own, side="left")
    places = np.searchsorted(rows, own, side="left") + np.arange(len(own)) - first_copy
    return AskScores(sendable_rows(np.delete(rows, places)), len(own))


def _add(replies: Mapping[str, Scores], size: int) -> Floats:
    for party, reply in replies.items():
        checks.shape(party, reply, reply.scores, (size,))
        checks.non_negative(party, reply, reply.scores)
    total = np.sum([reply.scores for reply in replies.values()], axis=0)
    if (total < MIN_MAGNITUDE).any():
        party, reply = next(iter(replies.items()))
        raise checks.wrong(party, reply, "a score of zero, as every other party, for a row that was drawn")
    return np.asarray(total, dtype=np.float64)


def _answer_scores(state: PartyState, request: AskScores, data: PartyData) -> tuple[PartyState, Message]:
    checks.row_ids(SERVER, request, request.others, data.table.n_rows)
    own = state.selected()
    if request.n_own != len(own):
        raise checks.wrong(SERVER, request, f"{request.n_own} rows of the party's own, which drew {len(own)}")
    rows = sendable_rows(np.sort(np.concatenate([request.others, own]), kind="stable"))
    scores = data.scores(state.rule)[rows]
    return replace(state, rows=rows), Scores(sendable_floats(scores))


HANDLERS = (Handler(AskScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),)
