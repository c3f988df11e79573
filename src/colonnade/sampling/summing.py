"""Round 3 of Algorithm 1 in the clear: each party tells its scores of the drawn rows, the server adds them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Exchanged, Roster, Script
from colonnade.kernels.arrays import Floats, Rows
from colonnade.ledger import SERVER
from colonnade.messages import MIN_MAGNITUDE, Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState

# The step this phase starts from: the party has drawn its share of the rows.
DRAWN = "drawn"


class Scores(Message, frozen=True):
    """G^(j), the party's scores of the rows in S (line 7)."""

    phase: ClassVar[str] = "summing"

    scores: Annotated[Floats, Reveals.SCORES]


class AskScores(Message, frozen=True):
    """S, the rows that all parties drew together (line 6)."""

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = Scores

    rows: Annotated[Rows, Reveals.ROW_IDS]


def sum_in_the_clear(roster: Roster, rows: Rows, exchanged: Exchanged) -> Script[Floats]:  # noqa: ARG001
    """Sum the scores of some rows over the parties.

    Parameters
    ----------
    roster : Roster
        The parties.
    rows : ndarray of int64, shape (m,)
        S.
    exchanged : mapping of str to sequence of Message
        Not used: nothing is signed.

    Returns
    -------
    ndarray of float64, shape (m,)
        g_i for each i in S, positive.
    """
    inbox = yield {party: AskScores(rows) for party in roster.names}
    return _add(checks.replies(inbox, Scores), len(rows))


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
    checks.row_ids(SERVER, request, request.rows, data.table.n_rows)
    scores = data.scores(state.rule)[request.rows]
    return replace(state, rows=request.rows), Scores(sendable_floats(scores))


HANDLERS = (Handler(AskScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),)
