"""What all parties are asked alike in Gram mode, by shares or by encryption: rows, weights, folds, columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.folds import FOLDS, deal_folds
from colonnade.kernels.masks import WORD_BYTES, Ring
from colonnade.kernels.shares import HIGH_BITS, LIMBS, LOW_BITS, low_bits
from colonnade.messages import MAX_NUMBERS, sendable_floats
from colonnade.privacy.statements import transcript_of
from colonnade.signing import digest

RING = Ring(WORD_BYTES, HIGH_BITS + LOW_BITS)
# Of more rows than these, all that count are shared in windows, where a task lets them be.
AT_ONCE = 1 << 22
# Of so many columns of all parties one block is a window that fits a message, and all products fit one, too.
MOST_IN_WINDOWS = MAX_NUMBERS // LIMBS // BLOCK_ROWS


@dataclass(frozen=True, eq=False)
class GramQuestion:
    """What all parties are asked alike.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        The coreset's.
    weights : ndarray of float64, shape (m,), or None
        Relative to the largest; None where they are all equal.
    fold_seed : int or None
        Deals rows to folds; None where there is only one.
    n_columns : tuple of int
        Each party's columns, the label among them, in the order of names.
    steps : int
        How many directions the label party may be shown of the rows, for a classification.
    to : str
        Then the label party.
    """

    rows: Rows
    weights: Floats | None
    fold_seed: int | None
    n_columns: tuple[int, ...]
    steps: int = 0
    to: str = ""

    def transcript(self, parties: Sequence[str], keys: bytes, view: bytes, purpose: str) -> bytes:
        """Hash what parties and server must agree on."""
        return transcript_of(purpose, parties, keys, view, self.fingerprint(), ring_of(len(self.rows)))

    @property
    def low_bits(self) -> int:
        """How many bits low limbs have."""
        return low_bits(len(self.rows))

    def fingerprint(self) -> bytes:
        """Hash weights, the folds' seed, numbers of columns, and how many steps follow."""
        weights = b"" if self.weights is None else np.ascontiguousarray(self.weights, "<f8").tobytes()
        asked = (self.fold_seed, self.n_columns, *((self.steps, self.to) if self.steps else ()))
        return digest(weights, repr(asked).encode())

    def row_weights(self) -> Floats:
        """Give each row's weight."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def columns_of(self, place: int) -> range:
        """Say where the columns of the party at a place among the names stand among all of them."""
        start = sum(self.n_columns[:place])
        return range(start, start + self.n_columns[place])

    def fold_rows(self) -> list[Rows | slice]:
        """Give the positions of each fold's rows, where there is one as a slice: it takes nothing apart."""
        return [slice(None)] if self.fold_seed is None else [*self.groups()]

    def groups(self) -> list[Rows]:
        """Give the positions of each fold's rows."""
        if self.fold_seed is None:
            return [np.arange(len(self.rows))]
        folds = deal_folds(self.rows, self.row_weights(), self.fold_seed)
        return [np.flatnonzero(folds == fold) for fold in range(FOLDS)]


def ring_of(n_rows: int) -> Ring:
    """Give the ring in which directions of so many rows are shared."""
    return Ring(WORD_BYTES, HIGH_BITS + low_bits(n_rows))


def comes_at_once(n_rows: int, n_columns: int) -> bool:
    """Tell whether all rows are shared in one message, or in windows."""
    return n_rows <= AT_ONCE and fits(n_rows, n_columns)


def fits(n_rows: int, n_columns: int) -> bool:
    """Tell whether one message holds so many rows of all parties' columns."""
    return n_rows * LIMBS * n_columns <= MAX_NUMBERS


def check_size(n_rows: int, roster: Roster) -> None:
    """Require no more rows than can be shared at once; nothing is listed before."""
    n_columns = sum(columns_of(roster).values())
    if not fits(n_rows, n_columns):
        raise InputError(
            f"SecureGram takes {MAX_NUMBERS // LIMBS // n_columns:,} rows at most, of {n_columns:,} columns in all, "
            f"and these are {n_rows:,}. Draw a coreset, for instance ImportanceSampling(size=100_000); AllRows() takes "
            "any number where a regression's penalties are given."
        )


def columns_of(roster: Roster) -> dict[str, int]:
    """Count each party's columns, the label among them."""
    return {card.name: card.n_features + (card.label_name is not None) for card in roster.cards}


def question_of(roster: Roster, coreset: Coreset, fold_seed: int | None, steps: int = 0) -> GramQuestion:
    """Say what all parties are asked alike."""
    columns = columns_of(roster)
    weights = None if (coreset.weights == coreset.weights[0]).all() else coreset.weights / coreset.weights.max()
    return GramQuestion(
        coreset.rows,
        None if weights is None else sendable_floats(weights),
        fold_seed,
        tuple(columns[party] for party in sorted(columns)),
        steps,
        (roster.label_party or "") if steps else "",
    )
