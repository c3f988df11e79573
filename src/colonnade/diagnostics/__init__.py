"""Diagnostics: what the theory assumes of the data, measured; what it promises, computed. The registry is here."""

from colonnade.diagnostics import (
    audited_distances,
    audited_logits,
    audited_predictions,
    moved_distances,
    pair_distances,
    row_distances,
    whitened_rows,
)
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.records import Diagnosis

HANDLERS = (
    *whitened_rows.HANDLERS,
    *pair_distances.HANDLERS,
    *row_distances.HANDLERS,
    *moved_distances.HANDLERS,
    *audited_predictions.HANDLERS,
    *audited_logits.HANDLERS,
    *audited_distances.HANDLERS,
)

__all__ = ["HANDLERS", "Certificate", "Diagnosis"]
