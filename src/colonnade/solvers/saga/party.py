"""The party's side of Saga: what it keeps between requests, and its handlers."""

from dataclasses import dataclass, replace

import numpy as np

from colonnade.contracts import Table
from colonnade.errors import InputError, LocalProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.classes import class_codes
from colonnade.kernels.fixed_codes import FEWEST_BITS, MOST_BITS, decode_fixed, encode_fixed
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.saga import block_bounds, full_step_change, saga_step, shuffled
from colonnade.ledger import SERVER
from colonnade.messages import MAX_MAGNITUDE, Message, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import SELECTED, Handler, PartyData, PartyState
from colonnade.solvers.saga.coded import AskCodedProgress, CodedProducts, CodedStep, read_coded
from colonnade.solvers.saga.messages import (
    AskCoefficients,
    AskProgress,
    ClassNorms,
    Coefficients,
    OpenClassSaga,
    OpenSaga,
    PartialProducts,
    Progress,
    SagaStep,
    SquaredNorms,
)

Step = SagaStep | AskProgress | CodedStep | AskCodedProgress
OPENED, STEPPING, PAUSED = "saga opened", "saga stepping", "saga paused"


@dataclass(frozen=True, eq=False)
class SagaLearning:
    """One party's part of a SAGA run. No array of it is ever written to: a step makes new ones.

    Coordinates are the party's features and, last, the intercept, at the label party where one is fitted.

    Parameters
    ----------
    values : ndarray of float64, shape (m, d) or (m, d + 1)
        The coreset's rows, the label last: they are read once, since a step takes a few of them from all over a file.
    order : ndarray of int64, shape (m,)
        Their places, shuffled.
    n_blocks : int
        Into how many blocks they are dealt.
    shift, unit : ndarray of float64, shape (d,)
        A feature enters as (value - shift) / unit.
    spread, l2, l1 : ndarray of float64, shape (d or d + 1,)
        Of each coordinate: its standard unit and penalties.
    coef, average : ndarray of float64, shape (d or d + 1,)
        The coefficients, and the average gradient of the table that the server keeps.
    reported : ndarray of float64, shape (d or d + 1,)
        The coefficients at the end of the last epoch.
    sent : ndarray of float64, shape (m,)
        Where products travel coded: what the server has of them, in the order of the rows.
    less_label : bool
        Whether products are less the label, at its party: in a regression.
    step_size : float or None
        Once it is known.
    pending : int or None
        The block whose changes are awaited.
    """

    values: Floats
    order: Rows
    n_blocks: int
    shift: Floats
    unit: Floats
    spread: Floats
    l2: Floats
    l1: Floats
    coef: Floats
    average: Floats
    reported: Floats
    sent: Floats
    less_label: bool
    step_size: float | None = None
    pending: int | None = None

    def __repr__(self) -> str:
        return "SagaLearning(not shown)"

    def block_rows(self, block: int | None) -> Floats:
        """Give the rows of a block, none of none."""
        return self.values[self.order[:0] if block is None else self.order[self.places(block)]]

    def places(self, block: int) -> slice:
        """Give the places of a block's rows."""
        return block_bounds(len(self.order), self.n_blocks, block)

    def columns(self, rows: Floats) -> Floats:
        """Put rows' features into the units of the coordinates, shape (b, d or d + 1)."""
        columns = (rows[:, : len(self.unit)] - self.shift) / self.unit
        return np.column_stack([columns, np.ones(len(columns))]) if self._has_intercept else columns

    def stepped(self, request: Step) -> "SagaLearning":
        """Take the step that the pending block's changes call for."""
        rows = self.block_rows(self.pending)
        changes = _changes(request, len(rows))
        if self.pending is None or self.step_size is None:
            return self
        columns = self.columns(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            coef, average = saga_step(
                self.coef, self.average, columns, changes, self.n_blocks, self.step_size, self.l2, self.l1
            )
        if not (np.abs([coef, average]) <= MAX_MAGNITUDE).all():
            raise checks.wrong(SERVER, request, f"changes that lead to coefficients above {MAX_MAGNITUDE:g}")
        return replace(self, coef=coef, average=average, pending=None)

    def change(self) -> tuple[float, float]:
        """Measure what the last epoch changed and a full step would, and the size, both in the label's units."""
        moved = np.linalg.norm((self.coef - self.reported) * self.spread)
        ahead = full_step_change(self.coef, self.average, self.spread, self.l2, self.l1)
        size = np.linalg.norm((self.coef * self.spread)[: len(self.unit)])
        return float(np.hypot(moved, ahead)), float(size)

    def own_units(self) -> tuple[Floats, float]:
        """Give the coefficients of the features as they are in the table, and the part of the intercept."""
        coef: Floats = self.coef[: len(self.unit)] / self.unit
        return coef, float(self.coef[len(self.unit) :].sum() - self.shift @ coef)

    @property
    def _has_intercept(self) -> bool:
        return len(self.coef) > len(self.unit)


def open_learning(table: Table, rows: Rows, request: OpenSaga) -> SagaLearning:
    """Prepare a party's part of a run: its units, its penalties in them, and where it starts.

    Columns are scaled by all rows of the table, for which the weighted rows of the coreset stand. Coefficients start at
    0, which keeps collinear columns from drifting; the intercept at the labels' mean, or at the log of their odds.
    """
    n_features = len(table.feature_names)
    centre, spread = centre_and_spread(table, n_features, centred=request.fit_intercept)
    shift, unit = (centre, spread) if request.scale else (np.zeros(n_features), np.ones(n_features))
    l2, l1 = request.l2 / unit**2, request.l1 / unit
    free = int(request.fit_intercept and table.label_name is not None)  # the intercept, which bears no penalty
    values = table.take(rows)
    intercept = np.full(free, _first_intercept(values[:, -1], request) if free else 0.0)
    start = np.append(np.zeros(n_features), intercept)
    return SagaLearning(
        values=values,
        order=shuffled(len(rows), request.seed),
        n_blocks=request.n_blocks,
        shift=shift,
        unit=unit,
        spread=np.append(spread / unit, np.ones(free)),
        l2=np.append(l2, np.zeros(free)),
        l1=np.append(l1, np.zeros(free)),
        coef=start,
        average=np.zeros(n_features + free),
        reported=start,
        sent=np.zeros(len(rows)),
        less_label=table.label_name is not None and not isinstance(request, OpenClassSaga),
    )


def _first_intercept(labels: Floats, request: OpenSaga) -> float:
    if not isinstance(request, OpenClassSaga):
        return float(labels.mean())
    share = float(_codes(labels, request).mean())
    return float(np.log(share / (1 - share))) if 0 < share < 1 else 0.0


def _codes(labels: Floats, request: OpenClassSaga) -> Rows:
    try:
        return class_codes(labels, request.values)
    except ValueError:
        raise InputError("a label of its rows is none of the job's two classes. Name the label's classes.") from None


def _changes(request: Step, size: int) -> Floats:
    if isinstance(request, SagaStep | AskProgress):
        checks.shape(SERVER, request, request.changes, (size,))
        checks.in_range(SERVER, request, request.changes)
        return request.changes
    if not FEWEST_BITS <= request.bits <= MOST_BITS:
        raise checks.wrong(SERVER, request, f"{request.bits} bits, outside {FEWEST_BITS} to {MOST_BITS}")
    if request.size != size:
        raise checks.wrong(SERVER, request, f"changes of {request.size} rows where {size} were due")
    return read_coded(SERVER, request, request.changes, size, request.bits)


def _learning(state: PartyState) -> SagaLearning:
    if not isinstance(state.learning, SagaLearning):
        raise LocalProtocolError("Saga was not opened: send OpenSaga first.")
    return state.learning


def _answer_open(state: PartyState, request: OpenSaga, data: PartyData) -> tuple[PartyState, SquaredNorms]:
    rows = state.selected()
    if not 1 <= request.n_blocks <= len(rows):
        raise checks.wrong(SERVER, request, f"{request.n_blocks} blocks of {len(rows)} rows")
    checks.seed(request, request.seed)
    checks.non_negative(SERVER, request, np.array([request.l2, request.l1]))
    learning = open_learning(data.table, rows, request)
    norms = np.square(learning.columns(learning.values)).sum(axis=1)
    if norms.max() > MAX_MAGNITUDE:
        raise InputError(f"Squares of its columns exceed {MAX_MAGNITUDE:g}. Use Saga(scale=True).")
    return replace(state, learning=learning), SquaredNorms(sendable_floats(norms))


def _answer_open_classes(state: PartyState, request: OpenClassSaga, data: PartyData) -> tuple[PartyState, Message]:
    checks.shape(SERVER, request, request.values, (2,))
    checks.in_range(SERVER, request, request.values)
    state, norms = _answer_open(state, request, data)
    labels = None if data.table.label_name is None else sendable_floats(_learning(state).values[:, -1])
    return state, ClassNorms(norms.norms, labels)


def _answer_step(state: PartyState, request: SagaStep, _: PartyData) -> tuple[PartyState, Message]:
    learning, products = _step(_learning(state), request)
    state, products = replace(state, learning=learning), sendable_floats(products)
    if not learning.less_label:
        return state, PartialProducts(products, None)
    return state, PartialProducts(None, products)


def _answer_coded_step(state: PartyState, request: CodedStep, _: PartyData) -> tuple[PartyState, Message]:
    learning, products = _step(_learning(state), request)
    places, size, sent = learning.places(request.block), len(products), learning.sent.copy()
    codes = encode_fixed(products - sent[places], request.bits)
    sent[places] += decode_fixed(codes, size, request.bits)[0]
    state = replace(state, learning=replace(learning, sent=sent))
    if not learning.less_label:
        return state, CodedProducts(size, codes, None)
    return state, CodedProducts(size, None, codes)


def _step(learning: SagaLearning, request: SagaStep | CodedStep) -> tuple[SagaLearning, Floats]:
    """Take the step that is due; give the products of the next block, less the label where that is due."""
    if not 0 <= request.block < learning.n_blocks:
        raise checks.wrong(SERVER, request, f"block {request.block} of {learning.n_blocks}")
    if (request.step_size is None) == (learning.step_size is None):
        raise checks.wrong(SERVER, request, "no step size where it was due, or one where it was not")
    if request.step_size is not None:
        checks.positive(SERVER, request, request.step_size)
        learning = replace(learning, step_size=request.step_size)
    learning = replace(learning.stepped(request), pending=request.block)
    rows = learning.block_rows(request.block)
    products: Floats = learning.columns(rows) @ learning.coef
    return learning, products - rows[:, -1] if learning.less_label else products


def _answer_progress(
    state: PartyState, request: AskProgress | AskCodedProgress, _: PartyData
) -> tuple[PartyState, Message]:
    learning = _learning(state).stepped(request)
    with np.errstate(over="ignore"):  # the server looks for it
        change, size = learning.change()
    return replace(state, learning=replace(learning, reported=learning.coef)), Progress(change, size)


def _answer_coefficients(state: PartyState, _: AskCoefficients, data: PartyData) -> tuple[PartyState, Message]:  # noqa: ARG001
    coef, offset = _learning(state).own_units()
    return replace(state, learning=None), Coefficients(sendable_floats(coef), offset)


HANDLERS = (
    Handler(OpenSaga, _answer_open, after=frozenset({SELECTED}), then=OPENED, solver="saga"),
    Handler(OpenClassSaga, _answer_open_classes, after=frozenset({SELECTED}), then=OPENED, solver="saga"),
    Handler(SagaStep, _answer_step, after=frozenset({OPENED, STEPPING, PAUSED}), then=STEPPING, solver="saga"),
    Handler(CodedStep, _answer_coded_step, after=frozenset({OPENED, STEPPING, PAUSED}), then=STEPPING, solver="saga"),
    Handler(AskProgress, _answer_progress, after=frozenset({STEPPING}), then=PAUSED, solver="saga"),
    Handler(AskCodedProgress, _answer_progress, after=frozenset({STEPPING}), then=PAUSED, solver="saga"),
    Handler(AskCoefficients, _answer_coefficients, after=frozenset({PAUSED}), then=SELECTED, solver="saga"),
)
