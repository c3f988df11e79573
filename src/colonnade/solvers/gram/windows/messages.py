"""What the server and the parties tell each other where all rows are shared in windows, and what they hash of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from colonnade.kernels.masks import WORD_BYTES
from colonnade.kernels.selections import CountedRows, Window
from colonnade.kernels.shares import LIMBS, low_bits
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import CircleKeys, transcript_of
from colonnade.signing import digest
from colonnade.solvers.gram.question import GramQuestion, ring_of
from colonnade.solvers.gram.shares.messages import GramShares

PURPOSE = "gram by shares in windows"


class WindowsOpened(Message, frozen=True):
    """Whether the party has its key, and the seed: it has found a basis of its columns, and tells nothing of it yet."""

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    has_key: Annotated[bool, Reveals.NOTHING]


class AskGramWindows(Message, frozen=True):
    """Every party's number of columns, and keys, with the seed, encrypted to this party; nothing for its dealer.

    Where all rows are taken, and are too many to be shared at once. They weigh what all sides know.
    """

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = WindowsOpened

    n_columns: Annotated[tuple[int, ...], Reveals.SCHEMA]
    keys: Annotated[CircleKeys, Reveals.NOTHING]
    box: Annotated[bytes, Reveals.NOTHING]


class WindowShare(Message, frozen=True):
    """The party's share of a window, m c words in two limbs, or None where what it kept is lost.

    They are uniform words to the server, 16 bytes each. Those of all windows and parties, with what is told after the
    last, give the products of columns of different parties.
    """

    phase: ClassVar[str] = "solving"
    fresh: ClassVar[bool] = True

    share: Annotated[bytes | None, Reveals.MOMENTS]

    def units(self) -> int:
        """Count the numbers."""
        return len(self.share or b"") // (LIMBS * WORD_BYTES)


class AskWindowShare(Message, frozen=True):
    """Share your rows of a window; windows come once, in their order. There are so many columns of all parties."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = WindowShare

    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]
    n_columns: Annotated[int, Reveals.SCHEMA]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, self.n_columns)


class AskGramBlocks(Message, frozen=True):
    """After the last window: tell means, the factor, and the masked blocks of all windows together."""

    phase: ClassVar[str] = "solving"
    reply: ClassVar[type[Message]] = GramShares


@dataclass(frozen=True, eq=False)
class WindowsQuestion:
    """What all parties are asked alike: all rows that count, and each party's columns, in the order of names."""

    rows: CountedRows
    n_columns: tuple[int, ...]

    @property
    def low_bits(self) -> int:
        """How many bits low limbs have."""
        return low_bits(len(self.rows))

    def of_window(self, n_rows: int) -> GramQuestion:
        """Ask the same of so many rows, which are numbered anew."""
        return GramQuestion(np.arange(n_rows), None, None, self.n_columns)

    def columns(self, parties: Sequence[str]) -> dict[str, range]:
        """Say where each party's columns stand among all; parties are in the order of names."""
        no_rows = self.of_window(0)
        return {party: no_rows.columns_of(place) for place, party in enumerate(parties)}

    def transcript(self, parties: Sequence[str], keys: bytes, view: bytes) -> bytes:
        """Hash what parties and server must agree on; what rows weigh is in the view."""
        return transcript_of(PURPOSE, parties, keys, view, self.fingerprint(), ring_of(len(self.rows)))

    def fingerprint(self) -> bytes:
        """Hash numbers of columns."""
        return digest(repr(self.n_columns).encode())


def window_transcript(transcript: bytes, window: Window) -> bytes:
    """Hash what a window's masks are for: no two windows, nor the same of two runs, have words in common."""
    return digest(transcript, b"window", window.first.to_bytes(8), window.stop.to_bytes(8))


def with_window(before: bytes, share: bytes) -> bytes:
    """Hash one more window's share after those before it."""
    return digest(before, share)
