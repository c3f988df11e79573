"""Solvers: how a model is learned on a coreset. The registry of them, and of what their parties answer, is here.

A short protocol is a file: `central`, `distdim`, `compact` (with its columns in `whitened_columns` and
`scaled_columns`; `finer_rows` looks at some of them again). A long one is a folder with `messages`, `server` and
`party`: `saga`, `gram`, `lloyd`. `precision` says what the rows that were solved on tell of the model.
"""

from colonnade.solvers import central, distdim, finer_rows, gram, lloyd, saga, scaled_columns, whitened_columns
from colonnade.solvers.central import Central
from colonnade.solvers.compact import CompactCentral
from colonnade.solvers.distdim import DistDim
from colonnade.solvers.gram import SecureGram
from colonnade.solvers.lloyd import SecureLloyd
from colonnade.solvers.saga import Saga

AnySolver = Central | CompactCentral | DistDim | Saga | SecureGram | SecureLloyd
HANDLERS = (
    *central.HANDLERS,
    *whitened_columns.HANDLERS,
    *finer_rows.HANDLERS,
    *scaled_columns.HANDLERS,
    *distdim.HANDLERS,
    *saga.HANDLERS,
    *gram.HANDLERS,
    *lloyd.HANDLERS,
)

__all__ = ["HANDLERS", "AnySolver", "Central", "CompactCentral", "DistDim", "Saga", "SecureGram", "SecureLloyd"]
