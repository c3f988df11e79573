"""What a party checks of a question in Gram mode, by shares or by encryption, before it answers."""

from collections.abc import Sequence

from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.pair_keys import identity_of
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartyState
from colonnade.protocol.sums import GRAM, Group, check_sums
from colonnade.protocol.weighing import check_weights
from colonnade.solvers.gram.question import GramQuestion

# Mean and variance of one column of two rows are its two values.
LEAST_ROWS = 5


def check_columns(request: Message, n_columns: Sequence[int], data: PartyData) -> int:
    """Require as many numbers of columns as there are parties, and the party's own among them; give that."""
    identity, ours = identity_of(data), len(data.table.feature_names) + (data.table.label_name is not None)
    place = identity.parties.index(identity.name)
    if len(n_columns) != len(identity.parties) or n_columns[place] != ours or min(n_columns) < 0:
        raise checks.wrong(SERVER, request, f"numbers of columns that are not the parties': {n_columns}")
    return ours


def check_question(state: PartyState, question: GramQuestion, request: Message, data: PartyData) -> PartyState:
    """Check what the server asks, and that it is about enough rows for none of them to show; remember that."""
    rows, ours = question.rows, check_columns(request, question.n_columns, data)
    if not len(rows):
        raise checks.wrong(SERVER, request, "a question about no rows")
    if question.weights is not None:
        checks.shape(SERVER, request, question.weights, rows.shape)
        checks.non_negative(SERVER, request, question.weights)
    check_weights(state, request, question.weights, data)
    if question.fold_seed is not None:
        checks.seed(request, question.fold_seed)
    weights = question.row_weights()
    groups = [(rows[group], weights[group]) for group in question.fold_rows()]
    return check_told(state, data, groups, ours, question.n_columns)


def check_told(
    state: PartyState, data: PartyData, groups: Sequence[Group], ours: int, n_columns: Sequence[int]
) -> PartyState:
    """Check that sums over these rows may be told, and remember them.

    Of each fold they are a mean, a factor, of which a triangle tells something, and products with the others' columns:
    half of these are counted here, and half there.
    """
    n_numbers = ours + (ours * (sum(n_columns) + 1) + 1) // 2
    return check_sums(state, data, GRAM, groups, ours, len(groups) * n_numbers, LEAST_ROWS)
