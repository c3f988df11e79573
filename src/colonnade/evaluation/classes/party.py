"""A party's side of classifications that are applied: it takes chances of classes, or compares them with its labels."""

from functools import partial

import numpy as np

from colonnade.errors import InputError
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringLogits,
    ClassLosses,
    DeliverClasses,
    DeliverMaskedClasses,
    MaskedClassLosses,
    OthersLogits,
    class_losses_digest,
    classes_digest,
)
from colonnade.evaluation.delivery import Received
from colonnade.evaluation.linear import check_classes, products, weights_of
from colonnade.evaluation.masked.messages import MaskedReceived
from colonnade.evaluation.masked.receiving import KeptPart, LetGo, check_told, let_go, own_identity
from colonnade.evaluation.windows import made_of_window, of_selected
from colonnade.kernels.arrays import Codes, Floats, Rows
from colonnade.kernels.class_metrics import ClassMetrics, class_metrics, n_lines
from colonnade.kernels.class_predictions import ClassPredictions, class_chances
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.kernels.ranks import ROWS_AT_ONCE
from colonnade.kernels.selections import CountedRows, Window
from colonnade.ledger import SERVER
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.privacy.pair_keys import SHARED
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.classes import ClassName, class_counts, class_names, label_classes
from colonnade.protocol.session import SELECTED, Delivery, Handler, PartyData, PartyState
from colonnade.protocol.windows import Arrived, arrived, check_kept, check_window, joined, n_selected_in
from colonnade.signing import digest

# A line of the calibration table is of so many rows at least, and of more where the owner asks for more.
LEAST_IN_LINE = 10
# Chances are 0 and 1 long before. Losses of parts that another party made up still have sums that can be told.
LARGEST_LOGIT = 1e80


def _answer_delivery(state: PartyState, request: DeliverClasses, data: PartyData) -> tuple[PartyState, Message]:
    names = _names(request, request.values, request.names)
    check_window(state, request, request.window)
    checks.shape(SERVER, request, request.probabilities, (n_selected_in(state, request.window), len(names)))
    checks.in_range(SERVER, request, request.probabilities)
    check_kept(state, len(names))
    here = arrived(state.learning, (DeliverClasses, names), request, request.window, request.probabilities)
    if here.stop < state.n_places:
        return state.but(learning=here), Received()
    rows, found = state.selected(), ClassPredictions(joined(here.parts), names)
    delivery = Delivery(rows, found, keys=data.table.key_columns(rows))
    return state.but(learning=None, received=delivery), Received()


def _answer_logits(state: PartyState, request: BringLogits, _: PartyData) -> tuple[PartyState, Message]:
    return state.but(learning=_brought(state, request)), Received()


def _brought(state: PartyState, request: BringLogits | AskClassLosses) -> Arrived[Floats]:
    """Put a window of the others' logits beside those that are there: a number a row and class."""
    check_window(state, request, request.window)
    checks.in_range(SERVER, request, request.others)
    if len(request.others) > request.stop - request.first:
        raise checks.wrong(SERVER, request, f"{len(request.others)} logits of a window of fewer rows")
    brought = arrived(state.learning, BringLogits, request, request.window, request.others)
    most = max(MAX_NUMBERS, len(state.selection()))
    if (n_numbers := sum(each.size for each in brought.parts)) > most:
        raise InputError(
            f"logits of the others would be {n_numbers:,} numbers, and it keeps {most:,} at most. Evaluate fewer rows."
        )
    return brought


def _answer_losses(state: PartyState, request: AskClassLosses, data: PartyData) -> tuple[PartyState, Message]:
    rows, n_features = state.selection(), len(data.table.feature_names)
    checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
    check_classes(request, request.coef, request.stop - request.first, less_label=False)
    checks.in_range(SERVER, request, request.coef)
    brought = _brought(state, request).parts
    if any(each.shape[1:] != request.coef.shape[:-1] for each in brought):
        raise checks.wrong(SERVER, request, "logits of other classes than its coefficients are of")
    n_brought = sum(map(len, brought))
    if n_brought != len(rows):
        shape = (n_brought, *request.coef.shape[:-1])
        raise checks.wrong(SERVER, request, f"logits of shape {shape} for {len(rows):,} selected rows")
    state = state.but(learning=None)
    known = KnownClasses(request, request.intercepts, request.values, request.names)
    weights = weights_of(state, data, by_weight=request.by_weight)
    if data.policy.least_rows > 1:
        model = digest(*(each.tobytes() for each in (request.coef, joined(brought))), known.digest)
        n_numbers = known.n_numbers(state, weights)
        state = check_told(state, data, known.told_of(model), n_numbers, by_weight=request.by_weight)
    own, at = made_of_window(state, Window(0, state.n_places, 1), data, products(request.coef)), 0
    for others in brought:
        own[at : at + len(others)] += others
        at += len(others)
    found = known.metrics(own, weights, state, data)
    return state, ClassLosses(*told_numbers(found, drawn=not request.by_weight))


def _answer_masked_delivery(
    state: PartyState, request: DeliverMaskedClasses, data: PartyData
) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False)
    if let is None:
        return state, MaskedReceived(b"")
    rows, known = state.selected(), _known(request, let.ours)
    chances = class_chances(known.logits(_all_products(let, state, request, data), len(rows)))
    delivery = Delivery(rows, ClassPredictions(chances, known.names), keys=data.table.key_columns(rows))
    return state.but(received=delivery), MaskedReceived(request.fingerprint())


def _answer_masked_losses(
    state: PartyState, request: AskMaskedClassLosses, data: PartyData
) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False)
    if let is None:
        nothing = sendable_floats(())
        return state, MaskedClassLosses(nothing, nothing, nothing, nothing, b"")
    ours, known, by_weight = let.ours, _known(request, let.ours), let.ours.request.by_weight
    weights = weights_of(state, data, by_weight=by_weight)
    model = digest(ours.signed.other, *(part.other for part in request.parts), known.digest)
    state = check_told(state, data, known.told_of(model), known.n_numbers(state, weights), by_weight=by_weight)
    found = known.metrics(_all_products(let, state, request, data), weights, state, data)
    told, identity = told_numbers(found, drawn=not by_weight), own_identity(data)
    sent = class_losses_digest(ours.signed.other, request, *told)
    return state, MaskedClassLosses(*told, identity.sign(sent_statement(identity.name, ours.transcript, sent)))


def _all_products(let: LetGo, state: PartyState, request: OthersLogits, data: PartyData) -> Floats:
    """Unmask the last window, and put x.theta of all windows together: intercepts came with none before."""
    taken = let.with_others(state, request, 0.0, request.parts, data)
    return joined(tuple(each.predictions for each in taken.parts))


def _known(request: OthersLogits, ours: KeptPart) -> "KnownClasses":
    """Read classes, as many as coefficients were masked for."""
    known, coef = KnownClasses(request, request.intercepts, request.values, request.names), ours.request.coef
    if coef is None or coef.shape[:-1] != ((len(known.names),) if len(known.names) > 2 else ()):
        raise checks.wrong(SERVER, request, "other classes than parts were masked for")
    return known


class KnownClasses:
    """The classes that a model knows, and its intercepts, as a server tells them; both are checked."""

    def __init__(self, request: Message, intercepts: Floats, values: Floats, names: tuple[str, ...] | None) -> None:
        self.names, self.intercepts = _names(request, values, names), intercepts
        self.is_text = names is not None
        self.digest = classes_digest(intercepts, values, names)
        checks.shape(SERVER, request, intercepts, (1 if len(self.names) == 2 else len(self.names),))
        checks.in_range(SERVER, request, intercepts)

    def n_numbers(self, state: PartyState, weights: Floats) -> int:
        """Count the numbers that an evaluation tells, at most: sums, a table of classes, areas, and calibration."""
        n, (_, _, weight) = len(self.names), _distinct(state, weights)
        return 3 + n**2 + 2 * (1 if n == 2 else n + 1) + 3 * n_lines(weight)

    def told_of(self, model: bytes) -> str:
        """Name what is told of a model, by its digest.

        Another intercept is another model: how many rows have larger logits, for many intercepts, is the rows.
        """
        return f"losses of classes by model {model.hex()}"

    def logits(self, products: Floats, n_rows: int) -> Floats:
        """Add intercepts to x.theta, of any shape: (m,) for two classes, else (m, K)."""
        logits = np.empty((n_rows, len(self.intercepts)))
        products = products.reshape(logits.shape)
        for start in range(0, n_rows, ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            np.add(products[some], self.intercepts, out=logits[some])
            np.clip(logits[some], -LARGEST_LOGIT, LARGEST_LOGIT, out=logits[some])
        return logits[:, 0] if len(self.names) == 2 else logits

    def metrics(self, products: Floats, weights: Floats, state: PartyState, data: PartyData) -> ClassMetrics:
        """Compare chances with labels, given x.theta without intercepts."""
        logits = self.logits(products, len(weights))
        rows, first, weight = _distinct(state, weights)
        least = max(LEAST_IN_LINE, data.policy.least_rows)
        codes = of_selected(state.but(rows=rows), data, partial(_codes, *self.codes_of_labels(data)))
        return class_metrics(logits[first], codes, weight, len(self.names), least)

    def codes_of_labels(self, data: PartyData) -> tuple[Floats, Codes]:
        """Give the label's values, ascending, and the place of each among the classes.

        Whether there is another class is told of the whole table, whatever rows were selected: no choice of rows tells
        which have it.
        """
        table = data.seen(None).table
        if table.label_name is None:
            raise InputError("it holds no label, which classes are compared with. Ask the label party.")
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
        return values, np.array(known, np.int8)

    def _unknown(self, place: int, data: PartyData) -> InputError:
        unseen = data.seen(None)
        name = class_names(unseen.once(label_classes), unseen.table.label_levels)[place]
        is_common = unseen.once(class_counts)[place] >= data.policy.least_rows
        shown = f"the class {name!r}" if is_common and Reveals.LEVELS not in data.policy.never else "a class"
        return InputError(
            f"its label {unseen.table.label_name!r} has {shown}, which the model does not know: it knows "
            f"{', '.join(map(repr, self.names))}. Leave such rows out of the table, or learn a model with them."
        )


def _codes(values: Floats, codes: Codes, rows: Floats) -> Codes:
    """Give the code of each row's label, which is one of these values."""
    labels = rows[:, -1]
    # Of two values, one look is enough.
    found = (labels == values[-1]).view(np.int8) if len(values) == 2 else np.searchsorted(values, labels)
    return np.take(codes, found)


def _distinct(state: PartyState, weights: Floats) -> tuple[Rows | CountedRows, Rows | slice, Floats]:
    """Find the rows that are selected, where each is first, and the weight of all its copies.

    A row that was drawn twice is one row of twice the weight: a line of the calibration is of different rows.
    """
    if isinstance(state.rows, CountedRows):
        return state.rows, slice(None), weights
    rows, first, place = np.unique(state.selected(), return_index=True, return_inverse=True)
    weight = np.asarray(np.bincount(place, weights, minlength=len(rows)), np.float64)
    return rows, first.astype(np.int64), weight


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
    Handler(BringLogits, _answer_logits, after=frozenset({SELECTED}), then=SELECTED),
    Handler(AskClassLosses, _answer_losses, after=frozenset({SELECTED}), then=SELECTED),
    Handler(DeliverMaskedClasses, _answer_masked_delivery, after=frozenset({SHARED}), then=SHARED),
    Handler(AskMaskedClassLosses, _answer_masked_losses, after=frozenset({SHARED}), then=SHARED),
)
