"""What Saga's server and parties tell each other, numbers as they are."""

from typing import Annotated, ClassVar

from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals


class SquaredNorms(Message, frozen=True):
    """|x_i|^2 over the party's columns: what the step size is made of. A score of each row, by its size."""

    phase: ClassVar[str] = "solving"

    norms: Annotated[Floats, Reveals.SCORES]


class OpenSaga(Message, frozen=True):
    """Opens the phase: shuffle the coreset's rows by this seed, deal them into so many blocks."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = SquaredNorms

    n_blocks: Annotated[int, Reveals.NOTHING]
    seed: Annotated[int, Reveals.NOTHING]
    l2: Annotated[float, Reveals.NOTHING]
    l1: Annotated[float, Reveals.NOTHING]
    fit_intercept: Annotated[bool, Reveals.NOTHING]
    scale: Annotated[bool, Reveals.NOTHING]


class ClassNorms(Message, frozen=True):
    """As `SquaredNorms`, for a classification; and the labels, from their party.

    The slope of a row's loss is made of its label and of all parties' products, and the server makes it. It learns no
    more than in a regression, where it has residuals.
    """

    phase: ClassVar[str] = "solving"

    norms: Annotated[Floats, Reveals.SCORES]
    labels: Annotated[Floats | None, Reveals.LABELS]


class OpenClassSaga(OpenSaga, frozen=True):
    """As `OpenSaga`, for a classification of a label with these two values."""

    reply: ClassVar[type[Message]] = ClassNorms

    values: Annotated[Floats, Reveals.NOTHING]


class PartialProducts(Message, frozen=True):
    """x_i.theta over the party's columns for each row of the block; of a regression, at the label party less the label.

    No label travels bare then, but while coefficients are near 0 that difference is the label's deviation from the
    mean, negated: it counts as revealing labels, and so do the residuals that are made of it.
    """

    phase: ClassVar[str] = "solving"
    steered: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES,)

    products: Annotated[Floats | None, Reveals.PREDICTIONS]
    less_label: Annotated[Floats | None, Reveals.LABELS]


class SagaStep(Message, frozen=True):
    """How the weighted residuals of the block asked before changed (step by them), and which block is next.

    In a classification they are slopes of losses. The step size comes once, with the first block.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = PartialProducts

    changes: Annotated[Floats, Reveals.LABELS]
    block: Annotated[int, Reveals.ROW_IDS]
    step_size: Annotated[float | None, Reveals.TOTALS]


class Progress(Message, frozen=True):
    """Norms, in the label's units, of a change and of the coefficients.

    The change is what the epoch changed and what a full step would still: the first tells whether the table of
    gradients is fresh, the second whether they vanish, which small steps alone would not.
    """

    phase: ClassVar[str] = "solving"

    change: Annotated[float, Reveals.MODEL]
    size: Annotated[float, Reveals.MODEL]


class AskProgress(Message, frozen=True):
    """Ends an epoch: the last block's changes."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Progress

    changes: Annotated[Floats, Reveals.LABELS]


class Coefficients(Message, frozen=True):
    """The party's coefficients in its columns' own units, and its part of the intercept."""

    phase: ClassVar[str] = "solving"

    coef: Annotated[Floats, Reveals.MODEL]
    offset: Annotated[float, Reveals.MODEL]


class AskCoefficients(Message, frozen=True):
    """Ends the phase."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = Coefficients
