"""Samplers: how server and parties agree on a coreset. One idea a file; the registry is at the end of this one."""

from colonnade.sampling import committed_party, drawing, rounded, secure_party, shared, summing
from colonnade.sampling.importance import ImportanceSampling
from colonnade.sampling.shared import AllRows, UniformSampling

AnySampler = ImportanceSampling | UniformSampling | AllRows
HANDLERS = (
    *drawing.HANDLERS,
    *committed_party.HANDLERS,
    *summing.HANDLERS,
    *rounded.HANDLERS,
    *secure_party.HANDLERS,
    *shared.HANDLERS,
)

__all__ = ["HANDLERS", "AllRows", "AnySampler", "ImportanceSampling", "UniformSampling"]
