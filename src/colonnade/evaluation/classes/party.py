"""A party's side of classifications that are applied: it takes chances of classes, or compares them with its labels."""

from dataclasses import replace

import numpy as np

from colonnade.errors import InputError
from colonnade.evaluation.classes.messages import AskClassLosses, ClassLosses, DeliverClasses, classes_digest
from colonnade.evaluation.delivery import Received
from colonnade.evaluation.linear import check_classes, weights_of
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.class_metrics import ClassMetrics, class_metrics
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.classes import ClassName, class_counts, class_names, label_classes
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState
from colonnade.protocol.sums import check_sums
from colonnade.signing import digest

# A line of the calibration table is of so many rows at least, and of more where the owner asks for more.
LEAST_IN_LINE = 10


def _answer_delivery(state: PartyState, request: DeliverClasses, data: PartyData) -> tuple[PartyState, Message]:
    rows, names = state.selected(), _names(request, request.values, request.names)
    checks.shape(SERVER, request, request.probabilities, (len(rows), len(names)))
    checks.in_range(SERVER, request, request.probabilities)
    found = ClassPredictions(request.probabilities, names)
    return replace(state, received=Delivery(rows, found, keys=data.table.key_columns(rows))), Received()


def _answer_losses(state: PartyState, request: AskClassLosses, data: PartyData) -> tuple[PartyState, Message]:
    rows, n_features = state.selected(), len(data.table.feature_names)
    checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
    check_classes(request, request.coef, len(rows), less_label=False)
    checks.shape(SERVER, request, request.others, (len(rows), *request.coef.shape[:-1]))
    for numbers in (request.coef, request.others):
        checks.in_range(SERVER, request, numbers)
    known = KnownClasses(request, request.intercepts, request.values, request.names)
    weights = weights_of(state, data, by_weight=request.by_weight)
    if data.policy.least_rows > 1:
        model = digest(*(each.tobytes() for each in (request.coef, request.others)), known.digest)
        state = count_told(state, data, model, weights, known)
    own = data.table.take(rows)[:, :n_features] @ request.coef.T
    found = known.metrics(own + request.others, weights, state, data)
    return state, ClassLosses(*told_numbers(found, drawn=not request.by_weight))


class KnownClasses:
    """The classes that a model knows, and its intercepts, as a server tells them; both are checked."""

    def __init__(self, request: Message, intercepts: Floats, values: Floats, names: tuple[str, ...] | None) -> None:
        self.names, self.intercepts = _names(request, values, names), intercepts
        self.is_text = names is not None
        self.digest = classes_digest(intercepts, values, names)
        checks.shape(SERVER, request, intercepts, (1 if len(self.names) == 2 else len(self.names),))
        checks.in_range(SERVER, request, intercepts)

    @property
    def n_numbers(self) -> int:
        """How many numbers an evaluation tells of each row, at most."""
        return n_told(len(self.names))

    def metrics(self, products: Floats, weights: Floats, state: PartyState, data: PartyData) -> ClassMetrics:
        """Compare chances with labels; x.theta without intercepts, shape (m,), (m, 1) or (m, K)."""
        n = len(self.names)
        logits = products.reshape(len(weights), -1) + self.intercepts
        # A row that was drawn twice is one row of twice the weight: lines of the calibration are of different rows.
        rows, first, place = np.unique(state.selected(), return_index=True, return_inverse=True)
        weight = np.bincount(place, weights, minlength=len(rows))
        codes, least = self.codes(rows, data), max(LEAST_IN_LINE, data.policy.least_rows)
        return class_metrics(logits[first, 0] if n == 2 else logits[first], codes, weight, n, least)

    def codes(self, rows: Rows, data: PartyData) -> Rows:
        """Give the place of each row's label among the classes.

        Whether there is another class is told of the whole table, whatever rows were selected: no choice of rows tells
        which have it.
        """
        table = data.seen(None).table
        if self.is_text != (table.label_levels is not None):
            ours, theirs = ("numbers", "text") if self.is_text else ("text", "numbers")
            raise InputError(
                f"its label {table.label_name!r} is {ours}, and the model's classes are {theirs}. Apply a model of "
                "this label."
            )
        values = data.seen(None).once(label_classes)
        places = {name: place for place, name in enumerate(self.names)}
        known = [places.get(name, -1) for name in class_names(values, table.label_levels)]
        if -1 in known:
            raise self._unknown(known.index(-1), data)
        labels = data.table.take(rows)[:, -1]
        return np.array(known, dtype=np.int64)[np.searchsorted(values, labels)]

    def _unknown(self, place: int, data: PartyData) -> InputError:
        unseen = data.seen(None)
        name = class_names(unseen.once(label_classes), unseen.table.label_levels)[place]
        is_common = unseen.once(class_counts)[place] >= data.policy.least_rows
        shown = f"the class {name!r}" if is_common and Reveals.LEVELS not in data.policy.never else "a class"
        return InputError(
            f"its label {unseen.table.label_name!r} has {shown}, which the model does not know: it knows "
            f"{', '.join(map(repr, self.names))}. Leave such rows out of the table, or learn a model with them."
        )


def count_told(state: PartyState, data: PartyData, model: bytes, weights: Floats, known: KnownClasses) -> PartyState:
    """Require that sums over the selected rows hide them, beside all that were told before, and remember them.

    Another intercept is another model: how many rows of a class have larger logits, for many intercepts, is the rows.
    """
    what, groups = f"class losses of model {model.hex()}", [(state.selected(), weights)]
    return check_sums(state, data, what, groups, 1, known.n_numbers, LEAST_IN_LINE, of_each=known.n_numbers)


def n_told(n_classes: int) -> int:
    """Count the numbers that an evaluation tells, at most: sums, a table of classes, areas, calibration."""
    return 3 + n_classes**2 + 2 * (1 if n_classes == 2 else n_classes + 1) + 30


def told_numbers(found: ClassMetrics, *, drawn: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Write what came of it as a reply has it; how much losses vary is of use where rows are drawn."""
    sums = sendable_floats([found.cost, found.deviation if drawn else 0.0, found.brier])
    return sums, sendable_floats(found.confusion), sendable_floats(found.areas), sendable_floats(found.calibration)


def _names(request: Message, values: Floats, names: tuple[str, ...] | None) -> tuple[ClassName, ...]:
    """Read classes as they travel: numbers, or places of names."""
    checks.in_range(SERVER, request, values)
    is_named = names is not None and (len(names) != len(values) or (values != np.arange(len(values))).any())
    if values.ndim != 1 or not 2 <= len(values) <= MOST_CLASSES or is_named:
        raise checks.wrong(SERVER, request, f"classes that are not 2 to {MOST_CLASSES}, or not those of their names")
    read = class_names(values, names)
    if len(set(read)) != len(read):
        raise checks.wrong(SERVER, request, "a class that is there twice")
    return read


HANDLERS = (
    Handler(DeliverClasses, _answer_delivery, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskClassLosses, _answer_losses, after=frozenset({SELECTED}), then=SELECTED),
)
