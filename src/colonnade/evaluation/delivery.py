"""Predictions handed on to a party: the server adds up what the parties sent, and passes it to the one that asked."""

from dataclasses import replace
from typing import Annotated, ClassVar

from colonnade.contracts import Script
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.selections import Selection, Window
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.windows import arrived, check_window, joined, n_selected_in


class Received(Message, frozen=True):
    """The party has them."""

    phase: ClassVar[str] = "predicting"


class Deliver(Message, frozen=True):
    """Predictions of the selected rows of a window: values, or numbers of clusters."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Received

    values: Annotated[Floats | None, Reveals.PREDICTIONS]
    clusters: Annotated[Rows | None, Reveals.PREDICTIONS]
    first: Annotated[int, Reveals.NOTHING]
    stop: Annotated[int, Reveals.NOTHING]

    @property
    def window(self) -> Window:
        """Which rows."""
        return Window(self.first, self.stop, 1)


def deliver(party: str, selected: Selection, predictions: Floats | Rows) -> Script[None]:
    """Give a party the predictions, shape (m,), of the rows it knows to be selected: values, or numbers of clusters."""
    for piece in selected.pieces(1):
        here, ends = predictions[piece.chosen], (piece.window.first, piece.window.stop)
        if predictions.dtype.kind == "f":
            yield {party: Deliver(sendable_floats(here), None, *ends)}
        else:
            yield {party: Deliver(None, sendable_rows(here), *ends)}


def _answer(state: PartyState, request: Deliver, data: PartyData) -> tuple[PartyState, Message]:
    predictions = request.values if request.clusters is None else request.clusters
    if predictions is None or (request.values is not None and request.clusters is not None):
        raise checks.wrong(SERVER, request, "neither values nor clusters, or both")
    check_window(state, request, request.window)
    checks.shape(SERVER, request, predictions, (n_selected_in(state, request.window),))
    what = (Deliver, predictions.dtype.kind)
    here = arrived(state.learning, what, request, request.window, predictions)
    if here.stop < state.n_places:
        return replace(state, learning=here), Received()
    delivery = state.delivery(joined(here.parts), data.table)
    return replace(state, learning=None, received=delivery), Received()


HANDLERS = (Handler(Deliver, _answer, after=frozenset({SELECTED}), then=SELECTED),)
