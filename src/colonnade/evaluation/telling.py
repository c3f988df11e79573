"""A party's part of a model: told to it when the run that learned it ends, so that it knows the model again.

A server that may apply models of its choice reads columns: a model of one column is that column. So a party is told
each model that it helped to learn, and its owner can have it apply only these.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np

from colonnade.contracts import ModelPart, Script
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.memory import ModelNote
from colonnade.protocol.session import Handler, PartyData, PartyState
from colonnade.routes import Ask, Route, either
from colonnade.signing import digest


class ModelKept(Message, frozen=True):
    """The party will know it again: a digest of what it was told."""

    phase: ClassVar[str] = "telling"

    digest: Annotated[bytes, Reveals.NOTHING]


class TellModel(Message, frozen=True):
    """The party's part of the model that was learned: coefficients, or centres and the units of distances."""

    phase: ClassVar[str] = "telling"
    reply: ClassVar[type[Message]] = ModelKept

    coef: Annotated[Floats | None, Reveals.MODEL]
    centers: Annotated[Floats | None, Reveals.MODEL]
    scale: Annotated[Floats | None, Reveals.MODEL]

    def units(self) -> int:
        """Count nothing: the paper's server keeps its model."""
        return 0

    @property
    def part(self) -> ModelPart:
        """All of it."""
        return self.coef, self.centers, self.scale


class TellClassModel(Message, frozen=True):
    """The party's part of a model of more classes than two: coefficients for each class and feature."""

    phase: ClassVar[str] = "telling"
    reply: ClassVar[type[Message]] = ModelKept

    coef: Annotated[Floats, Reveals.MODEL]

    def units(self) -> int:
        """Count nothing, as of other models."""
        return 0

    @property
    def part(self) -> ModelPart:
        """All of it."""
        return self.coef, None, None


TOLD: Route = Ask(TellModel)
# How many classes there are only the label party knows.
TOLD_CLASSES = either(TOLD, Ask(TellClassModel))


def tell_model(parts: Mapping[str, ModelPart]) -> Script[None]:
    """Tell every party its part."""
    inbox = yield {party: _telling(part) for party, part in parts.items()}
    for party, reply in checks.replies(inbox, ModelKept).items():
        if reply.digest != model_digest(parts[party]):
            raise checks.wrong(party, reply, "the digest of another model than it was told")


def _telling(part: ModelPart) -> TellModel | TellClassModel:
    coef = part[0]
    return TellClassModel(coef) if coef is not None and coef.ndim == 2 else TellModel(*part)


def model_digest(part: ModelPart) -> bytes:
    """Hash a party's part of a model, with the shapes of its arrays."""
    return digest(b"model part", *(_bytes(each) for each in part))


def _bytes(numbers: Floats | None) -> bytes:
    if numbers is None:
        return b""
    return repr(numbers.shape).encode() + np.ascontiguousarray(numbers, "<f8").tobytes()


def _answer(state: PartyState, request: TellModel | TellClassModel, data: PartyData) -> tuple[PartyState, Message]:
    n_features = len(data.table.feature_names)
    for numbers, n_axes in zip(request.part, (2 if isinstance(request, TellClassModel) else 1, 2, 1), strict=True):
        if numbers is not None and (numbers.ndim != n_axes or numbers.shape[-1] != n_features):
            raise checks.wrong(SERVER, request, f"an array of shape {numbers.shape} for {n_features} features")
    known_by = kept = model_digest(request.part)
    if state.prepared is not None:
        data.preparations.keep_part(state.prepared, request.part)
        known_by = data.of_prepared(kept)
    return state.but(notes=(*state.notes, ModelNote(known_by))), ModelKept(kept)


HANDLERS = tuple(Handler(kind, _answer, after=None, then="told") for kind in (TellModel, TellClassModel))
