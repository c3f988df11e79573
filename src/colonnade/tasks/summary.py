"""Coefficients with their standard errors, as statisticians expect them: printed, in a notebook, as a frame."""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import scipy
from msgspec.structs import replace

from colonnade.cells import html_table
from colonnade.contracts import LinearTask, LogisticTask
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset, StandardErrors, Variances
from colonnade.errors import AssumptionWarning, InputError, UnsupportedError
from colonnade.ledger import aligned, in_a_line
from colonnade.options import listed, share
from colonnade.tasks.model_columns import own_names

Of: TypeAlias = Literal["population", "table"]
Covariance: TypeAlias = Literal["sandwich", "classical"]
INTERCEPT = "(intercept)"
# Where so few rows make up an even draw's variance, rows like them may have been missed. It is not alarmed by rows that
# are few in all: of normal columns and residuals a quarter of the rows count.
FEW_DEGREES, FEW_OF_ROWS = 20.0, 1 / 20


class Coefficient(msgspec.Struct, frozen=True):
    """One line of a `Summary`.

    Parameters
    ----------
    party : str or None
        Who holds the feature; None for the intercept.
    feature : str
        Its name.
    coefficient : float
        In the data's own units.
    standard_error : float or None
        None where it is undefined, and so what follows.
    statistic : float or None
        The coefficient over its standard error: Student's t, or z where degrees of freedom are infinite.
    degrees : float or None
        Effective degrees of freedom of the standard error; None where they are infinite, too.
    p_value : float or None
        The chance of so large a statistic, or a larger, where the coefficient is 0; of both signs.
    low, high : float or None
        The interval.
    inflation : float or None
        The feature's variance inflation factor, over all parties' columns.
    undefined : str or None
        Why there is no standard error.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + [1.0, -1, 1, -1, 1, -1], [1, 1]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
    >>> line = run.summary(covariance="classical").coefficients[1]
    >>> line.party, line.feature, round(line.degrees), bool(line.low < 1.0 < line.high)
    ('party1', 'party1_0', 3, True)
    """

    party: str | None
    feature: str
    coefficient: float
    standard_error: float | None = None
    statistic: float | None = None
    degrees: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    inflation: float | None = None
    undefined: str | None = None


class Summary(msgspec.Struct, frozen=True):
    """A model's coefficients, with standard errors, intervals and p-values: what `Run.summary` gives.

    Parameters
    ----------
    of : "population" or "table"
        What the intervals are for: coefficients in the population that all rows are drawn from, or those that all rows
        of the table would give.
    covariance : "sandwich" or "classical"
        Whether residuals may vary differently from row to row.
    confidence : float
        Of the intervals.
    coefficients : tuple of Coefficient
        The intercept first, then each party's features, in its order.
    condition : float or None
        The condition number of all parties' columns at length 1; None where they depend on each other.
    notes : tuple of str
        What to know of the numbers.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 4))
    >>> y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=4000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    >>> summary = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=500)).summary()
    >>> [each.feature for each in summary.coefficients if each.p_value > 0.001]
    ['(intercept)', 'party2_1']
    >>> frame = summary.to_pandas()
    >>> bool((frame["high"] > frame["coefficient"]).all())
    True
    """

    of: Of
    covariance: Covariance
    confidence: float
    coefficients: tuple[Coefficient, ...]
    condition: float | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        table = aligned(self._cells(), numbers=range(2, 9))
        return "\n".join([self._title(), "", table, "", *self._all_notes()])

    def _repr_html_(self) -> str:
        head, *lines = self._cells()
        return html_table(self._title(), head, lines, range(2, 9), self._all_notes())

    def to_pandas(self) -> Any:
        """Give a `pandas.DataFrame` with a line a coefficient, by party and feature.

        Returns
        -------
        pandas.DataFrame
            Columns are named as the fields of `Coefficient`; what is undefined is missing.
        """
        import pandas as pd

        frame = pd.DataFrame([msgspec.structs.asdict(each) for each in self.coefficients])
        numbers = [name for name in frame.columns if name not in ("party", "feature", "undefined")]
        frame["party"] = [each.party or "" for each in self.coefficients]
        return frame.astype(dict.fromkeys(numbers, "float64")).set_index(["party", "feature"])

    def _title(self) -> str:
        what = "the population that rows are drawn from" if self.of == "population" else "all rows of the table"
        how = "sandwich (HC2)" if self.covariance == "sandwich" else "classical"
        return f"Coefficients for {what}; {how} standard errors, {100 * self.confidence:g} % intervals"

    def _cells(self) -> list[list[str]]:
        letter = "z" if all(each.degrees is None for each in self.coefficients) else "t"
        head = ["party", "feature", "coefficient", "std. error", letter, "p", "low", "high", "VIF"]
        lines, last = [], None
        for each in self.coefficients:
            party = "" if each.party is None or each.party == last else each.party
            last = each.party
            numbers = ("undefined", "", "", "", "") if each.undefined else _numbers(each)
            inflation = "" if each.inflation is None else f"{each.inflation:.3g}"
            lines.append([party, each.feature, f"{each.coefficient:.6g}", *numbers, inflation])
        return [head, *lines]

    def _all_notes(self) -> list[str]:
        condition = "infinite: columns depend on each other" if self.condition is None else f"{self.condition:.3g}"
        whys = [f"{each.feature}: {each.undefined}." for each in self.coefficients if each.undefined]
        return [f"Condition number of all columns: {condition}.", *whys, *self.notes]


def _numbers(each: Coefficient) -> tuple[str, ...]:
    numbers = (each.standard_error, each.statistic, each.p_value, each.low, each.high)
    error, statistic, p, low, high = (math.nan if number is None else number for number in numbers)
    return f"{error:.4g}", f"{statistic:.2f}", "<0.0001" if p < 1e-4 else f"{p:.4f}", f"{low:.5g}", f"{high:.5g}"


def summarise(
    task: Any,
    model: Any,
    solver: Any,
    coreset: Coreset,
    errors: StandardErrors | None,
    of: Of,
    covariance: Covariance,
    confidence: float,
) -> Summary:
    """Put what a run kept of its rows into a table; `UnsupportedError` says why there is none."""
    _check_options(of, covariance, confidence)
    if model is None or not isinstance(task, LinearTask | LogisticTask):
        what = "This run learned no model" if model is None else f"{type(task).__name__} has no coefficients"
        raise UnsupportedError(f"{what}: there is nothing to give standard errors of. Fit a Regression.")
    if task.penalties_of(model)[1] != 0:
        raise UnsupportedError(
            "An l1 penalty chooses features and shrinks the others: no formula gives standard errors of what it "
            "leaves. Fit with l1=0, and an l2 penalty if you need one."
        )
    if errors is None:
        raise UnsupportedError(_why_no_errors(model, solver, coreset))
    found = _asked_for(errors, of, covariance)
    _warn_of_heavy_rows(errors, model, coreset)
    return Summary(
        of,
        covariance,
        confidence,
        tuple(_lines(errors, found, model, task.fit_intercept, confidence)),
        errors.condition,
        tuple(_notes(task, model, coreset, of)),
    )


def _check_options(of: Any, covariance: Any, confidence: Any) -> None:
    if of not in ("population", "table"):
        raise InputError(f'of must be "population" or "table", got {of!r}. Pass one of the two.')
    if covariance not in ("sandwich", "classical"):
        raise InputError(f'covariance must be "sandwich" or "classical", got {covariance!r}. Pass one of the two.')
    if not 0 < share("confidence", confidence, example="Pass for instance 0.95.") < 1:
        raise InputError(f"confidence must be above 0 and below 1, got {confidence!r}. Pass for instance 0.95.")


def _why_no_errors(model: Any, solver: Any, coreset: Coreset) -> str:
    if coreset.sampler == GIVEN:
        return (
            "Nothing tells how the rows of this coreset were drawn, so nobody can say how far its coefficients vary. "
            "Fit with a sampler, or with the coreset of a run."
        )
    if len(getattr(model, "classes_", ())) > 2:
        return "Standard errors are for two classes, and this model has more. Tell one class from all others."
    name = type(solver).__name__
    if name in ("Central", "CompactCentral"):
        return "This run is of a version that kept no standard errors. Fit again."
    but = ", unless all rows were taken: then it gives classical ones" if name == "SecureGram" else ""
    return (
        f"{name} shows the server no residual of a row, and standard errors are made of them{but}. Use Central() or "
        "CompactCentral(), or AllRows() with SecureGram()."
    )


def _asked_for(errors: StandardErrors, of: Of, covariance: Covariance) -> list[tuple[float | None, float | None]]:
    """Give each coefficient's variance and degrees of freedom."""
    if of == "table":
        if covariance == "classical":
            raise UnsupportedError(
                "How a draw varies is known from its chances, and not from a model of residuals. For "
                'of="table" use covariance="sandwich".'
            )
        if errors.draw is None:
            raise UnsupportedError(
                "All rows were taken as they are: the coefficients are those of the table, without any error. For the "
                'population that its rows are drawn from, use of="population".'
            )
        return list(zip(errors.draw.variance, errors.draw.degrees, strict=True))
    rows = errors.classical if covariance == "classical" else errors.sandwich
    if rows is None:
        raise UnsupportedError(
            "The server has kept no residual of a row, which the sandwich is made of. Use "
            'covariance="classical", or fit a coreset with Central().'
        )
    drawn = errors.draw or Variances((0.0,) * len(rows.variance), (None,) * len(rows.variance))
    return [_added(*each) for each in zip(drawn.variance, drawn.degrees, rows.variance, rows.degrees, strict=True)]


def _added(
    draw: float | None, draw_degrees: float | None, rows: float | None, rows_degrees: float | None
) -> tuple[float | None, float | None]:
    """Add two variances; both are told by the same rows, so that their errors add up, too."""
    if draw is None or rows is None:
        return None, None
    error = sum(0.0 if k is None else each / math.sqrt(k) for each, k in ((draw, draw_degrees), (rows, rows_degrees)))
    return draw + rows, ((draw + rows) / error) ** 2 if error > 0 else None


def _lines(
    errors: StandardErrors,
    found: Sequence[tuple[float | None, float | None]],
    model: Any,
    fit_intercept: bool,
    confidence: float,
) -> Iterator[Coefficient]:
    names, parties = own_names(model), [party for party, width in model.parts_.items() for _ in range(width)]
    values = [*np.ravel(model.coef_).tolist(), float(np.ravel(model.intercept_)[0])]
    places = [*([len(names)] if fit_intercept else []), *range(len(names))]
    for place in places:
        is_feature = place < len(names)
        line = Coefficient(
            parties[place] if is_feature and parties else None,
            names[place] if is_feature else INTERCEPT,
            values[place],
            inflation=errors.inflation[place] if is_feature else None,
        )
        variance, degrees = found[place]
        why = _why_undefined(errors, place, names, variance)
        if why is not None or variance is None:
            yield replace(line, undefined=why)
        else:
            yield _with_error(line, math.sqrt(variance), degrees, confidence)


def _with_error(line: Coefficient, error: float, degrees: float | None, confidence: float) -> Coefficient:
    surely = math.copysign(math.inf, line.coefficient) if line.coefficient else 0.0
    t = line.coefficient / error if error > 0 else surely
    p = 2 * float(scipy.special.ndtr(-abs(t)) if degrees is None else scipy.special.stdtr(degrees, -abs(t)))
    upper = (1 + confidence) / 2
    half = error * float(scipy.special.ndtri(upper) if degrees is None else scipy.special.stdtrit(degrees, upper))
    return replace(
        line,
        standard_error=error,
        statistic=t,
        degrees=degrees,
        p_value=p,
        low=line.coefficient - half,
        high=line.coefficient + half,
    )


def _why_undefined(errors: StandardErrors, place: int, names: tuple[str, ...], variance: float | None) -> str | None:
    if place in errors.undefined:
        others = {column for group in errors.dependent if place in group for column in group} - {place}
        if others:
            return (
                f"depends on {listed([in_a_line(names[other]) for other in sorted(others)])}; leave one of them out, "
                "or fit with l2 above 0"
            )
        return "does not vary" if place < len(names) else "columns that depend on each other have part in it"
    if place in errors.hidden:
        return "rounding hides how its column differs from those of other parties; use Central(), or a smaller step"
    if errors.classical.variance[place] is None:
        return "there are no more rows, in weight, than coefficients, so that none says how wrong they are"
    return "a single row decides it, so that no other says how wrong it is" if variance is None else None


def _warn_of_heavy_rows(errors: StandardErrors, model: Any, coreset: Coreset) -> None:
    """Warn where an even draw's variance rests on a few rows: others like them were likely missed."""
    if errors.draw is None or coreset.rule is not None:
        return
    names = [*own_names(model), INTERCEPT]
    most = min(FEW_DEGREES, FEW_OF_ROWS * len(coreset))
    few = [name for name, degrees in zip(names, errors.draw.degrees, strict=False) if degrees and degrees < most]
    if few:
        warnings.warn(
            f"Rows were drawn evenly, and less than {most:.0f} of {len(coreset):,} make up most of what is known of "
            f"{listed([in_a_line(name) for name in few], 5)}: rows as heavy were likely missed, and intervals hold "
            "less often than they say. Draw by scores: ImportanceSampling(size=...).",
            AssumptionWarning,
            stacklevel=4,
        )


def _notes(task: Any, model: Any, coreset: Coreset, of: Of) -> Iterator[str]:
    if coreset.sampler == ALL_ROWS:
        yield f"Learned on all rows, {coreset.total_weight:,.0f} in weight."
    else:
        counted = "the draw, and all rows'" if of == "population" else "the draw"
        yield f"Learned on {len(coreset):,} drawn rows; errors are those of {counted}."
    l2 = task.penalties_of(model)[0]
    if l2 > 0:
        yield f"Intervals are for coefficients under the penalty l2 = {l2:.3g}, which draws them to 0."
    if model.path is not None:
        yield "The penalty was chosen on the same rows; what that adds is not counted."
