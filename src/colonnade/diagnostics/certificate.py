"""The certificate: what an audit says of a run, in numbers and in plain words."""

import math
from decimal import ROUND_CEILING, Decimal
from typing import Literal

import msgspec

from colonnade.cells import html_table
from colonnade.number_words import in_bytes

# Bounds below it are written as this.
LEAST_BOUND = Decimal("0.000001")
# Of each test, the chance that it doubts an honest run.
FALSE_ALARMS = 0.01
_TABLES = {
    "same": "of the table that the run learned from",
    "changed": "of a table that CHANGED since the run",
    None: "whether the table is the run's is not known",
}


class Certificate(msgspec.Struct, frozen=True):
    """What a model costs on all rows, and how far it is from the best, told by rows that it has not seen.

    Parameters
    ----------
    task : str
        Regression or KMeans.
    rows : int
        How many rows the audit looked at; fewer than were drawn, where parties drew the same.
    cost : float
        ``sum_i w_i (prediction_i - y_i)^2`` without the penalty, or ``sum_i w_i min_c |x_i - c|^2``, over all rows that
        were there to learn from; estimated, and 0 where the estimate is below that.
    cost_interval : tuple of float
        With 95 % confidence it is between these.
    excess : float or None
        With 95 % confidence, the objective (with its penalty) is above the least possible by no more than this; None
        where no bound can be given.
    relative_excess : float or None
        The same, relative to the least possible.
    why_no_bound : str or None
        Why there is none.
    gradient_p : float or None
        The chance that an honest coreset leaves so large a gradient on the audit's rows; below 0.01 the certificate
        doubts the coreset. None where there is no bound to check.
    draws_p : float
        The chance that rows honestly drawn by their scores miss the parties' own sums so far; below 0.01 the
        certificate doubts the draws.
    n_hidden : int
        In so many directions the rows were rounded more coarsely than the parties' columns differ. The audit looked
        there and saw nothing to gain; what is finer than it can see is not counted in the bound.
    units, bytes : int
        What the audit cost.
    run_bytes : int
        What the run had cost.
    reveals : tuple of str
        What the parties showed the server for the audit.
    table : str or None
        "same" where the audit was of the table that the run learned from, "changed" where that changed since: such a
        certificate has no bound. None where nobody can tell.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(5000, 4))
    >>> y = X @ np.ones(4) + np.random.default_rng(1).normal(size=5000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=300))
    >>> found = federation.certify(run)
    >>> low, high = found.cost_interval
    >>> low < federation.evaluate(run.model).cost < high, found.relative_excess < 0.1, found.trusted
    (True, True, True)
    """

    task: str
    rows: int
    cost: float
    cost_interval: tuple[float, float]
    excess: float | None
    relative_excess: float | None
    why_no_bound: str | None
    gradient_p: float | None
    draws_p: float
    n_hidden: int = 0
    units: int = 0
    bytes: int = 0
    run_bytes: int = 0
    reveals: tuple[str, ...] = ()
    table: Literal["same", "changed"] | None = None

    def checked(self) -> "Certificate":
        """Drop the bound where it was of another table: what the run's rows say of the model is not of this one."""
        if self.excess is None or self.table != "changed":
            return self
        why = "the run learned from another table"
        return msgspec.structs.replace(
            self, excess=None, relative_excess=None, why_no_bound=why, gradient_p=None, n_hidden=0
        )

    @property
    def trusted(self) -> bool:
        """Whether neither test doubts the run."""
        return self.draws_p >= FALSE_ALARMS and (self.gradient_p is None or self.gradient_p >= FALSE_ALARMS)

    def excess_in_words(self) -> str:
        """Say how far from the best possible it is at most."""
        if self.excess is None:
            return f"how far it is from the best possible is not known: {self.why_no_bound}"
        if self.excess == 0:
            return "it is the best possible: it was learned on all rows"
        relative = self.relative_excess
        amount = _number(self.excess) if relative is None else f"{_rounded_up(100 * relative)} %"
        hidden = f"{self.n_hidden} direction{'s' * (self.n_hidden > 1)}"
        but = f", but for what rounding hides in {hidden} in which the parties' columns coincide" * (self.n_hidden > 0)
        return f"at most {amount} above the best possible, with 95 % confidence{but}"

    def __str__(self) -> str:
        return "; ".join(self._words())

    def _repr_html_(self) -> str:
        title = "Certificate" if self.trusted else "Certificate that doubts the run"
        return html_table(title, (), [(words,) for words in self._words()], ())

    def _words(self) -> list[str]:
        low, high = self.cost_interval
        return [
            f"cost {_number(self.cost)}, between {_number(low)} and {_number(high)} with 95 % confidence",
            self.excess_in_words(),
            *_doubts(self),
            _TABLES[self.table],
            f"{in_bytes(self.run_bytes + self.bytes)} sent, {in_bytes(self.bytes)} of it for this check",
        ]


def _doubts(found: Certificate) -> list[str]:
    doubts = []
    if found.draws_p < FALSE_ALARMS:
        doubts.append(
            "NOT TO BE TRUSTED: the drawn rows do not add up to the parties' own sums "
            f"(p = {found.draws_p:.1g}), so they were not drawn by the scores, or the sums are wrong"
        )
    if found.gradient_p is not None and found.gradient_p < FALSE_ALARMS:
        doubts.append(
            "NOT TO BE TRUSTED: the audit's rows pull the model where an honest coreset would not have left it "
            f"(p = {found.gradient_p:.1g}), so the bound does not hold"
        )
    return doubts


def _number(value: float) -> str:
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _rounded_up(bound: float) -> str:
    """Write a bound with two digits, or all before the point: not below it, and never as a power of ten."""
    if not 0 < bound < math.inf:
        return f"{bound:g}"
    exact = max(Decimal(repr(bound)), LEAST_BOUND)
    return f"{exact.quantize(Decimal(1).scaleb(min(exact.adjusted() - 1, 0)), ROUND_CEILING):,f}"
