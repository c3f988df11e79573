"""Solvers: how a model is learned on a coreset. One idea a file; the registry is at the end of this one."""

from colonnade.solvers import (
    central,
    distdim,
    gram,
    lloyd_party,
    saga,
    scaled_columns,
    whitened_columns,
)
from colonnade.solvers.central import Central
from colonnade.solvers.compact import CompactCentral
from colonnade.solvers.distdim import DistDim
from colonnade.solvers.gram import SecureGram
from colonnade.solvers.saga import Saga
from colonnade.solvers.secure_lloyd import SecureLloyd

AnySolver = Central | CompactCentral | DistDim | Saga | SecureGram | SecureLloyd
HANDLERS = (
    *central.HANDLERS,
    *whitened_columns.HANDLERS,
    *scaled_columns.HANDLERS,
    *distdim.HANDLERS,
    *saga.HANDLERS,
    *gram.HANDLERS,
    *lloyd_party.HANDLERS,
)

__all__ = ["HANDLERS", "AnySolver", "Central", "CompactCentral", "DistDim", "Saga", "SecureGram", "SecureLloyd"]
