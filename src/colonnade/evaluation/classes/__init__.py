"""A classification applied: chances of classes handed to a party, and compared with labels at the label party.

The label party alone knows labels, and computes every number: the others' parts of logits reach it in sum, from the
server, or under masks. `messages` has what travels, `server` the scripts, `party` the party's side, `reports` what an
evaluation says.
"""

from colonnade.evaluation.classes.party import HANDLERS

__all__ = ["HANDLERS"]
