"""What a party may be asked in Saga: which block is next follows from the sheet's seed, as the server draws it."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from colonnade.kernels.arrays import Rows
from colonnade.kernels.saga import epoch_blocks
from colonnade.messages import Message
from colonnade.routes import END, Ask, Route
from colonnade.solvers.saga.messages import AskCoefficients, OpenSaga

ENDING = Ask(AskCoefficients)


@dataclass(frozen=True, eq=False)
class SagaRoute(Route):
    """The opening. `rng` is as after the shuffle's seed was drawn, and is never drawn from: only its copies are."""

    opening: Ask
    step: Ask
    closing: Ask
    max_epochs: int
    rng: np.random.Generator

    def after(self, request: Message) -> Route | None:
        """Be in the first epoch."""
        if not isinstance(request, OpenSaga) or self.opening.after(request) is None:
            return None
        return self.epoch(0, request.n_blocks, self.rng)

    def epoch(self, number: int, n_blocks: int, rng: np.random.Generator) -> "_Epoch":
        """Draw an epoch's blocks, as the server does."""
        drawn = deepcopy(rng)
        return _Epoch(self, number, epoch_blocks(number, n_blocks, drawn), drawn)

    def next_asks(self) -> Iterator[Ask]:
        """List the opening."""
        yield self.opening

    def asks(self) -> Iterator[Ask]:
        """List all kinds."""
        yield from (self.opening, self.step, self.closing, ENDING)

    @property
    def can_end(self) -> bool:
        """No: it is due."""
        return False


@dataclass(frozen=True, eq=False)
class _Epoch(Route):
    """An epoch of a number: of its blocks so many are done; one more once it is closed. `rng` draws the next epoch."""

    all: SagaRoute
    number: int
    blocks: Rows
    rng: np.random.Generator
    done: int = 0

    def after(self, request: Message) -> Route | None:
        if self.done > len(self.blocks):  # closed
            if ENDING.after(request) is not None:
                return END
            following = self._following()
            return None if following is None else following.after(request)
        (due,) = self.next_asks()
        return None if due.after(request) is None else replace(self, done=self.done + 1)

    def next_asks(self) -> Iterator[Ask]:
        if self.done < len(self.blocks):
            yield Ask(self.all.step.kind, block=int(self.blocks[self.done]), **self.all.step.fields)
        elif self.done == len(self.blocks):
            yield self.all.closing
        else:
            following = self._following()
            yield from () if following is None else following.next_asks()
            yield ENDING

    def _following(self) -> "_Epoch | None":
        if self.number + 1 == self.all.max_epochs:
            return None
        return self.all.epoch(self.number + 1, len(self.blocks), self.rng)

    def asks(self) -> Iterator[Ask]:
        yield from (self.all.step, self.all.closing, ENDING)

    @property
    def can_end(self) -> bool:
        return False
