"""Models applied under masks: one party learns predictions or residuals, and the server none of them.

`server` has the scripts, of a delivery and of an evaluation; `party` masks a party's part, `receiving` is the side of
the one that learns the sum; `messages` what they tell each other; `ring` where masked parts are added, and how exactly.
"""

from colonnade.evaluation.masked import party, receiving

HANDLERS = (*party.HANDLERS, *receiving.HANDLERS)

__all__ = ["HANDLERS"]
