"""SecureGram: the server learns the Gram matrix of the coreset's columns, and never a row.

`server` has the solver, which chooses how products of columns of different parties are computed: by additive secret
shares (`shares`) or by homomorphic encryption (`ckks`), each with `messages`, `server` and `party`. Both ask the same
`question`, which a party checks (`party`), and what they gather is put together in `moments`. A classification goes on
with `steps`. All rows of a long table are shared in `windows`.
"""

from colonnade.solvers.gram.ckks.party import HANDLERS as CKKS_HANDLERS
from colonnade.solvers.gram.server import SecureGram
from colonnade.solvers.gram.shares.party import HANDLERS as SHARES_HANDLERS
from colonnade.solvers.gram.steps.party import HANDLERS as STEPS_HANDLERS
from colonnade.solvers.gram.windows.party import HANDLERS as WINDOWS_HANDLERS

HANDLERS = (*SHARES_HANDLERS, *WINDOWS_HANDLERS, *STEPS_HANDLERS, *CKKS_HANDLERS)

__all__ = ["HANDLERS", "SecureGram"]
