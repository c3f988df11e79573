"""Saga: many short rounds in which no row leaves its party.

`server` has the solver and its script, `table` what the server keeps, `party` the party's side, `messages` what they
tell each other, `coded` the same with few bits a number. The arithmetic is in `colonnade.kernels.saga`.
"""

from colonnade.solvers.saga.party import HANDLERS
from colonnade.solvers.saga.server import Saga

__all__ = ["HANDLERS", "Saga"]
