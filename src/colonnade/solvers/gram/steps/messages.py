"""What travels in a step of a classification: directions, masked parts for the label party, its column, shared."""

from typing import Annotated, ClassVar

from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import WORD_BYTES
from colonnade.kernels.shares import LIMBS
from colonnade.messages import Message, Reveals


class StepPart(Message, frozen=True):
    """The party's part of the direction for each row, masked, encrypted to the label party; its block of the products.

    With those of the other parties the label party learns the parts' sum, of a direction that the server chose: to an
    owner's policy these are predictions. The block is uniform to the server, until the label party's is added. Nothing
    where the key is lost.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    size: Annotated[int, Reveals.NOTHING]
    box: Annotated[bytes, Reveals.NOTHING]
    block: Annotated[bytes, Reveals.MOMENTS]

    def units(self) -> int:
        """Count a number a row, and one a column."""
        return self.size + len(self.block) // (LIMBS * WORD_BYTES)

    def passes_on(self) -> tuple[Reveals, ...]:
        """Name predictions, to the label party."""
        return (Reveals.PREDICTIONS,) if self.box else ()


class AskStepPart(Message, frozen=True):
    """The step's number, from 0, and its direction, in the orthonormal basis of the party's columns; length 1 at most.

    A party's part of it is then from -1 to 1 in every row.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = StepPart

    step: Annotated[int, Reveals.NOTHING]
    direction: Annotated[Floats, Reveals.MODEL]


class StepColumn(Message, frozen=True):
    """The best coefficients of all directions so far and of the party's columns, the loss with them, and residuals.

    Coefficients are of the directions, then of the party's own columns. The loss, log(1 + exp(-y f)), and p - y are
    summed over rows by weight. The share is of sqrt(w) (p - y), a number a row; blocks are of its products with the
    others' columns. No coefficients where the key is lost; no share where products would tell too much of one row, and
    there is to be no further step.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    coef: Annotated[Floats, Reveals.MODEL]
    intercept: Annotated[float, Reveals.MODEL]
    loss: Annotated[float, Reveals.TOTALS]
    total: Annotated[float, Reveals.MOMENTS]
    share: Annotated[bytes | None, Reveals.MOMENTS]
    blocks: Annotated[bytes, Reveals.MOMENTS]

    def units(self) -> int:
        """Count the numbers, those of the share and the blocks too."""
        return self.coef.size + 3 + (len(self.share or b"") + len(self.blocks)) // (LIMBS * WORD_BYTES)


class AskStepColumn(Message, frozen=True):
    """The others' masked parts of a direction, by name; what they are multiplied by, and what is added to the sum.

    And what is minimised: the penalty of all coefficients, whether there is an intercept, the label's two values.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = StepColumn

    step: Annotated[int, Reveals.NOTHING]
    boxes: Annotated[tuple[bytes, ...], Reveals.PREDICTIONS]
    unit: Annotated[float, Reveals.MODEL]
    offset: Annotated[float, Reveals.MODEL]
    penalty: Annotated[float, Reveals.NOTHING]
    fit_intercept: Annotated[bool, Reveals.NOTHING]
    values: Annotated[Floats, Reveals.NOTHING]

    def units(self) -> int:
        """Count a number for each row and party, the unit and the offset."""
        return sum(map(len, self.boxes)) // WORD_BYTES + 2
