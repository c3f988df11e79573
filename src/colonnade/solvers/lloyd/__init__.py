"""SecureLloyd: k-means by rounds in which the server sees summed distances, and no party's own.

`server` has the solver and its rounds, `party` the party's side, `messages` what they tell each other.
"""

from colonnade.solvers.lloyd.party import HANDLERS
from colonnade.solvers.lloyd.server import SecureLloyd

__all__ = ["HANDLERS", "SecureLloyd"]
