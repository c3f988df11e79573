"""What distinct draws tell: scores of the rows in S, and the factor that makes chances of them."""

from typing import Annotated, ClassVar

from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals
from colonnade.sampling.plain.messages import AskScores, ScoreCodes


class DistinctScores(Message, frozen=True):
    """The party's scores of the rows in S, and c_j: it drew each with the chance min(1, c_j g_ij).

    Where some rows are certain, c_j tells the sum of their scores.
    """

    phase: ClassVar[str] = "summing"

    scores: Annotated[Floats, Reveals.SCORES]
    factor: Annotated[float, Reveals.TOTALS]


class AskDistinctScores(AskScores, frozen=True):
    """S as in `AskScores`, each row once, and how many draws there were: a row that was drawn twice makes S shorter."""

    reply: ClassVar[type[Message]] = DistinctScores

    n_draws: Annotated[int, Reveals.NOTHING]


class DistinctCodes(ScoreCodes, frozen=True):
    """As `DistinctScores`, of scores that the party rounded, coded."""

    factor: Annotated[float, Reveals.TOTALS]

    def units(self) -> int:
        """Count a number a row, and the factor."""
        return self.size + 1


class AskDistinctCodes(AskScores, frozen=True):
    """As `AskDistinctScores`; the scores are to come rounded."""

    reply: ClassVar[type[Message]] = DistinctCodes

    n_draws: Annotated[int, Reveals.NOTHING]
