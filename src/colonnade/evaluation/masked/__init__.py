"""Models applied under masks: one party learns predictions or residuals, and the server none of them.

`server` has the scripts, of a delivery and of an evaluation; `party` the party's side; `messages` what they tell each
other; `ring` where masked parts are added, and how exactly.
"""

from colonnade.evaluation.masked.party import HANDLERS

__all__ = ["HANDLERS"]
