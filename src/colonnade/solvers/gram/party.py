"""What a party checks of a question in Gram mode, by shares or by encryption, before it answers."""

import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.pair_keys import identity_of
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData
from colonnade.solvers.gram.question import GramQuestion

MAX_FOLDS = 100
# Mean and variance of one column of two rows are its two values.
LEAST_ROWS = 5


def check_question(question: GramQuestion, request: Message, data: PartyData) -> None:
    """Check what the server asks, and that it is about enough rows for none of them to show."""
    rows, identity = question.rows, identity_of(data)
    ours = len(data.table.feature_names) + (data.table.label_name is not None)
    place = identity.parties.index(identity.name)
    if (
        len(question.n_columns) != len(identity.parties)
        or question.n_columns[place] != ours
        or min(question.n_columns) < 0
    ):
        raise checks.wrong(SERVER, request, f"numbers of columns that are not the parties': {question.n_columns}")
    if question.weights is not None:
        checks.shape(SERVER, request, question.weights, rows.shape)
        checks.non_negative(SERVER, request, question.weights)
    if question.folds is not None:
        checks.shape(SERVER, request, question.folds, rows.shape)
        if len(rows) == 0 or question.folds.min() < -1 or not 0 <= question.folds.max() < MAX_FOLDS:
            raise checks.wrong(SERVER, request, f"folds that are not numbered from 0 to {MAX_FOLDS - 1} at most")
    for fold, group in enumerate(question.groups()):
        effective = _effective_rows(rows[group], question.row_weights()[group])
        if effective <= ours or effective < LEAST_ROWS:
            raise InputError(
                f"its {ours} columns of {effective:.3g} rows (effectively, in fold {fold}) would nearly show the rows: "
                f"a Gram matrix hides them only if there are more rows than columns, and at least {LEAST_ROWS}. Use a "
                "larger size."
            )


def _effective_rows(rows: Rows, weights: Floats) -> float:
    """Count distinct rows, those of little weight less: (sum of weights)^2 / sum of their squares."""
    total = np.bincount(np.unique(rows, return_inverse=True)[1], weights=weights) if len(rows) else np.zeros(1)
    return float(total.sum() ** 2 / max(float(total @ total), 1e-300))
