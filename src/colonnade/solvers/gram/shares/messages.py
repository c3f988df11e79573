"""What the server and the parties tell each other in Gram mode by additive shares, and what they hash of it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.masks import WORD_BYTES, Words
from colonnade.kernels.shares import LIMBS
from colonnade.messages import Message, Reveals
from colonnade.privacy.circles import Circle
from colonnade.privacy.primitives import ManyWords
from colonnade.privacy.statements import CircleKeys, transcript_of
from colonnade.signing import digest
from colonnade.solvers.gram.question import RING, GramQuestion

PURPOSE = "gram by shares"


# Who deals the seed, by its place among the names; a classification's label party has secrets with all others, too.
DEALER = 0
STAR = Circle(near=0, hubs=(DEALER,))


class SealedSeeds(Message, frozen=True):
    """A seed that all parties share, encrypted to each other party, 48 bytes, by name; none where the key is lost."""

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    boxes: Annotated[tuple[bytes, ...], Reveals.NOTHING]


class AskSealedSeeds(Message, frozen=True):
    """All parties' keys, for the one that deals the seed."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = SealedSeeds

    keys: Annotated[CircleKeys, Reveals.NOTHING]


class GramShares(Message, frozen=True):
    """Means and factors of the party's columns in each fold, its share, and its masked blocks; or a lost key.

    The share and the blocks are uniform words to the server, 16 bytes each. Together with those of all parties they
    give the products of columns of different parties. With f folds, c columns (the label among them) and o columns of
    others, means are f x c, factors f c x c; the share has m c words, the blocks f c o, with columns of earlier names
    first.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    means: Annotated[Floats, Reveals.MOMENTS]
    factors: Annotated[Floats, Reveals.MOMENTS]
    share: Annotated[bytes | None, Reveals.MOMENTS]
    blocks: Annotated[bytes, Reveals.MOMENTS]
    transcript: Annotated[bytes, Reveals.NOTHING]
    signature: Annotated[bytes, Reveals.NOTHING]

    def units(self) -> int:
        """Count the numbers, those of the share and the blocks too."""
        shared = (len(self.share or b"") + len(self.blocks)) // (LIMBS * WORD_BYTES)
        return self.means.size + self.factors.size + shared


class AskGramShares(Message, frozen=True):
    """The rows' weights (none: all alike), the seed that deals them to folds, if any, every party's number of columns.

    And keys, with the seed, encrypted to this party; nothing for the one that dealt it.

    A coreset's weights are 1 over the parties' summed scores, up to one factor: that is what they reveal.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = GramShares

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    fold_seed: Annotated[int | None, Reveals.NOTHING]
    n_columns: Annotated[tuple[int, ...], Reveals.SCHEMA]
    keys: Annotated[CircleKeys, Reveals.NOTHING]
    box: Annotated[bytes, Reveals.NOTHING]

    def question(self, rows: Rows) -> GramQuestion:
        """Say what all parties are asked alike."""
        return GramQuestion(rows, self.weights, self.fold_seed, self.n_columns)


class AskStepShares(Message, frozen=True):
    """As `AskGramShares`, of rows on which a classification is learned: so many steps follow, to this label party."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = GramShares

    weights: Annotated[Floats | None, Reveals.SCORE_SUMS]
    n_columns: Annotated[tuple[int, ...], Reveals.SCHEMA]
    steps: Annotated[int, Reveals.NOTHING]
    to: Annotated[str, Reveals.NOTHING]
    keys: Annotated[CircleKeys, Reveals.NOTHING]
    box: Annotated[bytes, Reveals.NOTHING]

    def question(self, rows: Rows) -> GramQuestion:
        """Say what all parties are asked alike."""
        return GramQuestion(rows, self.weights, None, self.n_columns, self.steps, self.to)


def circle_for(question: GramQuestion, parties: Sequence[str]) -> Circle:
    """Say who shares secrets with whom: all with the dealer; for steps, with the label party and neighbours, too."""
    return Circle(hubs=(DEALER, parties.index(question.to))) if question.steps else STAR


def matrix_words(words: ManyWords, question: GramQuestion, columns: range) -> Words:
    """Stretch the parties' seed to what these columns, among those of all, are hidden by; shape (c, 2, m)."""
    size = len(question.rows)
    return words.line(columns.start * size, len(columns) * size).reshape(len(columns), LIMBS, size)


def seeds_transcript(parties: Sequence[str], keys: bytes, view: bytes) -> bytes:
    """Hash what parties agree on when one of them deals the seed."""
    return transcript_of("gram seeds", parties, keys, view, b"", RING)


def sent_digest(means: Floats, factors: Floats, share: bytes, blocks: bytes) -> bytes:
    """Hash what a party sent."""
    moments = (np.ascontiguousarray(each, "<f8").tobytes() for each in (means, factors))
    return digest(*moments, share, blocks)
