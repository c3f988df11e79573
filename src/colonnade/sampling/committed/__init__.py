"""Committed draws: rounds 1 and 2 of Algorithm 1 so that nobody can bend them, and anybody can check them.

`server` draws, `party` commits and draws, `messages` is what they tell each other, `joint_seed` what decides the draw.
A spot check afterwards: `opening` asks parties to open rows, `spot_check` compares them with what was drawn and told.
"""

from colonnade.sampling.committed.party import HANDLERS

__all__ = ["HANDLERS"]
