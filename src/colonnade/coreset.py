"""A coreset: a weighted multiset of rows that stands for all of them (paper, Problem 1)."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.cells import html_table
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.linear import LinearProblem, reduce_rows
from colonnade.kernels.selections import CountedRows, ListedRows, Selection

# The sampler's name where the caller made the coreset.
GIVEN = "given"
# And where it has all rows.
ALL_ROWS = "AllRows()"
LISTED = ("rows", "weights")
Positive = Annotated[float, msgspec.Meta(gt=0)]


class PartyEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a party committed to, told and showed.

    `root` is of the tree of its scores, and `total` their sum, in steps. The digest of its contribution to the joint
    seed was told before any contribution was. `rows`, ascending, are what it drew. `scores`, in steps, are of all rows
    of the coreset; None where they were summed in secret. `opened` is, by row, what a spot check showed. It signed what
    it committed to, with `signature`, and what was drawn, with `draw_signature`; runs of earlier versions have neither.
    """

    root: bytes
    total: int
    contribution_digest: bytes = msgspec.field(name="seal")  # as in files of earlier versions
    contribution: bytes
    rows: tuple[int, ...]
    scores: tuple[int, ...] | None = None
    opened: dict[int, "OpenedRow"] = {}
    signature: bytes = b""
    draw_signature: bytes = b""


class OpenedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The committed score of a row, in steps, and the way up from it in the tree."""

    score: int
    salt: bytes
    hashes: tuple[bytes, ...]
    sums: tuple[int, ...]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a spot check needs of a committed draw.

    Scores are in steps of 2^-exponent. The contribution is the server's. Parties are in the order of the federation.
    `counts` says what each row of the coreset counts; None where all count 1. `sheet` is the job sheet that opened the
    run, as the server signed it: its digest is in all that parties signed. Runs of earlier versions have none.
    """

    exponent: int
    contribution_digest: bytes = msgspec.field(name="seal")  # as in files of earlier versions
    contribution: bytes
    parties: dict[str, PartyEvidence]
    counts: tuple[float, ...] | None = None
    sheet: bytes = b""


class UnlistedRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of rows that are too many for a file: `n` of them, and what they weigh."""

    n: Annotated[int, msgspec.Meta(ge=1)]
    n_distinct: Annotated[int, msgspec.Meta(ge=1)]
    weight: Positive
    squared_weight: Positive
    least_weight: Annotated[float, msgspec.Meta(ge=0)]
    largest_weight: Positive

    def __post_init__(self) -> None:
        is_possible = self.n_distinct <= self.n and self.least_weight <= self.largest_weight
        if not (is_possible and 0.99 <= self.weight * (self.weight / self.squared_weight) <= 1.01 * self.n):
            raise ValueError("no rows weigh what these do")

    def __len__(self) -> int:
        return self.n

    @property
    def ids(self) -> Rows:
        """Nobody has them."""
        raise InputError(
            f"This run was saved without its {self.n:,} rows and weights, which are too many for a file. Run the job "
            "again to have them: the seed, the options and the data are enough."
        )

    weights = ids


@dataclass(frozen=True, eq=False)
class Coreset:
    """Rows and weights, with where they came from.

    The rows are a multiset in ascending order: a row drawn twice is listed twice, each time with its weight. Distinct
    draws list each once. Where all rows were taken, `rows` and `weights` are listed when somebody looks at them.

    Parameters
    ----------
    rows : ndarray of int64, shape (size,)
        Row ids in ``range(n_rows)``, ascending.
    weights : ndarray of float64, shape (size,)
        Finite, non-negative, not all zero.
    n_rows : int
        How many rows the parties hold.
    total_weight : float
        The weight of *all* rows: the n that multiplies a penalty.
    sampler : str
        What drew the rows.
    rule : str or None
        The kind of scores they were drawn by, if by scores.
    total : float or None
        G, the sum of all parties' scores, where rows were drawn by scores.
    evidence : Evidence or None
        What a spot check needs, where draws were committed.
    alignment : str or None
        The fingerprint of the alignment that the rows go by, where records were matched: by another, they are others.
    distinct : bool
        Whether each row was drawn at most once: its chance of being there is what it counts over its weight.
    stratified : bool
        Whether independent draws were each from a part of the rows, in the order of their scores.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> coreset = cn.Coreset(np.array([0, 3, 3]), np.array([2.0, 1.0, 1.0]), n_rows=4, total_weight=4.0)
    >>> len(coreset), coreset.effective_size
    (3, 2.6666666666666665)
    """

    rows: Rows
    weights: Floats
    n_rows: int
    total_weight: float
    sampler: str = GIVEN
    rule: str | None = None
    total: float | None = None
    evidence: Evidence | None = None
    alignment: str | None = None
    distinct: bool = False
    stratified: bool = False

    def __post_init__(self) -> None:
        if np.asarray(self.rows).dtype.kind not in "iu":
            raise InputError(f"Coreset rows must be whole numbers, got {np.asarray(self.rows).dtype}. Pass row ids.")
        rows, weights = _owned(self.rows, np.int64), _owned(self.weights, np.float64)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "weights", weights)
        if rows.ndim != 1 or rows.shape != weights.shape or not len(rows):
            raise InputError(
                f"A coreset needs as many rows as weights, and at least one: got shapes {rows.shape} and "
                f"{weights.shape}. Pass two 1-D arrays of one length."
            )
        if rows[0] < 0 or rows[-1] >= self.n_rows or np.any(rows[1:] < rows[:-1]):
            raise InputError(
                f"Coreset rows must ascend within 0..{self.n_rows - 1}: got {rows.min()}..{rows.max()}. "
                "Sort the rows (and the weights with them) and check n_rows."
            )
        if self.distinct and np.any(rows[1:] == rows[:-1]):
            raise InputError("A coreset of distinct rows lists a row twice. List each once, or pass distinct=False.")
        if not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
            raise InputError(
                f"Coreset weights must be finite, non-negative and not all zero: got {weights.min()}.."
                f"{weights.max()}. Check how they were computed."
            )
        if not (np.isfinite(self.total_weight) and self.total_weight > 0):
            raise InputError(f"total_weight must be positive, got {self.total_weight}. Pass the weight of all rows.")

    def __getattr__(self, name: str) -> Any:
        """List rows or weights that are not listed yet."""
        held = self.__dict__.get("_held")
        if name not in LISTED or held is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__[name] = listed = held.ids if name == "rows" else held.weights
        listed.flags.writeable = False
        return listed

    @cached_property
    def _held(self) -> Selection | UnlistedRows:
        """The rows and what they weigh; all rows that count are not listed in it."""
        return ListedRows(self.rows, self.weights)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def n_distinct(self) -> int:
        """How many different rows there are."""
        if not isinstance(self._held, ListedRows):
            return self._held.n_distinct
        return 1 + int(np.count_nonzero(self.rows[1:] != self.rows[:-1]))  # they ascend

    @property
    def least_weight(self) -> float:
        """What the lightest row weighs."""
        return float(self.weights.min()) if isinstance(self._held, ListedRows) else self._held.least_weight

    @property
    def largest_weight(self) -> float:
        """What the heaviest row weighs."""
        return self._held.largest_weight

    @property
    def weight_sum(self) -> float:
        """What all weigh together: an estimate of the weight of all rows."""
        return self._held.weight

    def __repr__(self) -> str:
        return f"Coreset({len(self):,} of {self.n_rows:,} rows, total_weight={self.total_weight:g}, {self.sampler})"

    def _repr_html_(self) -> str:
        facts = [
            ("rows", f"{len(self):,} of {self.n_rows:,}"),
            ("distinct rows", f"{self.n_distinct:,}"),
            ("as steady as", f"{self.effective_size:,.0f} equal weights"),
            ("weights", f"{self.least_weight:.4g} to {self.largest_weight:.4g}"),
            ("sum of weights", f"{self.weight_sum:,.0f}, of {self.total_weight:,.0f}"),
            ("drawn by", self.sampler),
        ]
        return html_table("Coreset", (), facts, ())

    @property
    def effective_size(self) -> float:
        """Kish's effective sample size, (sum w)^2 / sum w^2: how many equal weights would be as steady."""
        return self.weight_sum**2 / self._held.squared_weight


def coreset_of_all(counted: CountedRows, alignment: str | None = None) -> Coreset:
    """Make the coreset of all rows that count, each weighing what it counts; nothing is listed."""
    known = {"n_rows": counted.n_rows, "total_weight": counted.weight, "sampler": ALL_ROWS, "alignment": alignment}
    return without_list(counted, **known)


def without_list(held: CountedRows | UnlistedRows, **known: Any) -> Coreset:
    """Make one whose other fields are given; they were looked at."""
    made = object.__new__(Coreset)
    made.__dict__.update({each.name: each.default for each in fields(Coreset) if each.name not in LISTED})
    made.__dict__.update(known, _held=held)
    return made


def selection_of(coreset: Coreset) -> Selection:
    """Give the rows and what they weigh: all rows that count unlisted."""
    held = coreset._held
    return ListedRows(coreset.rows, coreset.weights) if isinstance(held, UnlistedRows) else held


def listed(coreset: Coreset) -> Coreset:
    """Give the same as a list of rows, as parties have it that were told which."""
    return coreset if isinstance(coreset._held, ListedRows) else replace(coreset)


def unlisted(coreset: Coreset, most: int) -> UnlistedRows | None:
    """Give what is kept of more rows than these; None of others, which are listed."""
    held = coreset._held
    if isinstance(held, UnlistedRows) or len(held) <= most:
        return held if isinstance(held, UnlistedRows) else None
    sums = held.weight, held.squared_weight
    return UnlistedRows(len(held), coreset.n_distinct, *sums, coreset.least_weight, coreset.largest_weight)


def _owned(array: npt.ArrayLike, dtype: type[np.generic]) -> npt.NDArray[Any]:
    copy = np.array(array, dtype=dtype)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows in one place: what a central solver works on.

    Features, shape (size, n_features), are in the roster's column order; labels are there where the task needs them.
    `total_weight` is of all rows, the n that multiplies a penalty. Copies of one row have the same id in `rows`.
    """

    features: Floats
    labels: Floats | None
    weights: Floats
    total_weight: float
    rows: Rows
    _reduced: dict[bool, LinearProblem] = field(default_factory=dict, init=False, repr=False)

    def reduced(self, *, fit_intercept: bool) -> LinearProblem:
        """Reduce them to what least squares needs, once; labels that are not there count as zeros."""
        if fit_intercept not in self._reduced:
            labels = np.zeros(len(self.features)) if self.labels is None else self.labels
            problem = reduce_rows(self.features, labels, self.weights, fit_intercept=fit_intercept)
            self._reduced[fit_intercept] = problem
        return self._reduced[fit_intercept]


class Precision(msgspec.Struct, frozen=True):
    """What a coreset's own rows say of a linear model learned on them, kept for `certify`: a few numbers, no rows.

    Parameters
    ----------
    excess : float or None
        The objective is above the least possible on all rows by no more than this, with 95 % confidence; None where the
        rows cannot tell.
    why_none : str or None
        Why they cannot.
    gradient : dict of str to three floats
        What to expect of the gradient on all rows, halved, along each party's part of the predictions: its value, its
        standard deviation, and effective degrees of freedom of that.
    offset_gradient : three floats, or None
        Likewise along the intercept, if there is one.
    hidden : tuple of tuples of float
        Directions of the coefficients in which rounding hides what the columns are: an audit must look there.
    """

    excess: float | None
    why_none: str | None = None
    gradient: dict[str, tuple[float, float, float]] = {}
    offset_gradient: tuple[float, float, float] | None = None
    hidden: tuple[tuple[float, ...], ...] = ()


class Variances(msgspec.Struct, frozen=True):
    """Variances of coefficients, the intercept's last, and their effective degrees of freedom.

    A variance is None where nothing tells it, degrees where there is no end to them.
    """

    variance: tuple[float | None, ...]
    degrees: tuple[float | None, ...]


class StandardErrors(msgspec.Struct, frozen=True):
    """What rows say of how far the coefficients learned on them vary, kept for `Run.summary`: no rows.

    All are in the data's own units: one number a feature, in the order of the parties, and last the intercept's, if
    there is one.

    Parameters
    ----------
    draw : Variances or None
        What the draw of the coreset, and the rounding of its rows, add; None where all rows were taken as they are.
    sandwich : Variances or None
        What all rows add, being drawn from a population; None where the server has seen no row.
    classical : Variances
        Likewise, if residuals vary alike everywhere.
    inflation : tuple of float or None
        Each feature's variance inflation factor; None where it depends on others, or does not vary.
    condition : float or None
        The condition number of the columns at length 1; None where they depend on each other.
    dependent : tuple of tuples of int
        Features, by number, each with those that it depends on.
    undefined : tuple of int
        Coefficients that no row decides.
    hidden : tuple of int
        Coefficients of which rounding hides what the columns are.
    """

    draw: Variances | None
    sandwich: Variances | None
    classical: Variances
    inflation: tuple[float | None, ...]
    condition: float | None
    dependent: tuple[tuple[int, ...], ...] = ()
    undefined: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()

    def is_for(self, n_features: int) -> bool:
        """Tell whether these are standard errors of so many features, as a file that somebody wrote may not have."""
        n_coefficients = len(self.classical.variance)
        kinds = [each for each in (self.draw, self.sandwich, self.classical) if each is not None]
        numbers = (*self.undefined, *self.hidden, *(place for group in self.dependent for place in group))
        return (
            len(self.inflation) == n_features
            and n_coefficients - n_features in (0, 1)
            and all(len(each.variance) == len(each.degrees) == n_coefficients for each in kinds)
            and all(value is None or value >= 0 for each in kinds for value in each.variance)
            and all(value is None or value >= 1 for each in kinds for value in each.degrees)
            and all(0 <= number < n_coefficients for number in numbers)
        )
