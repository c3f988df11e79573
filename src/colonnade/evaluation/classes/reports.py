"""What an evaluation of a classification says."""

import math

import msgspec
import numpy as np

from colonnade.evaluation.reports import Losses, cost_interval
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_metrics import ClassMetrics
from colonnade.ledger import aligned
from colonnade.protocol.classes import ClassName
from colonnade.protocol.fingerprints import Seen

# Of a normal law: 95 % are within so many standard deviations.
WITHIN_95 = 1.959963984540054
Interval = tuple[float, float]


class ClassLine(msgspec.Struct, frozen=True):
    """How well a model tells one class from the others.

    Parameters
    ----------
    name : str or number
        The class.
    support : float
        How many of the evaluated rows have it, by their weight.
    precision : float or None
        The share of rows it is most likely for that have it; None where there are none.
    recall : float or None
        The share of rows that have it for which it is most likely; None where there are none.
    auc : float or None
        The area under its ROC curve, against all other classes; None where no row, or every row, has it.
    """

    name: ClassName
    support: float
    precision: float | None
    recall: float | None
    auc: float | None


class CalibrationLine(msgspec.Struct, frozen=True):
    """Rows to which the model gives like chances, 10 or more of them, and as many as owners ask for.

    Parameters
    ----------
    support : float
        How many rows, by their weight.
    predicted : float
        Their mean chance: of the last of two classes; of more, of the most likely class.
    observed : float
        The share of them for which it came true.
    """

    support: float
    predicted: float
    observed: float


class ClassificationReport(msgspec.Struct, frozen=True):
    """How well a classification tells classes apart, and how right its chances are.

    Parameters
    ----------
    n_evaluated : int
        On how many rows this rests.
    cost : float
        sum_i w_i loss_i over all rows (held-out ones, where there is a split), without the penalty, where a loss is the
        negative log of the chance given to the row's class; estimated where only a sample was evaluated.
    log_loss : float
        Its mean a row, weighted where rows have weights, as all means here.
    accuracy : float
        The share of rows whose most likely class is theirs.
    auc : float or None
        The area under the ROC curve; of more classes than two, the mean of each against all others. None where a class
        has no row, or every row.
    auc_interval : tuple of float, or None
        Its 95 % confidence interval (DeLong), of rows of the same kind as these; None where there is no area, or a
        class has a single row.
    brier : float
        The mean of (chance - outcome)^2; of more classes than two, squares are added over the classes.
    by_class : tuple of ClassLine
        In the model's order.
    confusion : tuple of tuples of float
        The weight of evaluated rows of each class (lines) that each class is most likely for (columns).
    calibration : tuple of CalibrationLine
        By ascending chance, one line for fifty rows, at most ten; none where there are too few rows.
    cost_interval : tuple of float, or None
        95 % confidence interval of the cost, where a sample was evaluated.
    rounded_by : float or None
        Where parts travelled rounded: no row's logit, and so no row's loss but for a factor 2, is off by more.
    table : str or None
        "same" where this is the table that the model was learned from, and rows that were held out are such; "changed"
        where that changed since, "aligned again" where records were, "new rows" where it has others; None where
        nobody can tell.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 4))
    >>> late = np.where(X @ [1.0, -2.0, 0.5, 0.0] + rng.logistic(size=4000) > 0, "yes", "no")
    >>> federation = cn.Federation(cn.split_columns(X, late, [2, 2]))
    >>> run = federation.fit(cn.Classification(l2=1e-4), sampler=cn.ImportanceSampling(size=1000))
    >>> report = federation.evaluate(run.model)
    >>> round(report.auc, 2), report.by_class[1].name, len(report.calibration)
    (0.89, 'yes', 10)
    """

    n_evaluated: int
    cost: float
    log_loss: float
    accuracy: float
    auc: float | None
    auc_interval: Interval | None
    brier: float
    by_class: tuple[ClassLine, ...]
    confusion: tuple[tuple[float, ...], ...]
    calibration: tuple[CalibrationLine, ...]
    cost_interval: Interval | None
    rounded_by: float | None = None
    table: Seen | None = None

    @property
    def cost_per_row(self) -> float:
        """The mean log-loss, by the name it has in every report."""
        return self.log_loss

    def in_words(self) -> str:
        """Put the numbers that matter first into a few words."""
        auc = "" if self.auc is None else f"AUC {self.auc:.4g}, "
        return f"{auc}accuracy {self.accuracy:.4g}, cost {self.cost:.6g}, {self.log_loss:.6g} a row"

    def tables(self) -> str:
        """Lay out classes, who is taken for whom, and calibration, for people."""
        names = [str(line.name) for line in self.by_class]
        classes = [
            (name, *map(_cell, (line.support, line.precision, line.recall, line.auc)), *map(_cell, taken))
            for name, line, taken in zip(names, self.by_class, self.confusion, strict=True)
        ]
        header = ("class", "rows", "precision", "recall", "AUC", *(f"taken for {name}" for name in names))
        text = aligned([header, *classes], numbers=range(1, len(header)))
        if not self.calibration:
            return text
        of = f"chance of {names[-1]}" if len(names) == 2 else "chance of the most likely class"
        lines = [(_cell(line.predicted), _cell(line.observed), _cell(line.support)) for line in self.calibration]
        return f"{text}\n\n{aligned([(of, 'share that came', 'rows'), *lines], numbers=range(3))}"


def classification_report(
    found: ClassMetrics, classes: tuple[ClassName, ...], n_rows: int, weight: float, *, sampled: bool
) -> ClassificationReport:
    """Say how well classes are told apart, from sums over rows; a sample stands for all rows, of this weight."""
    counted = float(found.confusion.sum())
    cost = found.cost * weight / counted if sampled else found.cost
    areas = _areas(found, len(classes))
    lines = tuple(_line(name, place, found.confusion, areas) for place, name in enumerate(classes))
    losses = Losses(n_rows, weight, cost, found.deviation)
    return ClassificationReport(
        n_evaluated=n_rows,
        cost=cost,
        log_loss=cost / weight,
        accuracy=float(np.trace(found.confusion)) / counted,
        auc=None if None in areas else float(found.areas[-1, 0]),
        auc_interval=None if None in areas else _interval(found),
        brier=found.brier / counted,
        by_class=lines,
        confusion=tuple(tuple(line) for line in found.confusion.tolist()),
        calibration=tuple(CalibrationLine(*line) for line in found.calibration.tolist()),
        cost_interval=cost_interval(losses, sampled=sampled),
    )


def _areas(found: ClassMetrics, n_classes: int) -> list[float | None]:
    """Give the area of each class; of two it is the same for both."""
    support, counted = found.confusion.sum(axis=1), found.confusion.sum()
    areas = [found.areas[0, 0]] * 2 if n_classes == 2 else found.areas[:-1, 0]
    return [float(area) if 0 < has < counted else None for area, has in zip(areas, support, strict=True)]


def _interval(found: ClassMetrics) -> Interval | None:
    if found.confusion.sum(axis=1).min() <= 1:
        return None
    area, variance = found.areas[-1].tolist()
    half = WITHIN_95 * math.sqrt(variance)
    return max(area - half, 0.0), min(area + half, 1.0)


def _line(name: ClassName, place: int, confusion: Floats, areas: list[float | None]) -> ClassLine:
    right, has, taken = confusion[place, place], confusion[place].sum(), confusion[:, place].sum()
    precision = float(right / taken) if taken > 0 else None
    return ClassLine(name, float(has), precision, float(right / has) if has > 0 else None, areas[place])


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if value < 1 else f"{value:,.6g}"
