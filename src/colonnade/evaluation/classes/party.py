"""A party's side of classifications that are applied: it takes chances of classes, or compares them with its labels."""

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from colonnade.errors import InputError
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringMaskedClasses,
    ClassLosses,
    DeliverClasses,
    DeliverMaskedClasses,
    MaskedClassLosses,
    OthersLogits,
    class_losses_digest,
    classes_digest,
    told_of,
)
from colonnade.evaluation.delivery import Received
from colonnade.evaluation.linear import check_classes, n_models, weights_of
from colonnade.evaluation.masked.messages import MaskedReceived
from colonnade.evaluation.masked.receiving import KeptPart, LetGo, check_told, keep_taken, let_go, own_identity
from colonnade.evaluation.windows import made_of_window
from colonnade.kernels.arrays import Codes, Floats, Rows
from colonnade.kernels.class_counts import Compared, Part
from colonnade.kernels.class_metrics import ClassMetrics, most_lines, n_lines
from colonnade.kernels.class_predictions import ClassPredictions, class_chances
from colonnade.kernels.classes import MOST_CLASSES
from colonnade.kernels.ranks import ROWS_AT_ONCE
from colonnade.kernels.selections import CountedRows, Window
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.privacy.pair_keys import SHARED
from colonnade.privacy.statements import sent_statement
from colonnade.protocol import checks
from colonnade.protocol.classes import ClassName, class_counts, class_names, label_classes
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.protocol.windows import (
    Arrived,
    arrived,
    arrived_before,
    check_kept,
    check_window,
    joined,
    n_selected_in,
)
from colonnade.signing import digest

# A line of the calibration table is of so many rows at least, and of more where the owner asks for more.
LEAST_IN_LINE = 10
NOTHING_TOLD = ClassLosses(*(sendable_floats(()) for _ in range(4)))
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
    delivery = state.delivery(ClassPredictions(joined(here.parts), names), data.table)
    return state.but(learning=None, received=delivery), Received()


@dataclass(frozen=True, eq=False)
class _Looked:
    """What came of windows so far, and a name of the logits that were brought, for owners who count what is told."""

    compared: Compared
    brought: bytes = b""

    def __repr__(self) -> str:
        return "_Looked(not shown)"


def _answer_losses(state: PartyState, request: AskClassLosses, data: PartyData) -> tuple[PartyState, Message]:
    window, n_features = request.window, len(data.table.feature_names)
    check_window(state, request, window)
    checks.shape(SERVER, request, request.coef, (*request.coef.shape[:-1], n_features))
    check_classes(request, request.coef, window.stop - window.first, less_label=False)
    checks.in_range(SERVER, request, request.coef)
    checks.shape(SERVER, request, request.others, (n_selected_in(state, window), *request.coef.shape[:-1]))
    checks.in_range(SERVER, request, request.others)
    known = KnownClasses(request, request.intercepts, request.values, request.names)
    known.check_coef(request, request.coef)
    model = digest(request.coef.tobytes(), known.digest)
    what = AskClassLosses, model, request.by_weight
    *_, looked = _Looked(Compared(len(known.names))), *arrived_before(state.learning, what, request, window)
    brought = digest(looked.brought, request.others.tobytes()) if data.policy.least_rows > 1 else b""
    compared = known.compared(looked.compared, state, request, data)
    if window.stop < state.n_places:
        return state.but(learning=Arrived(what, window.stop, (_Looked(compared, brought),))), NOTHING_TOLD
    state = state.but(learning=None)
    if data.policy.least_rows > 1:
        name = known.told_of(digest(model, brought))
        n_numbers = known.n_numbers(state, data, by_weight=request.by_weight)
        state = check_told(state, data, name, n_numbers, by_weight=request.by_weight)
    found = known.metrics(compared, state, data, by_weight=request.by_weight)
    return state, ClassLosses(*told_numbers(found, drawn=not request.by_weight))


def _answer_masked_delivery(
    state: PartyState, request: DeliverMaskedClasses, data: PartyData
) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False)
    if let is None:
        return state, MaskedReceived(b"")
    known = _known(request, let.ours)
    chances = class_chances(known.logits(len(state.selection()), _all_products(let, state, request, data)))
    delivery = state.delivery(ClassPredictions(chances, known.names), data.table)
    return state.but(received=delivery), MaskedReceived(request.fingerprint())


def _answer_masked_brought(
    state: PartyState, request: BringMaskedClasses, data: PartyData
) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False, is_brought=True)
    if let is None:
        return state, MaskedReceived(b"")
    known = _known(request, let.ours)
    if request.first == 0:
        _check_told(let, known, state, request, data)  # it counts with the last window, which tells
    return keep_taken(state, _looked_at(let, known, state, request, data)), MaskedReceived(request.fingerprint())


def _check_told(
    let: LetGo, known: "KnownClasses", state: PartyState, request: OthersLogits, data: PartyData
) -> PartyState:
    """Require that sums over the selected rows hide them; remember that they were told."""
    by_weight = let.ours.request.by_weight
    model = digest(let.ours.signed.other, *(part.other for part in request.parts), known.digest)
    n_numbers = known.n_numbers(state, data, by_weight=by_weight)
    return check_told(state, data, known.told_of(model), n_numbers, by_weight=by_weight)


def _looked_at(
    let: LetGo, known: "KnownClasses", state: PartyState, request: OthersLogits, data: PartyData
) -> Arrived[Compared]:
    """Unmask a window, of the model and classes that windows before were of, and compare it with labels."""
    window = let.ours.request.window
    what = OthersLogits, known.digest, tuple(part.other for part in request.parts)
    *_, before = Compared(len(known.names)), *arrived_before(let.before, what, request, window)
    products = let.unmasked(request.parts, data)
    _, codes = known.products_and_codes(state, window, data, None)
    logits, by_weight = known.logits(len(codes), products), let.ours.request.by_weight
    return Arrived(what, window.stop, (_with_window(before, state, window, logits, codes, by_weight=by_weight),))


def _answer_masked_losses(
    state: PartyState, request: AskMaskedClassLosses, data: PartyData
) -> tuple[PartyState, Message]:
    let, state = let_go(state, request, (request.first, request.stop), evaluating=False)
    if let is None:
        return state, MaskedClassLosses(*told_of(NOTHING_TOLD), b"")
    ours, known, by_weight = let.ours, _known(request, let.ours), let.ours.request.by_weight
    state = _check_told(let, known, state, request, data)
    (compared,) = _looked_at(let, known, state, request, data).parts
    found = known.metrics(compared, state, data, by_weight=by_weight)
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
    if coef is None:
        raise checks.wrong(SERVER, request, "a question for classes of parts that are of centres")
    known.check_coef(request, coef)
    return known


class KnownClasses:
    """The classes that a model knows, and its intercepts, as a server tells them; both are checked."""

    def __init__(self, request: Message, intercepts: Floats, values: Floats, names: tuple[str, ...] | None) -> None:
        self.names, self.intercepts = _names(request, values, names), intercepts
        self.is_text = names is not None
        self.digest = classes_digest(intercepts, values, names)
        checks.shape(SERVER, request, intercepts, (1 if len(self.names) == 2 else len(self.names),))
        checks.in_range(SERVER, request, intercepts)

    def check_coef(self, request: Message, coef: Floats) -> None:
        """Require coefficients of so many classes."""
        if coef.shape[:-1] != ((len(self.names),) if len(self.names) > 2 else ()):
            raise checks.wrong(SERVER, request, "other classes than coefficients are of")

    def n_numbers(self, state: PartyState, data: PartyData, *, by_weight: bool) -> int:
        """Count the numbers that an evaluation tells, at most: sums, a table of classes, areas, and calibration."""
        rows, n = state.selection(), len(self.names)
        if not isinstance(rows, CountedRows):
            lines = n_lines(_distinct(rows, weights_of(state, data, by_weight=by_weight))[1])
        else:
            lines = most_lines(*((rows.weight, rows.squared_weight) if by_weight else (len(rows), len(rows))))
        return 3 + n**2 + 2 * (1 if n == 2 else n + 1) + 3 * lines

    def told_of(self, model: bytes) -> str:
        """Name what is told of a model, by its digest.

        Another intercept is another model: how many rows have larger logits, for many intercepts, is the rows.
        """
        return f"losses of classes by model {model.hex()}"

    def logits(self, n_rows: int, *products: Floats) -> Floats:
        """Add up parts of x.theta, of any shape, and intercepts: (m,) for two classes, else (m, K)."""
        logits = np.empty((n_rows, len(self.intercepts)))
        parts = [each.reshape(logits.shape) for each in products]
        for start in range(0, n_rows, ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            np.add(reduce(np.add, [each[some] for each in parts]), self.intercepts, out=logits[some])
            np.clip(logits[some], -LARGEST_LOGIT, LARGEST_LOGIT, out=logits[some])
        return logits[:, 0] if len(self.names) == 2 else logits

    def products_and_codes(
        self, state: PartyState, window: Window, data: PartyData, coef: Floats | None
    ) -> tuple[Floats, Codes]:
        """Give x.theta of a window's rows, if there are coefficients, and their classes: the table is read once."""
        coef = np.empty((0, len(data.table.feature_names))) if coef is None else coef
        found = made_of_window(state, window, data, partial(_products_and_codes, coef, *self.codes_of_labels(data)))
        return (found[:, 0] if coef.ndim == 1 else found[:, :-1]), found[:, -1].astype(np.int8)

    def compared(self, before: Compared, state: PartyState, request: AskClassLosses, data: PartyData) -> Compared:
        """Compare a window's chances with labels, and put them beside those of windows before."""
        own, codes = self.products_and_codes(state, request.window, data, request.coef)
        logits = self.logits(len(codes), own, request.others)
        return _with_window(before, state, request.window, logits, codes, by_weight=request.by_weight)

    def metrics(self, compared: Compared, state: PartyState, data: PartyData, *, by_weight: bool) -> ClassMetrics:
        """Say how well chances of all windows' rows fit their labels.

        A row that was drawn twice is one row of twice the weight: a line of the calibration is of different rows.
        """
        rows = state.selection()
        if not isinstance(rows, CountedRows):
            first, weight = _distinct(rows, weights_of(state, data, by_weight=by_weight))
            logits, codes, _ = compared.together
            compared = Compared(len(self.names)).add(Part(logits[first], codes[first], weight))
        return compared.metrics(max(LEAST_IN_LINE, data.policy.least_rows))

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


def _with_window(
    before: Compared, state: PartyState, window: Window, logits: Floats, codes: Codes, *, by_weight: bool
) -> Compared:
    """Put a window's rows beside those of windows before; rows that are listed are kept, until all are there."""
    rows = state.selection()
    if isinstance(rows, CountedRows):
        return before.add(Part(logits, codes, rows.weights_in(window) if by_weight else None))
    check_kept(state, window.n_numbers)
    return before.add(Part(logits, codes, None), keeping=True)


def _codes(values: Floats, codes: Codes, rows: Floats) -> Codes:
    """Give the code of each row's label, which is one of these values."""
    labels = rows[:, -1]
    # Of two values, one look is enough.
    found = (labels == values[-1]).view(np.int8) if len(values) == 2 else np.searchsorted(values, labels)
    return np.take(codes, found)


def _products_and_codes(coef: Floats, values: Floats, codes: Codes, rows: Floats) -> Floats:
    """Give x.theta of rows, if any, and the code of their label in a last column, one column after another."""
    n_features, n_numbers = coef.shape[-1], n_models(coef)
    found = np.empty((len(rows), n_numbers + 1), order="F")
    np.matmul(rows[:, :n_features], coef.T, out=found[:, 0] if coef.ndim == 1 else found[:, :n_numbers])
    found[:, n_numbers] = _codes(values, codes, rows)
    return found


def _distinct(rows: Rows, weights: Floats) -> tuple[Rows, Floats]:
    """Find where each row is first among those that are listed, and the weight of all its copies."""
    different, first, place = np.unique(rows, return_index=True, return_inverse=True)
    weight = np.asarray(np.bincount(place, weights, minlength=len(different)), np.float64)
    return first.astype(np.int64), weight


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
    Handler(DeliverMaskedClasses, _answer_masked_delivery, after=frozenset({SHARED}), then=SHARED),
    Handler(BringMaskedClasses, _answer_masked_brought, after=frozenset({SHARED}), then=SHARED),
    Handler(AskMaskedClassLosses, _answer_masked_losses, after=frozenset({SHARED}), then=SHARED),
)
