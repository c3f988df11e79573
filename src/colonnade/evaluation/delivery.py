"""Predictions handed on to a party: the server adds up what the parties sent, and passes it to the one that asked."""

from dataclasses import replace
from typing import Annotated, ClassVar

from colonnade.contracts import Script
from colonnade.kernels.arrays import Floats, Rows
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats, sendable_rows
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState


class Received(Message, frozen=True):
    """The party has them."""

    phase: ClassVar[str] = "predicting"


class Deliver(Message, frozen=True):
    """Predictions of the selected rows: values, or numbers of clusters."""

    phase: ClassVar[str] = "predicting"
    reply: ClassVar[type[Message]] = Received

    values: Annotated[Floats | None, Reveals.PREDICTIONS]
    clusters: Annotated[Rows | None, Reveals.PREDICTIONS]


def deliver(party: str, predictions: Floats | Rows) -> Script[None]:
    """Give a party the predictions, shape (m,), of the rows it knows to be selected: values, or numbers of clusters."""
    if predictions.dtype.kind == "f":
        yield {party: Deliver(sendable_floats(predictions), None)}
    else:
        yield {party: Deliver(None, sendable_rows(predictions))}


def _answer(state: PartyState, request: Deliver, data: PartyData) -> tuple[PartyState, Message]:
    predictions = request.values if request.clusters is None else request.clusters
    if predictions is None or (request.values is not None and request.clusters is not None):
        raise checks.wrong(SERVER, request, "neither values nor clusters, or both")
    rows = state.selected()
    checks.shape(SERVER, request, predictions, rows.shape)
    return replace(state, received=Delivery(rows, predictions, keys=data.table.key_columns(rows))), Received()


HANDLERS = (Handler(Deliver, _answer, after=frozenset({SELECTED}), then=SELECTED),)
