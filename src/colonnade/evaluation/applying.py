"""What a party is asked where a model is applied to selected rows: routes of prediction, delivery and evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringMaskedClasses,
    DeliverClasses,
    DeliverMaskedClasses,
)
from colonnade.evaluation.clustering import AskPartialDistances, AskRoundedDistances
from colonnade.evaluation.delivery import Deliver
from colonnade.evaluation.linear import AskPartialPredictions, AskRoundedPredictions
from colonnade.evaluation.masked.messages import (
    AskLosses,
    AskMagnitude,
    AskMaskedPredictions,
    BringMasked,
    DeliverMasked,
)
from colonnade.evaluation.telling import model_digest
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message
from colonnade.privacy.pair_keys import secure_route
from colonnade.protocol.windows import NextWindow, Windows
from colonnade.routes import END, Ask, Hashing, Route, either, some, then


def predicted_route(part: bytes, n_places: int, bits: int | None, seed: int, *, delivered: bool) -> Route:
    """Expect questions for predictions by a model whose part has this digest, and perhaps all parties' sum.

    Rows, or places of a list of rows, are so many.
    """
    asked = _plain_route(part, n_places, bits, seed, less_label=False, by_weight=False)
    return then(asked, Windows(n_places, (Ask(Deliver), Ask(DeliverClasses)))) if delivered else asked


def evaluated_route(part: bytes, n_places: int, bits: int | None, seed: int, *, by_weight: bool) -> Route:
    """Expect questions for residuals, or distances, of a model whose part has this digest."""
    return _plain_route(part, n_places, bits, seed, less_label=True, by_weight=by_weight)


def class_losses_route(
    part: bytes, n_places: int, n_classes: int, bits: int | None, seed: int, *, has_label: bool, by_weight: bool
) -> Route:
    """Expect questions for the party's part of logits; at the label party, with the others' sum, for losses."""
    model = Hashing(part, model_digest)
    if has_label:
        asked = Ask(AskClassLosses, part=model, by_weight=by_weight)
        return Windows(n_places, (asked,), 1 if n_classes == 2 else n_classes)
    flags = {"part": model, "less_label": False, "by_weight": False}
    if bits is None:
        return Windows(n_places, (Ask(AskPartialPredictions, **flags),))
    return Windows(n_places, (Ask(AskRoundedPredictions, **flags, bits=bits, seed=seed),))


def _plain_route(
    part: bytes, n_places: int, bits: int | None, seed: int, *, less_label: bool, by_weight: bool
) -> Route:
    model = Hashing(part, model_digest)
    flags = {"less_label": less_label, "by_weight": by_weight}
    if bits is None:
        ways = Ask(AskPartialPredictions, part=model, **flags), Ask(AskPartialDistances, part=model)
    else:
        dither = {"bits": bits, "seed": seed}
        linear = Ask(AskRoundedPredictions, part=model, **flags, **dither)
        ways = linear, Ask(AskRoundedDistances, part=model, **dither)
    return Windows(n_places, ways)


def masked_route(part: bytes, n_places: int, to: str, party: str, *, evaluating: bool, by_weight: bool) -> Route:
    """Expect questions for masked parts by a model whose part has this digest; who learns the sum is told them all."""
    model = {"part": Hashing(part, model_digest), "evaluating": evaluating}
    asked = Ask(AskMaskedPredictions, **model, by_weight=by_weight, to=to)
    learned = Ask(AskLosses) if evaluating else either(Ask(DeliverMasked), Ask(DeliverMaskedClasses))
    windows = MaskedWindows(n_places, asked, learned if party == to else END)
    return then(Ask(AskMagnitude, **model), secure_route(windows))


def masked_classes_route(part: bytes, n_places: int, to: str, party: str, *, by_weight: bool) -> Route:
    """Expect questions for masked parts of logits; the label party is told them all, and asked for losses."""
    model = {"part": Hashing(part, model_digest), "evaluating": False}
    asked = Ask(AskMaskedPredictions, **model, by_weight=by_weight, to=to)
    learned = Ask(AskMaskedClassLosses) if party == to else END
    windows = MaskedWindows(n_places, asked, learned, brought=BringMaskedClasses)
    return then(Ask(AskMagnitude, **model), secure_route(windows))


@dataclass(frozen=True)
class MaskedWindows(Route):
    """One question a window, each once and in their order; who learns the sum is brought the others' parts of each.

    What it learns it is told, or asked, with the last. A server stops anywhere, where a key is lost.
    """

    n_places: int
    asked: Ask
    learned: Route
    first: int = 0
    brought: type[Message] = BringMasked

    def after(self, request: Message) -> Route | None:
        """Expect the others' parts of this window, and the next, if this is the one that was due."""
        (due,) = self.next_asks()
        if due.after(request) is None:
            return None
        stop: int = request.window.stop  # type: ignore[attr-defined]  # this kind has one
        if stop >= self.n_places:
            return some(self.learned)
        brought = END if self.learned is END else Ask(self.brought)
        return some(then(brought, some(replace(self, first=stop))))

    def next_asks(self) -> Iterator[Ask]:
        """List what may come next."""
        yield Ask(self.asked.kind, window=NextWindow(self.first, self.n_places), **self.asked.fields)

    def asks(self) -> Iterator[Ask]:
        """List all that may come: of few rows there is one window."""
        yield from self.next_asks()
        if self.learned is not END and self.n_places > BLOCK_ROWS:
            yield Ask(self.brought)
        yield from self.learned.asks()

    @property
    def can_end(self) -> bool:
        """No: windows are due."""
        return False
