"""Distinct rows: Algorithm 1, with every row drawn at most once by each party, and once in the coreset.

Party j draws row i with the chance pi_ij = min(1, c_j g_ij); S is the union of what was drawn, also evenly. So row i is
in S with the chance 1 - prod_j (1 - pi_ij), and weighs 1 over it. `server` and `party` are the two sides, `messages`
what they tell each other beyond Algorithm 1's.
"""

from colonnade.sampling.distinct.party import HANDLERS

__all__ = ["HANDLERS"]
