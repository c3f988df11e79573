"""Round 3 of Algorithm 1 under masks: the server learns the sums of scores, and no party's own.

`server` sums, `party` masks, `messages` is what they tell each other.
"""

from colonnade.sampling.secure.party import HANDLERS

__all__ = ["HANDLERS"]
