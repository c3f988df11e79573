"""Algorithm 1 of the paper: who draws how many rows, which, and what they weigh; scores travel in the clear.

`server` is the algorithm, line by line; `party` the party's side; `messages` what they tell each other.
"""

from colonnade.sampling.plain.party import HANDLERS

__all__ = ["HANDLERS"]
