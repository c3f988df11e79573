"""Round 3 of Algorithm 1 in the clear: each party tells its scores of the drawn rows, the server adds them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import Drawn, Roster, Script
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


def sum_in_the_clear(roster: Roster, drawn: Drawn) -> Script[Floats]:
    """Sum the scores of the drawn rows over the parties.

    Parameters
    ----------
    roster : Roster
        The parties.
    drawn : Drawn
        S, and the part of it that each party drew.

    Returns
    -------
    ndarray of float64, shape (m,)
        g_i for each i in S, positive.
    """
    replies = yield from ask_scores(roster, drawn)
    return add_scores(replies, {party: reply.scores for party, reply in replies.items()})


def ask_scores(roster: Roster, drawn: Drawn) -> Script[Mapping[str, Scores]]:
    """Ask each party for its scores of the drawn rows, and check them one by one."""
    rows, own = drawn.rows, drawn.by_party
    inbox = yield {party: AskScores(others(rows, own[party]), len(own[party])) for party in roster.names}
    replies = checks.replies(inbox, Scores)
    for party, reply in replies.items():
        checks.shape(party, reply, reply.scores, (len(rows),))
        checks.non_negative(party, reply, reply.scores)
    return replies


def others(rows: Rows, own: Rows) -> Rows:
    """List the rows of S that a party did not draw.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        S, ascending.
    own : ndarray of int64, shape (a,)
        S^(j), ascending, a part of S.

    Returns
    -------
    ndarray of int64, shape (m - a,)
        Ascending.
    """
    # Of equal rows the party's own come first: the c-th copy of a row that it drew is the c-th copy in S.
    first_copy = np.searchsorted(own, own, side="left")
    places = np.searchsorted(rows, own, side="left") + np.arange(len(own)) - first_copy
    return sendable_rows(np.delete(rows, places))


def add_scores(replies: Mapping[str, Message], scores: Mapping[str, Floats]) -> Floats:
    """Add up the parties' scores; a row that was drawn has a positive sum.

    Parameters
    ----------
    replies : mapping of str to Message
        What they came in, for the error.
    scores : mapping of str to ndarray of float64, shape (m,)
        Checked one by one.

    Returns
    -------
    ndarray of float64, shape (m,)
        g, positive.
    """
    total = np.sum(list(scores.values()), axis=0)
    if (total < MIN_MAGNITUDE).any():
        party, reply = next(iter(replies.items()))
        raise checks.wrong(party, reply, "a score of zero, as every other party, for a row that was drawn")
    return np.asarray(total, dtype=np.float64)


def all_rows(state: PartyState, request: Message, told: Rows, n_own: int, n_rows: int) -> Rows:
    """Join the rows that a party is told with those that it drew.

    Parameters
    ----------
    state : PartyState
        With the party's own draw.
    request : Message
        From the server, for the error.
    told : ndarray of int64, shape (m - a,)
        What the others drew.
    n_own : int
        How many rows the server believes this party drew.
    n_rows : int
        How many rows there are.

    Returns
    -------
    ndarray of int64, shape (m,)
        S, ascending.
    """
    checks.row_ids(SERVER, request, told, n_rows)
    own = state.selected()
    if n_own != len(own):
        raise checks.wrong(SERVER, request, f"{n_own} rows of the party's own, which drew {len(own)}")
    return sendable_rows(np.sort(np.concatenate([told, own]), kind="stable"))


def _answer_scores(state: PartyState, request: AskScores, data: PartyData) -> tuple[PartyState, Message]:
    rows = all_rows(state, request, request.others, request.n_own, data.table.n_rows)
    return replace(state, rows=rows), Scores(sendable_floats(data.scores(state.rule)[rows]))


HANDLERS = (Handler(AskScores, _answer_scores, after=frozenset({DRAWN}), then=SELECTED),)
