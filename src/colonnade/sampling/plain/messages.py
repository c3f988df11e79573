"""What Algorithm 1 tells: totals, counts, drawn rows, and scores. Numbers of lines are the paper's."""

from enum import IntEnum
from typing import Annotated, ClassVar

from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, Reveals
from colonnade.sampling.rules import AnyRule
from colonnade.signing import SignedRows, VouchedRows


class Draws(IntEnum):
    """How rows are drawn: each by itself, one in each stratum of the scores, or each at most once."""

    INDEPENDENT = 0
    STRATIFIED = 1
    DISTINCT = 2


class Total(Message, frozen=True):
    """G^(j), the sum of the party's scores (line 2)."""

    phase: ClassVar[str] = "sampling"

    total: Annotated[float, Reveals.TOTALS]


class AskTotal(Message, frozen=True):
    """Opens the phase: score your rows by this rule."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Total

    rule: Annotated[AnyRule, Reveals.NOTHING]


class DrawnRows(Message, frozen=True):
    """S^(j), the rows the party drew (line 5), signed: the others are to believe that it did."""

    phase: ClassVar[str] = "sampling"

    rows: Annotated[Rows, Reveals.ROW_IDS]
    signature: Annotated[bytes, Reveals.NOTHING]


class DrawRows(Message, frozen=True):
    """a_j, how many rows this party draws (line 4), from which seed, and in which way."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    seed: Annotated[int, Reveals.NOTHING]
    draws: Annotated[Draws, Reveals.NOTHING]


class OpenDraw(Message, frozen=True):
    """Opens the phase where the total is known: score by this rule, or as before in this run, and draw a_j rows.

    A total is known where the rule fills scores up to it, or where it was told: in this run, or to a plan.
    """

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    rule: Annotated[AnyRule | None, Reveals.NOTHING]
    count: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    draws: Annotated[Draws, Reveals.NOTHING]

    def units(self) -> int:
        """Count a_j, as the paper does, although it tells nothing here."""
        return 1


class Vouched(Message, frozen=True):
    """A signature that says: I have checked what each of the others signed to have drawn, and these are the rows."""

    phase: ClassVar[str] = "sampling"

    signature: Annotated[bytes, Reveals.NOTHING]


class AskVouched(Message, frozen=True):
    """Of more than 33 parties one is told first what the others signed to have drawn: check it, and vouch for it."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Vouched

    others: Annotated[tuple[SignedRows, ...], Reveals.ROW_IDS]

    def units(self) -> int:
        """Count the rows."""
        return sum(len(each.rows) for each in self.others)


class Scores(Message, frozen=True):
    """G^(j), the party's scores of the rows in S (line 7)."""

    phase: ClassVar[str] = "summing"

    scores: Annotated[Floats, Reveals.SCORES]


class AskScores(Message, frozen=True):
    """S, the rows that all parties drew together (line 6), as the others signed them, without this party's own.

    Or, of more than 33 parties, as one of them vouches for them, this party's own among them. And which share was drawn
    evenly, from which seed: every side draws these itself.
    """

    phase: ClassVar[str] = "summing"
    reply: ClassVar[type[Message]] = Scores

    size: Annotated[int, Reveals.NOTHING]
    others: Annotated[tuple[SignedRows, ...] | VouchedRows, Reveals.ROW_IDS]
    even_share: Annotated[float, Reveals.NOTHING]
    even_seed: Annotated[int, Reveals.NOTHING]

    def units(self) -> int:
        """Count all of S: what the paper's server sends."""
        return self.size


class ScoreCodes(Message, frozen=True):
    """The party's rounded scores of the rows in S (line 7), coded."""

    phase: ClassVar[str] = "summing"

    size: Annotated[int, Reveals.NOTHING]
    codes: Annotated[bytes, Reveals.SCORES]

    def units(self) -> int:
        """Count a number a row, as in the paper."""
        return self.size


class AskScoreCodes(AskScores, frozen=True):
    """S (line 6) as in `AskScores`; the scores are to come rounded."""

    reply: ClassVar[type[Message]] = ScoreCodes
