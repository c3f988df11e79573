"""Saga: columns and coefficients stay with the parties; partial products go up, changes of residuals go down.

The solver and its script.
"""

import warnings
from collections.abc import Mapping
from typing import ClassVar, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, Inbox, LinearTask, LogisticTask, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import ConvergenceWarning, InputError, UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.fixed_codes import checked_bits
from colonnade.kernels.possible import first_copies
from colonnade.kernels.saga import epoch_blocks, shuffled
from colonnade.messages import MAX_NUMBERS, Message, Reveals, sendable_floats
from colonnade.options import flag, non_negative_number, whole_number
from colonnade.protocol import checks
from colonnade.routes import Ask, AtMost, Route
from colonnade.solvers.saga.coded import AskCodedProgress, CodedStep, coded_epochs
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
from colonnade.solvers.saga.route import SagaRoute
from colonnade.solvers.saga.table import ResidualTable

M = TypeVar("M")


class Saga(msgspec.Struct, frozen=True, tag_field="kind", tag="saga", forbid_unknown_fields=True):
    """Learn a linear model with SAGA: no row's features leave their party, at the price of many rounds.

    For regression, and for classification of two classes: there the label party tells labels once, and the slopes of
    the rows' losses take the place of residuals.

    The coreset's rows are shuffled and dealt into blocks once; each round takes one block, evenly drawn, and weighs
    its residuals by the coreset's weights. Even draws, because a coreset's weights are made to balance ``w_i |x_i|^2``,
    which is what the step size depends on; drawing by weight would visit light, large rows too rarely. And parties
    then need no weights, which would tell them the others' scores. The step is 1 / (3 L), with L from squared norms.

    An epoch is as many rounds as there are blocks: 2 m T units, and T for each round to name its block; with
    ``batch=1`` that is the paper's 3 m T. Two units a party close it.

    Parameters
    ----------
    batch : int
        Rows a round. 1 is SAGA to the letter; more means fewer rounds an epoch, and more epochs.
    tolerance : float
        Stop after an epoch that changed the coefficients by less than this part of their size, in standard units, if
        a full proximal step would change them by no more. The objective is then off by about the square of it.
    max_epochs : int
        Stop here with a `ConvergenceWarning`.
    scale : bool
        Let each party centre and scale its own columns for the time of the solving. The task and the model stay in
        the columns' own units, penalties too, and nothing is sent for it. Without it, raw columns of different sizes
        do not converge in any reasonable time.
    bits : int, optional
        Let products and changes travel with so many bits, 4 to 32, instead of 64. What travels is then how each product
        differs from what the server has, rounded, and both ends go on from the rounded value: errors are fed back, none
        adds up, and they shrink with the differences. The result is that of exact numbers to within the tolerance; with
        few bits it takes more epochs.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4)) * [1.0, 1e3, 1.0, 1e-3]
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2e-3, 3.0, 4e3] + 5.0, [2, 2]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100), solver=cn.Saga(tolerance=1e-8))
    >>> (run.model.coef_ * [1.0, 1e3, 1.0, 1e-3]).round(4).tolist(), round(run.model.intercept_, 4)
    ([1.0, 2.0, 3.0, 4.0], 5.0)
    """

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.LABELS,)

    batch: int = 8
    tolerance: float = 1e-4
    max_epochs: int = 1000
    scale: bool = True
    bits: int | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "batch", whole_number("batch", self.batch, least=1, example="Pass for instance batch=8."))
        tolerance = non_negative_number("tolerance", self.tolerance, example="Pass for instance tolerance=1e-4.")
        force_setattr(self, "tolerance", tolerance)
        epochs = whole_number("max_epochs", self.max_epochs, least=1, example="Pass for instance max_epochs=1000.")
        force_setattr(self, "max_epochs", epochs)
        force_setattr(self, "scale", flag("scale", self.scale))
        force_setattr(self, "bits", checked_bits(self.bits))

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:  # noqa: ARG002  # any parties
        """Take tasks whose model is linear, with penalties that are known."""
        _learned(task)

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Open, step through epochs until little changes, collect the coefficients."""
        linear = _learned(task)
        size, parties = len(coreset), roster.names
        if size > MAX_NUMBERS:
            raise InputError(f"Saga takes {MAX_NUMBERS:,} rows at most, and these are {size:,}. Draw a coreset.")
        n_blocks, seed = -(-size // self.batch), int(rng.integers(2**63))
        options = (n_blocks, seed, *linear.penalties(), linear.fit_intercept, self.scale)
        inbox = yield dict.fromkeys(parties, _opening(linear, options))
        weights = n_blocks * coreset.weights / coreset.total_weight
        norms, codes = _opened(inbox, linear, roster, coreset.rows)
        table = ResidualTable(roster.label_party, shuffled(size, seed), n_blocks, weights, np.zeros(size), codes)
        step: float | None = table.step_size(norms)
        if self.scale:
            _check_scaled_norms(norms, roster, coreset.rows, fit_intercept=linear.fit_intercept)
        play = plain_epoch if self.bits is None else coded_epochs(self.bits, size)
        for epoch in range(self.max_epochs):
            blocks = epoch_blocks(epoch, n_blocks, rng).tolist()
            closing, step = (yield from play(parties, blocks, table, step)), None
            inbox = yield dict.fromkeys(parties, closing)
            change = table.relative_change(checks.replies(inbox, Progress))
            if change <= self.tolerance:
                break
        else:
            self.warn(change)
        inbox = yield dict.fromkeys(parties, AskCoefficients())
        coef, intercept = _join(checks.replies(inbox, Coefficients), roster, linear.fit_intercept, self.scale)
        model = _model(linear, coef, intercept, roster)
        l2, l1 = linear.penalties()
        penalty = l2 * float(coef @ coef) + l1 * float(np.abs(coef).sum())
        return Solution(model, {"epochs": epoch + 1, "cost": table.cost(coreset.total_weight, penalty)})

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect shuffle and blocks as they follow from the sheet, epochs within their number, and the end."""
        linear, rng = _learned(task), np.random.default_rng(agreed.seed)
        l2, l1 = linear.penalties()
        most, least = -(-agreed.size // self.batch), -(-agreed.least // self.batch)
        opening = Ask(
            OpenSaga if isinstance(linear, LinearTask) else OpenClassSaga,
            n_blocks=most if least == most else AtMost(most, least),
            seed=int(rng.integers(2**63)),
            l2=l2,
            l1=l1,
            fit_intercept=linear.fit_intercept,
            scale=self.scale,
        )
        if self.bits is None:
            step, closing = Ask(SagaStep), Ask(AskProgress)
        else:
            step, closing = Ask(CodedStep, bits=self.bits), Ask(AskCodedProgress, bits=self.bits)
        return SagaRoute(opening, step, closing, self.max_epochs, rng)

    def warn(self, change: float) -> None:
        """Say that the epochs were too few, and what to change."""
        scale = "" if self.scale else "pass scale=True; "
        warnings.warn(
            f"Saga stopped after {self.max_epochs} epochs with coefficients that still change by {change:.2g} of "
            f"their size; the tolerance is {self.tolerance:g}. To fix that, {scale}raise max_epochs, lower "
            f"batch (now {self.batch}), raise l2 where columns are nearly collinear, or use Central.",
            ConvergenceWarning,
            stacklevel=2,
        )


def linear_task(task: Task[M]) -> LinearTask[M]:
    """Require a task whose model is linear."""
    if not isinstance(task, LinearTask):
        raise UnsupportedError(
            f"Saga solves linear tasks, and {type(task).__name__} is not linear. Use another solver."
        )
    task.penalties()  # refuses "cv"
    return task


def _learned(task: Task[M]) -> LinearTask[M] | LogisticTask[M]:
    """Require a task whose model is linear, of a number or of two classes."""
    if not isinstance(task, LogisticTask):
        return linear_task(task)
    if task.classes is not None and len(task.classes) > 2:
        raise UnsupportedError(f"Saga tells two classes apart, not {len(task.classes)}. Use Central().")
    task.penalties()  # refuses "cv"
    return task


def _opening(task: LinearTask[M] | LogisticTask[M], options: tuple[int, int, float, float, bool, bool]) -> OpenSaga:
    if isinstance(task, LinearTask):
        return OpenSaga(*options)
    return OpenClassSaga(*options, sendable_floats(task.label_values()))


def _opened(
    inbox: Inbox, task: LinearTask[M] | LogisticTask[M], roster: Roster, rows: Rows
) -> tuple[Mapping[str, SquaredNorms | ClassNorms], Rows | None]:
    """Read norms, and of a classification the labels: 1 in rows of the last class."""
    if isinstance(task, LinearTask):
        return checks.replies(inbox, SquaredNorms), None
    replies, codes = checks.replies(inbox, ClassNorms), None
    for party, reply in replies.items():
        if (reply.labels is not None) != (party == roster.label_party):
            raise checks.wrong(party, reply, "labels where none were due, or none where they were")
        if reply.labels is not None:
            checks.shape(party, reply, reply.labels, rows.shape)
            checks.copies(party, reply, rows, reply.labels)
            if not np.isin(reply.labels, task.label_values()).all():
                raise checks.wrong(party, reply, "a label that is none of the classes")
            codes = task.codes_of(reply.labels)
    return replies, codes


def _model(task: LinearTask[M] | LogisticTask[M], coef: Floats, intercept: float, roster: Roster) -> M:
    if isinstance(task, LinearTask):
        return task.linear_model(coef, intercept, roster)
    return task.class_model(coef[np.newaxis], np.array([intercept]), roster)


def plain_epoch(
    parties: tuple[str, ...], blocks: list[int], table: ResidualTable, step: float | None
) -> Script[Message]:
    """Visit blocks; give the request that ends the epoch, with the last block's changes."""
    changes = sendable_floats([])
    for block in blocks:
        inbox = yield dict.fromkeys(parties, SagaStep(changes, block, step))
        changes, step = table.changes(block, checks.replies(inbox, PartialProducts)), None
    return AskProgress(changes)


def _check_scaled_norms(
    replies: Mapping[str, SquaredNorms | ClassNorms], roster: Roster, rows: Rows, *, fit_intercept: bool
) -> None:
    """Require norms of columns whose squares average to 1 over all rows, and of the intercept's ones."""
    for card in roster.cards:
        reply, ones = replies[card.name], int(fit_intercept and card.label_name is not None)
        checks.copies(card.name, reply, rows, reply.norms)
        columns = reply.norms - ones + checks.SLACK
        checks.non_negative(card.name, reply, columns)
        most = roster.n_rows * (card.n_features + 2 * checks.SLACK) * (1 + checks.SLACK)
        if roster.weight_party is None and columns[first_copies(rows)].sum() > most:
            raise checks.wrong(card.name, reply, "larger norms than columns have whose deviation is 1")


def _join(
    replies: Mapping[str, Coefficients], roster: Roster, fit_intercept: bool, scale: bool
) -> tuple[Floats, float]:
    coef = np.empty(len(roster.feature_names))
    for card in roster.cards:
        reply = replies[card.name]
        checks.shape(card.name, reply, reply.coef, (card.n_features,))
        checks.in_range(card.name, reply, np.append(reply.coef, reply.offset))
        # What shifts columns, and the intercept itself, enter it; with neither there is nothing to tell.
        if reply.offset and not (fit_intercept and (card.label_name is not None or (scale and card.n_features))):
            raise checks.wrong(card.name, reply, f"{reply.offset} of an intercept that it has no part in")
        coef[roster.parts[card.name]] = reply.coef
    return coef, float(sum(reply.offset for reply in replies.values()))
